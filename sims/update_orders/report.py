"""The printed report on the orders of updates."""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield.verification import update_orders as claims
from sims.common.blocks import TABLES
from sims.common.report import answer, report
from sims.common.table import number, slope, table

QUESTION = "Are first-order terms of an update of order one in width and depth (Zheng et al. 2026)?"


def text(dataset: xr.Dataset) -> str:
    """Sizes of all orders at the largest nets, their slopes, verdicts."""
    parts = [_heading(dataset), *(_orders(dataset, str(name)) for name in dataset["optimizer"].values)]
    return report(QUESTION, _answer(dataset), parts, claims.findings(dataset))


def _answer(dataset: xr.Dataset) -> str:
    optimizers = list(map(str, dataset["optimizer"].values))
    judged = [claims.judge_order(dataset, optimizer, "many", 1, 1) for optimizer in optimizers]
    laws = [
        claims.order_slope(dataset, optimizer, "many", direction, 1, 1)
        for optimizer in optimizers
        for direction in claims.DIRECTIONS
    ]
    farthest = max(laws, key=lambda law: abs(law.plain))
    return answer(judged, f"its slopes in width and depth are at most {slope(farthest.plain, farthest.plain_stderr)}")


def _heading(dataset: xr.Dataset) -> str:
    nets = "L blocks of {block_depth} matrices, linear; widths {widths} at L = {depth}, L = {depths} at width {width}"
    run = "{draws} draws, seed {seed}; Delta h_L = Delta h_0 + sum_j epsilon_j, j updates of the block in each term"
    how = "root mean squares over units, samples and draws; plain slopes in their logarithm, errors by the jackknife"
    return "\n".join([nets, run, how]).format_map(dataset.attrs)


def _orders(dataset: xr.Dataset, optimizer: str) -> str:
    lines = []
    for name in map(str, dataset["table"].values):
        for step in map(int, dataset["step"].values):
            for order in map(int, dataset["order"].values):
                cells = []
                for direction in claims.DIRECTIONS:
                    at = dataset[f"order_norm_by_{direction}"]
                    at = at.sel(optimizer=optimizer, table=name, step=step, order=order).isel({direction: -1})
                    row = claims.order_slope(dataset, optimizer, name, direction, step, order)
                    size = float(np.sqrt((at**2).mean()))
                    cells += [number(size), slope(row.plain, row.plain_stderr)]
                lines.append([TABLES[name], str(step), str(order), *cells])
    ends = [f"at {direction} {int(dataset[direction].values[-1])}" for direction in claims.DIRECTIONS]
    header = [["table", "step", "order"], [ends[0], "slope in width"], [ends[1], "slope in depth"]]
    return table(header, lines, f"{optimizer}: |epsilon_j(L)|")
