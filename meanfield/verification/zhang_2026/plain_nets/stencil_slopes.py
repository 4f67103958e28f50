"""Claims on stencils, grids and dimensions: slope and prefactor of the label term's eta*(L) of convolutional nets."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from meanfield.common.estimates import PowerLaw, fit_power_law
from meanfield.verification.verdicts import Deviation, Finding, weigh
from meanfield.verification.zhang_2026.plain_nets.channel_corrections import FINDINGS, gram_term

Array = NDArray[np.float64]

SCALE = "label_learning_rate_scale"
PAPERS_EXPONENT = -1.5
# Slopes that P0 fitted to trained nets by stencil size (appendix E.3, figure 7).
PRINTED = {3: -1.74, 4: -1.44, 5: -1.46}


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One finding per claim on slopes and prefactors."""
    return [
        judge_slopes(dataset),
        judge_one_exponent(dataset),
        judge_one_prefactor(dataset),
        judge_prefactors(dataset),
    ]


def drawn_slope(at: xr.Dataset) -> PowerLaw:
    """Slope over the depths of one stencil's drawn scales."""
    return fit_power_law(at["depth"].values, at[SCALE].values, at[f"{SCALE}_stderr"].values)


def mean_field_slope(at: xr.Dataset) -> float:
    """The same slope of the mean field, its points weighted as the drawn ones."""
    return _weighted_slope(at, np.log(at[f"{SCALE}_mean_field"].values))


def finite_width_slack(at: xr.Dataset) -> float:
    """What finite width does to the slope of one site with as many units, exactly."""
    return abs(_weighted_slope(at, at["log_one_site_shift"].values))


def prefactor(at: xr.Dataset) -> tuple[float, float]:
    """Mean over depths of log(drawn / mean field), weighted by its errors, and its standard error."""
    relative = (at[f"{SCALE}_stderr"] / at[SCALE]).values
    weight = relative**-2 / np.sum(relative**-2)
    return float(weight @ np.log((at[SCALE] / at[f"{SCALE}_mean_field"]).values)), float(np.sum(relative**-2) ** -0.5)


def judge_slopes(dataset: xr.Dataset) -> Finding:
    """Every stencil's slope, and their mean, by the mean field; rival: -3/2 over the same depths."""
    slope, stderr, expected, slack = (np.append(column, column.mean()) for column in _slopes(dataset))
    stderr[-1] /= np.sqrt(stderr.size - 1)
    claim, rival = (Deviation(slope - value, stderr, slack) for value in (expected, np.full_like(slope, -1.5)))
    titles = "eta* of the label term falls as the mean field says, on every grid and stencil", "as L^(-3/2)"
    shown = f"mean slope {slope[-1]:.3f}, mean field {expected[-1]:.3f}"
    return _finding(dataset, titles, claim, rival, shown)


def judge_one_exponent(dataset: xr.Dataset) -> Finding:
    """One slope for all (P0 Proposition 3.3); rival: slopes of 3, 4, 5 taps as far apart as P0 fitted them."""
    slope, stderr, expected, _ = _slopes(dataset)
    claim = Deviation(slope - slope.mean(), stderr, np.abs(expected - expected.mean()))
    drawn = {count: _mean_slope(dataset["taps"].values == count, slope, stderr) for count in PRINTED}
    (first, error), *others = drawn.values()
    printed = np.array(list(PRINTED.values()))
    apart, errors = (np.array(column) for column in zip(*others, strict=True))
    rival = Deviation(apart - first - (printed[1:] - printed[0]), np.hypot(errors, error), np.zeros(len(others)))
    titles = (
        "the exponent does not depend on stencil, grid or dimension (P0 Proposition 3.3)",
        "slopes for 3, 4, 5 taps as far apart as P0 fitted them, -1.74, -1.44, -1.46 (E.3)",
    )
    return _finding(dataset, titles, claim, rival, f"slopes {slope.min():.3f} .. {slope.max():.3f}")


def judge_one_prefactor(dataset: xr.Dataset) -> Finding:
    """One prefactor for all stencils and grids, set by the activation (P0 eq. 22); rival: the mean field's."""
    claim, rival = _prefactor_deviations(dataset)
    titles = "the prefactor does not depend on stencil or grid (P0 section 3.3, eq. 22)", "the mean field's, as 1/taps"
    return _finding(dataset, titles, claim, rival, "")


def judge_prefactors(dataset: xr.Dataset) -> Finding:
    """Prefactors relative to the first stencil's by the mean field: 1/k at as many sites; rival: one prefactor."""
    rival, claim = _prefactor_deviations(dataset)
    titles = "prefactors are the mean field's: as 1/taps, and more sites more", "one prefactor"
    return _finding(dataset, titles, claim, rival, "")


def _prefactor_deviations(dataset: xr.Dataset) -> tuple[Deviation, Deviation]:
    """Of log ratios to the first stencil: from 0, and from the mean field's; half the Gram terms are granted."""
    stencils = [dataset.isel(stencil=place) for place in range(dataset.sizes["stencil"])]
    excess, error = np.array([prefactor(at) for at in stencils]).T
    known = np.array([float(np.log(at[f"{SCALE}_mean_field"]).mean()) for at in stencils])
    gram = np.array([gram_term(float(at["sites"]), float(at["taps"])) for at in stencils])
    slack = 0.5 * (gram[1:] + gram[0]) / float(dataset.attrs["slope_channels"])
    beyond, stderr = excess[1:] - excess[0], np.hypot(error[1:], error[0])
    apart = known[1:] - known[0]
    return Deviation(beyond + apart, stderr, slack), Deviation(beyond, stderr, slack)


def _slopes(dataset: xr.Dataset) -> tuple[Array, Array, Array, Array]:
    """Of every stencil: drawn slope, its error, the mean field's, and what finite width may do to it."""
    stencils = [dataset.isel(stencil=place) for place in range(dataset.sizes["stencil"])]
    rows = [(*tuple(drawn_slope(at))[:2], mean_field_slope(at), finite_width_slack(at)) for at in stencils]
    slope, stderr, expected, slack = np.array(rows).T
    return slope, stderr, expected, slack


def _mean_slope(chosen: NDArray[np.bool_], slope: Array, stderr: Array) -> tuple[float, float]:
    """Of some stencils: the mean of their slopes, and its error."""
    return float(slope[chosen].mean()), float(np.sqrt(np.square(stderr[chosen]).sum()) / chosen.sum())


def _weighted_slope(at: xr.Dataset, logs: Array) -> float:
    weights = (at[SCALE] / at[f"{SCALE}_stderr"]).values
    return float(np.polyfit(np.log(at["depth"].values), logs, 1, w=weights)[0])


def _finding(dataset: xr.Dataset, titles: tuple[str, str], claim: Deviation, rival: Deviation, shown: str) -> Finding:
    comparisons, draws = FINDINGS * claim.difference.size, dataset.attrs["draws_slope"]
    return weigh(titles, claim, rival, comparisons=comparisons, draws=draws, shown=shown)
