"""Claims on padding: P0's remark B and Lemma 3, and the laws that zero padding follows instead."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from meanfield.common.estimates import PowerLaw, log_slope
from meanfield.verification.verdicts import Deviation, Finding, Verdict, effective_draws, judge_computed, weigh

Array = NDArray[np.float64]

LABEL_SCALE = "label_learning_rate_scale"
# Findings of one run, over which its false-alarm budget is split.
FINDINGS = 9
# How near an exponent over one doubling of the grid must be to a limit to be called by its name.
NEAR = 0.15
# Rounding that sums over a set leave in an identity.
ROUNDING = 1e-9


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One finding per claim, on a run of `sims.cnn_padding`."""
    return [
        judge_mean_field(dataset),
        judge_exponent(dataset, place=0),
        judge_exponent(dataset, place=-1),
        judge_uniform_correction(dataset),
        judge_decay(dataset, _lines(dataset)[0]),
        judge_turning(dataset),
        judge_half(dataset, "1D linear"),
        judge_half(dataset, "1D ReLU"),
        judge_missing_terms(dataset),
    ]


def _lines(dataset: xr.Dataset) -> list[str]:
    """The grids of one dimension that are drawn, by rising length."""
    return [str(name) for name in dataset["grid"].values if str(name).isdigit()]


def ratio_slope(at: xr.Dataset) -> PowerLaw:
    """Drawn slope of ln(eta* zero / circular) in ln L, of one grid; errors of independent nets."""
    return _scale_slope(at, at[LABEL_SCALE].values)


def theory_ratio_slope(at: xr.Dataset) -> float:
    """The same slope of the mean field, its points weighted as the drawn ones."""
    return _scale_slope(at, at[f"{LABEL_SCALE}_mean_field"].values).exponent


def _scale_slope(at: xr.Dataset, scale: Array) -> PowerLaw:
    """Weighted slope over depths; rows of ``scale`` are zero and circular padding."""
    errors = np.hypot(*(at[f"{LABEL_SCALE}_stderr"] / at[LABEL_SCALE]).values)
    log_depth = np.log(at["depth"].values)
    fit, covariance = np.polyfit(log_depth, np.log(scale[0] / scale[1]), 1, w=1 / errors, cov="unscaled")
    return PowerLaw(float(fit[0]), float(np.sqrt(covariance[0, 0])), float(np.exp(fit[1])))


def layer_decay(at: xr.Dataset) -> tuple[float, float]:
    """Drawn slope of ln(B_l zero / circular) per layer over the deeper half of one grid's deepest nets, its error."""
    deep = _deep(at.sizes["layer"])
    layers = np.exp(at["layer"].values[deep])  # slopes of logarithms are taken in ln x: here x = e^l
    slopes = [
        log_slope(layers, one["label_term"].values[deep], one["label_term_covariance"].values[deep, deep])
        for one in (at.sel(padding=padding) for padding in ("zero", "circular"))
    ]
    return slopes[0].exponent - slopes[1].exponent, float(np.hypot(slopes[0].stderr, slopes[1].stderr))


def theory_layer_decay(at: xr.Dataset) -> float:
    """The same slope in the mean field."""
    deep = _deep(at.sizes["layer"])
    zero, circular = (at["label_term_mean_field"].sel(padding=padding).values for padding in ("zero", "circular"))
    return float(np.polyfit(at["layer"].values[deep], np.log(zero / circular)[deep], 1)[0])


def _deep(layers: int) -> slice:
    return slice(max(layers // 2, 1) - 1, layers)


def size_exponent(dataset: xr.Dataset, family: str, name: str) -> float:
    """Exponent in N + 1 of one of the depths, over the last two grids of a family that have it.

    Signals vanish one site outside the grid on either side: N + 1 is the length that lambda knows.
    """
    at = dataset[name].sel(family=family).dropna("sites")
    if at.sizes["sites"] < 2:
        return float("nan")
    depths, sites = at.values[-2:], at["sites"].values[-2:]
    return float(np.diff(np.log(depths))[0] / np.diff(np.log(sites + 1))[0])


def correction_exponent(dataset: xr.Dataset, family: str = "1D ReLU") -> float:
    """Exponent in the layer of 1 - (F zero / circular) on the family's largest grid, from layer 4 to a quarter lost."""
    at = dataset.sel(family=family)
    row = int(np.flatnonzero(np.isfinite(at["far_ratio"].values[:, 0]))[-1])
    layer, lost = at["far_layer"].values[row], 1 - at["far_ratio"].values[row]
    chosen = (layer >= 4) & (lost <= 0.25)
    return float(np.polyfit(np.log(layer[chosen]), np.log(lost[chosen]), 1)[0]) if chosen.sum() > 1 else float("nan")


def judge_mean_field(dataset: xr.Dataset) -> Finding:
    """The zero-padded mean field on every grid and at every layer; rival: the circular one."""
    at = dataset.sel(padding="zero")
    energy, stderr = at["label_term"].values.ravel(), at["label_term_stderr"].values.ravel()
    allowance = at["finite_width_allowance"].values.ravel()
    theories = (
        dataset["label_term_mean_field"].sel(padding=padding).values.ravel() for padding in ("zero", "circular")
    )
    claim, rival = (Deviation(energy - theory, stderr, allowance * theory) for theory in theories)
    titles = "zero-padded draws follow the zero-padded mean field", "the circular one"
    effective = effective_draws(at, "label_term")
    return _drawn(dataset, titles, claim, rival, _share(at, "label_term"), effective=effective)


def judge_exponent(dataset: xr.Dataset, place: int) -> Finding:
    """P0 remark B on one of the lines, by its place: eta* has the depth exponent of circular padding.

    Rival: the mean field's. Finite width may move each scale by half of its allowance, in opposite directions at worst.
    """
    grid = _lines(dataset)[place]
    at = dataset.sel(grid=grid)
    law, theory = ratio_slope(at), theory_ratio_slope(at)
    allowed = float(np.log1p(at["finite_width_allowance"].values.max()))
    depths = at["depth"].values
    slack = np.array([0.5 * allowed / np.log(depths[-1] / depths[0])])
    sides = [Deviation(np.array([law.exponent - x]), np.array([law.stderr]), slack) for x in (0.0, theory)]
    shown = f"slope of the ratio {law.exponent:.3f} +- {law.stderr:.3f}, allowance {slack[0]:.3f}"
    titles = (
        f"on {grid} sites padding leaves the exponent of eta* of B over depths {depths[0]} .. {depths[-1]} (P0 B)",
        f"it changes by {theory:.3f}, the mean field's",
    )
    return _drawn(dataset, titles, sides[0], sides[1], _share(at, LABEL_SCALE), shown)


def judge_uniform_correction(dataset: xr.Dataset) -> Finding:
    """The correction is O(boundary fraction) with one constant at all depths; rival: growing as the root of depth."""
    exponent = correction_exponent(dataset)
    at = dataset.sel(family="1D ReLU")
    bdry = at["far_boundary_fraction"].dropna("sites")
    return Finding(
        claim="the correction by zero padding is the boundary fraction times one constant for all depths (P0 B)",
        rival="times l^(1/2), as signals diffuse inwards",
        verdict=judge_computed(exponent, 0.0, 0.5, NEAR),
        evidence=f"1 - F zero/circular grows as l^{exponent:.3f} on {bdry['sites'].values[-1]} sites, computed",
    )


def judge_decay(dataset: xr.Dataset, grid: str) -> Finding:
    """Label terms of one zero-padded net fall by lambda per layer against circular ones; rival: they do not fall."""
    at = dataset.sel(grid=grid)
    slope, stderr = layer_decay(at)
    law, theory = float(np.log(at["transport_eigenvalue"])), theory_layer_decay(at)
    deep = np.log1p(at["finite_width_allowance"].values.max(axis=0))[_deep(at.sizes["layer"])]
    slack = np.array([(deep[-1] - deep[0]) / (len(deep) - 1)])
    claim, rival = (Deviation(np.array([slope - x]), np.array([stderr]), slack) for x in (law, 0.0))
    titles = f"on {grid} sites label terms decay as lambda^l, ln lambda = {law:.4f}", "no decay: a constant factor"
    shown = f"drawn {slope:.4f} +- {stderr:.4f} per layer, mean field {theory:.4f}, allowance {slack[0]:.4f}"
    return _drawn(dataset, titles, claim, rival, _share(at, "label_term"), shown)


def judge_turning(dataset: xr.Dataset) -> Finding:
    """Growth ends, and turns into decay, at a depth of the order of N^2; rival: N, as for stencils that drift."""
    exponent, drift = (size_exponent(dataset, family, "turning_depth") for family in ("1D ReLU", "1D ReLU, 2 taps"))
    return Finding(
        claim="the cubic growth turns into decay at a depth of the order of (N + 1)^2 (docs/theory.md section 7)",
        rival="N + 1",
        verdict=judge_computed(exponent, 2.0, 1.0, NEAR),
        evidence=f"exponent {exponent:.3f}; two taps, which drift, have {drift:.3f}; computed",
    )


def judge_half(dataset: xr.Dataset, family: str) -> Finding:
    """Half of the energy is lost at a depth of the order of N^2 too; rival: N."""
    exponent = size_exponent(dataset, family, "half_depth")
    return Finding(
        claim=f"{family}: half of the overlap energy is lost at a depth of the order of (N + 1)^2 "
        "(docs/theory.md section 7)",
        rival="N + 1",
        verdict=judge_computed(exponent, 2.0, 1.0, NEAR),
        evidence=f"exponent {exponent:.3f} between the two largest lines, computed",
    )


def judge_missing_terms(dataset: xr.Dataset) -> Finding:
    """P0 Lemma 3 on every set tried, for the worst function there is; rival: the same bound without the factor k."""
    bound, largest = dataset["missing_bound"].values, dataset["missing_largest"].values
    torus = float(np.nanmax(dataset["missing_circular"]))
    holds = bool(np.all(largest <= bound + ROUNDING)) and torus <= ROUNDING
    without = largest * dataset["set_taps"].values / bound
    broken = bool(np.any(without > 1 + ROUNDING))
    verdict = Verdict.REFUTED if not holds else Verdict.CONFIRMED if broken else Verdict.INCONCLUSIVE
    evidence = f"at most {(largest / bound).max():.3f} of the bound is reached; {without.max():.3g} times the rival's"
    return Finding(
        claim="sums over stencils miss at most k bdry sup|f|, and nothing on a torus (P0 Lemma 3)",
        rival="bdry sup|f|, without the factor k",
        verdict=verdict,
        evidence=f"{evidence}; on a torus {torus:.0e}",
    )


def _drawn(
    dataset: xr.Dataset,
    titles: tuple[str, str],
    claim: Deviation,
    rival: Deviation,
    share: float,
    shown: str = "",
    effective: float | None = None,
) -> Finding:
    return weigh(
        titles,
        claim,
        rival,
        comparisons=FINDINGS * claim.difference.size,
        draws=dataset.attrs["draws"],
        effective=effective,
        largest_share=share,
        shown=shown,
    )


def _share(at: xr.Dataset, name: str) -> float:
    return float(at[f"{name}_largest_share"].max())
