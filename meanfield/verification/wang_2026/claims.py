"""Claims of P2 on weight-tied loops."""

from __future__ import annotations

from functools import partial

from meanfield.verification.claims import Check, Claim
from meanfield.verification.wang_2026 import loop_growth, loop_updates

CLAIMS = (
    Claim(
        id="L1",
        source="P2 theorem 1",
        statement="H_L = H_0 + O(eps L) + Theta(eps^2 L^2) in tied loops, bounded if and only if alpha >= 1",
        checks=(
            Check("looped_energy", loop_growth.judge_tied_bounded),
            Check("looped_energy", loop_growth.judge_printed_growth),
        ),
        replaced_by="below alpha = 1 the energy grows like exp(c L^(1 - alpha)); bounded at and above it, as claimed",
        premise="H = O(1), which the proof takes as given, fails below alpha = 1",
    ),
    Claim(
        id="L2",
        source="P2 appendix B",
        statement="H_L = (1 + c eps^2)^L H_0 with independent weights, bounded if and only if alpha >= 1/2",
        checks=(
            Check("looped_energy", loop_growth.judge_independent_growth),
            Check("looped_energy", loop_growth.judge_independent_bounded),
        ),
    ),
    Claim(
        id="L3",
        source="P2 figure 2, appendix C.1",
        statement="increments correlate at all distances in loops, and on the diagonal alone in deep stacks",
        checks=(
            Check("looped_energy", loop_growth.judge_correlations),
            Check("looped_energy", loop_growth.judge_mean_field),
        ),
    ),
    Claim(
        id="L4",
        source="P2 appendix C.2",
        statement="the cross term B_L is at most of order eps L (it even vanishes with the width, as N^(-1/2))",
        checks=(
            Check("looped_energy", loop_growth.judge_cross_bound),
            Check("looped_energy", loop_growth.judge_cross_term),
        ),
    ),
    Claim(
        id="L5",
        source="P2 theorem 2",
        statement="|dh_L|^2 / N = Theta((eta eps L)^2) under one update, so that eta ~ L^(alpha - 1)",
        checks=(
            Check("looped_update", partial(loop_updates.judge_stable, update="isotropic")),
            Check("looped_update", partial(loop_updates.judge_stable, update="aligned")),
            Check("looped_update", loop_updates.judge_below_threshold),
            Check("looped_update", loop_updates.judge_width),
        ),
        replaced_by="holds for alpha >= 1; below, |dh_L|^2 grows exponentially with the stream. The signs of the true "
        "gradient move the stream by eta^2 N, which asks for eta ~ N^(-1/2) L^(alpha - 1)",
        premise="H = O(1) fails below alpha = 1, and |dW| = O(eta) fails for the signs of the true gradient",
    ),
)
