"""How a claim is judged: against the data, and against the rival that would be true if the claim were false."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from numbers import Real
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import nctdtrinc, ndtri

from meanfield.common.estimates import FALSE_ALARM_BUDGET, critical_z
from meanfield.common.validation import Array, measured_array, require_positive, takes


class Verdict(StrEnum):
    """CONFIRMED: inside the band, and the band excludes the rival. REFUTED: outside. INCONCLUSIVE: neither."""

    CONFIRMED = "CONFIRMED"
    REFUTED = "REFUTED"
    INCONCLUSIVE = "INCONCLUSIVE"


# Allowances of so small a part of a standard error are for rounding; so are differences between two laws of so small a
# part of the largest.
NEGLIGIBLE = 1e-3


class Deviation:
    """How far measured numbers are from a law: what `judge` weighs, once for a claim and once for its rival.

    A number exceeds its law by (|difference| - allowance) / stderr standard errors. All three are broadcast to one
    shape and have the unit of the measured numbers. A point of which one of them is not finite says nothing, and leaves
    `judge` undecided: who compares numbers that are undefined by design leaves those out.

    Args:
        difference: measured minus expected, point by point.
        stderr: standard errors of the measured numbers, from independent draws (0: known exactly).
        allowance: what may be left of a difference although the law is true, by finite width above all (default: none).

    Raises:
        TypeError, ValueError: what is no real number, negative errors or allowances, shapes that do not fit, no point.

    Examples:
        >>> import meanfield as mf
        >>> mf.Deviation([0.25, -0.125], stderr=0.0625, allowance=0.125).worst
        2.0
    """

    def __init__(self, difference: ArrayLike, stderr: ArrayLike, allowance: ArrayLike = 0.0) -> None:
        named = {"difference": difference, "stderr": stderr, "allowance": allowance}
        given = [np.atleast_1d(measured_array(f"{name} of a Deviation", values)) for name, values in named.items()]
        shapes = ", ".join(f"{name} {values.shape}" for name, values in zip(named, given, strict=True))
        try:
            self.difference, self.stderr, self.allowance = np.broadcast_arrays(*given)
        except ValueError:
            raise ValueError(f"shapes of a Deviation do not fit: {shapes}; give one shape, or one number") from None
        if not self.difference.size:
            raise ValueError(f"a Deviation needs a point at least, as none says nothing; given are {shapes}")
        for what, sizes in (("standard errors are spreads of draws", self.stderr), ("allowances", self.allowance)):
            if np.any(sizes < 0):
                raise ValueError(f"{what}, at least 0; the least given is {np.nanmin(sizes):g}")

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> Self:
        """All points of several deviations."""
        columns = zip(*((part.difference, part.stderr, part.allowance) for part in parts), strict=True)
        return cls(*map(np.concatenate, columns))

    @property
    def excess(self) -> Array:
        """Standard errors by which each difference exceeds its allowance (negative: inside it; NaN: not finite)."""
        beyond = np.where(self.finite, np.abs(self.difference) - self.allowance, np.nan)
        certain = np.where(beyond > 0, np.inf, np.minimum(beyond, 0.0))
        return np.divide(beyond, self.stderr, out=certain, where=self.stderr > 0)

    @property
    def finite(self) -> Array:
        """Point by point, whether difference, standard error and allowance all are: other points say nothing."""
        return np.isfinite(self.difference) & np.isfinite(self.stderr) & np.isfinite(self.allowance)

    @property
    def grants(self) -> bool:
        """Whether any allowance counts beside its standard error."""
        return bool(np.any(self.allowance > NEGLIGIBLE * self.stderr))

    @property
    def worst(self) -> float:
        """The largest excess of any point; NaN where one of them is."""
        return float(np.max(self.excess))


@dataclass(frozen=True)
class Shares:
    """Least shares of the way from claim to rival that are REFUTED in 99 of 100 runs; above 1 not even all of it is.

    Attributes:
        together: of a deviation of all numbers, which the surest of them shows.
        alone: of a deviation of one number alone, the least sure one. None: no number alone refutes anything.
    """

    together: float
    alone: float | None

    def in_words(self, first: str, unit: str = "") -> str:
        """Behind the ``first`` words, which name the share of all numbers: that of one alone, where it is another."""
        if self.alone is None:
            return f"{first} where all numbers go, nothing where one goes alone"
        if f"{self.alone:.2g}" == f"{self.together:.2g}":
            return first
        return f"{first} where all numbers go, {self.alone:.2g}{unit} where the least sure one goes alone"


# How far off is refuted: shares of the way from claim to rival, or words.
Power = Shares | str


@dataclass(frozen=True)
class Finding:
    """One claim with its rival, the verdict, and the numbers behind it in a sentence.

    ``power``: the shares of the way from claim to rival that would be REFUTED in 99 of 100 runs like this one. In words
    where it is none: "exact: ..." of numbers that no draw blurs, "none: ..." with the reason where nothing could be
    refuted. ``power_of_rival``, ``evidence_of_rival``: the same, and the numbers, with claim and rival exchanged
    (`claims.of_rival`); no evidence of its own where the same words serve both. ``measured``: what, in words.
    ``verdict_of_rival``: with claim and rival exchanged, of drawn numbers; None where it is the opposite. ``needed``:
    draws with which such runs decide, as the evidence announces them; None where it announces none. ``made``: those
    that this run has made for it, if it says how many. ``brief``: the claim in a line, where it is longer.
    """

    claim: str
    rival: str
    verdict: Verdict
    evidence: str
    power: Power | None = None
    power_of_rival: Power | None = None
    evidence_of_rival: str = ""
    measured: str = ""
    verdict_of_rival: Verdict | None = None
    needed: float | None = None
    brief: str = ""
    made: float | None = None


class Unsaid:
    """A word of a claim's sentence that a judge without a verdict has not said."""

    def __format__(self, spec: str) -> str:
        return "?"


@takes(Shares | str | None)
def power_in_words(power: Power | None) -> str:
    """Of a finding."""
    if power is None:
        return "not stated"
    if isinstance(power, str):
        return power
    first = f"{power.together:.2g} of the way to the rival is refuted"
    if power.together > 1:
        first = f"only what is {power.together:.2g} times as far off as the rival is refuted"
    return power.in_words(first, " times the way" if (power.alone or 0.0) > 1.05 else "")


# A deviation of the stated power is refuted in this share of runs.
SURE = 0.99

# A mean of which one draw makes more than this has not converged, and its standard error means nothing.
CONVERGED_SHARE = 0.25

# A true claim leaves this narrower band once in a hundred runs: a claim found outside it is not CONFIRMED, though only
# one beyond the false-alarm budget is REFUTED.
DOUBT = 1e-2

# A band of more standard errors than this comes of a handful of draws, whose own spread is hardly known.
WIDEST_BAND = 20.0
# From this band on, what a deviation needs to be refuted is proportional to it, within three in ten thousand.
WIDE = 300.0


@dataclass(frozen=True)
class Bands:
    """How far a claim's worst point may be off before the claim is doubted, and before it is refuted.

    Attributes:
        doubt: excess in standard errors that a true claim has once in a hundred runs: beyond it none is CONFIRMED.
        alarm: excess that a true claim has in a share of all runs, the false-alarm budget: beyond it it is REFUTED.
        freedom: degrees of freedom of the standard errors; infinitely many where they are exact.

    `Bands.of` finds both from the number of comparisons and of draws, by Student's t. What is no positive number is
    refused, and a doubt beyond the alarm.

    Examples:
        >>> import meanfield as mf
        >>> bands = mf.Bands.of(comparisons=10, effective=100)
        >>> bands.doubt < bands.alarm
        True
    """

    doubt: float
    alarm: float
    freedom: float = np.inf

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if (name, value) != ("freedom", np.inf):
                require_positive(f"{name} of Bands", value, why="bands are standard errors that have some freedom")
        if self.doubt > self.alarm:
            given = f"doubt of Bands is {self.doubt:g} and alarm {self.alarm:g}"
            raise ValueError(f"{given}; doubt is at most alarm, as a claim is doubted before it is refuted")

    @classmethod
    def of(
        cls, comparisons: float, effective: float, *, gaussian: bool = False, budget: float = FALSE_ALARM_BUDGET
    ) -> Self:
        """For the worst of ``comparisons`` points whose means rest on so many ``effective`` draws.

        ``budget``: the share of runs that refute what is true, one in a million unless it is named.

        Means of skewed draws have t-statistics with heavier tails than their number says. Half the effective draws as
        degrees of freedom covers what output terms at small widths were seen to do. Means over ``gaussian`` numbers,
        as slopes of logarithms are draw by draw, have the tails that their number says.
        """
        draws = float(np.maximum(effective if gaussian else effective / 2, 2.0))
        return cls(critical_z(comparisons, draws, DOUBT), critical_z(comparisons, draws, budget), draws - 1)

    @property
    def sure(self) -> float:
        """Standard errors by which a number must be off to leave the band of alarm in 99 of 100 runs."""
        if np.isfinite(self.freedom):
            # Off by d standard errors, a t-statistic is a noncentral t: this is the d that leaves 1 of 100 within. It
            # grows as a wide band does, for which SciPy's root is slow and wrong.
            alarm = min(self.alarm, WIDE)
            return float(self.alarm / alarm * nctdtrinc(self.freedom, 1 - SURE, alarm))
        return float(self.alarm + ndtri(SURE))


def judge(
    claim: Deviation, rival: Deviation, bands: Bands, largest_share: float = 0.0, of_rival: Bands | None = None
) -> Verdict:
    """The verdict on a claim, from how far the measured numbers are from it and from its rival.

    Args:
        claim, rival: deviations from what the claim says, and from what would be true if it were false.
        bands: how many standard errors count, as `Bands.of` finds them from the points of the claim.
        largest_share: of a single draw in one of the means; above 1/4 the mean has not converged.
        of_rival: the same from the points of the rival (default: ``bands``). Where the rival is the one point that is
            nearest to it, a false CONFIRMED needs that every point be far from it by chance, the one as well that is
            not: one comparison, however many points there are (an intersection-union test).

    Returns:
        REFUTED if the claim leaves its alarm band. CONFIRMED if it does not even leave its band of doubt, and the rival
        leaves its own alarm band. INCONCLUSIVE otherwise, and wherever a mean has not converged or a number is not
        finite.

    Raises:
        TypeError, ValueError: an argument of another kind, and a negative share.

    Source: Berger 1982, theorem 1, for the rival of one point.

    Examples:
        >>> import meanfield as mf
        >>> slope, stderr = -1.49, 0.02
        >>> bands = mf.Bands.of(comparisons=1, effective=1000)
        >>> mf.judge(mf.Deviation(slope + 1.5, stderr), mf.Deviation(slope + 1.0, stderr), bands).value
        'CONFIRMED'
    """
    of_rival = bands if of_rival is None else of_rival
    for kind, arguments in {Deviation: (claim, rival), Bands: (bands, of_rival), Real: (largest_share,)}.items():
        if wrong := [value for value in arguments if not isinstance(value, kind) or isinstance(value, bool)]:
            raise TypeError(f"judge is given {wrong[0]!r} where it takes a {kind.__name__}; see its arguments")
    if largest_share < 0:
        raise ValueError(
            f"largest_share is {largest_share:g}; it is the part of a mean that one draw makes, at least 0"
        )
    if not (claim.finite.all() and rival.finite.all() and largest_share <= CONVERGED_SHARE):
        return Verdict.INCONCLUSIVE
    if claim.worst > bands.alarm:
        return Verdict.REFUTED
    decided = claim.worst <= bands.doubt and rival.worst > of_rival.alarm
    return Verdict.CONFIRMED if decided else Verdict.INCONCLUSIVE


def judge_computed(values: ArrayLike, claimed: float, rival: float, tolerance: float) -> Verdict:
    """For numbers that theory computes and no draw blurs.

    CONFIRMED if all lie within ``tolerance`` of the claim, REFUTED if all lie within it of the rival, INCONCLUSIVE
    otherwise (a limit that is not reached, a third law, a value that is not finite, or none at all).

    Raises:
        TypeError, ValueError: values that are no real numbers, and a tolerance that does not tell claim from rival.
    """
    computed = measured_array("values", values)
    if not 0 <= 2 * tolerance < abs(claimed - rival):
        raise ValueError(
            f"tolerance {tolerance:g} does not tell the claim {claimed:g} from its rival {rival:g}; take less than "
            f"half their distance, {abs(claimed - rival) / 2:g}, and no negative one"
        )
    for target, verdict in ((claimed, Verdict.CONFIRMED), (rival, Verdict.REFUTED)):
        if computed.size and np.all(np.abs(computed - target) <= tolerance):
            return verdict
    return Verdict.INCONCLUSIVE


def judge_identity(values: ArrayLike, claimed: float, rival: float, tolerance: float) -> Verdict:
    """For numbers that equal the claim to rounding or break it: CONFIRMED within ``tolerance``, else REFUTED.

    INCONCLUSIVE where a number is not finite, or there is none.

    Raises:
        TypeError, ValueError: as `judge_computed`.
    """
    if judge_computed(values, claimed, rival, tolerance) is Verdict.CONFIRMED:
        return Verdict.CONFIRMED
    finite = np.isfinite(measured_array("values", values))
    return Verdict.REFUTED if finite.size and finite.all() else Verdict.INCONCLUSIVE
