"""Zheng et al. 2026, C2.3 and what sets k >= 2 apart: the orders of a block's update, on the terms themselves."""

from dataclasses import replace
from functools import partial

import numpy as np
import xarray as xr

from meanfield.verification.claims import Check, Claim, Kind, of_rival
from meanfield.verification.judges import Contest, Judges, contest
from meanfield.verification.series import LadderSlope, ladder_slope, ladder_values, mean_over_draws
from meanfield.verification.verdicts import Deviation, Finding

DIRECTIONS = ("width", "depth")

# What finite sizes are granted in a plain slope. A correction c/x over ladders from 64 units or 4 blocks upwards leaves
# 0.1 for c = 8 units or half a block; fitting it, as coordinate checks do, would triple the error of terms whose sign
# is random.
FINITE = 0.1
# The exponent by which a slope is off, to either side, where the law is another one.
OFF = 0.5
# Exponent of orders above the first after one step, in width and in depth: the updates of a block are then blind to
# each other, and meet in overlaps of independent vectors, of either sign.
FIRST_STEP = -0.5
TITLES = {"many": "k >= 2 table", "one": "k = 1 table"}
# The run that decides on the first step: many draws of two steps.
FIRST = ("--tables", "many", "--optimizers", "muon", "--steps", "2", "--times", "22")

# The judges of `sims.update_orders`.
JUDGES = Judges()


def order_slope(dataset: xr.Dataset, optimizer: str, table: str, direction: str, step: int, order: int) -> LadderSlope:
    """Slope of the root mean square over draws of one order, by the jackknife over draws where single draws vanish.

    A second-order term has a random sign that single draws may have close to zero, so that its logarithm is taken of
    the mean square over draws, not of each draw.
    """
    at = {"optimizer": optimizer, "table": table, "step": step, "order": order}
    values = ladder_values(dataset, "order_norm", direction, **at)
    return ladder_slope(dataset[direction].values, mean_over_draws(values, power=2))


def findings(dataset: xr.Dataset) -> list[Finding]:
    """Per optimizer and table: first order is flat at the first step, all orders are at the last; then the first step
    of second order."""
    names = [
        (name, table) for name in map(str, dataset["optimizer"].values) for table in map(str, dataset["table"].values)
    ]
    last, orders = int(dataset["step"].values[-1]), dataset.sizes["order"]
    terms = [(1, 1), *((last, order) for order in range(1, orders))]
    made = [judge_order(dataset, *name, *term) for name in names for term in terms]
    return made + [judge_first_step(dataset, *name) for name in names if orders > 2]


def _slopes(dataset: xr.Dataset, terms: list[tuple[str, str, int, int]]) -> list[tuple[str, LadderSlope]]:
    """(where, slope) in either direction of all these (optimizer, table, step, order)."""
    return [
        (
            f"{name}, step {step}, order {order} in {direction}",
            order_slope(dataset, name, table, direction, step, order),
        )
        for name, table, step, order in terms
        for direction in DIRECTIONS
    ]


def _flat(dataset: xr.Dataset, terms: list[tuple[str, str, int, int]]) -> Contest:
    """Plain slopes are zero; rival: half a power to either side, by the slope nearest to that."""
    named = _slopes(dataset, terms)
    slopes, errors = np.array([(slope.plain, slope.plain_stderr) for _, slope in named]).T
    beyond = np.maximum(OFF - np.abs(slopes), 0.0)
    claim, rivals = Deviation(slopes, errors, FINITE), Deviation(beyond, errors, FINITE)
    nearest = int(np.argmin(rivals.excess))
    rival = Deviation(beyond[nearest], errors[nearest], FINITE)
    where, farthest = named[int(np.argmax(np.abs(slopes)))]
    shown = f"{farthest.plain:+.2f} +- {farthest.plain_stderr:.2f} ({where})"
    return Contest(claim, rival, apart=OFF).saying(f"{len(named)} slopes, farthest {shown}, allowance {FINITE:g}")


@JUDGES.decide
def judge_order(dataset: xr.Dataset, optimizer: str, table: str, step: int, order: int) -> Contest:
    """{optimizer}, {title}, step {step}: the terms of order {order} are of order one; rival: they grow or fall as the
    root of width or depth; measured: plain slopes of epsilon_j(L)."""
    made = replace(_flat(dataset, [(optimizer, table, step, order)]), comparisons=_comparisons(dataset))
    return made.saying(made.shown, title=TITLES[table])


@JUDGES.decide
def judge_orders(dataset: xr.Dataset) -> Contest:
    """k = {layers}: after the last step the terms of every order are of order one, after the first step those of first
    order; rival: some grow or fall as the root of width or depth; measured: plain slopes of epsilon_j(L)."""
    last, layers = int(dataset["step"].values[-1]), int(dataset.attrs["block_depth"])
    places = [(1, 1), *((last, order) for order in range(1, layers + 1))]
    made = _flat(dataset, [(str(name), "many", *place) for name in dataset["optimizer"].values for place in places])
    return made.saying(made.shown, layers=layers)


@JUDGES.decide
def judge_first_step(dataset: xr.Dataset, optimizer: str, table: str = "many") -> Contest:
    """{optimizer}, {title}, step 1: the terms of order 2 fall as the root of width and of depth; rival: {optimizer},
    {title}, step 1: the terms of order 2 are of order one; measured: plain slopes of epsilon_2(L)."""
    named = _slopes(dataset, [(optimizer, table, 1, 2)])
    slopes, errors = np.array([(slope.plain, slope.plain_stderr) for _, slope in named]).T
    words = ", ".join(f"{slope:+.2f} +- {error:.2f}" for slope, error in zip(slopes, errors, strict=True))
    of_table = 0.0 if table == "many" else -0.5
    claimed = np.array([FIRST_STEP, FIRST_STEP + of_table])
    made = contest(slopes, errors, claimed=claimed, rival=[0.0, of_table], allowance=FINITE)
    return made.saying(f"slopes in width and depth {words}, claimed {FIRST_STEP:g}", title=TITLES[table])


def _comparisons(dataset: xr.Dataset) -> int:
    """Slopes that all findings of a run judge."""
    return len(DIRECTIONS) * dataset.sizes["optimizer"] * dataset.sizes["table"] * (dataset.sizes["order"] + 1)


# Blocks of so many layers, with the optimizers whose steps differ without momentum, but for SSO.
ORDERS = ("--tables", "many", "--times", "2", "--optimizers", "sgd", "adamw", "muon", "--block-depth")
# What the default preset runs.
NETS = "on two samples and one output, without momentum, widths 64 .. 256 and 4 .. 32 blocks"


def all_orders(*layers: int) -> tuple[Check, ...]:
    """Terms of every order, at each of these block depths."""
    return tuple(Check("update_orders", judge_orders, (*ORDERS, str(count))) for count in layers)


CLAIMS = (
    Claim(
        id="S3b",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, condition B.2",
        statement="k = 4: all orders of a block's update are of order one after ten steps of SGD, AdamW and Muon",
        printed='"automatically satisfied by combining the initial condition and the first-order update condition: '
        'alpha_l prod_(i in S) |Delta W_l^(i)|_R prod_(i not in S) |W_l^(i)|_R = Theta(1/L)" (condition B.2)',
        hypotheses=f"linear nets, {NETS}",
        checks=all_orders(4),
    ),
    Claim(
        id="S3c",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, condition B.2",
        statement="k = 5: all orders of a block's update are of order one after ten steps of SGD, AdamW and Muon",
        printed='"automatically satisfied by combining the initial condition and the first-order update condition: '
        'alpha_l prod_(i in S) |Delta W_l^(i)|_R prod_(i not in S) |W_l^(i)|_R = Theta(1/L)" (condition B.2)',
        hypotheses=f"linear nets, {NETS}",
        checks=all_orders(5),
    ),
    Claim(
        id="S9",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, section 3.3.2, eq. 5",
        statement="k = 2: the second-order term of one step of Muon is of order one, which is why the multiplier is "
        "1/L",
        printed='"maximizing each summand and ensuring |epsilon_2(L)|_R = Theta(1) in the '
        'meanwhile, leading to alpha_l |Delta W_l^(2)|_R |Delta W_l^(1)|_R = Theta(1/L)" (section 3.3.2)',
        hypotheses=f"norms of a product multiply; linear nets, {NETS}",
        checks=(Check("update_orders", of_rival(partial(judge_first_step, optimizer="muon")), FIRST),),
        replaced_by="n^(-1/2) L^(-1/2) after one step; of order one after several",
        premise="that norms multiply; the two updates of a block meet in an overlap of independent vectors",
    ),
)
