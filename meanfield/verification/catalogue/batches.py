"""Claims of P0 on batches."""

from __future__ import annotations

from meanfield.verification import batch_sizes
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
        replaced_by="B / sqrt(1 + (B - 1) f) for labels of mean 0, f the squared kernel of two samples over that of "
        "one: sqrt(B) where f is small, B^0 .. B^(1/2) else. 1 + O(1/B) holds for labels with a mean, or of a teacher",
        premise="labels of mean 0, which the papers assume, make the 'degenerate' case the generic one",
    ),
)
