"""How many draws would decide what a run left open, and what the evidence says of that."""

import numpy as np

from meanfield.verification.verdicts import CONVERGED_SHARE, WIDEST_BAND, Bands

# Factors by which draws are multiplied when it is asked how many would do.
MORE = 1.05 ** np.arange(200)

# Why nothing is refuted where a mean has not converged.
UNCONVERGED = "none: a mean has not converged"


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


def undecided(bands: Bands, of_rival: Bands, lacking: float, needed: float, made: float) -> str:
    """Why neither: what is ``lacking`` beyond the allowance no draws can bring, or more of them are needed."""
    if bands.alarm <= WIDEST_BAND and lacking <= 0:
        return f"{band(bands, of_rival)}; the rival lies within the allowance, where no draws decide"
    return f"{band(bands, of_rival)}; too few draws{needing(needed, made)}"


def band(bands: Bands, of_rival: Bands) -> str:
    """What the evidence says of the bands of alarm, unless the claim's is too wide to mean anything."""
    if bands.alarm > WIDEST_BAND:
        return ""
    own, other = (f"{each.alarm:.3g}" for each in (bands, of_rival))
    return f", band {own}" if own == other else f", band {own} ({other} for the rival)"


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
