"""What the evidence says of distances and bands, and how many draws would decide what a run left open."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from meanfield.verification.verdicts import CONVERGED_SHARE, WIDEST_BAND, Bands, Deviation

# Factors by which draws are multiplied when it is asked how many would do.
MORE = 1.05 ** np.arange(200)

# Why nothing is refuted where a mean has not converged.
UNCONVERGED = "none: a mean has not converged"


@dataclass(frozen=True)
class Distances:
    """How far numbers are from a claim and from its rival, and in which bands that counts.

    ``open_side`` is what to call that of the two that an undecided run has not excluded.
    """

    claim: Deviation
    rival: Deviation
    bands: Bands
    of_rival: Bands
    open_side: str = "the rival"

    @property
    def exchanged(self) -> Self:
        """The same where the source claims what is the rival here."""
        return type(self)(self.rival, self.claim, self.of_rival, self.bands, "what is claimed")

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

    def undecided(self, lacking: float, needed: float, made: float) -> str:
        """Why neither: what is ``lacking`` beyond the allowance no draws can bring, or more of them are needed."""
        if max(self.bands.alarm, self.of_rival.alarm) <= WIDEST_BAND and lacking <= 0:
            return f"{self.band}; {self.open_side} lies within the allowance, where no draws decide"
        return f"{self.band}; too few draws{needing(needed, made)}"


def _miss(deviation: Deviation) -> str:
    return f"{deviation.worst:.1f}" if abs(deviation.worst) < 1000 else f"{deviation.worst:.2g}"


def unconverged(share: float, needed: float, made: float) -> str:
    """What the evidence says of a mean of which one draw makes this share: nothing, or a warning.

    ``needed`` are those that its standard error asks for; its tail may ask for more.
    """
    if not share > CONVERGED_SHARE:
        return ""
    needed = max(needed, draws_to_converge(share, made))
    return f"; not converged, one draw makes {share:.0%} of a mean{needing(needed, made)}"


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


def needing(needed: float, made: float) -> str:
    """What the evidence says of the draws that would decide."""
    return f"; about {float(f'{needed:.2g}'):,.0f} needed ({made:,.0f} made)"


def times_more(lacking: float, comparisons: float, effective: float, *, gaussian: bool = False) -> float:
    """How many times the draws a deviation of so many standard errors needs to leave its band, itself no wide one.

    Standard errors fall as draws^(-1/2), so that deviations grow as draws^(1/2) in them, while the band narrows. Of a
    deviation below one standard error nothing is known but that; it counts as one.
    """
    for times in MORE:
        alarm = Bands.of(comparisons, times * effective, gaussian=gaussian).alarm
        if alarm <= min(WIDEST_BAND, max(lacking, 1.0) * np.sqrt(times)):
            return float(times)
    return float(MORE[-1])
