"""The verdict on every slope of a coordinate check: flat, not flat, or undecided, and what could be wrong where not.

Cells of a table that could be wrong, where a model does not stay flat, follow from how its moves depend on them. At
leading order, with multipliers m, standard deviations s, learning rates r and gradients G of roles i (input), h
(hidden) and o (output), L branches of k matrices in a sum, and directions A ~ G^d of the optimizer, where d is 1 for
SGD, and 0 for steps that do not know how large the gradient is, they go as

    stream at the start     input   m_i s_i                   hidden  m_h s_h^k
    outputs at the start    m_o s_o times the stream
    change of the stream    input   m_i r_i A_i               hidden  m_h s_h^(k-1) r_h A_h
    change of the outputs   output  m_o r_o A_o               others  m_o s_o times the change of the stream
    decay of weights        l, the part r lambda of a weight that a step takes, times the part at the start
    gradients               G_i ~ m_i m_o s_o                 G_h ~ m_h s_h^(k-1) m_o s_o          G_o ~ m_o

Under a table of Zheng et al. 2026 all of these are flat but two at the start: outputs go as n^(-1/2), and what hidden
weights add to the stream as L^(-1/2) for k >= 2; with them goes what decays. A cell x that stands in a term as x^e, and
is off by a factor r^p, gives that term the slope e p. The steepest term makes the slope of a sum.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import isfinite
from textwrap import fill
from typing import Any, Self

import numpy as np
import xarray as xr

from meanfield.common.validation import Array, not_negative, require_count, takes
from meanfield.parameterizations import ROLES, Cell, Scaling, hyperparameters_of, optimizers_by_role, scaling
from meanfield.torch.steps import TRIAL_NAMES
from meanfield.verification import (
    OFF,
    Contest,
    Deviation,
    LadderSlope,
    Ruling,
    Shares,
    Verdict,
    announced,
    ladder_slope,
    ladder_values,
    tuned_rates,
)

# Where values are watched: what the first block reads, behind half of the blocks, behind the last; and the outputs.
FIRST, MIDDLE, LAST, OUTPUTS = PLACES = ("first", "middle", "last", "outputs")
# What stands in a term, and as which power.
Term = Mapping[Cell, float]

MULTIPLIER, VARIANCE, RATE, DECAY = "block_multiplier", "initial_variance", "learning_rate", "weight_decay"
# The role by whose weights biases are multiplied.
WEIGHTS_OF = {"input_bias": "input", "hidden_bias": "hidden"}
# Where a role's own weights show, with nothing between.
SHOWS_AT = {"input": FIRST, "hidden": LAST, "output": OUTPUTS}
# A size over the least that was run, as the tables call it.
RATIOS = {"width": "r_n", "depth": "r_L"}


@dataclass(frozen=True)
class Suspect:
    """A cell that could be off by a power of r_n or r_L, or, where models leave the floats, by one unknown (NaN)."""

    role: str
    hyperparameter: str
    power: float
    printed: str = ""


def in_words(listed: Iterable[Suspect], direction: str) -> str:
    """Cells with what they could be off by, those of one hyperparameter and power together."""
    alike: dict[tuple[str, str], list[str]] = {}
    for each in listed:
        size = f" by {RATIOS[direction]}^{abs(each.power):.2f}" if isfinite(each.power) else ""
        off = f"too {'small' if each.power < 0 else 'large'}{size}"
        role = f"{each.role} ({each.printed})" if each.printed else each.role
        alike.setdefault((each.hyperparameter, off), []).append(role)
    return "; ".join(f"{name} of {' or '.join(roles)}, {off}" for (name, off), roles in alike.items())


@dataclass(frozen=True)
class NamedTable:
    """The table whose cells are named.

    Attributes:
        optimizer: one of `OPTIMIZER_NAMES` or a hybrid; "" where none is known.
        block_depth: matrices of a branch, k.
        decays: whether a step takes so much of a weight that what decays may be seen.
    """

    optimizer: str
    block_depth: int
    decays: bool

    @property
    def by_role(self) -> dict[str, str]:
        """Which optimizer steps each role."""
        if not self.optimizer:
            return dict.fromkeys(ROLES, "")
        return optimizers_by_role(self.optimizer, self.block_depth)

    def at_start(self, place: str, direction: str) -> dict[str, tuple[Term, float]]:
        """role -> its part of a value before the first step, and the slope of this part under the table."""
        own = {role: {(role, MULTIPLIER): 1.0, (role, VARIANCE): 0.5} for role in ("input", "hidden", "output")}
        own["hidden"][("hidden", VARIANCE)] = self.block_depth / 2
        parts: dict[str, tuple[Term, float]] = {"input": (own["input"], 0.0)}
        if place != FIRST:
            parts["hidden"] = own["hidden"], -0.5 if direction == "depth" and self.block_depth > 1 else 0.0
        if place == OUTPUTS:
            falls = -0.5 if direction == "width" else 0.0
            parts = {role: (_product(part, own["output"]), slope + falls) for role, (part, slope) in parts.items()}
            parts["output"] = own["output"], falls
        return parts

    def changes(self, place: str) -> dict[str, Term]:
        """role -> its part of the change of a value."""
        outwards: Term = {("output", MULTIPLIER): 1.0, ("output", VARIANCE): 0.5}
        parts: dict[str, Term] = {}
        for role in self.by_role:
            weights = WEIGHTS_OF.get(role, role)
            if (weights == "hidden" and place == FIRST) or (weights == "output" and place != OUTPUTS):
                continue
            forward: Term = {(weights, MULTIPLIER): 1.0}
            if role == "hidden":
                forward = _product(forward, {(role, VARIANCE): (self.block_depth - 1) / 2})
            gradient = forward if weights == "output" else _product(forward, outwards)
            moved = _product(forward, {(role, RATE): 1.0}, gradient if self.by_role[role] == "sgd" else {})
            parts[role] = _product(moved, outwards) if place == OUTPUTS and weights != "output" else moved
        return parts

    def epsilon(self, role: str) -> str:
        """The hyperparameter of this name that the role's optimizer has, or nothing."""
        optimizer = self.by_role[role]
        names = hyperparameters_of(optimizer, self.block_depth) if optimizer else ()
        return next((name for name in names if name.endswith("_epsilon")), "")

    def suspect(self, cell: Cell, power: float, direction: str) -> Suspect:
        """A cell that could be off, with the part of its factor that depends on this size."""
        optimizer = self.by_role.get(cell[0], "")
        if not optimizer:
            return Suspect(*cell, power)
        factor = scaling(optimizer, *cell, block_depth=self.block_depth)
        return Suspect(*cell, power, str(Scaling.of(**{direction: getattr(factor, direction)})))


def _product(*terms: Term) -> dict[Cell, float]:
    total: Counter[Cell] = Counter()
    for term in terms:
        total.update(term)
    return {cell: power for cell, power in total.items() if power}


@dataclass(frozen=True)
class Row:
    """A slope that was judged.

    Attributes:
        along: its direction, "width" or "depth".
        of: "value", before the first step, or "change", after some.
        at: its place.
        after: steps of training before it.
        slope: NaN where there is none, as models leave the floats.
        verdict: on the claim that it is flat.
        grows: whether it is above 0, or models leave the floats.
    """

    along: str
    of: str
    at: str
    after: int
    slope: float
    verdict: Verdict
    grows: bool

    def excludes(self, slope: float) -> bool:
        """Whether no part of it has this slope: it is flat, and the part would make it grow by half a power or more."""
        return self.verdict is Verdict.CONFIRMED and slope >= self.slope + OFF


# The row of ("of", "at", "after") along the same direction, None where there is none.
Look = Callable[[str, str, int], Row | None]


def suspects(row: Row, look: Look, table: NamedTable) -> list[Suspect]:
    """The cells each of which, wrong alone, could give a row its slope, and that no other row clears.

    A cell is cleared where it would show and does not: in the place of its own role at the same step, and, of
    multipliers and variances, before the first step. Weight decay takes its part of the weights in every step, the
    first one too, in which it is suspected of a change that grows. Where the first step is flat, and changes fall
    later, epsilons are left; where they grow later, no cell is.
    """
    first = look("change", row.at, 1)
    if row.after > 1 and first is not None and first.verdict is Verdict.CONFIRMED:
        return [] if row.grows else list(_epsilons(row, look, table))
    return list(_of_terms(row, look, table))


def _of_terms(row: Row, look: Look, table: NamedTable) -> Iterator[Suspect]:
    steepest: dict[Cell, tuple[float, float]] = {}
    for term, usual in _parts(row, look, table).values():
        for cell, power in term.items():
            steepest[cell] = max(steepest.get(cell, (0.0, 0.0)), (power, usual))
    for cell, (power, usual) in steepest.items():
        off = (row.slope - usual) / power
        if not _shows_at_start(row, look, table, cell, off):
            yield table.suspect(cell, off, row.along)
    if row.of == "change":
        yield from _decays(row, look, table) if row.grows else _epsilons(row, look, table)


def _parts(row: Row, look: Look, table: NamedTable) -> dict[str, tuple[Term, float]]:
    """role -> its part of what a row is of, and the usual slope of that, without the roles that are cleared."""
    if row.of == "value":
        parts = table.at_start(row.at, row.along)
    else:
        parts = {role: (term, 0.0) for role, term in table.changes(row.at).items()}
    return {role: part for role, part in parts.items() if not _is_cleared(role, row, look)}


def _is_cleared(role: str, row: Row, look: Look) -> bool:
    """Whether what a role moves in its own place is flat, or goes another way than what is asked about."""
    own = look(row.of, SHOWS_AT[WEIGHTS_OF.get(role, role)], row.after)
    if own is None or own is row:
        return False
    return own.verdict is Verdict.CONFIRMED or (own.verdict is Verdict.REFUTED and own.grows != row.grows)


def _shows_at_start(row: Row, look: Look, table: NamedTable, cell: Cell, off: float) -> bool:
    """Whether a cell that is so far off would make values grow before the first step, and these do not grow so."""
    weights = WEIGHTS_OF.get(cell[0], cell[0])
    own = look("value", SHOWS_AT[weights], 0)
    if own is None or own is row:
        return False
    term, usual = table.at_start(own.at, row.along)[weights]
    return cell in term and own.excludes(usual + term[cell] * off)


def _decays(row: Row, look: Look, table: NamedTable) -> Iterator[Suspect]:
    """What decays of a value goes as this value does; biases begin at 0, and have nothing to lose."""
    for role, (_, usual) in table.at_start(row.at, row.along).items() if table.decays else ():
        if not _is_cleared(role, row, look):
            yield table.suspect((role, DECAY), row.slope - usual, row.along)


def _epsilons(row: Row, look: Look, table: NamedTable) -> Iterator[Suspect]:
    """Steps fall in proportion to an epsilon that is larger than what it stands beside."""
    for role in _parts(row, look, table):
        if name := table.epsilon(role):
            yield table.suspect((role, name), -row.slope, row.along)


# Exponents of so much or less count as flat, in small models at small sizes, where tables hold as well as this.
FLAT = 0.1
# Changes that are so small a part of a value are its rounding.
ROUNDING_SHARE = {"float64": 1e-12, "float32": 1e-5}
# What is watched: values before the first step, and changes after each.
OF = {"value": "feature_norm", "change": "feature_update_norm"}

WORDS = {
    "slope": "power of the size that a value or change goes as, in the limit of large sizes",
    "slope_stderr": "power of the size: standard error over draws",
    "slope_allowance": "power of the size: what leaving out the least size changes in it",
    "plain_slope": "slope of a straight line in logarithms",
    "plain_slope_stderr": "slope of a straight line in logarithms: standard error over draws",
    "refuted_from": "least power of the size that 99 of 100 such checks refute",
    "draws_needed": "draws with which 8 of 10 such checks decide",
    "verdict": "verdict on the claim that the power is 0",
    "evidence": "distances in standard errors, and bands",
    "suspects": "cells of the table that could be wrong",
}
COORDINATES = {
    "along": "direction of the sizes",
    "of": "value before the first step, or change since then",
    "at": "place in the model",
    "after": "steps of training",
}


@dataclass(frozen=True)
class Asked:
    """How slopes are judged.

    Attributes:
        flat: exponents that count as flat.
        table: optimizer of the table, None where it follows from the optimizers' classes.
        block_depth: matrices of a branch.
    """

    flat: float
    table: str | None
    block_depth: int

    @classmethod
    def checked(cls, flat: Any, table: Any, block_depth: Any) -> Self:
        """Raise TypeError or ValueError for what is none of these."""
        asked = cls(not_negative("flat", flat), table, require_count("block_depth", block_depth))
        if asked.flat >= OFF / 2:
            raise ValueError(f"flat is {asked.flat:g}; give less than {OFF / 2:g}: wrong cells make slopes of {OFF:g}")
        if table is not None:
            optimizers_by_role(table, asked.block_depth)
        return asked

    def table_of(self, dataset: xr.Dataset) -> NamedTable:
        """The one that is asked for, or that of the optimizers; Muon steps hidden weights, and others all else."""
        names = [TRIAL_NAMES.get(name, "") for name in dataset.attrs["optimizer"].split(" and ")]
        if len(names) == 2 and "muon" in names and all(names):
            names = ["-".join(sorted(names, key="muon".__ne__))]
        known = names[0] if len(set(names)) == 1 else ""
        return NamedTable(known if self.table is None else self.table, self.block_depth, bool(dataset.attrs["decays"]))


@dataclass(frozen=True)
class Judged:
    """One slope and the ruling on it."""

    row: Row
    law: LadderSlope
    ruling: Ruling


def judged(dataset: xr.Dataset, asked: Asked) -> xr.Dataset:
    """A dataset of sizes of values and changes, with a row for each slope.

    Raises:
        ValueError: where nothing moves.
    """
    table = asked.table_of(dataset)
    laddered = [(each, values) for each in _watched(dataset) if (values := _values(dataset, *each)).any()]
    if not any(of == "change" for (_, of, _, _), _ in laddered):
        raise ValueError("nothing moves in any of the models: their rates are 0, or gradients are, as units have died")
    moving = {(along, at) for (along, of, at, _), _ in laddered if of == "change"}
    kept = [(each, values) for each, values in laddered if (each[0], each[2]) in moving]
    rows = [_judged(dataset, *each, values, asked.flat, len(kept)) for each, values in kept]
    by_place = {(row.row.along, row.row.of, row.row.at, row.row.after): row.row for row in rows}
    named = [_cells(row, by_place, table) for row in rows]
    verdicts = [row.ruling.verdict for row in rows]
    attrs = {"flat": asked.flat, "table": table.optimizer, "block_depth": asked.block_depth}
    return _with_rows(dataset, rows, named).assign_attrs(attrs | {"verdict": str(_overall(verdicts))})


def _watched(dataset: xr.Dataset) -> Iterator[tuple[str, str, str, int]]:
    """(along, of, at, after) of all that may have a slope."""
    directions = [along for along in ("width", "depth") if along in dataset.sizes]
    for along, at in product(directions, map(str, dataset["place"].values)):
        yield along, "value", at, 0
        yield from ((along, "change", at, step) for step in map(int, dataset["step"].values[1:]))


def _values(dataset: xr.Dataset, along: str, of: str, at: str, after: int) -> Array:
    """Over sizes and draws."""
    return ladder_values(dataset, OF[of], along, place=at, step=after)


def _judged(
    dataset: xr.Dataset, along: str, of: str, at: str, after: int, values: Array, flat: float, comparisons: int
) -> Judged:
    law = ladder_slope(dataset[along].values, values)
    lost = ~np.isfinite(values).all(axis=1)
    if lost.any():
        sizes = " ".join(f"{size:g}" for size in dataset[along].values[lost])
        ruling = Ruling(Verdict.REFUTED, f"models leave the range of floats at {along} {sizes}")
    elif reason := _unjudged(dataset, values, along, of, at):
        ruling = Ruling(Verdict.INCONCLUSIVE, reason)
    else:
        contest = _contest(law, flat, may_fall=(along, of, at) == ("width", "value", OUTPUTS))
        ruling = contest.weigh(comparisons, dataset.attrs["draws"], tuned_rates.TRAINED_BUDGET)
    grows, slope = bool(lost.any() or law.settled > 0), np.nan if lost.any() else law.settled
    return Judged(Row(along, of, at, after, slope, ruling.verdict, grows), law, ruling)


def _unjudged(dataset: xr.Dataset, values: Array, along: str, of: str, at: str) -> str:
    """Why numbers have no slope that says anything, or nothing."""
    if not values.all():
        return "some models do not move it at all, as units have died, and others do"
    least = ROUNDING_SHARE[dataset.attrs["precision"]] * _values(dataset, along, "value", at, 0)
    if of == "change" and (values < least).any():
        return 'changes are of the size of rounding: take a larger rate, or precision="float64"'
    return ""


def _contest(law: LadderSlope, flat: float, may_fall: bool) -> Contest:
    """The slope against 0, or at most 0 where it may fall; and against half a power off, on the side that is nearer."""
    off = max(law.settled, 0.0) if may_fall else law.settled
    beyond = max(OFF - (law.settled if may_fall else abs(law.settled)), 0.0)
    sides = (Deviation(distance, law.settled_stderr, law.allowance + flat) for distance in (off, beyond))
    return Contest(*sides, apart=OFF, gaussian=True)


def _cells(judged_row: Judged, rows: Mapping[Any, Row], table: NamedTable) -> str:
    """Those that could be wrong, in words, of a slope that is not flat."""
    row = judged_row.row
    if judged_row.ruling.verdict is not Verdict.REFUTED:
        return ""
    return in_words(suspects(row, lambda of, at, after: rows.get((row.along, of, at, after)), table), row.along)


def _overall(verdicts: list[Verdict]) -> Verdict:
    if Verdict.REFUTED in verdicts:
        return Verdict.REFUTED
    return Verdict.INCONCLUSIVE if Verdict.INCONCLUSIVE in verdicts else Verdict.CONFIRMED


def _with_rows(dataset: xr.Dataset, rows: list[Judged], named: list[str]) -> xr.Dataset:
    laws, rulings = [row.law for row in rows], [row.ruling for row in rows]
    powers = [OFF * ruling.power.together if isinstance(ruling.power, Shares) else np.nan for ruling in rulings]
    columns: dict[str, list[Any]] = {
        "slope": [law.settled for law in laws],
        "slope_stderr": [law.settled_stderr for law in laws],
        "slope_allowance": [law.allowance for law in laws],
        "plain_slope": [law.plain for law in laws],
        "plain_slope_stderr": [law.plain_stderr for law in laws],
        "refuted_from": powers,
        "draws_needed": [np.nan if ruling.needed is None else ruling.needed for ruling in rulings],
        "verdict": [str(ruling.verdict) for ruling in rulings],
        "evidence": [ruling.evidence for ruling in rulings],
        "suspects": named,
    }
    variables = {name: ("row", values, _described(WORDS[name], values)) for name, values in columns.items()}
    coords = {name: [getattr(row.row, name) for row in rows] for name in COORDINATES}
    labels = {name: ("row", values, _described(COORDINATES[name], values)) for name, values in coords.items()}
    return dataset.assign(variables).assign_coords(labels)


def _described(words: str, values: list[Any]) -> dict[str, str]:
    return {"long_name": words} | ({} if isinstance(values[0], str) else {"units": "1"})


# Characters of a line of sentences.
WIDTH = 110
# The direction whose size stays as the other grows.
OTHER = {"width": "depth", "depth": "width"}
HOW = (
    "slope s of log y = a + s log x + c / x, draw by draw; plain: of a straight line;\n"
    "refuted from: the least slope that 99 of 100 such checks would refute"
)
FALLING = "\nbefore training outputs may fall with the width, which counts as flat"
EACH_ALONE = (
    "What could be wrong, by the slopes that are not flat: any one of these cells, if it is off by this factor against "
    "the least size, or several that add up to it. In brackets is how the table scales it with that size."
)
OF_FALLS = (
    "A sum falls only where all of its parts do: where a change falls, the cells of all weights that move it are off."
)


@takes(xr.Dataset)
def coordinate_report(dataset: xr.Dataset) -> str:
    """What a coordinate check has found, in words.

    Args:
        dataset: of `coordinate_check`.

    Returns:
        Lines of text: the question, the answer, which models were trained, a table of slopes with their verdicts, and
        the cells of the table that could be wrong, for every value or change by the first of its steps that is not
        flat; ``dataset.suspects`` has those of later steps.

    Raises:
        TypeError, ValueError: what is no such dataset.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> import meanfield.torch as mft
        >>> def model(width):
        ...     hidden = [nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
        ...     return nn.Sequential(nn.Linear(8, width), nn.ReLU(), *hidden, nn.Linear(width, 3))
        >>> batches = [(torch.randn(16, 8), torch.randint(3, (16,))) for _ in range(8)]
        >>> how = {"optimizer": torch.optim.AdamW, "widths": [32, 64, 128, 256], "depths": 2, "steps": 1, "draws": 8}
        >>> checked = mft.coordinate_check(model, nn.functional.cross_entropy, batches, **how)
        >>> print(mft.coordinate_report(checked).splitlines()[0])
        Do the values and outputs of Sequential stay flat in width under AdamW?
    """
    if "suspects" not in dataset:
        raise ValueError("the dataset holds no slopes that were judged; give one that coordinate_check has made")
    directions = [along for along in ("width", "depth") if along in dataset.sizes]
    family, optimizer = dataset.attrs["family"], dataset.attrs["optimizer"]
    question = f"Do the values and outputs of {family} stay flat in {' and '.join(directions)} under {optimizer}?"
    parts = [f"{question}\n{_answer(dataset)}", _heading(dataset, directions), _slopes(dataset)]
    return "\n\n".join([*parts, *_suspects(dataset)])


def _answer(dataset: xr.Dataset) -> str:
    verdicts = dataset["verdict"].values
    counts = {verdict: int(np.sum(verdicts == verdict)) for verdict in Verdict}
    said = f"{dataset.attrs['verdict']}: of {len(verdicts)} slopes {counts[Verdict.CONFIRMED]} are flat"
    said += f", {counts[Verdict.REFUTED]} are not flat" * bool(counts[Verdict.REFUTED])
    if not counts[Verdict.INCONCLUSIVE]:
        return f"{said}."
    needed = np.nan_to_num(dataset["draws_needed"].values[verdicts == Verdict.INCONCLUSIVE], nan=np.inf)
    half = announced(float(np.median(needed)))
    many = "more draws, or sizes farther apart," if half is None else f"{half:g} draws"
    return f"{said}; undecided: {counts[Verdict.INCONCLUSIVE]}, half of which {many} would decide."


def _heading(dataset: xr.Dataset, directions: list[str]) -> str:
    others = {along: f"at {other} {dataset.attrs[f'least_{other}']}" for along, other in OTHER.items()}
    sizes = ", ".join(f"{along}s {' '.join(map(str, dataset[along].values))} {others[along]}" for along in directions)
    run = "{draws} draws, seed {seed}; {steps} steps in {precision}, loss {loss}".format_map(dataset.attrs)
    table = f"; table of {dataset.attrs['table']}" if dataset.attrs["table"] else ""
    falling = FALLING if "width" in directions else ""
    return f"{sizes}; {run}\n{HOW}; flat: within {dataset.attrs['flat']:g}{table}{falling}"


def _slopes(dataset: xr.Dataset) -> str:
    header = ["along", "of", "at", "step", "slope", "plain", "verdict", "refuted from"]
    lines = [
        [
            *(str(row[name].values) for name in ("along", "of", "at", "after")),
            _slope(row),
            _number(row["plain_slope"], "+.3f"),
            str(row["verdict"].values),
            _number(row["refuted_from"], ".2f"),
        ]
        for row in _rows(dataset)
    ]
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (header, *lines)
    )


def _suspects(dataset: xr.Dataset) -> Iterator[str]:
    """Of the first step that is not flat, for each value and change."""
    first: dict[tuple[str, ...], xr.Dataset] = {}
    for row in _rows(dataset):
        if row["verdict"] == Verdict.REFUTED:
            first.setdefault(tuple(str(row[name].values) for name in ("along", "of", "at")), row)
    if not first:
        return
    yield fill(EACH_ALONE, WIDTH)
    for (along, of, at), row in first.items():
        when = "before training" if of == "value" else f"after step {row['after'].values}"
        cells = (str(row["suspects"].values) or "no cell alone, by the other slopes").split("; ")
        lines = [fill(cell, WIDTH, initial_indent="    ", subsequent_indent="        ") for cell in cells]
        yield "\n".join([f"{of} of {at} {when}, in {along}: {_slope(row)}", *lines])
    if any(row["of"] == "change" and row["slope"] < 0 for row in first.values()):
        yield fill(OF_FALLS, WIDTH)


def _rows(dataset: xr.Dataset) -> list[xr.Dataset]:
    rows = dataset.drop_dims([dim for dim in dataset.dims if dim != "row"])
    return [rows.isel(row=place) for place in range(rows.sizes["row"])]


def _slope(row: xr.Dataset) -> str:
    if row["slope"].isnull():
        return str(row["evidence"].values)
    return f"{float(row['slope']):+.3f} +- {float(row['slope_stderr']):.3f}"


def _number(value: Any, digits: str) -> str:
    return f"{float(value):{digits}}" if np.isfinite(value) else "-"
