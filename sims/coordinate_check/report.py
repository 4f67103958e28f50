"""The printed report on coordinate checks."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield.verification import Finding, Verdict
from meanfield.verification import coordinate_checks as claims
from sims.common.blocks import TABLES
from sims.common.report import answer, report
from sims.common.table import number, slope, table

QUESTION = "Does the {table} keep |h_L| and |Delta h_L| flat in width and depth?"
WORDS = {
    "k >= 2 table": "that of Zheng et al. 2026 for blocks of two and more layers (condition 3.1).",
    "k = 1 table": "that of Zheng et al. 2026 for blocks of one layer (condition B.1).",
    "standard": "the parameterization in which no hyperparameter scales with width or depth.",
}
SYMBOLS = {"feature_norm": "|h_L|", "feature_update_norm": "|Delta h_L|"}


def text(dataset: xr.Dataset) -> str:
    """Per optimizer the slopes of every table in width and depth; sizes of |Delta h_L|; verdicts."""
    optimizers = list(map(str, dataset["optimizer"].values))
    parts = [_heading(dataset), *(_slopes(dataset, optimizer) for optimizer in optimizers)]
    parts += [_sizes(dataset, optimizer, direction) for optimizer in optimizers for direction in claims.DIRECTIONS]
    findings = claims.findings(dataset)
    first = claims.judged_tables(dataset)[0]
    question = QUESTION.format(table="standard parameterization" if first == "standard" else TABLES[first])
    return report(question, _answer(dataset, findings), parts, findings, WORDS)


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    """By the first table that is judged of every optimizer, that of the net's own block depth where it was run."""
    first = findings[:: len(claims.judged_tables(dataset))]
    flat = sum(finding.verdict is Verdict.CONFIRMED for finding in first)
    return answer(first, f"confirmed for {flat} of {len(first)} optimizers")


def _heading(dataset: xr.Dataset) -> str:
    nets = "L blocks of {block_depth} matrices, {activation}; widths {widths} at L = {depth}, L = {depths} at width "
    run = "{width}; {steps} steps, {draws} draws, seed {seed}; |.| root mean squares over units and samples"
    how = "slope s of log y = a + s log x + c / x (depths: + d / L^2), draw by draw; in brackets without corrections"
    return "\n".join([nets + run, how]).format_map(dataset.attrs)


def _slopes(dataset: xr.Dataset, optimizer: str) -> str:
    lines = []
    for name in map(str, dataset["table"].values):
        for direction in claims.DIRECTIONS:
            laws = [claims.slope(dataset, optimizer, name, direction, *at) for at in claims.quantities(dataset)]
            cells = [f"{slope(law.settled, law.settled_stderr)} ({law.plain:+.2f})" for law in laws]
            lines.append([TABLES[name], direction, *cells])
    header = [f"{SYMBOLS[variable]}, step {step}" for variable, step in claims.quantities(dataset)]
    return table([["table", "slope in"], header[:2], header[2:]], lines, f"{optimizer}: slopes")


def _sizes(dataset: xr.Dataset, optimizer: str, direction: str) -> str:
    lines, last = [], int(dataset["step"].values[-1])
    for name in map(str, dataset["table"].values):
        for step in dict.fromkeys((1, last)):
            at = dataset[f"feature_update_norm_by_{direction}"].sel(optimizer=optimizer, table=name, step=step)
            with np.errstate(all="ignore"):
                means = at.mean("draw", skipna=False).values
            lines.append([TABLES[name], str(step), *(number(float(mean)) for mean in means)])
    header = [["table", "step"], *(f"{direction} {size}" for size in dataset[direction].values)]
    return table(header, lines, f"{optimizer}: |Delta h_L| in {direction}, mean over draws")
