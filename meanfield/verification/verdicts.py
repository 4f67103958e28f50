"""How a claim is judged: against the data, and against the rival that would be true if the claim were false."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from meanfield.estimates import critical_z

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

    def sentence(self) -> str:
        """Two lines for a printed report."""
        return f"  {self.verdict:12}  {self.claim}\n{'':16}rival: {self.rival}; {self.evidence}"


# A mean of which one draw makes more than this has not converged, and its standard error means nothing.
CONVERGED_SHARE = 0.25

# A true claim leaves this narrower band once in a hundred runs: a claim found outside it is not CONFIRMED, though only
# one beyond the false-alarm budget is REFUTED.
DOUBT = 1e-2


@dataclass(frozen=True)
class Bands:
    """Excesses, in standard errors, beyond which a claim is doubted and beyond which it is refuted."""

    doubt: float
    alarm: float

    @classmethod
    def of(cls, comparisons: int, effective: float) -> Bands:
        """For the worst of ``comparisons`` points whose means rest on so many effective draws.

        Means of skewed draws have t-statistics with heavier tails than their number says. Half the effective draws as
        degrees of freedom covers what output terms at small widths were seen to do.
        """
        draws = max(effective / 2, 2.0)
        return cls(critical_z(comparisons, draws, DOUBT), critical_z(comparisons, draws))


def effective_draws(measured: xr.Dataset, *names: str) -> float:
    """Kish's count of the draws that carry a mean, N / (1 + (spread of a draw / mean)^2), the least over the names."""
    draws = float(measured.attrs["draws"])
    found = []
    for name in names:
        relative = np.sqrt(draws) * measured[f"{name}_stderr"] / measured[name]
        found.append(float((draws / (1 + relative**2)).min()))
    return min(found)


def judge(claim: Deviation, rival: Deviation, bands: Bands, largest_share: float = 0.0) -> Verdict:
    """REFUTED if the claim leaves the alarm band; CONFIRMED if it is not even doubted and the rival leaves the band.

    INCONCLUSIVE otherwise, and whenever the ``largest_share`` of one draw in a mean says that it has not converged.
    """
    if largest_share > CONVERGED_SHARE:
        return Verdict.INCONCLUSIVE
    if claim.worst > bands.alarm:
        return Verdict.REFUTED
    decided = claim.worst <= bands.doubt and rival.worst > bands.alarm
    return Verdict.CONFIRMED if decided else Verdict.INCONCLUSIVE


def unconverged(share: float) -> str:
    """What the evidence of a finding says of a mean of which one draw makes this share: nothing, or a warning."""
    return f"; not converged, one draw makes {share:.0%} of a mean" if share > CONVERGED_SHARE else ""


def judge_computed(values: ArrayLike, claimed: float, rival: float, tolerance: float) -> Verdict:
    """For numbers that theory computes and no draw blurs.

    CONFIRMED if all lie within ``tolerance`` of the claim, REFUTED if all lie within it of the rival, INCONCLUSIVE
    otherwise (a limit that is not reached, or a third law).

    Raises:
        ValueError: a tolerance that does not tell the claim from its rival.
    """
    if not 2 * tolerance < abs(claimed - rival):
        raise ValueError(
            f"tolerance {tolerance:g} does not tell the claim {claimed:g} from its rival {rival:g}; take less than "
            f"half their distance, {abs(claimed - rival) / 2:g}"
        )
    found = np.atleast_1d(np.asarray(values, dtype=float))
    for target, verdict in ((claimed, Verdict.CONFIRMED), (rival, Verdict.REFUTED)):
        if np.all(np.abs(found - target) <= tolerance):
            return verdict
    return Verdict.INCONCLUSIVE
