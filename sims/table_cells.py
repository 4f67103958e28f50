"""Do the cells of hyperparameter tables have the powers of width and depth that norms ask for?

Nets of L blocks of k matrices are drawn under the tables of Zheng et al. 2026 for their k. Before any step the norms of
weights, of gradients and of the first direction of every optimizer are measured, by role (input, hidden and output
weights, or biases). Each cell of a table is a factor of something that a condition asks to be of order one; its slope
over a ladder says by which power the printed cell is off. Printed powers are halves and wholes: a cell stands while no
other half power is nearer to what is measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import Array
from meanfield.execution import Run
from meanfield.nets import BlockNet
from meanfield.optimizers import optimizer_of_role
from meanfield.parameterizations import BIASES, HYPERPARAMETERS, OPTIMIZER_NAMES, WEIGHTS, hyperparameter_table
from meanfield.simulation import FirstDirections
from meanfield.verification import (
    OFF,
    Check,
    Claim,
    Contest,
    Deviation,
    Finding,
    Judges,
    Kind,
    LadderSlope,
    labelled,
    ladder_slope,
    ladder_values,
)
from sims.common.blocks import (
    ACTIVATION,
    BLOCK_OPTIONS,
    DIRECTIONS,
    NETS,
    SMOKE,
    Values,
    batch_options,
    block_net,
    gaussian_norm,
    hyperparameters,
    limit_norm,
    measure_ladders,
    planned_ladders,
    require_rate,
    rungs,
    worded,
)
from sims.common.command import Option, Preset
from sims.common.datasets import Variable
from sims.common.report import Report, answer
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import Grid, slope, table

NAME = "table_cells"
LISTED = "the powers that norms ask for in the cells of hyperparameter tables"

# What is asked for.

OPTIONS = (
    *BLOCK_OPTIONS,
    *batch_options(),
    ACTIVATION,
    Option(
        "biases",
        "give the nets biases, and look at the cells of biases instead of those of weights",
        flag=True,
        group="",
    ),
)
LADDERS: dict[str, Any] = {"widths": [32, 48, 192, 256], "depths": [4, 6, 24, 32], "width": 64, "depth": 2}
PRESETS = {
    "smoke": Preset("4 s", **SMOKE | {"optimizers": ["all"], "width": 16, "depth": 2}),
    "default": Preset("40 s", **LADDERS, optimizers=["all"], draws=96),
    "paper": Preset(
        "10 min", **LADDERS | {"optimizers": ["all"], "draws": 128, "widths": [64, 128, 256, 512, 1024], "width": 64}
    ),
}

# What is measured.

VARIABLES = (
    *(
        Variable(f"value_by_{along}", f"hyperparameters given to nets, over the ladder in {along}")
        for along in DIRECTIONS
    ),
    Variable("hyperparameter", "hyperparameter of a role"),
    Variable("cell", "cell of a table: optimizer, hyperparameter, role"),
    *(
        variable
        for along in DIRECTIONS
        for variable in (
            Variable(f"printed_power_of_{along}", f"power of the {along} in a cell, as printed"),
            Variable(
                f"needed_power_of_{along}",
                f"power of the {along} in a cell that its condition asks for, as measured",
                "of the cell, where what it is a factor of would be flat, by a straight line",
            ),
        )
    ),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The ladders and batches; some table has to have cells."""
    described = planned_ladders(options, *NETS)
    for optimizer in options.optimizers:
        cells(optimizer, options.block_depth, options.biases)
    return {"described": described | {"biases": int(options.biases)}}


def measure(options: argparse.Namespace, results: Results, described: dict[str, Any]) -> xr.Dataset:
    """Norms by optimizer, size, draw and role over both ladders; and the values that were given, without a draw."""
    require_rate(options)

    def run_of(optimizer: str, width: int, depth: int) -> Run:
        given = _values(options, optimizer, width, depth)
        shape = {name: getattr(options, name) for name in ("block_depth", "biases", *NETS)}
        net = block_net(given, width, depth, **shape)
        return Run(net, FirstDirections(optimizer=optimizer, hyperparameters=given), options.draws, options.seed)

    dataset = measure_ladders(options, results, run_of, lambda _: {"optimizer": options.optimizers}, scales_of)
    dataset = dataset.assign_coords(hyperparameter=list(HYPERPARAMETERS))
    for along in DIRECTIONS:
        given = [[_values(options, name, *size) for size in rungs(options, along)] for name in options.optimizers]
        values = np.array([[_by_cell(dataset, at) for at in of_sizes] for of_sizes in given])
        dataset[f"value_by_{along}"] = (("optimizer", along, "role", "hyperparameter"), values)
    return with_powers(dataset.assign_attrs(worded(described)))


def with_powers(dataset: xr.Dataset) -> xr.Dataset:
    """With the powers of every cell, as printed and as needed, by its name."""
    measured = measured_cells(dataset, *run_optimizers(dataset))
    powers: dict[str, Any] = {}
    for along in DIRECTIONS:
        of_cells = [cell for cell in measured if cell.direction == along]
        names = [cell.name for cell in of_cells]
        for name, of in (("printed_power", "printed"), ("needed_power", "needed"), ("needed_power_stderr", "stderr")):
            powers[f"{name}_of_{along}"] = ("cell", [getattr(cell, of) for cell in of_cells])
    return dataset.assign(powers).assign_coords(cell=names)


def _values(options: argparse.Namespace, optimizer: str, width: int, depth: int) -> Values:
    """By the table of the net's own block depth."""
    table = "one" if options.block_depth == 1 else "many"
    return hyperparameters(optimizer, table, width, depth, rate=options.rate, acting=True, biases=options.biases)


def _by_cell(dataset: xr.Dataset, given: Values) -> list[list[float]]:
    """(roles, hyperparameters), nan where a role has none."""
    return [[given[str(role)].get(name, np.nan) for name in HYPERPARAMETERS] for role in dataset["role"].values]


def scales_of(measured: xr.Dataset, net: BlockNet) -> xr.Dataset:
    """What cells of tables follow from, of one net by draw and role; norms of weights as in `products_of`."""
    roles = list(dict.fromkeys(map(net.role_of, net.weights)))
    shapes = {net.role_of(name): weight.shape for name, weight in net.weights.items() if len(weight.shape) > 1}
    limits = [limit_norm(*shapes[role]) / gaussian_norm(*shapes[role]) if role in shapes else 1.0 for role in roles]
    return measured.assign(role_weight_norm=measured["role_weight_norm"] * limits).assign_coords(role=roles)


# What follows for every cell.

# Powers in tables are halves and wholes. A printed one stands while it is the nearest of these to what is measured, so
# that a quarter is left for what finite sizes change.
NEAREST = OFF / 2


def named(optimizer: str, role: str, hyperparameter: str) -> str:
    """A cell of an optimizer's table in words."""
    of = f"{role.removesuffix('_bias')} biases" if role in BIASES else f"{role} weights"
    return f"{optimizer}: {hyperparameter.replace('_', ' ')} of {of}"


def cells(optimizer: str, block_depth: int, biases: bool = False) -> list[tuple[str, str]]:
    """(role, hyperparameter) of all cells of weights, or of biases, whether they scale or not.

    Of hybrids, every role has the cells of the optimizer that steps it. Multipliers of biases are those of their
    weights, and no cells of their own.
    """
    pairs = []
    for role in BIASES if biases else WEIGHTS:
        by = optimizer_of_role(optimizer, role)
        names = hyperparameter_table(by, block_depth).hyperparameters(by)
        pairs += [(role, name) for name in names if not (biases and name == "block_multiplier")]
    return pairs


@dataclass(frozen=True)
class LadderCell:
    """One cell along one ladder: the power that is printed, and the one that the condition asks of it as measured.

    Attributes:
        printed: of the width or of the depth, read off the values that the nets were given.
        slope: of what the condition asks to be flat, which has the cell as a factor.
    """

    optimizer: str
    role: str
    hyperparameter: str
    direction: str
    printed: float
    slope: LadderSlope

    @property
    def name(self) -> str:
        return named(self.optimizer, self.role, self.hyperparameter)

    @property
    def needed(self) -> float:
        """The power at which that would be flat."""
        return self.printed - self.off

    @property
    def off(self) -> float:
        """Printed less needed: a straight line's slope, of which finite sizes change less than a quarter."""
        return self.slope.plain

    @property
    def stderr(self) -> float:
        return self.slope.plain_stderr

    @property
    def stands(self) -> bool:
        """Whether the printed power is the nearest half or whole one."""
        return abs(self.off) < NEAREST

    @property
    def scales(self) -> bool:
        """Whether it is printed with a power, or ought to be."""
        return bool(self.printed) or not self.stands


def measured_cells(dataset: xr.Dataset, *optimizers: str) -> list[LadderCell]:
    """Of every cell of the tables for these optimizers, along both ladders.

    Raises:
        ValueError: an optimizer that was not run.
    """
    run = run_optimizers(dataset)
    block_depth, biases = int(dataset.attrs["block_depth"]), bool(dataset.attrs["biases"])
    for optimizer in optimizers:
        if optimizer not in run:
            raise ValueError(f"the run has {', '.join(run)} and not {optimizer}; run all optimizers")
    return [
        _measured(Scales(dataset, optimizer, role, direction), name)
        for direction, optimizer in product(DIRECTIONS, optimizers)
        for role, name in cells(optimizer, block_depth, biases)
    ]


def _measured(scales: Scales, name: str) -> LadderCell:
    sizes = scales.sizes
    printed = np.polyfit(np.log(sizes), np.log(scales.value(name)), 1)[0]
    slope = ladder_slope(sizes, scales.asked_to_be_flat(name))
    # Adding zero makes no power of minus zero, and what is no more than rounding is none.
    return LadderCell(scales.optimizer, scales.role, name, scales.direction, round(float(printed), 9) + 0.0, slope)


def run_optimizers(dataset: xr.Dataset) -> list[str]:
    """Those that were run."""
    return list(map(str, dataset["optimizer"].values))


@dataclass(frozen=True)
class Scales:
    """What was measured of one role along one ladder, (sizes, draws), and the values that it was given, (sizes,)."""

    dataset: xr.Dataset
    optimizer: str
    role: str
    direction: str

    @property
    def sizes(self) -> Array:
        return np.asarray(self.dataset[self.direction].values)

    def value(self, hyperparameter: str, role: str = "") -> Array:
        at = {"optimizer": self.optimizer, "role": role or self.role, "hyperparameter": hyperparameter}
        return np.asarray(labelled(self.dataset, f"value_by_{self.direction}", at).values)

    def norm(self, name: str) -> Array:
        at = {"optimizer": self.optimizer, "role": self.role}
        return ladder_values(self.dataset, f"role_{name}", self.direction, **at)

    def asked_to_be_flat(self, hyperparameter: str) -> Array:
        """What a condition of Zheng et al. 2026 asks to be of order one, with the hyperparameter as a factor.

        |.| are RMS operator norms, of biases root mean squares, W the weights, A the first direction, G the gradient, a
        the multiplier; T = 1, in blocks of k layers T = 1/L. Of initial variances that is |W|^2, of output weights over
        n^2 (eq. 6); of multipliers a |W|, in blocks a |W|^k over T, at k = 1 over T^(1/2) (C1.1, C1.2, B.1); of
        learning rates a rate |A| |W|^(k - 1) over T (C2.1, C2.2, B.3); of weight decays decay |W| / |A| (C.1); of
        epsilons the epsilon over the root mean square of G's elements (C.6), of Shampoo's over |G|_2^2 (C.9).
        """
        value, weights = self.value(hyperparameter)[:, None], self.norm("weight_norm")
        if hyperparameter == "adamw_epsilon":
            return value / self.norm("gradient_element")
        if hyperparameter == "shampoo_epsilon":
            return value / self.norm("gradient_norm") ** 2
        if hyperparameter == "initial_variance":
            return np.asarray(weights / self._rule_for_norms()) ** 2
        if hyperparameter == "weight_decay":
            return np.asarray(value * weights / self.norm("direction_norm"))
        layers = int(self.dataset.attrs["block_depth"]) if self.role == "hidden" else 1
        if hyperparameter == "block_multiplier":
            return np.asarray(value * weights**layers / self._share() ** (0.5 if layers == 1 else 1.0))
        multiplier = self.value("block_multiplier", self.role.removesuffix("_bias"))[:, None]
        return np.asarray(multiplier * value * self.norm("direction_norm") * weights ** (layers - 1) / self._share())

    def _rule_for_norms(self) -> Array:
        """n of output weights, 1 of the others, (sizes, 1)."""
        grows = self.role == "output" and self.direction == "width"
        return (self.sizes if grows else np.ones(len(self.sizes)))[:, None].astype(float)

    def _share(self) -> Array:
        """1/L in blocks, 1 outside, (sizes, 1)."""
        falls = self.role.startswith("hidden") and self.direction == "depth"
        return 1.0 / (self.sizes if falls else np.ones(len(self.sizes)))[:, None]


# What is claimed, and what decides it.

JUDGES = Judges()
# Of what depth asks for, across all optimizers.
OF_DEPTH = Judges()


def findings(dataset: xr.Dataset) -> list[Finding]:
    """For every optimizer that was run, one on its decays and one on all else."""
    judges = (judge_cells, judge_decays)
    return [judge(dataset, (name,)) for name in run_optimizers(dataset) for judge in judges]


@JUDGES.decide(
    claim="Every multiplier, variance, learning rate and epsilon of the tables for {names} has the powers of width "
    "and depth that its condition asks for",
    brief="The powers of the tables are those that the condition asks for ({cells})",
    rival="one is off by half a power",
    measured="slopes in width and in depth of what the condition asks to be flat, from norms of weights, of gradients "
    "and of first directions, each a quarter power at most",
)
def judge_cells(dataset: xr.Dataset, optimizers: Sequence[str]) -> Contest:
    of_cells = [cell for cell in measured_cells(dataset, *optimizers) if cell.hyperparameter != "weight_decay"]
    return contest_of(dataset, of_cells, ", ".join(optimizers))


@JUDGES.decide(
    claim="Every weight decay of the tables for {names} has the powers of width and depth that keep it as large as "
    "its optimizer's direction",
    brief="Weight decays stay as large as the optimizer's direction ({cells})",
    rival="one is off by half a power",
    measured="slopes in width and in depth of the norm of weights, times their decay, over that of the first direction,"
    " each a quarter power at most",
)
def judge_decays(dataset: xr.Dataset, optimizers: Sequence[str]) -> Contest:
    of_cells = [cell for cell in measured_cells(dataset, *optimizers) if cell.hyperparameter == "weight_decay"]
    return contest_of(dataset, of_cells, ", ".join(optimizers))


def contest_of(dataset: xr.Dataset, of_cells: Sequence[LadderCell], names: str = "") -> Contest:
    """Printed powers against needed ones, and against half a power off, by the cell that is nearest to that."""
    off, stderr = (np.array(values) for values in zip(*((c.off, c.stderr) for c in of_cells), strict=True))
    claim = Deviation(off, stderr, NEAREST)
    beyond = Deviation(np.maximum(OFF - np.abs(off), 0.0), stderr, NEAREST)
    weakest = int(np.argmin(beyond.excess))
    rival = Deviation(beyond.difference[weakest], stderr[weakest], NEAREST)
    farthest = of_cells[int(np.argmax(np.abs(off)))]
    words = (
        f"farthest of {len(of_cells)}: {farthest.name}, printed {farthest.printed:+g}, measured {farthest.needed:+.3f} "
        f"+- {farthest.stderr:.3f} in {farthest.direction}"
    )
    rows = ", in their rows of biases," if dataset.attrs["biases"] else ""
    made = Contest(claim, rival, apart=OFF, gaussian=True, comparisons=len(of_cells))
    cells = f"{names}, k = {dataset.attrs['block_depth']}{', biases' if rows else ''}"
    return made.saying(words, names=f"{names} at k = {dataset.attrs['block_depth']}{rows}", cells=cells)


def _depth_cells(dataset: xr.Dataset, *names: str) -> list[LadderCell]:
    """Cells of hyperparameters of these names along the ladder in depth, of all optimizers that were run."""
    measured = measured_cells(dataset, *run_optimizers(dataset))
    return [cell for cell in measured if cell.direction == "depth" and cell.hyperparameter in names]


@OF_DEPTH.decide(
    claim="Of all optimizers SGD alone needs learning rates and weight decays that scale with the depth",
    brief="Of all optimizers SGD alone needs rates and decays that scale with the depth",
    rival="the power of one is half a power off",
    measured="the power of L at which what each rate or decay multiplies meets its condition, against the printed one, "
    "each a quarter power at most",
)
def judge_rates_in_depth(dataset: xr.Dataset) -> Contest:
    measured = _depth_cells(dataset, "learning_rate", "weight_decay")
    scaling = list(dict.fromkeys(cell.optimizer for cell in measured if cell.printed))
    if scaling != ["sgd"]:
        named = ", ".join(scaling) or "no optimizer"
        raise ValueError(f"tables of {named} have such cells; run all optimizers at a block depth of two")
    return contest_of(dataset, measured)


@OF_DEPTH.decide(
    claim="No epsilon scales with the depth: the gradients beside which hidden weights have theirs keep their size",
    brief="No epsilon scales with the depth, as gradients of hidden weights keep their size",
    rival="one does",
    measured="the power of L of the gradients beside which each epsilon stands that tables scale with the depth",
)
def judge_epsilons_in_depth(dataset: xr.Dataset) -> Contest:
    measured = [cell for cell in _depth_cells(dataset, "adamw_epsilon", "shampoo_epsilon") if cell.printed]
    needed, stderr = (np.array(v) for v in zip(*((c.needed, c.stderr) for c in measured), strict=True))
    claim = Deviation(needed, stderr, NEAREST)
    most = int(np.argmax(claim.excess))
    rival = Deviation(max(OFF - abs(needed[most]), 0.0), stderr[most], NEAREST)
    words = ", ".join(f"{c.name} {c.needed:+.3f} +- {c.stderr:.3f}" for c in measured)
    return Contest(claim, rival, gaussian=True, comparisons=len(measured), apart=OFF).saying(words)


# What the default preset runs.
RUN = "linear blocks, eight samples and four outputs, before the first step, widths 32 .. 256 and 4 .. 32 blocks"
READING = f"what the derivations assume is checked on nets: gradients of ranks above one; {RUN}"
CONVENTION = f"{READING}; that decays scale is a convention which keeps decay at work (appendices C.1, D)"


def of_all(judge: Callable[..., Finding], *arguments: str) -> Check:
    """All optimizers at once."""
    return Check(NAME, partial(judge, optimizers=OPTIMIZER_NAMES), arguments)


def of_biases(judge: Callable[..., Finding]) -> tuple[Check, ...]:
    """At k = 2 and k = 1; the optimizers of matrices leave biases to AdamW."""
    optimizers = ("sgd", "adamw", "lion", "sophia")
    run = ("--biases", "--optimizers", *optimizers)
    judged = partial(judge, optimizers=optimizers)
    return tuple(Check(NAME, judged, (*run, *more)) for more in ((), ("--block-depth", "1")))


CLAIMS = (
    Claim(
        id="S5e",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, tables 3-7 and 9-13, appendices C and D",
        statement="every multiplier, variance, learning rate and epsilon of the tables has the powers of width and "
        "depth that its condition asks for, as norms of weights, gradients and first updates of nets are measured, and "
        "none half a power off",
        brief="multipliers, variances, rates and epsilons of the tables have their powers",
        printed='"All rows use the optimizer-agnostic initialization and block-multiplier rules from Section 4.1; the '
        'table only organizes the optimizer-dependent update rules derived below" (appendix C, of table 2)',
        hypotheses=f"{READING}; all nine optimizers at k = 2 and k = 1, every cell of weights, scaling or not",
        checks=(of_all(judge_cells), of_all(judge_cells, "--block-depth", "1")),
    ),
    Claim(
        id="S5g",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, tables 3-7 and 9-13, appendix C.1",
        statement="every weight decay of the tables has the powers of width and depth that keep it as large as the "
        "optimizer's direction, as both are measured on nets, and none half a power off",
        brief="weight decays of the tables have their powers of width and depth",
        printed='"it keeps weight decay active in the update dynamics without letting it dominate the '
        'optimizer-driven term" (appendix C.1)',
        hypotheses=f"{CONVENTION}; all nine optimizers at k = 2 and k = 1, weights alone",
        checks=(of_all(judge_decays), of_all(judge_decays, "--block-depth", "1")),
    ),
    Claim(
        id="S5j",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, tables 5, 6, 11 and 12, appendix C.5.2",
        statement="every variance, learning rate and epsilon of biases has the powers of width and depth that "
        "condition B.3 asks for, as norms of biases, gradients and first updates of nets are measured, and none half a "
        "power off",
        brief="variances, rates and epsilons of biases have their powers of width and depth",
        printed='"Requiring |Delta b_l|_R = eta_(b_l) |nabla_(b_l) L|_R = Theta(1) according to update condition in '
        'Equation (13) leads to the learning rate" (appendix C.5.2)',
        hypotheses=f"{READING}; SGD, AdamW, Lion and Sophia at k = 2 and k = 1",
        checks=of_biases(judge_cells),
    ),
    Claim(
        id="S5k",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, tables 5, 6, 11 and 12, appendix C.5.2",
        statement="every weight decay of biases has the powers of width and depth that keep it as large as the "
        "optimizer's direction, as both are measured on nets, and none half a power off",
        brief="weight decays of biases have their powers of width and depth",
        printed='"For the weight decays, we need to satisfy lambda_(b_l) |b_l|_R = |nabla_(b_l) L|_R" (appendix C.5.2)',
        hypotheses=f"{CONVENTION}; SGD, AdamW, Lion and Sophia at k = 2 and k = 1",
        checks=of_biases(judge_decays),
    ),
    Claim(
        id="S5f",
        kind=Kind.READING,
        source="Zheng et al. 2026, takeaway 2, read literally; appendices C.6, C.9 and tables 4, 6 say otherwise",
        statement="epsilons need no rule for depth either",
        printed='"For most modern optimizers, ... the muP formulation from Condition 3.1 is just width-scaling muP '
        'plus a hidden residual multiplier" (takeaway 2)',
        hypotheses=f"a reading: 'just' counts epsilons in. AdamW and Shampoo, k = 2, {RUN}",
        checks=(Check(NAME, judge_epsilons_in_depth),),
        replaced_by="the paper's own tables 4 and 6: AdamW's epsilon falls as 1/L, Shampoo's as 1/L^2",
        premise="that 'just' covers epsilons, which appendices C.6 and C.9 except",
    ),
)


# What is printed.

HEADING = """\
L blocks of {block_depth} matrices, {activation}; widths {widths} at L = {depth}, L = {depths} at width {width}
{samples} samples, {outputs} outputs; before the first step; {draws} draws, seed {seed}
A line for every cell of {of} that scales along a ladder, as printed or as measured: the power of the table, and
the power at which what the cell is a factor of is flat, by log y = a + s log x + c / x (depths from 2: + d / L^2)."""
WORDS = {
    "multipliers": "are asked to keep a |W| flat, in blocks of k layers a |W|^k over 1/L (k = 1: 1/sqrt(L)).",
    "variances": "are asked to keep |W|^2 flat, of output weights over n^2.",
    "learning rates": "are asked to keep a rate |A| |W|^(k - 1) flat, in blocks over 1/L, A the first direction.",
    "weight decays": "are asked to keep decay |W| / |A| flat.",
    "epsilons": "are asked to keep pace with what they are added to: elements of gradients, Shampoo's squared norms.",
    "*": "another half or whole power is nearer.",
}


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    measured = measured_cells(dataset, *run_optimizers(dataset))
    stand = sum(cell.stands for cell in measured)
    return answer(findings, f"for {stand} of {len(measured)} powers the printed one is the nearest")


def _run(dataset: xr.Dataset) -> str:
    return HEADING.format_map({**dataset.attrs, "of": "biases" if dataset.attrs["biases"] else "weights"})


def _powers(dataset: xr.Dataset) -> list[str | Grid]:
    """For every ladder a line for every cell that scales: its power as printed and as measured."""
    measured, tables = measured_cells(dataset, *run_optimizers(dataset)), []
    for direction in DIRECTIONS:
        lines = [
            [cell.name, f"{cell.printed:+g}", slope(cell.needed, cell.stderr) + "*" * (not cell.stands)]
            for cell in measured
            if cell.direction == direction and cell.scales
        ]
        tables.append(table(["cell", "printed", "measured"], lines, f"Powers of the {direction}"))
    return [*tables, _others(measured)]


def _others(measured: Sequence[LadderCell]) -> str:
    """Of the cells that are printed without a power and have none."""
    still = [abs(cell.off) for cell in measured if not cell.scales]
    return f"The other {len(still)} powers are printed as 0; measured they are {max(still, default=0.0):.2f} at most."


STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=Report(
        question="Do the cells of hyperparameter tables have the powers that norms ask for?",
        answer=_answer,
        heading=_run,
        parts=[_powers],
        findings=findings,
        words=WORDS,
    ),
    claims=CLAIMS,
)

if __name__ == "__main__":
    run_as_command(NAME)
