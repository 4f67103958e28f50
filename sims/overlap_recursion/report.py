"""The printed report on overlaps of parameter directions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from meanfield.verification import of_rival, overlap_conservation, score
from sims.common.report import answer, report
from sims.common.table import measured, number, signed, table

if TYPE_CHECKING:
    import xarray as xr

QUESTION = "Is the mean overlap T of two parameter directions the same in every layer, for every pair?"
WORDS = {
    "T": "overlap of two parameter directions, each LAYER,UNIT; q for a direction with itself.",
    "exact": "the expectation at this width, by a recursion.",
}
TITLES = {"overlap": "mean T", "squared_overlap": "mean T^2", "overlap_variance": "Var(T | below)"}


def text(dataset: xr.Dataset) -> str:
    """Tables by pair and layer, given a layer, and by width; then the verdicts."""
    tables = [_heading(dataset), _layer_table(dataset), _given_table(dataset), width_table(dataset)]
    return report(QUESTION, _answer(dataset), tables, overlap_conservation.findings(dataset), WORDS)


def _answer(dataset: xr.Dataset) -> str:
    own, pairs = of_rival(overlap_conservation.judge_mean)(dataset), dataset["pair"].values
    exact = dataset["overlap_exact"].isel(pair=-1).dropna("layer").values
    return answer([own], f"its exact mean for {pairs[-1]} is {exact[0]:.3g} at first, {exact[-1]:.3g} at last")


def _heading(dataset: xr.Dataset) -> str:
    net = json.loads(dataset.attrs["architecture"])
    spec = ", ".join(f"{name} {net[name]}" for name in ("depth", "width", "activation"))
    run = "{draws} draws, seed {seed}, {weights} weights".format_map(dataset.attrs)
    return f"MLP: {spec}; {run}; s.e.: measured minus exact"


def _layer_table(dataset: xr.Dataset) -> str:
    header = [["pair", "layer"], *([title, "exact", "s.e."] for title in TITLES.values())]
    rows = []
    for pair in dataset["pair"].values:
        for layer in dataset["layer"].values:
            at = dataset.sel(pair=pair, layer=layer)
            if at["overlap"].notnull():
                cells = [cell for name in TITLES for cell in _cells(at, name)]
                rows.append([str(pair), str(layer), *cells])
    return table(header, rows, "Everything redrawn")


def _cells(at: xr.Dataset, name: str) -> list[str]:
    """Measured, exact, and the difference in standard errors."""
    value, stderr, exact = at[name], at[f"{name}_stderr"], at[f"{name}_exact"]
    return [measured(float(value), float(stderr)), number(float(exact)), signed(float(score(value, stderr, exact)))]


def _given_table(dataset: xr.Dataset) -> str:
    fixed = int(dataset.attrs["fixed_layers"])
    top = int(dataset["layer"][-1])
    rows = []
    for pair in dataset["pair"].values:
        at = dataset.sel(pair=pair)
        own = at.sel(layer=fixed)
        above = [at.sel(layer=layer) for layer in sorted({fixed + 1, top})]
        means = [measured(float(one["overlap_given"]), float(one["overlap_stderr_given"])) for one in above]
        rows.append([str(pair), number(float(own["overlap_given"])), number(float(own["gated_overlap_given"])), *means])
    shown = [f"mean T at {layer}" for layer in sorted({fixed + 1, top})]
    header = ["pair", f"T at layer {fixed}", "gated T / q", *shown]
    return table(header, rows, f"Layers 1 .. {fixed} and the input fixed, layers above redrawn")


def width_table(dataset: xr.Dataset) -> str:
    widths = dataset["width_above"].values
    rows = []
    for pair in dataset["pair"].values:
        at = dataset.sel(pair=pair)
        columns = (at[f"overlap_variance{part}_by_width"].values for part in ("", "_stderr"))
        rows.append([str(pair), *(measured(c * v, c * e) for c, v, e in zip(widths, *columns, strict=True))])
    title = f"C Var(T | below) of layer {int(dataset.attrs['fixed_layers']) + 1} at C units, all below fixed"
    return table(["pair", *(f"C = {width}" for width in widths)], rows, title)
