"""What the evidence says of distances and bands, what it would have refuted, and how many draws would decide."""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtri, ndtr, ndtri

from meanfield.verification.verdicts import (
    CONVERGED_SHARE,
    NEGLIGIBLE,
    SURE,
    WIDEST_BAND,
    Bands,
    Deviation,
    Power,
    Shares,
)

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
        self, comparisons: tuple[float, float], effective: float, made: float, share: float, **bands: Any
    ) -> tuple[list[str], float | None]:
        """Why neither, here and with claim and rival exchanged; and how many draws would decide, if that is known.

        ``comparisons`` of the claim and of its rival share the budget, ``effective`` of ``made`` draws carry the means,
        and one draw makes a ``share``; ``bands``: further arguments of `Bands.of`. What lies within an allowance no
        draws exclude. Where neither claim nor rival fits, none confirm either, though more refute them, and what is
        measured stands in their place.
        """
        if share > CONVERGED_SHARE:
            return 2 * [unconverged(share, made)], announced(draws_to_converge(share, made))
        off, count = (self.claim, comparisons[0]) if self.doubted else (self.rival, comparisons[1])
        needed = made * times_more(off, count, effective, **bands)
        why = self._why + deciding(needed, made, "refute {claim}" if self.doubted else "decide if {claim} holds")
        if not self.doubted and off.worst <= 0 and max(self.bands.alarm, self.of_rival.alarm) <= WIDEST_BAND:
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


def times_more(off: Deviation, comparisons: float, effective: float, **bands: Any) -> float:
    """How many times the draws leave a deviation outside its band of alarm, itself no wide one, in `AIMED` of runs.

    A number that lies z standard errors s off in a run has z u (t)^(1/2) + (1 + t)^(1/2) e of them with t times the
    draws: e is standard normal, the scatter of the new run and that of this one, which grows with t; u = s / sigma,
    u^2 ~ chi^2_f / f with f degrees of freedom, is how far the error itself is off. The band narrows with t. Of the
    worst of k numbers that much is luck as k numbers that are not off show in half of all runs, c: z^2 = worst^2 - c^2.
    ``bands``: further arguments of `Bands.of`.

    Returns:
        t; infinity where no t promises so much: of so few standard errors nothing is known.
    """
    luck = ndtri(1 - 0.25 / off.difference.size)
    distance = np.sqrt(max(off.worst, 0.0) ** 2 - luck**2) if off.worst > luck else 0.0
    freedom = Bands.of(comparisons, effective, **bands).freedom
    known = distance * np.sqrt(chdtri(freedom, CHANCES) / freedom)

    def decides(times: float) -> bool:
        then = Bands.of(comparisons, times * effective, **bands)
        scatter = np.sqrt(1 + times + then.alarm**2 / (2 * then.freedom))
        reached = ndtr((known * np.sqrt(times) - then.alarm) / scatter).mean()
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
