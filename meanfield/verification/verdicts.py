"""How a claim is judged: against the data, and against the rival that would be true if the claim were false.

The evidence says which distances and bands there are, what they would have refuted, and how many draws would decide.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtri, nctdtrinc, ndtr, ndtri

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
            return f"{first} if all numbers share it, and none of one number alone"
        alone = two_digits(self.alone)
        if alone == two_digits(self.together):
            return first
        return f"{first} if all numbers share it; the least certain one alone needs {alone}{unit}"


def two_digits(number: float) -> str:
    """In words, without a power of ten where a reader needs none."""
    return f"{float(f'{number:.2g}'):g}"


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
    percent = Shares(100 * power.together, None if power.alone is None else 100 * power.alone)
    gap = "the gap between claim and rival"
    return percent.in_words(f"a deviation of {two_digits(percent.together)} % of {gap} is refuted", " %")


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


# Factors by which draws are multiplied when it is asked how many would do.
MORE = 1.05 ** np.arange(200)
# The share of runs that decide with as many draws as the evidence announces, as it says, and as it aims at: runs that
# are undecided by luck, which alone announce a number, and skewed draws take up to a tenth off.
PROMISED, AIMED = 0.8, 0.9
# Middles of equal parts of all chances, over which what is not known is averaged.
CHANCES = (np.arange(64) + 0.5) / 64

# Why nothing is refuted: a mean has not converged, a number is not finite, claim and rival say the same, luck decides.
UNCONVERGED = "none: a mean has not converged"
NOT_FINITE = "none: a number is not finite"
ALIKE = "none: nothing that is measured differs between claim and rival"
SELDOM = "fewer than 99 of 100 such runs would refute even what the rival says"


@dataclass(frozen=True)
class Distances:
    """How far numbers are from a claim and from its rival, and in which bands that counts."""

    claim: Deviation
    rival: Deviation
    bands: Bands
    of_rival: Bands

    @property
    def exchanged(self) -> Self:
        """The same where the source claims what is the rival here."""
        return type(self)(self.rival, self.claim, self.of_rival, self.bands)

    @property
    def worst(self) -> str:
        """In standard errors."""
        claim, rival = (_miss(deviation) for deviation in (self.claim, self.rival))
        beyond = " beyond the allowance" if self.claim.grants or self.rival.grants else ""
        return f"worst {claim} s.e.{beyond}, rival {rival}"

    @property
    def decided(self) -> str:
        """By which bands."""
        return self.band or f"; few draws, yet enough (a band of {self.bands.alarm:.2g})"

    @property
    def band(self) -> str:
        """The bands of alarm, unless the claim's is too wide to mean anything."""
        if self.bands.alarm > WIDEST_BAND:
            return ""
        own, other = (f"{each.alarm:.3g}" for each in (self.bands, self.of_rival))
        return f", band {own}" if own == other else f", band {own} ({other} for the rival)"

    @property
    def doubted(self) -> bool:
        """Whether the claim itself is far off, so that more draws would refute it, and not its rival."""
        return self.claim.worst > self.bands.doubt

    def undecided(
        self, comparisons: tuple[float, float], effective: float, made: float, share: float, fixed: float, **bands: Any
    ) -> tuple[list[str], float | None]:
        """Why neither, here and with claim and rival exchanged; and how many draws would decide, if that is known.

        ``comparisons`` of the claim and of its rival share the budget, ``effective`` of ``made`` draws carry the means,
        and one draw makes a ``share``; ``fixed``: as in `times_more`; ``bands``: further arguments of `Bands.of`. What
        lies within an allowance no draws exclude: where that is the rival alone, more draws refute the claim if they
        decide anything. Where neither claim nor rival fits, none confirm either, though more refute them, and what is
        measured stands in their place.
        """
        if share > CONVERGED_SHARE:
            return 2 * [unconverged(share, made)], announced(draws_to_converge(share, made))
        refuting = self.doubted or (self.rival.worst <= 0 < self.claim.worst)
        off, count = (self.claim, comparisons[0]) if refuting else (self.rival, comparisons[1])
        needed = made * times_more(off, count, effective, fixed, **bands)
        why = self._why + deciding(needed, made, "refute {claim}" if refuting else "decide if {claim} holds")
        if not np.isfinite(needed) and np.isfinite(times_more(off, count, effective, **bands)):
            why = (
                f"; no draws decide: {two_digits(100 * fixed)} % of the error's square does not fall with their number"
            )
        if off.worst <= 0 and max(self.bands.alarm, self.of_rival.alarm) <= WIDEST_BAND:
            why, needed = "; {rival} lies within the allowance, where no draws decide", np.inf
        names = {"claim": "what is claimed", "rival": "the rival"}
        other = dict(zip(names, reversed(names.values()), strict=True))
        return [self.band + why.format(**names), self.exchanged.band + why.format(**other)], announced(needed)

    @property
    def _why(self) -> str:
        if not self.doubted or self.rival.worst <= self.of_rival.doubt or self.bands.alarm > WIDEST_BAND:
            return "; too few draws"
        off, away = _farthest(self.claim, self.claim), _farthest(self.rival, self.claim)
        lies = f"what is measured lies {off} from {{claim}} and {away} from {{rival}}"
        return f"; neither holds: {lies}, so that no draws confirm either"


def _farthest(side: Deviation, claim: Deviation) -> str:
    """Difference and error of the point that is farthest from the claim, or of the only one of the rival."""
    point = (
        int(np.argmax(claim.excess)) if side.difference.size == claim.difference.size else int(np.argmin(side.excess))
    )
    return f"{side.difference[point]:+.3g} +- {side.stderr[point]:.2g}"


def _miss(deviation: Deviation) -> str:
    return f"{deviation.worst:.1f}" if abs(deviation.worst) < 1000 else f"{deviation.worst:.2g}"


def lost_points(*sides: Deviation, counts: tuple[float, ...] = ()) -> str:
    """What the evidence says of numbers that are not finite, and of ``counts`` of draws that are not; or nothing."""
    finite = np.concatenate([side.finite for side in sides] + [np.isfinite(np.atleast_1d(counts))])
    return f"{np.sum(~finite)} of {finite.size} numbers are not finite" if not finite.all() else ""


def unconverged(share: float, made: float) -> str:
    """What the evidence says of a mean of which one draw makes this share: nothing, or a warning."""
    if not share > CONVERGED_SHARE:
        return ""
    needed = needing(draws_to_converge(share, made), made)
    return f"; not converged, one draw makes {share:.0%} of a mean{needed}, with which half of all runs converge"


def draws_to_converge(share: float, made: float) -> float:
    """Draws N' of which none would make more than a quarter of a mean, if one makes this share of N ``made`` ones.

    Energies of deep nets are products over layers, so that a draw is log-normal: with v the variance of its logarithm,
    the largest of N is exp(sqrt(2 v log N) - v / 2) means for large N. Hence sqrt(log N) - sqrt(log(1 / share)) =
    sqrt(v / 2) for any N, and

        sqrt(log N') = sqrt(log N) - sqrt(log(1 / share)) + sqrt(log 4) .

    The largest of a few hundred draws says v, and N', to a factor of a few, more often too low than too high.

    Source: docs/theory.md section 3.
    """
    root = np.sqrt(np.log(made)) - np.sqrt(-np.log(min(share, 1.0))) + np.sqrt(-np.log(CONVERGED_SHARE))
    return float(np.exp(root**2))


def announced(needed: float) -> float | None:
    """A number of draws as evidence announces it, to two digits; None where no number would do."""
    return float(f"{needed:.2g}") if np.isfinite(needed) else None


def needing(needed: float, made: float) -> str:
    """What the evidence says of the draws that would decide."""
    return f"; about {announced(needed):,.0f} needed ({made:,.0f} made)"


def deciding(needed: float, made: float, what: str) -> str:
    """What the evidence says of the draws with which `PROMISED` of all runs do so; infinitely many: it cannot say."""
    if not np.isfinite(needed):
        return f"; so few draws do not tell how many would {what}"
    return f"{needing(needed, made)}, with which {PROMISED * 10:.0f} of 10 runs or more {what}"


def times_more(off: Deviation, comparisons: float, effective: float, fixed: float = 0.0, **bands: Any) -> float:
    """How many times the draws leave a deviation outside its band of alarm, itself no wide one, in `AIMED` of runs.

    A number that lies z standard errors s off in a run has z u / k + (1 + 1 / k^2)^(1/2) e of them with t times the
    draws, whose error is k s, k^2 = r + (1 - r) / t: r is the share of s^2 that is ``fixed``, as it does not fall with
    draws; e is standard normal, the scatter of the new run and that of this one; u = s / sigma, u^2 ~ chi^2_f / f with
    f degrees of freedom, is how far the error itself is off. The band narrows with t. Of the worst of k numbers that
    much is luck as k numbers that are not off show in half of all runs, c: z^2 = worst^2 - c^2. ``bands``: further
    arguments of `Bands.of`.

    Returns:
        t; infinity where no t promises so much: of so few standard errors nothing is known.
    """
    luck = ndtri(1 - 0.25 / off.difference.size)
    distance = np.sqrt(max(off.worst, 0.0) ** 2 - luck**2) if off.worst > luck else 0.0
    freedom = Bands.of(comparisons, effective, **bands).freedom
    known = distance * np.sqrt(chdtri(freedom, CHANCES) / freedom)

    def decides(times: float) -> bool:
        then = Bands.of(comparisons, times * effective, **bands)
        gained = 1 / (fixed + (1 - fixed) / times)
        scatter = np.sqrt(1 + gained + then.alarm**2 / (2 * then.freedom))
        reached = ndtr((known * np.sqrt(gained) - then.alarm) / scatter).mean()
        return bool(then.alarm <= WIDEST_BAND and reached >= AIMED)

    place = bisect_left(MORE, True, key=decides)
    return float(MORE[place]) if place < len(MORE) else float(np.inf)


def shares_refuted(claim: Deviation, apart: ArrayLike, bands: Bands) -> Shares:
    """Least shares of the way from claim to rival, ``apart``, that are REFUTED in 99 of 100 runs; inf where none is.

    Of all numbers, by the one that shows it first; and of one alone, the least sure of those that differ between the
    two, by more than a thousandth of what the most different one does.
    """
    least = claim.allowance + bands.sure * claim.stderr
    way = np.broadcast_to(np.abs(apart), least.shape)
    moved = way > NEGLIGIBLE * way.max()
    shares = least[moved] / way[moved]
    return Shares(float(shares.min()), float(shares.max())) if shares.size else Shares(np.inf, np.inf)


def share_confirmed(claim: Deviation, apart: ArrayLike, bands: Bands) -> float:
    """Least share of the way back from rival to claim after which all points lie within the claim's band of doubt."""
    within = claim.allowance + max(bands.doubt - ndtri(SURE), 0.0) * claim.stderr
    way = np.broadcast_to(np.abs(apart), within.shape)
    left = np.divide(within, way, out=np.full(within.shape, np.inf), where=way > 0)
    return float(1 - min(left.min(), 1.0))


def powers(at: Distances, apart: ArrayLike, back: ArrayLike, granted: ArrayLike) -> tuple[Power | None, Power | None]:
    """Of a contest, and of the one with claim and rival exchanged, as `Finding` has them.

    ``apart``, ``back`` and ``granted`` are as in `judges.Contest`.
    """
    shares = shares_refuted(Deviation(at.claim.difference, at.claim.stderr, granted), apart, at.bands)
    stated = shares if np.isfinite(shares.together) else ALIKE
    if np.size(back) not in (1, at.rival.difference.size):
        return stated, None
    all_back = max(shares_refuted(at.rival, back, at.of_rival).together, share_confirmed(at.claim, apart, at.bands))
    # The rival is refuted where the claim is CONFIRMED, which asks that all numbers be near it.
    alone = all_back if at.claim.difference.size == 1 else None
    return stated, Shares(all_back, alone) if all_back <= 1 else SELDOM
