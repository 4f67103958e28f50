"""The printed report on overlaps of parameter directions in residual nets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from meanfield.verification import overlaps as residual_overlaps
from meanfield.verification import score
from sims.common.report import answer, report
from sims.common.table import MISSING, measured, number, signed, table

if TYPE_CHECKING:
    import xarray as xr

QUESTION = "Does the mean overlap T grow by (1 + c q/K) in every block, at most to e^(c q)?"
WORDS = {
    "T": "overlap of two parameter directions, each DEPTH UNIT,UNIT (depth units: stem, blocks, tail).",
    "T~": "the same behind the gates.",
}
SPEC = ("depth", "width", "block_depth", "scaling", "activation", "stem", "tail")


def text(dataset: xr.Dataset) -> str:
    """Tables given all below, by depth unit, and by width; then the verdicts."""
    tables = [_heading(dataset), _given_table(dataset), _unit_table(dataset)]
    if residual_overlaps.has_gates(dataset):
        tables.append(_width_table(dataset))
    return report(QUESTION, _answer(dataset), tables, residual_overlaps.findings(dataset), WORDS)


def _answer(dataset: xr.Dataset) -> str:
    top = dataset.isel(layer=-1)
    grown, bound = (float(top[name].max()) for name in ("growth", "growth_bound"))
    return answer([residual_overlaps.judge_mean_law(dataset)], f"to {grown:.3g} at the top, e^(c q) being {bound:.3g}")


def _heading(dataset: xr.Dataset) -> str:
    net = json.loads(dataset.attrs["architecture"])
    spec = ", ".join(f"{name} {net[name]}" for name in SPEC)
    run = "{draws} draws, seed {seed}, {weights} weights".format_map(dataset.attrs)
    return f"ResidualMLP: {spec}; {run}; s.e.: measured minus law"


def _given_table(dataset: xr.Dataset) -> str:
    rows = []
    for pair in dataset["pair"].values:
        for unit in dataset["fixed"].values:
            at = dataset.sel(pair=pair, fixed=unit)
            mean, stderr, law = at["overlap_given"], at["overlap_stderr_given"], at["gated_overlap_below"]
            cells = [number(float(at[f"{name}_below"])) for name in ("overlap", "ungated", "gated_overlap")]
            drawn = measured(float(mean), float(stderr)), signed(float(score(mean, stderr, law)))
            rows.append([str(pair), str(unit), *cells, *drawn])
    header = [["pair", "depth unit"], "T", "T (1 + c/K)", ["T + (c/K) T~", "mean T above", "s.e."]]
    return table(header, rows, "Given the net up to a depth unit, and the mean at the next")


def _unit_table(dataset: xr.Dataset) -> str:
    deviation = "epsilon = E T~ - q E T"
    means = ["mean T", "r T at birth", "s.e.", "e^(cq) bound"]
    header = [["pair", "depth unit"], means, [deviation, "law", "s.e."]]
    rows = []
    for pair in dataset["pair"].values:
        for unit in dataset["layer"].values:
            at = dataset.sel(pair=pair, layer=unit)
            if at["overlap"].notnull():
                rows.append([str(pair), str(unit), *_mean_cells(at), *_deviation_cells(at)])
    return table(header, rows, "Everything redrawn; differences are paired, draw by draw")


def _mean_cells(at: xr.Dataset) -> list[str]:
    excess, stderr = at["overlap_excess"], at["overlap_excess_stderr"]
    law = at["overlap"] - excess
    bound = (law / at["growth"] * at["growth_bound"]).where(at["on_one_unit"] == 1)
    difference = signed(float(excess / stderr)) if stderr > 1e-12 * at["overlap_scale"] else signed(0.0)
    drawn = measured(float(at["overlap"]), float(at["overlap_stderr"]))
    return [drawn, number(float(law)), difference, number(float(bound))]


def _deviation_cells(at: xr.Dataset) -> list[str]:
    value, stderr, law = (at[f"gate_deviation{part}"] for part in ("", "_stderr", "_law"))
    return [measured(float(value), float(stderr)), number(float(law)), signed(float(score(value, stderr, law)))]


def _width_table(dataset: xr.Dataset) -> str:
    widths = dataset["width"].values
    rows = []
    for pair, law in residual_overlaps.width_slopes(dataset).items():
        columns = [dataset.sel(pair=pair)[f"gate_deviation{part}_by_width"].values for part in ("", "_stderr")]
        cells = [measured(n * value, n * error) for n, value, error in zip(widths, *columns, strict=True)]
        rows.append([pair, *cells, measured(law.exponent, law.stderr) if law else MISSING])
    header = ["pair", *(f"n = {width}" for width in widths), "exponent"]
    note = f"n epsilon at the top, and the power of n that epsilon goes as ({MISSING}: not resolved)"
    return table(header, rows, note)
