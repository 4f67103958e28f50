"""Claims on overlaps of parameter directions, judged on draws: conservation in mean, and the variance a layer adds."""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield.common.estimates import fit_power_law
from meanfield.verification.verdicts import Deviation, Finding, effective_draws, weigh

# Findings of one run, over which its false-alarm budget is split.
FINDINGS = 4

# Standard errors below this are rounding: the overlap is the same in every draw.
ROUNDING = 1e-12


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One finding per claim, over all pairs and layers of a run of `sims.overlap_recursion`."""
    return [judge_mean(dataset), judge_conditional_mean(dataset), judge_square(dataset), judge_added_variance(dataset)]


def judge_mean(dataset: xr.Dataset) -> Finding:
    """The mean overlap by the exact law; rival: conserved from where it begins (P0 Lemma 1).

    For directions of one layer the two agree; for different layers the exact mean steps from 0 to 1/(2 pi q n).
    """
    claim = deviation(dataset, "overlap", dataset["overlap_exact"])
    rival = deviation(dataset, "overlap", _as_it_begins(dataset["overlap_exact"]))
    titles = "mean overlap is conserved for directions of one layer, and steps to 1/(2 pi q n) for different layers"
    return finding(dataset, (titles, "conserved for every pair (P0 Lemma 1, eq. 14)"), claim, rival)


def judge_conditional_mean(dataset: xr.Dataset, findings: int = FINDINGS) -> Finding:
    """E[T_h | z^(l)] = T_l as written (P0 eq. 14); rival: the gated overlap, as z^(l) fixes the gates of layer l."""
    at = int(dataset.attrs["fixed_layers"])
    above = dataset.sel(layer=slice(at + 1, None))
    own = dataset.sel(layer=at)
    claim = deviation(above, "overlap", own["overlap_given"], suffix="_given")
    rival = deviation(above, "overlap", own["gated_overlap_given"], suffix="_given")
    titles = f"mean overlap above layer {at}, given z^({at}), is the overlap at layer {at} (P0 eq. 14)"
    return finding(dataset, (titles, f"the gated overlap at layer {at}, over q"), claim, rival, findings)


def judge_square(dataset: xr.Dataset) -> Finding:
    """The mean squared overlap by the exact recursion; rival: no growth after the layer above the first."""
    claim = deviation(dataset, "squared_overlap", dataset["squared_overlap_exact"])
    rival = deviation(dataset, "squared_overlap", _as_it_begins(dataset["squared_overlap_exact"]))
    titles = "mean squared overlap follows the exact recursion", "it stays as it begins"
    return finding(dataset, titles, claim, rival)


def judge_added_variance(dataset: xr.Dataset, findings: int = FINDINGS) -> Finding:
    """Var(T_h | layers below) = C0 / C_h (P0 Lemma 5), by its log-log slope in the width; rival: slope -1/2."""
    widths = dataset["width_above"].values
    slopes = []
    for pair in dataset["pair"].values:
        at = dataset.sel(pair=pair)
        value, stderr = (at[f"overlap_variance{part}_by_width"].values for part in ("", "_stderr"))
        if np.all(value > ROUNDING):
            slopes.append(fit_power_law(widths, value, stderr))
    slope, error = (np.array([getattr(law, name) for law in slopes]) for name in ("exponent", "stderr"))
    claim, rival = (Deviation(slope - value, error, np.zeros_like(slope)) for value in (-1.0, -0.5))
    shown = ", ".join(f"{s:.3f} +- {e:.3f}" for s, e in zip(slope, error, strict=True))
    titles = "given the layers below, a layer of C units adds a variance of C0/C (P0 Lemma 5, eq. 27)", "C^(-1/2)"
    comparisons, draws = findings * len(slope), dataset.attrs["draws_given"]
    return weigh(titles, claim, rival, comparisons=comparisons, draws=draws, shown=f"slopes in C by pair: {shown}")


def _as_it_begins(exact: xr.DataArray) -> xr.DataArray:
    """The value at the first layer of every pair, at all its layers."""
    begun = exact.notnull()
    return exact.isel(layer=begun.argmax("layer")).drop_vars("layer").where(begun)


def deviation(
    dataset: xr.Dataset, name: str, expected: xr.DataArray, suffix: str = "", allowance: xr.DataArray | None = None
) -> Deviation:
    """Measured minus expected where both exist; identical draws have no error beyond rounding."""
    measured = dataset[f"{name}{suffix}"]
    given = dataset[f"{name}_stderr{suffix}"], expected, xr.zeros_like(measured) if allowance is None else allowance
    stderr, value, granted = (array.broadcast_like(measured).transpose(*measured.dims).values for array in given)
    known = np.isfinite(measured.values) & np.isfinite(value)
    rounding = ROUNDING + ROUNDING * np.abs(value[known])
    return Deviation((measured.values - value)[known], stderr[known], granted[known] + rounding)


def finding(
    dataset: xr.Dataset, titles: tuple[str, str], claim: Deviation, rival: Deviation, findings: int = FINDINGS
) -> Finding:
    """The verdict at the run's false-alarm budget, split over its findings and all their points."""
    comparisons, draws = findings * claim.difference.size, dataset.attrs["draws"]
    effective = effective_overlap_draws(dataset)
    return weigh(titles, claim, rival, comparisons=comparisons, draws=draws, effective=effective)


def effective_overlap_draws(dataset: xr.Dataset) -> float:
    """Kish's count for the worst squared overlap: few, where rare draws make it."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return effective_draws(dataset, "squared_overlap")
