"""How a claim is judged: against the data, and against the rival that would be true if the claim were false."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Verdict(StrEnum):
    """CONFIRMED: inside the band, and the band excludes the rival. REFUTED: outside. INCONCLUSIVE: neither."""

    CONFIRMED = "CONFIRMED"
    REFUTED = "REFUTED"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True)
class Deviation:
    """Measured minus claimed, with its standard error and the stated allowance for finite width, point by point."""

    difference: Array
    stderr: Array
    allowance: Array

    @property
    def excess(self) -> Array:
        """Standard errors by which the difference exceeds the allowance (negative: inside it)."""
        beyond = np.abs(self.difference) - self.allowance
        certain = np.where(beyond > 0, np.inf, np.minimum(beyond, 0.0))
        return np.divide(beyond, self.stderr, out=certain, where=self.stderr > 0)

    @property
    def worst(self) -> float:
        return float(np.max(self.excess))


@dataclass(frozen=True)
class Finding:
    """One claim with its rival, the verdict, and the numbers behind it in a sentence."""

    claim: str
    rival: str
    verdict: Verdict
    evidence: str


# A mean of which one draw makes more than this has not converged, and its standard error means nothing.
CONVERGED_SHARE = 0.25


def judge(claim: Deviation, rival: Deviation, band: float, largest_share: float = 0.0) -> Verdict:
    """REFUTED if the claim leaves the band anywhere; CONFIRMED if it does not and the rival does.

    INCONCLUSIVE otherwise, and whenever the ``largest_share`` of one draw in a mean says that it has not converged.
    """
    if largest_share > CONVERGED_SHARE:
        return Verdict.INCONCLUSIVE
    if claim.worst > band:
        return Verdict.REFUTED
    return Verdict.CONFIRMED if rival.worst > band else Verdict.INCONCLUSIVE
