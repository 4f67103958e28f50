"""The printed report on coordinate checks."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield.verification import Finding, Verdict
from sims.common.blocks.ladders import DIRECTIONS, TABLES, trained_in
from sims.common.blocks.watched import watched
from sims.common.report import answer, report
from sims.common.tables import Column, Table, number, slope, table
from sims.coordinate_check.claims import findings, judged_tables

QUESTION = "Does the {table} keep features and changes flat in width and depth?"
WORDS = {
    "k >= 2 table": "that of Zheng et al. 2026 for blocks of two and more layers (condition 3.1).",
    "k = 1 table": "that of Zheng et al. 2026 for blocks of one layer (condition B.1).",
    "standard": "the parameterization in which no hyperparameter scales with width or depth.",
}
ALONE = {
    "|Delta h_L| by hidden weights alone": "the change of h_L if no other weights had moved, so too for other roles.",
    "plain": "a straight line's slope, without corrections.",
}


def text(dataset: xr.Dataset) -> str:
    """Per optimizer the slopes of every table in width and depth; sizes of |Delta h_L|; verdicts."""
    optimizers = list(map(str, dataset["optimizer"].values))
    parts = [_heading(dataset), *(_slopes(dataset, optimizer) for optimizer in optimizers)]
    parts += [_sizes(dataset, optimizer, direction) for optimizer in optimizers for direction in DIRECTIONS]
    judged = findings(dataset)
    first = judged_tables(dataset)[0]
    question = QUESTION.format(table="standard parameterization" if first == "standard" else TABLES[first])
    return report(question, _answer(dataset, judged), parts, judged, WORDS | ALONE)


def _answer(dataset: xr.Dataset, judged: Sequence[Finding]) -> str:
    """By the first table that is judged of every optimizer, that of the net's own block depth where it was run."""
    first = judged[:: len(judged_tables(dataset))]
    flat = sum(finding.verdict is Verdict.CONFIRMED for finding in first)
    return answer(first, f"confirmed for {flat} of {len(first)} optimizers")


def _heading(dataset: xr.Dataset) -> str:
    nets = "L blocks of {block_depth} matrices, {activation}; widths {widths} at L = {depth}, L = {depths} at width "
    run = "{width}; {samples} samples, {outputs} outputs; {steps} steps in {trained}, {draws} draws, seed {seed}"
    acting = "no weight decay, negligible epsilons" if dataset.attrs["plain"] else "weight decay and epsilons matter"
    if dataset.attrs["biases"]:
        acting += "; biases"
    if "soap_epsilon" in dataset.attrs:
        acting += "; SOAP's epsilon {soap_epsilon:g} in the base model"
    if dataset.attrs["base"]:
        acting += "; base values {base}"
    how = "slope s of log y = a + s log x + c / x (depths: + d / L^2), draw by draw; in brackets the plain slope"
    return "\n".join([nets, run, acting, how]).format_map({**dataset.attrs, "trained": trained_in(dataset.attrs)})


def _slopes(dataset: xr.Dataset, optimizer: str) -> str:
    """A line for everything that is watched, under every table; columns: ladders and steps."""
    rows, lines = watched(dataset), []
    steps = list(dict.fromkeys(row.step for row in rows))
    for name in map(str, dataset["table"].values):
        for symbol in dict.fromkeys(row.symbol for row in rows):
            same = [row for row in rows if row.symbol == symbol]
            laws = [row.slope(dataset, optimizer, name, along) for along in DIRECTIONS for row in same]
            cells = [f"{slope(law.settled, law.settled_stderr)} ({law.plain:+.2f})" for law in laws]
            lines.append([TABLES[name], symbol, *cells])
    header = [[f"in {direction}, step {step}" for step in steps] for direction in DIRECTIONS]
    return table([["table", "slope of"], *header], lines, f"{optimizer}: slopes")


def _sizes(dataset: xr.Dataset, optimizer: str, direction: str) -> str:
    """|Delta h_L| after the first and the last step; some nets leave the floats, and their means with them."""
    name = f"feature_update_norm_by_{direction}"
    steps = list(dict.fromkeys((1, int(dataset["step"].values[-1]))))
    with np.errstate(all="ignore"):
        means = dataset[[name]].sel(optimizer=optimizer, place="last", step=steps).mean("draw", skipna=False)

    def mean_at(size: int) -> Column:
        return Column(f"{direction} {size}", lambda at: number(float(at[name].sel({direction: size}))))

    columns = [mean_at(size) for size in dataset[direction].values]
    title = f"{optimizer}: |Delta h_L| in {direction}, mean over draws"
    dims = ["table", "step"]
    return Table("sizes", title, dims, dims, columns, shown={"table": TABLES})(means)
