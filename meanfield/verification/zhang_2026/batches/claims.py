"""Claims of P0 on batches."""

from __future__ import annotations

from meanfield.verification.claims import Check, Claim
from meanfield.verification.zhang_2026.batches import batch_sizes

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
        source="P0 section 3.3, proposition 3.3",
        statement="the batch size moves eta* by 1 + O(1/B), labels having mean 0",
        checks=(Check("batch_size", batch_sizes.judge_printed),),
        replaced_by="B / sqrt(1 + (B - 1) f) for labels of mean 0, f the squared kernel between two samples over that "
        "of one: as B until B f is 1, as sqrt(B) beyond (and at inputs outside the batch). 1 + O(1/B) holds above a "
        "floor, which labels with a mean leave, or a teacher's where inputs correlate",
        premise="labels of mean 0, which the papers assume, make the case that P0's remark calls degenerate, sqrt(B), "
        "the generic one; and at a sample of the batch its own error adds a term in 1 / B^2",
    ),
)
