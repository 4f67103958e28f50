"""Claims of P0 and P3 on residual nets."""

from __future__ import annotations

from meanfield.verification.claims import Check, Claim
from meanfield.verification.zhang_2026.residual_nets import overlaps as residual_overlaps
from meanfield.verification.zhang_2026.residual_nets import slopes as residual_slopes

CLAIMS = (
    Claim(
        id="A12",
        source="P0 lemma 6, eq. 31-35",
        statement="overlaps obey the one-block identity, and grow in mean by (1 + c q / K)^l, at most e^(c q)",
        checks=(
            Check("residual_overlap", residual_overlaps.judge_one_block),
            Check("residual_overlap", residual_overlaps.judge_mean_law),
            Check("residual_overlap", residual_overlaps.judge_vanishing_deviation),
        ),
    ),
    Claim(
        id="A13",
        source="P0 sections 3.4, C.2; P3 theorem 3",
        statement="eta* = Theta(K^(-3/2)) for residual nets whose branches are initialised with variance 1/(q K n)",
        checks=(Check("residual_depth", residual_slopes.judge_initialisation),),
        replaced_by="K^-1 for branches of one layer, K^(k - 2) for branches of k",
        premise="overlaps between units are taken to add up as in plain nets; a block adds only 1/K of them",
    ),
    Claim(
        id="A14",
        source="P0 sections 3.1, 3.4",
        statement="the factor K^(-1/2) as a multiplier is equivalent: eta* = Theta(K^(-3/2)) again",
        checks=(Check("residual_depth", residual_slopes.judge_multiplier),),
        replaced_by="K^0: the update of a weight is multiplied too, S(initialisation) = K^2 S(multiplier) for k = 1",
        premise="a factor in the initialisation and one outside give equal nets, not equal gradients",
    ),
    Claim(
        id="A15",
        source="P0 section C.2; P3 C.1",
        statement="depth counts as m + K in mixed backbones, and the depth of a branch is absorbed",
        checks=(
            Check("residual_depth", residual_slopes.judge_block_depth),
            Check("residual_depth", residual_slopes.judge_effective_depth),
        ),
        replaced_by="eta* ~ K^(k - 2) in the blocks, while every plain layer counts as in a plain net",
        premise="a block of k layers is taken for one layer, and a block for a layer",
    ),
    Claim(
        id="A22",
        source="P0 section 4.3",
        statement="PathSum (Chen et al. 2024) departs from the truth with depth in residual nets",
        checks=(Check("residual_depth", residual_slopes.judge_path_sum),),
    ),
)
