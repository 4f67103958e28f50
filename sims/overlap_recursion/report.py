"""The printed report on overlaps of parameter directions."""

from collections.abc import Sequence

import xarray as xr

from meanfield.verification import Finding, of_rival
from meanfield.verification import overlap_conservation as claims
from sims.common.pairs import added_variance_table
from sims.common.report import Report, answer
from sims.common.tables import against, drawn, predicted, rows, table

WORDS = {
    "T": "overlap of two parameter directions, each LAYER,UNIT; q for a direction with itself.",
    "exact": "the expectation at this width, by a recursion.",
    "gated T / q": "the overlap behind the gates of that layer, over q.",
}
TITLES = {"overlap": "mean T", "squared_overlap": "mean T^2", "overlap_variance": "Var(T | below)"}


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    own, pairs = of_rival(claims.judge_mean)(dataset), dataset["pair"].values
    exact = dataset["overlap_exact"].isel(pair=-1).dropna("layer").values
    return answer([own], f"its exact mean for {pairs[-1]} is {exact[0]:.3g} at first, {exact[-1]:.3g} at last")


def _layer_table(dataset: xr.Dataset) -> str:
    def cells(at: xr.Dataset) -> list[str]:
        return [cell for name in TITLES for cell in against(at, name, "exact")]

    header = [["pair", "layer"], *([title, "exact", "s.e."] for title in TITLES.values())]
    return table(header, rows(dataset, ["pair", "layer"], cells, known="overlap"), "Everything redrawn")


def _given_table(dataset: xr.Dataset) -> str:
    fixed, top = int(dataset.attrs["fixed_layers"]), int(dataset["layer"][-1])
    above = sorted({fixed + 1, top})

    def cells(at: xr.Dataset) -> list[str]:
        own = [predicted(at.sel(layer=fixed), name) for name in ("overlap_given", "gated_overlap_given")]
        means = at.rename(overlap_given="mean", overlap_stderr_given="mean_stderr")
        return [*own, *(drawn(means.sel(layer=layer), "mean") for layer in above)]

    header = ["pair", f"T at layer {fixed}", "gated T / q", *(f"mean T at {layer}" for layer in above)]
    title = f"Layers 1 .. {fixed} and the input fixed, layers above redrawn"
    return table(header, rows(dataset, ["pair"], cells), title)


text = Report(
    question="Is the mean overlap T of two parameter directions the same in every layer, for every pair?",
    answer=_answer,
    heading="{net}; {draws} draws, seed {seed}, {weights} weights",
    parts=[_layer_table, _given_table, added_variance_table],
    findings=claims.findings,
    words=WORDS,
).text
