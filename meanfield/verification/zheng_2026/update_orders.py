"""Claims on the orders of a block's update: P1's C2.3 and what sets k >= 2 apart, on the terms themselves."""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield.verification.ladder_slopes import LadderSlope, ladder_slope, mean_over_draws
from meanfield.verification.verdicts import Deviation, Finding, weigh

DIRECTIONS = ("width", "depth")

# What finite sizes are granted in a plain slope. A correction c/x over ladders from 64 units or 2 blocks upwards leaves
# 0.1 for c = 8 units or a third of a block; fitting it, as coordinate checks do, would triple the error of terms whose
# sign is random.
FINITE = 0.1


def order_slope(dataset: xr.Dataset, optimizer: str, table: str, direction: str, step: int, order: int) -> LadderSlope:
    """Slope of the root mean square over draws of one order, by the jackknife over draws where single draws vanish.

    A second-order term has a random sign that single draws may have close to zero, so that its logarithm is taken of
    the mean square over draws, not of each draw.
    """
    at = dataset[f"order_norm_by_{direction}"].sel(optimizer=optimizer, table=table, step=step, order=order)
    return ladder_slope(dataset[direction].values, mean_over_draws(at.transpose(direction, "draw").values, power=2))


def findings(dataset: xr.Dataset) -> list[Finding]:
    """Per optimizer: first order is of order one under both tables, second order at the first and at the last step."""
    found = []
    last = int(dataset["step"].values[-1])
    for optimizer in map(str, dataset["optimizer"].values):
        found += [judge_order(dataset, optimizer, table, 1, 1) for table in ("many", "one")]
        if dataset.sizes["order"] > 2:
            found += [judge_order(dataset, optimizer, "many", step, 2) for step in (1, last)]
            found.append(judge_order(dataset, optimizer, "one", last, 2))
    return found


def judge_order(dataset: xr.Dataset, optimizer: str, table: str, step: int, order: int) -> Finding:
    """epsilon_j(L) is of order one in width and depth; rival: it falls as a root of either."""
    rows = [order_slope(dataset, optimizer, table, direction, step, order) for direction in DIRECTIONS]
    slopes, stderr = (np.array([getattr(row, name) for row in rows]) for name in ("plain", "plain_stderr"))
    granted = np.full(len(rows), FINITE)
    claim = Deviation(slopes, stderr, granted)
    rival = Deviation(slopes + 0.5, stderr, granted)
    title = {"many": "k >= 2 table", "one": "k = 1 table"}[table]
    shown = ", ".join(f"{x:+.2f} +- {e:.2f} in {d}" for x, e, d in zip(slopes, stderr, DIRECTIONS, strict=True))
    titles = (
        f"{optimizer}, {title}, step {step}: the terms of order {order} are of order one",
        "they fall as the root of width or depth",
    )
    comparisons, draws = 5 * 2 * dataset.sizes["optimizer"], dataset.attrs["draws"]
    shown = f"slopes {shown}, claimed 0, rival -0.5, allowance {FINITE:g}"
    return weigh(titles, claim, rival, comparisons=comparisons, draws=draws, shown=shown)
