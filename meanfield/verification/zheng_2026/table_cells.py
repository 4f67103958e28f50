"""Zheng et al. 2026: every cell in which a table differs from the standard parameterization is needed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import xarray as xr

from meanfield.optimizers import optimizer_of_role
from meanfield.parameterizations import BIASES, HYPERPARAMETERS, OPTIMIZERS, WEIGHTS, Scaling, hyperparameter_table
from meanfield.verification.claims import Check, Claim, Kind
from meanfield.verification.judges import Contest, Judges
from meanfield.verification.ladder_slopes import labelled
from meanfield.verification.verdicts import Deviation, Finding
from meanfield.verification.zheng_2026.coordinate_checks import DIRECTIONS, Watched, watched

# The least change of a slope that counts as one: 4 % over an eightfold width. A cell of no effect makes none at all, as
# draws are the same. And standard errors of slopes that no draw changes.
MOVED, ROUNDING = 0.02, 1e-6
# A change that counts for an infinite one.
FAR = 1e9

WHOLE = "whole table"


def named(optimizer: str, cell: tuple[str, str] | None = None) -> str:
    """A cell (role, hyperparameter) of an optimizer's table in words, or the table as a whole."""
    if cell is None:
        return f"{optimizer}: {WHOLE}"
    role, hyperparameter = cell
    of = f"{role.removesuffix('_bias')} biases" if role in BIASES else f"{role} weights"
    return f"{optimizer}: {hyperparameter.replace('_', ' ')} of {of}"


def cells(optimizer: str, block_depth: int, along: str, biases: bool = False) -> list[tuple[str, str]]:
    """(role, hyperparameter) of the cells of weights, or of biases, that scale with the width, or with the depth.

    Of hybrids, every role has the cells of the optimizer that steps it. Multipliers of biases are those of their
    weights, and no cells of their own.
    """
    scaling = []
    names = [name for name in HYPERPARAMETERS if not (biases and name == "block_multiplier")]
    for name, role in product(names, BIASES if biases else WEIGHTS):
        by = optimizer_of_role(optimizer, role)
        table = hyperparameter_table(by, block_depth)
        if name in table.hyperparameters(by) and _power(table.rows[name][role], along):
            scaling.append((role, name))
    return scaling


def _power(factor: Scaling, along: str) -> float:
    return float(factor.width if along == "width" else factor.depth)


@dataclass(frozen=True)
class Move:
    """By how much one cell, kept at its standard value, changes the slope that tells most.

    Attributes:
        change, stderr: of that slope, draw by draw; infinite where nets leave the range of floats.
        number: whose slope it is.
    """

    cell: str
    direction: str
    change: float
    stderr: float
    number: Watched

    @property
    def is_decay(self) -> bool:
        return _is_decay(self.cell)

    @property
    def distance(self) -> float:
        """Standard errors by which the change is larger than `MOVED`."""
        return (abs(self.change) - MOVED) / self.stderr


def _is_decay(cell: str) -> bool:
    return ": weight decay of " in cell


def moves(dataset: xr.Dataset, *optimizers: str) -> list[Move]:
    """Of every cell of the tables for these optimizers, along the ladders along which it scales.

    Raises:
        ValueError: an optimizer that was not run.
    """
    run = run_optimizers(dataset)
    for optimizer in optimizers:
        if optimizer not in run:
            raise ValueError(f"the run has {', '.join(run)} and not {optimizer}; run all optimizers")
    return [move for direction in DIRECTIONS for move in _moves_along(dataset, optimizers, direction)]


def _moves_along(dataset: xr.Dataset, optimizers: Sequence[str], direction: str) -> list[Move]:
    names = list(map(str, dataset[f"{direction}_cell"].values))
    line = np.log(dataset[direction].values)
    line = (line - line.mean()) / np.sum((line - line.mean()) ** 2)
    logarithms = {number: _logarithms(dataset, direction, number) for number in watched(dataset)}
    moved = []
    for optimizer in optimizers:
        whole, *others = (place for place, name in enumerate(names) if name.startswith(f"{optimizer}: "))
        for place in others:
            changes = {number: line @ (logs[place] - logs[whole]) for number, logs in logarithms.items()}
            moved.append(_move(names[place], direction, changes))
    return moved


def _move(cell: str, direction: str, changes_of: dict[Watched, np.ndarray]) -> Move:
    """The largest in standard errors of all watched numbers, each with the changes of its slope in every draw."""
    candidates = []
    for number, changes in changes_of.items():
        change, stderr = float(changes.mean()), float(changes.std(ddof=1) / np.sqrt(len(changes)))
        if not np.isfinite(change):
            return Move(cell, direction, np.inf, ROUNDING, number)
        candidates.append(Move(cell, direction, change, max(stderr, ROUNDING), number))
    return max(candidates, key=lambda move: move.distance)


def _logarithms(dataset: xr.Dataset, direction: str, number: Watched) -> np.ndarray:
    """(cells, sizes, draws)."""
    values = labelled(dataset, f"{number.variable}_by_{direction}", number.selection)
    with np.errstate(all="ignore"):  # nets that leave the range of floats
        return np.asarray(np.log(values.transpose(f"{direction}_cell", direction, "draw").values))


def candidates(dataset: xr.Dataset) -> int:
    """How many numbers are watched, of which a move is the largest."""
    return len(watched(dataset))


# The judges of `sims.table_cells`.
JUDGES = Judges()


def run_optimizers(dataset: xr.Dataset) -> list[str]:
    """Those that were run."""
    return list(dict.fromkeys(str(name).split(":")[0] for name in dataset["width_cell"].values))


def findings(dataset: xr.Dataset) -> list[Finding]:
    """For every optimizer that was run, one on its decays and one on all else, as far as it has such cells."""
    run = {str(cell) for direction in DIRECTIONS for cell in dataset[f"{direction}_cell"].values}
    kinds = {(cell.split(":")[0], _is_decay(cell)) for cell in run if not cell.endswith(WHOLE)}
    judges = {False: judge_cells, True: judge_decays}
    names = run_optimizers(dataset)
    return [judge(dataset, (name,)) for name in names for kind, judge in judges.items() if (name, kind) in kinds]


@JUDGES.decide
def judge_cells(dataset: xr.Dataset, optimizers: Sequence[str]) -> Contest:
    """Every cell of multipliers, variances, learning rates and epsilons in which the tables for {names} differ from the
    standard parameterization moves a slope, where it stays at its standard value; rival: a cell may stay there and no
    slope moves; measured: by how much each cell changes one slope, the one that it changes most surely."""
    of_cells = [move for move in moves(dataset, *optimizers) if not move.is_decay]
    return contest_of(dataset, of_cells, ", ".join(optimizers))


@JUDGES.decide
def judge_decays(dataset: xr.Dataset, optimizers: Sequence[str]) -> Contest:
    """Every weight decay in which the tables for {names} differ from the standard parameterization moves a slope, where
    it stays at its standard value; rival: one may stay there and no slope moves; measured: by how much each decay
    changes one slope, the one that it changes most surely."""
    of_cells = [move for move in moves(dataset, *optimizers) if move.is_decay]
    return contest_of(dataset, of_cells, ", ".join(optimizers))


def contest_of(dataset: xr.Dataset, of_cells: Sequence[Move], names: str = "") -> Contest:
    """Changes of at least `MOVED`, against none, by the cell that moves least."""
    change = np.minimum(np.abs([move.change for move in of_cells]), FAR)
    stderr = np.array([move.stderr for move in of_cells])
    weakest = of_cells[int(np.argmin([move.distance for move in of_cells]))]
    claim = Deviation(np.maximum(MOVED - change, 0.0), stderr)
    rival = Deviation(min(abs(weakest.change), FAR), weakest.stderr)
    words = (
        f"weakest of {len(of_cells)}: {weakest.cell}, {weakest.change:+.3f} +- {weakest.stderr:.3f} "
        f"({weakest.number.symbol}, step {weakest.number.step}, in {weakest.direction}); a move is {MOVED:g} or more"
    )
    comparisons = len(of_cells) * candidates(dataset)
    rows = ", in their rows of biases," if dataset.attrs["biases"] else ""
    names = f"{names} at k = {dataset.attrs['block_depth']}{rows}"
    return Contest(claim, rival, comparisons=comparisons, apart=MOVED).saying(words, names=names)


# What the default preset runs.
RUN = "linear blocks, six steps, eight samples and four outputs, widths 32 .. 256 and 2 .. 16 blocks"
READING = (
    "a reading: the paper calls its conditions sufficient (section 3.1); that each cell is needed, given the others, "
    "is ours"
)
CONVENTION = f"{READING}; that decays scale is a convention which keeps decay at work (appendices C.1, D)"


def of_all(judge: Callable[..., Finding], *arguments: str) -> Check:
    """All optimizers at once."""
    return Check("table_cells", partial(judge, optimizers=OPTIMIZERS), arguments)


def of_biases(judge: Callable[..., Finding], optimizers: Sequence[str]) -> tuple[Check, ...]:
    """At k = 2 and k = 1; the optimizers of matrices leave biases to AdamW."""
    run = ("--biases", "--optimizers", "sgd", "adamw", "lion", "sophia", "--times", "3")
    judged = partial(judge, optimizers=optimizers)
    return tuple(Check("table_cells", judged, (*run, *more)) for more in ((), ("--block-depth", "1")))


CLAIMS = (
    Claim(
        id="S5e",
        kind=Kind.READING,
        source="Zheng et al. 2026, tables 3-7 and 9-13; that each is needed is our reading",
        statement="with all other cells as printed, no multiplier, variance, learning rate or epsilon in which tables "
        "differ from the standard parameterization can stay at its standard value",
        printed='"Entries in purple indicate differences between muP and SP, while gray shows the corresponding SP '
        'choices" (table 3)',
        hypotheses=f"{READING}; all nine optimizers at k = 2 and k = 1, weights alone, one cell at a time, epsilons as "
        f"large as gradients of the base model; {RUN}",
        checks=(of_all(judge_cells), of_all(judge_cells, "--block-depth", "1", "--times", "2")),
    ),
    Claim(
        id="S5g",
        kind=Kind.READING,
        source="Zheng et al. 2026, tables 3-7, appendix C.1; that each is needed is our reading",
        statement="with all other cells as printed, no weight decay in which tables differ from the standard "
        "parameterization can stay at its standard value",
        printed='"it keeps weight decay active in the update dynamics without letting it dominate the '
        'optimizer-driven term" (appendix C.1)',
        hypotheses=f"{CONVENTION}; all nine optimizers at k = 2, weights alone, one cell at a time, decay of 2 % of a "
        f"weight in a step of the base model; {RUN}",
        checks=(of_all(judge_decays),),
    ),
    Claim(
        id="S5j",
        kind=Kind.READING,
        source="Zheng et al. 2026, tables 5, 6, 11 and 12; that each is needed is our reading",
        statement="with all other cells as printed, no learning rate or epsilon of biases in which tables differ from "
        "the standard parameterization can stay at its standard value",
        printed='"Requiring |Delta b_l|_R = eta_(b_l) |nabla_(b_l) L|_R = Theta(1) according to update condition in '
        'Equation (13) leads to the learning rate" (appendix C.5.2)',
        hypotheses=f"{READING}; SGD, AdamW, Lion and Sophia at k = 2 and k = 1, one cell at a time, biases of the "
        f"hidden weights' variance; {RUN}",
        checks=of_biases(judge_cells, ("sgd", "adamw", "lion", "sophia")),
    ),
    Claim(
        id="S5k",
        kind=Kind.READING,
        source="Zheng et al. 2026, tables 5 and 11; that each is needed is our reading",
        statement="with all other cells as printed, no weight decay of biases in which tables differ from the standard "
        "parameterization can stay at its standard value",
        printed='"For the weight decays, we need to satisfy lambda_(b_l) |b_l|_R = |nabla_(b_l) L|_R" (appendix C.5.2)',
        hypotheses=f"{CONVENTION}; SGD, of which alone they scale, at k = 2 and k = 1, one cell at a time, biases of "
        f"the hidden weights' variance; {RUN}",
        checks=of_biases(judge_decays, ("sgd",)),
    ),
)
