"""The printed report on the residual energy of loops."""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield.verification import loop_growth
from sims.common.report import answer, report
from sims.common.table import measured, number, signed, table

QUESTION = "Does the energy H_L of weight-tied loops under eps = L^(-1/2) grow as L, as P2 says?"
TITLES = {"looped": "Looped: one matrix for all steps", "deep": "Deep: a matrix for every step"}
EPS = {"none": "eps = 1", "sqrt": "eps = L^(-1/2)", "linear": "eps = 1/L"}


def text(dataset: xr.Dataset) -> str:
    """Energies by model, scaling and loops; theory far up; correlations; cross term; verdicts."""
    energies = [_energy_table(dataset, model) for model in TITLES]
    parts = [_heading(dataset), *energies, _far_table(dataset), _correlations(dataset), _cross_table(dataset)]
    return report(QUESTION, _answer(dataset), parts, loop_growth.findings(dataset))


def _answer(dataset: xr.Dataset) -> str:
    last = dataset["log_energy"].sel(model="looped").isel(loops=-1)
    grown, bounded = (float(last.sel(scaling=name)) for name in ("sqrt", "linear"))
    at_end = f"after {int(last['loops'])} steps ln(H_L / H_0) = {grown:.3g}; under 1/L it is {bounded:.3g}"
    return answer([loop_growth.judge_printed_growth(dataset)], at_end)


def _heading(dataset: xr.Dataset) -> str:
    spec = "h <- h + eps W phi(h), width {width}, phi {activation}, sigma_W^2 {weight_variance}".format_map(
        dataset.attrs
    )
    run = "{draws} draws for each net, seed {seed}; ln H: logarithm of |h_L|^2 / N, 0 at the start".format_map(
        dataset.attrs
    )
    return f"{spec}\n{run}; s.e.: drawn minus mean field"


def _energy_table(dataset: xr.Dataset, model: str) -> str:
    rows = []
    for loops in dataset["loops"].values:
        cells = [str(loops)]
        for scaling in EPS:
            at = dataset.sel(model=model, scaling=scaling, loops=loops)
            drawn, stderr, theory = (float(at[f"log_energy{end}"]) for end in ("", "_stderr", "_mean_field"))
            cells += [measured(drawn, stderr), number(theory), signed((drawn - theory) / stderr)]
        rows.append(cells)
    header = ["loops", *([f"ln H, {eps}", "mean field", "s.e."] for eps in EPS.values())]
    return table(header, rows, TITLES[model])


def _far_table(dataset: xr.Dataset) -> str:
    rows = []
    for loops in dataset["far_loops"].values[::2]:
        at = dataset["log_energy_far"].sel(far_loops=loops)
        rows.append([str(loops), *(number(float(at.sel(model=m, scaling=s))) for m in TITLES for s in EPS)])
    header = ["loops", *(f"{model}, {scaling}" for model in TITLES for scaling in EPS)]
    return table(header, rows, "ln H of the mean field, far up")


def _correlations(dataset: xr.Dataset) -> str:
    count = dataset.sizes["increment"]
    rows = []
    for model in TITLES:
        at = dataset.sel(model=model)
        for distance in (1, count // 2, count - 1):
            drawn, theory = (
                float(np.diagonal(at[f"increment_correlation{end}"].values, distance).mean())
                for end in ("", "_mean_field")
            )
            rows.append([model, str(distance), number(drawn), number(theory)])
    title = f"Correlation of increments at a distance, mean over {count} steps (looped: 1/L, deep: L^(-1/2))"
    return table(["model", "distance", "drawn", "mean field"], rows, title)


def _cross_table(dataset: xr.Dataset) -> str:
    rows = []
    for width in dataset["cross_width"].values:
        at = dataset.sel(cross_width=width)
        spread, error = float(at["cross_term_spread"]), float(at["cross_term_spread_stderr"])
        root = float(np.sqrt(width))
        rows.append([str(width), measured(spread, error), measured(root * spread, root * error)])
    return table(["width N", "spread of B", "times sqrt(N)"], rows, "Cross term B_L of one draw, looped under 1/L")
