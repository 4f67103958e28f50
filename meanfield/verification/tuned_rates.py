"""Slopes of tuned learning rates over depth, or over the number of loops, against what is claimed of them.

A tuned rate is the minimum of the training loss over learning rates; every depth has seeds of its own, so that the
errors of depths are independent. Slopes are those of a line through log10 of the rate over log10 of the depth with
equal weights: weights by the spreads of a few seeds, as Zhang et al. 2026 have them, are themselves random. Theory's
slope is that of the same line through the same depths.
"""

from collections.abc import Callable

import numpy as np
import xarray as xr

from meanfield.common.power_laws import PowerLaw
from meanfield.common.validation import Array
from meanfield.verification.judges import Contest, Ruling, slope_contest
from meanfield.verification.series import shown_laws, span
from meanfield.verification.verdicts import Verdict

# A relative difference of exponents that is an effect: Zhang et al. 2026, section 4.5, name one of 10 to 12 %, that of
# the optimizer.
EFFECT = 0.1
# Nets whose curvatures are drawn for a stable rate: its errors rest on so few.
CURVATURE_DRAWS = 16


def family_at(dataset: xr.Dataset, family: str) -> xr.Dataset:
    """One family at the depths where two seeds or more have a minimum."""
    return with_minima(dataset.sel(family=family))


def with_minima(at: xr.Dataset) -> xr.Dataset:
    """The same of one family's dataset."""
    return at.isel(depth=np.flatnonzero(np.isfinite(at["tuned_rate_log10_stderr"].values)))


def slope_weights(at: xr.Dataset) -> Array:
    """Those of the depths in the slope of a line through equally weighted points."""
    logs = np.log10(at["depth"].values)
    centred = logs - logs.mean() if logs.size else logs
    return np.asarray(centred / max(float(centred @ centred), np.finfo(float).tiny))


def tuned_slope(at: xr.Dataset) -> PowerLaw:
    """The slope of tuned rates with its standard error; NaN where fewer than two depths have a tuned rate."""
    if at.sizes["depth"] < 2:
        return PowerLaw(float("nan"), float("nan"), float("nan"))
    weights, logs = slope_weights(at), at["tuned_rate_log10"].values
    slope = float(weights @ logs)
    error = float(np.sqrt(weights**2 @ at["tuned_rate_log10_stderr"].values ** 2))
    return PowerLaw(slope, error, 10.0 ** float(logs.mean() - slope * np.log10(at["depth"].values).mean()))


def freedom(at: xr.Dataset) -> float:
    """Degrees of freedom of the slope's error, by Welch and Satterthwaite: at least those of a single depth."""
    shares = (slope_weights(at) * at["tuned_rate_log10_stderr"].values) ** 2
    least = at["located"].values - 1
    return float(shares.sum() ** 2 / max((shares**2 / least).sum(), np.finfo(float).tiny)) if shares.size else 0.0


def slope_ruling(
    dataset: xr.Dataset,
    family: str,
    slope: Callable[[xr.Dataset], float],
    rival: float,
    sizes: str = "depths",
    allowance: float = 0.0,
) -> Contest | Ruling:
    """The slope of a family's tuned rates against that of a theory at the same depths, and against the rival's.

    ``sizes``: what the evidence calls the depths. ``allowance``: what a statement leaves open of the slope.
    """
    at = family_at(dataset, family)
    if at.sizes["depth"] < 2:
        words = {"claimed": slope(dataset.sel(family=family)), "rival": rival}
        evidence = f"no slope was met: fewer than two {sizes} have a tuned rate"
        return Ruling(Verdict.INCONCLUSIVE, evidence, words, "none: no slope")
    law, claimed = tuned_slope(at), slope(at)
    seeds, effective = int(at["located"].max()), freedom(at) + 1
    made = slope_contest(law, claimed=claimed, rival=rival, allowance=allowance, draws=seeds, effective=effective)
    return made.saying(f"slope {shown_laws(law)} over {sizes} {span(at['depth'])}", claimed=claimed, rival=rival)
