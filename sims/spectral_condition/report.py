"""The printed report on the spectral conditions of Zheng et al. 2026."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield.verification import LadderRow
from meanfield.verification import spectral_products as claims
from sims.common.report import answer, report
from sims.common.tables import slope, table

QUESTION = "Do weights, updates and their products scale as Zheng et al. 2026 ask?"


def text(dataset: xr.Dataset) -> str:
    """Slopes of products and alignments beside the conditions, and the verdicts."""
    weights, updates, aligned = (
        rows(dataset) for rows in (claims.weight_rows, claims.update_rows, claims.alignment_rows)
    )
    parts = [_heading(dataset), _weights([*weights, *claims.feature_rows(dataset)])]
    parts += [_updates(updates, direction) for direction in claims.DIRECTIONS]
    parts.append(_aligned(dataset, aligned))
    off = [abs(row.slope.settled - row.condition) for row in (*weights, *updates)]
    findings = claims.findings(dataset)
    summary = answer(findings, f"{len(off)} slopes are {max(off):.2g} off at most, {np.median(off):.2g} in the middle")
    return report(QUESTION, summary, parts, findings)


def _heading(dataset: xr.Dataset) -> str:
    nets = (
        "L blocks of {block_depth} {activation} layers; widths {widths} at L = {depth}, L = {depths} at width {width}"
    )
    run = "updates of {steps} steps on {samples} samples, {outputs} outputs, under each optimizer's table"
    draws = "{draws} draws, seed {seed}; |.| are RMS operator norms"
    how = "slopes: log y = a + s log x + c / x (depths: + d / L^2), draw by draw; weights over finite Gaussian norms"
    return "\n".join([nets, run, draws, how]).format_map(dataset.attrs)


def _slope(row: LadderRow) -> str:
    return slope(row.slope.settled, row.slope.settled_stderr)


def _weights(rows: Sequence[LadderRow]) -> str:
    by = {(row.name, row.direction): row for row in rows}
    lines = []
    for name in dict.fromkeys(row.name for row in rows):
        cells = [by[name, direction] for direction in claims.DIRECTIONS]
        lines.append([name, *(cell for row in cells for cell in (_slope(row), f"{row.condition:+g}"))])
    return table(["initially", ["in width", "condition"], ["in depth", "condition"]], lines)


def _updates(rows: Sequence[LadderRow], direction: str) -> str:
    rows_along = [row for row in rows if row.direction == direction]
    names = list(dict.fromkeys(row.name for row in rows_along))
    wanted = {row.name: f"{row.condition:+g}" for row in rows_along}
    lines = [["condition", *(wanted[name] for name in names)]]
    for optimizer in dict.fromkeys(row.optimizer for row in rows_along):
        lines.append([optimizer, *(_slope(row) for row in rows_along if row.optimizer == optimizer)])
    return table([f"in {direction}", *names], lines)


def _aligned(dataset: xr.Dataset, rows: Sequence[LadderRow]) -> str:
    lines = []
    for optimizer in dict.fromkeys(row.optimizer for row in rows):
        slopes = [_slope(row) for row in rows if row.optimizer == optimizer]
        last = dataset["weight_alignment_by_depth"] if not optimizer else dataset["update_alignment_by_depth"]
        at = last if not optimizer else last.sel(optimizer=optimizer)
        lines.append([optimizer or "weights (F.1)", f"{float(at.isel(depth=-1).mean()):.3f}", *slopes])
    header = ["|A z| / (|A| |z|), A =", "deepest net", "slope in width", "slope in depth"]
    return table(header, lines, "Alignment of matrices and of their updates (F.2) with what they read, in blocks")
