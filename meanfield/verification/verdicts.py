"""How a claim is judged: against the data, and against the rival that would be true if the claim were false.

`weigh` makes the finding of a claim on drawn numbers, with one sentence of evidence for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from meanfield.common.estimates import critical_z

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

# A true claim leaves this narrower band once in a hundred runs: a claim found outside it is not CONFIRMED, though only
# one beyond the false-alarm budget is REFUTED.
DOUBT = 1e-2

# A band of more standard errors than this comes of a handful of draws, whose own spread is hardly known.
WIDEST_BAND = 20.0

# Factors by which draws are multiplied when it is asked how many would do.
MORE = 1.05 ** np.arange(200)


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


def weigh(
    titles: tuple[str, str],
    claim: Deviation,
    rival: Deviation,
    *,
    comparisons: int,
    draws: float,
    effective: float | None = None,
    largest_share: float = 0.0,
    shown: str = "",
) -> Finding:
    """The finding on a claim and its rival, named by ``titles``: what `judge` says, and the numbers in a sentence.

    Args:
        comparisons: points over which the run's false-alarm budget is split.
        draws: as many as were made; ``effective``, as many as carry the means (default: all of them).
        largest_share: of one draw in a mean.
        shown: what the evidence says first.
    """
    carrying = draws if effective is None else effective
    bands = Bands.of(comparisons, carrying)
    verdict = judge(claim, rival, bands, largest_share)
    if verdict is Verdict.INCONCLUSIVE:
        lacking = claim.worst if claim.worst > bands.doubt else rival.worst
        needed = draws * _times_more(lacking, comparisons, carrying)
        reason = unconverged(largest_share) or _undecided(bands, lacking, needed, draws)
    else:
        reason = _band(bands) or f"; few draws, yet enough (a band of {bands.alarm:.2g})"
    missed = f"worst {_miss(claim)} s.e. beyond the allowance, rival {_miss(rival)}{reason}"
    return Finding(*titles, verdict, f"{shown}; {missed}" if shown else missed)


def _undecided(bands: Bands, lacking: float, needed: float, made: float) -> str:
    """Why neither: what is ``lacking`` beyond the allowance no draws can bring, or more of them are needed."""
    if bands.alarm <= WIDEST_BAND and lacking <= 0:
        return f"{_band(bands)}; the rival lies within the allowance"
    return f"{_band(bands)}; too few draws; about {float(f'{needed:.2g}'):,.0f} needed ({made:,.0f} made)"


def _miss(deviation: Deviation) -> str:
    return f"{deviation.worst:.1f}" if abs(deviation.worst) < 1000 else f"{deviation.worst:.2g}"


def _band(bands: Bands) -> str:
    return f", band {bands.alarm:.3g}" if bands.alarm <= WIDEST_BAND else ""


def _times_more(lacking: float, comparisons: int, effective: float) -> float:
    """How many times the draws a deviation of so many standard errors needs to leave its band, itself no wide one.

    Standard errors fall as draws^(-1/2), so that deviations grow as draws^(1/2) in them, while the band narrows. Of a
    deviation below one standard error nothing is known but that; it counts as one.
    """
    for times in MORE:
        alarm = Bands.of(comparisons, times * effective).alarm
        if alarm <= min(WIDEST_BAND, max(lacking, 1.0) * np.sqrt(times)):
            return float(times)
    return float(MORE[-1])


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
