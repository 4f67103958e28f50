"""The printed report on learning-rate scales: by depth, fitted slopes beside measured ones, transfer, verdicts."""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield.estimates import fit_power_law
from meanfield.verification import depth_laws
from meanfield.verification.depth_laws import TRANSFER_EXPONENT, fitted_slope, local_slopes
from meanfield.verification.published import COMMON_SWEEP, judged_slopes, measured_slopes
from sims._table import from_log, measured, table
from sims._verdicts import verdicts

SHOWN = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000)

# Depths at which a rate is tuned, and factors by which depth then grows; the deepest net of the run ends each row.
STARTS = (3, 6, 12, 24)
FACTORS = (2, 4, 8)

# Depth from which a net reaches the depths of some measured slope.
LEAST_DEPTH = min(found.depths[-1] for found in measured_slopes())

NOTE = """Table 1: mean over CIFAR-10, CIFAR-100 and ImageNet, its scatter as error; its depths are not printed, 3 .. 30
stands in. Tables 5, 6: fits through the rates that they print (table 5 at effective depths D + 1, from which its scaled
rates follow). ResNets, ViTs and audio nets are none of the families here; the mlp stands in for them."""


def text(dataset: xr.Dataset) -> str:
    """The whole report."""
    slopes = [_slope_table(dataset), NOTE] if dataset.sizes["depth"] >= LEAST_DEPTH else []
    return "\n\n".join([_scale_table(dataset), *slopes, _transfer_table(dataset), _verdicts(dataset)])


def _reached(dataset: xr.Dataset, depths: tuple[int, ...]) -> bool:
    return max(depths) <= dataset.sizes["depth"]


def _scale_table(dataset: xr.Dataset) -> str:
    families = [str(name) for name in dataset["family"].values]
    scales = dataset["label_learning_rate_scale"].values
    slopes = local_slopes(dataset["depth"].values, scales)
    exact, exact_slopes = (dataset[name].to_series() for name in ("log_learning_rate_scale", "exact_slope"))
    rows = []
    for depth in (d for d in SHOWN if d <= dataset.sizes["depth"]):
        at = depth - 1
        cells = [f"{scale[at] / scale[0]:.4g} ({slope[at]:.3f})" for scale, slope in zip(scales, slopes, strict=True)]
        rows.append([str(depth), *cells, f"{from_log(exact[depth] - exact[1])} ({exact_slopes[depth]:.3f})"])
    title = "eta*(L) / eta*(1) of the label term (local slope), mean field; last: exact, output term included"
    return table(["depth", *families, "mlp exact"], rows, title)


def _slope_table(dataset: xr.Dataset) -> str:
    """Measured slopes beside those that a fit finds in theory over the same depths."""
    families = [str(name) for name in dataset["family"].values]
    rows = []
    for found in measured_slopes():
        if not _reached(dataset, found.depths):
            continue
        whole = np.exp(dataset["log_learning_rate_scale"].sel(exact_depth=list(found.depths)).values)
        slopes = [*(fitted_slope(dataset, name, found.depths) for name in families)]
        slopes.append(fit_power_law(found.depths, whole).exponent)
        differences = (found.slope - slopes[0], found.slope - TRANSFER_EXPONENT)
        depths = f"{found.depths[0]} .. {found.depths[-1]}"
        cells = [f"{slope:.3f}" for slope in slopes] + [f"{difference:+.3f}" for difference in differences]
        rows.append([found.source, depths, measured(found.slope, found.stderr), *cells])
    header = ["slope of tuned rates", "depths", "measured", *families, "mlp exact", "less mlp", "less -3/2"]
    return table(header, rows, "Slopes that trained nets showed, and that a fit finds in theory over the same depths")


def _transfer_table(dataset: xr.Dataset) -> str:
    """How far the papers' power law misses a rate that the finite-depth scale carries."""
    deepest = dataset.sizes["depth"]
    logs = np.log(dataset["label_learning_rate_scale"].values)
    rows = []
    for start in (s for s in STARTS if s < deepest):
        ends = [start * factor for factor in FACTORS if start * factor < deepest]
        for end in [*ends, deepest]:
            power = TRANSFER_EXPONENT * np.log(end / start)
            excess = np.expm1(logs[:, end - 1] - logs[:, start - 1] - power)
            rows.append([str(start), str(end), f"{np.exp(power):.4g}", *(f"{value:+.1%}" for value in excess)])
    header = ["from L0", "to L", "(L/L0)^(-3/2)", *(str(name) for name in dataset["family"].values)]
    title = "Transfer: rate by the finite-depth rule over rate by the power law, less 1 (label term, mean field)"
    return table(header, rows, title)


def _verdicts(dataset: xr.Dataset) -> str:
    judged = judged_slopes()
    findings = [depth_laws.judge_asymptote(dataset)]
    if _reached(dataset, COMMON_SWEEP):
        findings.append(depth_laws.judge_power_law_in_use(dataset))
    findings += [depth_laws.judge_measured_slope(found, len(judged)) for found in judged]
    return verdicts(findings)
