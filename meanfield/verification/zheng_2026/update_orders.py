"""Zheng et al. 2026, C2.3 and what sets k >= 2 apart: the orders of a block's update, on the terms themselves."""

import numpy as np
import xarray as xr

from meanfield.verification.judges import Contest, Judges, contest
from meanfield.verification.ladder_slopes import LadderSlope, ladder_slope, mean_over_draws
from meanfield.verification.verdicts import Finding

DIRECTIONS = ("width", "depth")

# What finite sizes are granted in a plain slope. A correction c/x over ladders from 64 units or 2 blocks upwards leaves
# 0.1 for c = 8 units or a third of a block; fitting it, as coordinate checks do, would triple the error of terms whose
# sign is random.
FINITE = 0.1
# Findings of one optimizer.
FINDINGS = 5
TITLES = {"many": "k >= 2 table", "one": "k = 1 table"}

# The judges of `sims.update_orders`.
JUDGES = Judges()


def order_slope(dataset: xr.Dataset, optimizer: str, table: str, direction: str, step: int, order: int) -> LadderSlope:
    """Slope of the root mean square over draws of one order, by the jackknife over draws where single draws vanish.

    A second-order term has a random sign that single draws may have close to zero, so that its logarithm is taken of
    the mean square over draws, not of each draw.
    """
    at = dataset[f"order_norm_by_{direction}"].sel(optimizer=optimizer, table=table, step=step, order=order)
    return ladder_slope(dataset[direction].values, mean_over_draws(at.transpose(direction, "draw").values, power=2))


def findings(dataset: xr.Dataset) -> list[Finding]:
    """Per optimizer: first order is of order one under both tables, second order at the first and at the last step."""
    last = int(dataset["step"].values[-1])
    terms = [("many", 1, 1), ("one", 1, 1)]
    if dataset.sizes["order"] > 2:
        terms += [("many", 1, 2), ("many", last, 2), ("one", last, 2)]
    return [judge_order(dataset, name, *term) for name in map(str, dataset["optimizer"].values) for term in terms]


@JUDGES.decide
def judge_order(dataset: xr.Dataset, optimizer: str, table: str, step: int, order: int) -> Contest:
    """{optimizer}, {title}, step {step}: the terms of order {order} are of order one; rival: they fall as the root
    of width or depth; measured: plain slopes of epsilon_j(L)."""
    slopes = [order_slope(dataset, optimizer, table, direction, step, order) for direction in DIRECTIONS]
    words = ", ".join(
        f"{slope.plain:+.2f} +- {slope.plain_stderr:.2f} in {direction}"
        for slope, direction in zip(slopes, DIRECTIONS, strict=True)
    )
    drawn = np.array([(slope.plain, slope.plain_stderr) for slope in slopes]).T
    comparisons = FINDINGS * len(DIRECTIONS) * dataset.sizes["optimizer"]
    made = contest(*drawn, claimed=0.0, rival=-0.5, allowance=FINITE, comparisons=comparisons)
    return made.saying(f"slopes {words}, claimed 0, rival -0.5, allowance {FINITE:g}", title=TITLES[table])
