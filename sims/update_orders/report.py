"""The printed report on the orders of updates."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield.verification import Finding
from meanfield.verification import update_orders as claims
from sims.common.blocks.ladders import TABLES
from sims.common.report import Report, answer
from sims.common.tables import number, rows, slope, table


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    optimizers = list(map(str, dataset["optimizer"].values))
    first = str(dataset["table"].values[0])
    judged = [claims.judge_order(dataset, optimizer, first, 1, 1) for optimizer in optimizers]
    laws = [
        claims.order_slope(dataset, optimizer, first, direction, 1, 1)
        for optimizer in optimizers
        for direction in claims.DIRECTIONS
    ]
    farthest = max(laws, key=lambda law: abs(law.plain))
    return answer(judged, f"its slopes in width and depth are at most {slope(farthest.plain, farthest.plain_stderr)}")


def _orders(dataset: xr.Dataset) -> list[str]:
    """A table for every optimizer: the size at the largest net, and its slope, in either direction."""
    ends = [f"at {direction} {int(dataset[direction].values[-1])}" for direction in claims.DIRECTIONS]
    header = [["table", "step", "order"], [ends[0], "slope in width"], [ends[1], "slope in depth"]]
    tables = []
    for optimizer in map(str, dataset["optimizer"].values):

        def cells(at: xr.Dataset) -> list[str]:
            texts, place = [], (str(at["table"].values), int(at["step"]), int(at["order"]))
            for direction in claims.DIRECTIONS:
                law = claims.order_slope(dataset, str(at["optimizer"].values), place[0], direction, *place[1:])
                size = float(np.sqrt((at[f"order_norm_by_{direction}"].isel({direction: -1}) ** 2).mean()))
                texts += [number(size), slope(law.plain, law.plain_stderr)]
            return texts

        lines = rows(dataset.sel(optimizer=optimizer), ["table", "step", "order"], cells)
        named = [[TABLES[name], *line] for name, *line in lines]
        tables.append(table(header, named, f"{optimizer}: |epsilon_j(L)|"))
    return tables


text = Report(
    question="Are first-order terms of an update of order one in width and depth (Zheng et al. 2026)?",
    answer=_answer,
    heading="L blocks of {block_depth} matrices, linear; widths {widths} at L = {depth}, L = {depths} at "
    "width {width}\n"
    "{samples} samples, {outputs} outputs; {draws} draws, seed {seed}\n"
    "Delta h_L = Delta h_0 + sum_j epsilon_j, j updates of the block in each term\n"
    "root mean squares over units, samples and draws; plain slopes in their logarithm, errors by the jackknife",
    parts=[_orders],
    findings=claims.findings,
).text
