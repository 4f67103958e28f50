"""The printed report on overlaps of parameter directions in residual nets."""

from collections.abc import Sequence

import xarray as xr

from meanfield.verification import Finding
from meanfield.verification import overlaps as claims
from sims.common.report import Report, answer
from sims.common.tables import MISSING, against, drawn, fitted, number, predicted, rows, signed, table

WORDS = {
    "T": "overlap of two parameter directions, each DEPTH UNIT,UNIT (depth units: stem, blocks, tail).",
    "T~": "the same behind the gates.",
    "r T at birth": "the overlap where the later direction begins, times the growth r since.",
    "epsilon": "how far gates depend on tangents.",
}


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    top = dataset.isel(layer=-1)
    grown, bound = (float(top[name].max()) for name in ("growth", "growth_bound"))
    return answer([claims.judge_mean_law(dataset)], f"to {grown:.3g} at the top, e^(c q) being {bound:.3g}")


def _given_table(dataset: xr.Dataset) -> str:
    def cells(at: xr.Dataset) -> list[str]:
        below = [predicted(at, f"{name}_below") for name in ("overlap", "ungated", "gated_overlap")]
        means = {"mean": at["overlap_given"], "mean_stderr": at["overlap_stderr_given"]}
        mean, _, off = against(xr.Dataset(means | {"mean_law": at["gated_overlap_below"]}), "mean", "law")
        return [*below, mean, off]

    header = [["pair", "depth unit"], "T", "T (1 + c/K)", ["T + (c/K) T~", "mean T above", "s.e."]]
    lines = rows(dataset, ["pair", "fixed"], cells)
    return table(header, lines, "Given the net up to a depth unit, and the mean at the next")


def _unit_table(dataset: xr.Dataset) -> str:
    means = ["mean T", "r T at birth", "s.e.", "e^(cq) bound"]
    header = [["pair", "depth unit"], means, ["epsilon = E T~ - q E T", "law", "s.e."]]

    def cells(at: xr.Dataset) -> list[str]:
        return [*_mean_cells(at), *against(at, "gate_deviation", "law")]

    lines = rows(dataset, ["pair", "layer"], cells, known="overlap")
    return table(header, lines, "Everything redrawn; differences are paired, draw by draw")


def _mean_cells(at: xr.Dataset) -> list[str]:
    excess, stderr = at["overlap_excess"], at["overlap_excess_stderr"]
    law = at["overlap"] - excess
    bound = (law / at["growth"] * at["growth_bound"]).where(at["on_one_unit"] == 1)
    difference = signed(float(excess / stderr)) if stderr > 1e-12 * at["overlap_scale"] else signed(0.0)
    return [drawn(at, "overlap"), number(float(law)), difference, number(float(bound))]


def _width_tables(dataset: xr.Dataset) -> list[str]:
    """None for nets without gates."""
    if not claims.has_gates(dataset):
        return []
    widths, laws = dataset["width"].values, claims.width_slopes(dataset)
    top = dataset.rename(gate_deviation_by_width="top", gate_deviation_stderr_by_width="top_stderr")

    def cells(at: xr.Dataset) -> list[str]:
        law = laws[str(at["pair"].values)]
        return [*(drawn(at.sel(width=n), "top", n) for n in widths), fitted(law) if law else MISSING]

    header = ["pair", *(f"n = {width}" for width in widths), "exponent"]
    note = f"n epsilon at the top, and the power of n that epsilon goes as ({MISSING}: not resolved)"
    return [table(header, rows(top, ["pair"], cells), note)]


text = Report(
    question="Does the mean overlap T grow by (1 + c q/K) in every block, at most to e^(c q)?",
    answer=_answer,
    heading="{net}; {draws} draws, seed {seed}, {weights} weights",
    parts=[_given_table, _unit_table, _width_tables],
    findings=claims.findings,
    words=WORDS,
).text
