"""Claims of P0 on batches and on the loss that they are trained with."""

from __future__ import annotations

from functools import partial

from meanfield.verification import batch_sizes, cross_entropies
from meanfield.verification.claims import Check, Claim

CLAIMS = (
    Claim(
        id="A9",
        source="P0 lemma 4, eq. 25",
        statement="the second moment over mini-batches is that of the whole data, plus Cov / B",
        checks=(
            Check("batch_size", batch_sizes.judge_enumeration),
            Check("batch_size", batch_sizes.judge_sampling),
        ),
    ),
    Claim(
        id="A10",
        source="P0 section 3.3, proposition 3.3 and its remark",
        statement="the batch size moves eta* by 1 + O(1/B), and as sqrt(B) in a degenerate case",
        checks=(
            Check("batch_size", batch_sizes.judge_printed),
            Check("batch_size", batch_sizes.judge_square_root),
        ),
        replaced_by="B / sqrt(1 + (B - 1) f) for labels of mean 0, f the squared kernel between two samples over that "
        "of one: as B until B f is 1, as sqrt(B) beyond (and at inputs outside the batch). 1 + O(1/B) holds above a "
        "floor, which labels with a mean leave, or a teacher's where inputs correlate",
        premise="labels of mean 0, which the papers assume, make the 'degenerate' case the generic one",
    ),
    Claim(
        id="A18",
        source="P0 section G",
        statement="cross-entropy instead of squared loss changes the prefactor of eta* only, |p - y|^2 being 1 - 1/C",
        checks=(
            Check("cross_entropy", cross_entropies.judge_exponent),
            Check("cross_entropy", partial(cross_entropies.judge_error, head="mup")),
            Check("cross_entropy", cross_entropies.judge_exponent_with_outputs),
            Check("cross_entropy", partial(cross_entropies.judge_error, head="he")),
        ),
        replaced_by="the label term is C - 1 times that under squared loss, exactly, at any depth, width and head: "
        "eta* is (C - 1)^(-1/2) times as large where outputs vanish. Where they are of order one |p - y|^2 is 0.995 at "
        "C = 10 and not 0.9, and the output term, a tenth of what squared loss makes of it, no longer steepens eta*",
        premise="logits near zero: they are so under the muP head, not under the He head",
    ),
)
