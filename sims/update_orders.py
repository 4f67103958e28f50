"""The change of the stream by the order of a block's own updates in it: where k >= 2 would differ from k = 1.

Zheng et al. 2026 derive alpha = 1/L for blocks of k >= 2 matrices from terms with two and more updates of one block,
which are to be of order one (C2.3). Here Delta h_L is split exactly, after one step and after many, for each table: by
condition 3.1 (k >= 2) and by condition B.1 (k = 1), on blocks of one, two and three matrices.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from meanfield.execution import Run
from meanfield.simulation import UpdateOrders
from meanfield.verification import (
    Check,
    Claim,
    Contest,
    Deviation,
    Finding,
    Judges,
    Kind,
    LadderSlope,
    contest,
    ladder_slope,
    ladder_values,
    mean_over_draws,
    of_rival,
)
from sims.common.blocks import (
    BATCH,
    BLOCK_OPTIONS,
    DIRECTIONS,
    PAPER,
    PLAIN_RATES,
    SMOKE,
    TABLES,
    batch_options,
    hyperparameters,
    measure_ladders,
    planned_ladders,
    require_rate,
    run_under,
    worded,
)
from sims.common.command import Option, Preset, chosen_of, counted
from sims.common.datasets import Variable
from sims.common.report import Report, answer
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import Column, Grid, Table, number, slope

NAME = "update_orders"
LISTED = "the change of a stream by orders of a block's own updates"

# What is asked for.

OPTIONS = (
    *BLOCK_OPTIONS,
    # Base rates without momentum are such that ten steps move the stream on this batch by about itself.
    *batch_options(samples=2, outputs=1),
    Option(
        "steps",
        "steps after which the change is split again",
        int,
        10,
        check=counted("one step is split in any case", minimum=2),
        group="",
    ),
    Option(
        "tables",
        "of many (k >= 2) and one (k = 1) (default: both)",
        default=["many", "one"],
        metavar="NAME",
        many="+",
        check=chosen_of(("many", "one")),
        group="",
    ),
)
# From four blocks upwards, where what finite depths leave in a plain slope is below what is granted.
LADDERS: dict[str, Any] = {"widths": [64, 96, 256], "depths": [4, 6, 32], "width": 64, "depth": 4}
# Terms of the fifth order drift more than those of lower ones at few units and blocks.
DEEP_LADDERS: dict[str, Any] = {"widths": [128, 256, 512], "depths": [16, 32, 64, 128], "width": 64, "depth": 4}
PRESETS = {
    "smoke": Preset("4 s", **SMOKE | {"optimizers": ["muon"]}),
    "default": Preset("30 s", **LADDERS, draws=24, optimizers=["sgd", "adamw", "muon"]),
    "evidence": Preset("25 min", **DEEP_LADDERS, draws=400, optimizers=["sgd", "adamw", "muon"]),
    "paper": Preset("2 h", **PAPER | {"draws": 64, "depths": [4, 8, 16, 32, 64]}),
}

# What is measured.

VARIABLES = tuple(
    Variable(
        f"order_norm_by_{direction}",
        f"root mean square of the part of Delta h_L by its order in a block's updates, over the ladder in {direction}",
        symbol="|epsilon_j(L)|_R",
        source="Zheng et al. 2026, eq. 5, appendix B.2.4",
    )
    for direction in DIRECTIONS
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The ladders, tables and steps."""
    return {"described": planned_ladders(options, "steps", "tables", *BATCH)}


def measure(options: argparse.Namespace, results: Results, described: dict[str, Any]) -> xr.Dataset:
    """|epsilon_j(L)| by optimizer, table, size, draw, step and order, over both ladders."""
    require_rate(options)
    steps = [1, options.steps]

    def run_of(optimizer: str, table: str, width: int, depth: int) -> Run:
        # k layers move a block k times as far.
        rates = {name: rate * 2 / options.block_depth for name, rate in PLAIN_RATES.items()}
        given = hyperparameters(optimizer, table, width, depth, rate=options.rate, rates=rates)
        return run_under(options, UpdateOrders, optimizer, given, width, depth, momentum=False, steps=steps)

    axes = {"optimizer": options.optimizers, "table": options.tables}
    dataset = measure_ladders(options, results, run_of, lambda _: axes, lambda measured, net: measured)
    return dataset.assign_coords(step=steps, order=range(options.block_depth + 1)).assign_attrs(worded(described))


# What is claimed, and what decides it.

# What finite sizes are granted in a plain slope. A correction c/x over ladders from 64 units or 4 blocks upwards leaves
# 0.1 for c = 8 units or half a block; fitting it, as coordinate checks do, would triple the error of terms whose sign
# is random.
FINITE = 0.1
# The exponent by which a slope is off, to either side, where the law is another one.
OFF = 0.5
# Exponent of orders above the first after one step, in width and in depth: the updates of a block are then blind to
# each other, and meet in overlaps of independent vectors, of either sign.
FIRST_STEP = -0.5
# The run that decides on the first step: many draws of two steps.
FIRST = ("--tables", "many", "--optimizers", "muon", "--steps", "2", "--times", "22")

# The optimizer in which second-order terms were seen to settle within ten steps.
SETTLED = "muon"

JUDGES = Judges()
# One alone, of a claim on block depths.
OF_TABLES = Judges()


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


@JUDGES.decide(
    claim="{optimizer}, {title}, step {step}: the terms of order {order} are of order one",
    rival="they grow or fall as the root of width or depth",
    measured="plain slopes of epsilon_j(L)",
)
def judge_order(dataset: xr.Dataset, optimizer: str, table: str, step: int, order: int) -> Contest:
    made = replace(_flat(dataset, [(optimizer, table, step, order)]), comparisons=_comparisons(dataset))
    return made.saying(made.shown, title=TABLES[table])


@JUDGES.decide(
    claim="k = {layers}: after the last step the terms of every order are of order one, after the first step those "
    "of first order",
    brief="k = {layers}: terms of every order are of order one (after one step: of first order)",
    rival="some grow or fall as the root of width or depth",
    measured="plain slopes of epsilon_j(L)",
)
def judge_orders(dataset: xr.Dataset) -> Contest:
    last, layers = int(dataset["step"].values[-1]), int(dataset.attrs["block_depth"])
    places = [(1, 1), *((last, order) for order in range(1, layers + 1))]
    made = _flat(dataset, [(str(name), "many", *place) for name in dataset["optimizer"].values for place in places])
    return made.saying(made.shown, layers=layers)


@JUDGES.decide(
    claim="{optimizer}, {title}, step 1: the terms of order 2 fall as the root of width and of depth",
    brief="{optimizer}, {title}: second-order terms of the first step fall as the root of size",
    rival="{optimizer}, {title}, step 1: the terms of order 2 are of order one",
    measured="plain slopes of epsilon_2(L)",
)
def judge_first_step(dataset: xr.Dataset, optimizer: str, table: str = "many") -> Contest:
    named = _slopes(dataset, [(optimizer, table, 1, 2)])
    slopes, errors = np.array([(slope.plain, slope.plain_stderr) for _, slope in named]).T
    words = ", ".join(f"{slope:+.2f} +- {error:.2f}" for slope, error in zip(slopes, errors, strict=True))
    of_table = 0.0 if table == "many" else -0.5
    claimed = np.array([FIRST_STEP, FIRST_STEP + of_table])
    made = contest(slopes, errors, claimed=claimed, rival=[0.0, of_table], allowance=FINITE)
    return made.saying(f"slopes in width and depth {words}, claimed {FIRST_STEP:g}", title=TABLES[table])


@OF_TABLES.decide(
    claim="After {step} steps of {optimizer} on blocks of k >= 2 layers, terms of second order keep their size in "
    "depth under the k >= 2 table, and fall as its root or faster under the k = 1 table",
    brief="{optimizer}, k >= 2, {step} steps: second order lasts in depth under its own table alone",
    rival="they keep it under both",
    measured="straight-line slopes in L of the part of h_L's change that takes two weight updates in one block",
)
def judge_second_order(dataset: xr.Dataset) -> Contest:
    step = int(dataset["step"].values[-1])
    kept, falling = (order_slope(dataset, SETTLED, table, "depth", step, 2) for table in ("many", "one"))
    stderr, granted = [kept.plain_stderr, falling.plain_stderr], [FINITE, 0.0]
    claim = Deviation([kept.plain, max(falling.plain + 0.5, 0.0)], stderr, granted)
    rival = Deviation(falling.plain, falling.plain_stderr, FINITE)
    slopes = [f"{law.plain:+.2f} +- {law.plain_stderr:.2f}" for law in (kept, falling)]
    shown = f"slopes {slopes[0]} (claimed 0) and {slopes[1]} (claimed -0.5 or less)"
    return Contest(claim, rival, comparisons=2, apart=[0.0, 0.5]).saying(shown, step=step, optimizer=SETTLED)


def _comparisons(dataset: xr.Dataset) -> int:
    """Slopes that all findings of a run judge."""
    return len(DIRECTIONS) * dataset.sizes["optimizer"] * dataset.sizes["table"] * (dataset.sizes["order"] + 1)


# Blocks of so many layers, with the optimizers whose steps differ without momentum, but for SSO.
ORDERS = ("--tables", "many", "--times", "2", "--optimizers", "sgd", "adamw", "muon", "--block-depth")
# What the default preset runs.
NETS = "on two samples and one output, without momentum, widths 64 .. 256 and 4 .. 32 blocks"


def all_orders(*layers: int) -> tuple[Check, ...]:
    """Terms of every order, at each of these block depths."""
    return tuple(Check(NAME, judge_orders, (*ORDERS, str(count))) for count in layers)


CLAIMS = (
    Claim(
        id="S3b",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, condition B.2",
        statement="k = 4: all orders of a block's update are of order one after ten steps of SGD, AdamW and Muon",
        brief="k = 4: all orders of a block's update are of order one after ten steps",
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
        brief="k = 5: all orders of a block's update are of order one after ten steps",
        printed='"automatically satisfied by combining the initial condition and the first-order update condition: '
        'alpha_l prod_(i in S) |Delta W_l^(i)|_R prod_(i not in S) |W_l^(i)|_R = Theta(1/L)" (condition B.2)',
        hypotheses="linear nets, on two samples and one output, without momentum, widths 128 .. 512 and 16 .. 128 "
        "blocks, chosen after shorter ladders (widths 64 .. 256, 4 .. 32 blocks) where slopes of the fifth order reach "
        "+0.28 +- 0.07 and come nearer to 0 in deeper nets; bands as for k = 4, set before",
        checks=all_orders(5),
        preset="evidence",
    ),
    Claim(
        id="S9",
        kind=Kind.PREMISE,
        source="Zheng et al. 2026, section 3.3.2, below eq. 5",
        statement="k = 2: the scale that norms give the second-order term is its scale in one step (judged: Muon's, "
        "which is then of order one, and why the multiplier is 1/L)",
        brief="k = 2: Muon's second-order term of one step is of order one, hence 1/L",
        printed='"maximizing each summand and ensuring |epsilon_2(L)|_R = Theta(1) in the '
        'meanwhile, leading to alpha_l |Delta W_l^(2)|_R |Delta W_l^(1)|_R = Theta(1/L)" (section 3.3.2)',
        hypotheses="it is one: section 3.3 takes 'scale estimates whose tightness relies on standard non-cancellation "
        f"and alignment behavior', and appendix F argues for the other terms; linear nets, {NETS}",
        checks=(Check(NAME, of_rival(partial(judge_first_step, optimizer="muon")), FIRST),),
        replaced_by="n^(-1/2) L^(-1/2) after one step; of order one after several. The condition on norms (C2.3) "
        "holds (S1)",
        premise="that norms multiply; the two updates of a block meet in an overlap of independent vectors",
    ),
)

# What is printed.


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    optimizers = list(map(str, dataset["optimizer"].values))
    first = str(dataset["table"].values[0])
    judged = [judge_order(dataset, optimizer, first, 1, 1) for optimizer in optimizers]
    laws = [
        order_slope(dataset, optimizer, first, direction, 1, 1) for optimizer in optimizers for direction in DIRECTIONS
    ]
    farthest = max(laws, key=lambda law: abs(law.plain))
    return answer(judged, f"its slopes in width and depth are at most {slope(farthest.plain, farthest.plain_stderr)}")


def _orders_of(optimizer: str, dataset: xr.Dataset) -> Grid:
    """The size at the largest net, and its slope, in either direction."""

    def column(direction: str) -> Column:
        def cells(at: xr.Dataset) -> list[str]:
            place = str(at["table"].values), direction, int(at["step"]), int(at["order"])
            law = order_slope(dataset, optimizer, *place)
            size = float(np.sqrt((at[f"order_norm_by_{direction}"].isel({direction: -1}) ** 2).mean()))
            return [number(size), slope(law.plain, law.plain_stderr)]

        return Column([f"at {direction} {int(dataset[direction].values[-1])}", f"slope in {direction}"], cells)

    dims = ["table", "step", "order"]
    columns = [column(along) for along in DIRECTIONS]
    table = Table("orders", f"{optimizer}: |epsilon_j(L)|", dims, dims, columns, shown={"table": TABLES})
    return table(dataset.sel(optimizer=optimizer))


def _orders(dataset: xr.Dataset) -> list[Grid]:
    """A table for every optimizer."""
    return [_orders_of(optimizer, dataset) for optimizer in map(str, dataset["optimizer"].values)]


STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=Report(
        question="Are first-order terms of an update of order one in width and depth (Zheng et al. 2026)?",
        answer=_answer,
        heading="L blocks of {block_depth} matrices, linear; widths {widths} at L = {depth}, L = {depths} at "
        "width {width}\n"
        "{samples} samples, {outputs} outputs; {draws} draws, seed {seed}\n"
        "Delta h_L = Delta h_0 + sum_j epsilon_j, j updates of the block in each term\n"
        "root mean squares over units, samples and draws; plain slopes in their logarithm, errors by the jackknife",
        parts=[_orders],
        findings=findings,
    ),
    claims=CLAIMS,
)

if __name__ == "__main__":
    run_as_command(NAME)
