"""Which numbers of a training recipe are not those of a table of Zheng et al. 2026, and by what factor."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from math import exp, isinf, log, sqrt
from typing import Any

from meanfield.common.validation import require_choice, takes
from meanfield.parameterizations.recipes import (
    CONDITIONS,
    ModelWeight,
    Pair,
    Recipe,
    Sizes,
    is_vector,
    paired,
    recipe_notes,
)
from meanfield.parameterizations.resolution import optimizers_by_role
from meanfield.parameterizations.tables import hyperparameter_table, hyperparameters_of

# So near must a number be to the table's to agree: recipes are typed by hand, to two digits.
TOLERANCE = 0.05
# Drawn weights tell their standard deviation to this many standard errors; with fewer elements than it takes to tell a
# factor of 2, a note says so.
ERRORS, TELLS = 5.0, 2.0
# Hyperparameter of the tables -> what a recipe calls it; an epsilon goes by its optimizer's name.
INITIAL_STD = "initial_std"
_NUMBERS = {
    "block_multiplier": "multiplier",
    INITIAL_STD: "std",
    "learning_rate": "learning_rate",
    "weight_decay": "weight_decay",
}
# Optimizers whose step does not change where a factor moves from weights into the multiplier before them, and the
# powers of that factor in rate and epsilon: of weights W / c behind a multiplier c, gradients are c times as large.
_MOVES = {"sgd": (2, 0), "lion": (1, 0), "adamw": (1, 1), "muon": (1, 0), "muon_kimi": (1, 0)}
_MOVES |= {"shampoo": (1, 2), "soap": (1, 1)}


@dataclass(frozen=True)
class RecipeCell:
    """A hyperparameter of parameters that share it.

    Attributes:
        column: of the table; "fixed" of what keeps the base model's values.
        roles, kinds: of these parameters.
        hyperparameter: as the tables call it, but for "initial_std", the root of their initial variance.
        value, base: in the recipe, and in that of the base model.
        scaling: what the table multiplies the base model's by.
        expected: what this comes to.
        agrees: whether the value is this.
    """

    column: str
    roles: tuple[str, ...]
    kinds: tuple[str, ...]
    hyperparameter: str
    value: float
    base: float
    scaling: str
    expected: float
    agrees: bool

    @property
    def factor(self) -> float:
        """The value over the table's; infinite where the table has 0."""
        if self.expected:
            return self.value / self.expected
        return 1.0 if not self.value else float("inf")

    def sentence(self) -> str:
        """Where it stands, what it is, what the table has, and the factor between them."""
        where = f"{self.column.replace('_', ' ')} {self.hyperparameter} ({', '.join(self.roles)})"
        said = f"{where}: {self.value:.3g}, the table has {self.expected:.3g} (base {self.base:.3g} x {self.scaling})"
        if self.agrees or isinf(self.factor) or not self.factor:
            return said
        size = "large" if self.factor > 1 else "small"
        return f"{said}, {max(self.factor, 1 / self.factor):.3g} times too {size}"


@dataclass(frozen=True)
class RecipeReport:
    """What `judge_recipe` finds; `str` prints it.

    Attributes:
        sizes: the ratios of the two models.
        source: the tables.
        cells: all numbers that are compared.
        notes: what agrees by another choice, what is missing, and premises that fail.
    """

    sizes: Sizes
    source: str
    cells: tuple[RecipeCell, ...]
    notes: tuple[str, ...]

    @property
    def deviating(self) -> tuple[RecipeCell, ...]:
        """The cells that are not as the table has them."""
        return tuple(cell for cell in self.cells if not cell.agrees)

    @property
    def agrees(self) -> bool:
        """Whether all cells are as the table has them."""
        return not self.deviating

    def agreeing(self) -> dict[str, list[str]]:
        """Role -> hyperparameters of which every cell is as the table has it."""
        wrong = {(role, cell.hyperparameter) for cell in self.deviating for role in cell.roles}
        by_role: dict[str, list[str]] = {}
        for cell in self.cells:
            for role in cell.roles:
                names = by_role.setdefault(role, [])
                if (role, cell.hyperparameter) not in wrong and cell.hyperparameter not in names:
                    names.append(cell.hyperparameter)
        order = {name: at for at, name in enumerate(_NUMBERS)}
        return {role: sorted(names, key=lambda name: order.get(name, len(order))) for role, names in by_role.items()}

    def answer(self) -> str:
        """In a line, how many cells deviate."""
        wrong, total = len(self.deviating), len(self.cells)
        return f"All {total} cells agree." if not wrong else f"{wrong} of {total} cells deviate."

    def record(self) -> dict[str, Any]:
        """All of it, as JSON takes it."""
        cells = [asdict(cell) | {"factor": None if isinf(cell.factor) else cell.factor} for cell in self.cells]
        return {
            "agrees": self.agrees,
            "width_ratio": self.sizes.width_ratio,
            "depth_ratio": self.sizes.depth_ratio,
            "source": self.source,
            "cells": cells,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        lines = [f"{self.answer()} {self.source}; {self.sizes}"]
        lines += [f"  DEVIATES {cell.sentence()}" for cell in self.deviating]
        lines += [f"  agrees {role}: {', '.join(names) or 'nothing'}" for role, names in self.agreeing().items()]
        return "\n".join(lines + [f"  NOTE {note}" for note in self.notes])


@takes(Recipe, Recipe)
def judge_recipe(target: Recipe, base: Recipe, *, condition: str = "3.1", optimizer: str | None = None) -> RecipeReport:
    """Compare a recipe with what the tables make of that of a smaller or larger model, which stands for itself.

    A factor may stand in the multiplier of a layer or in its initial weights, learning rate, decay and epsilon, which
    is the same training; both are recognised.

    Args:
        target, base: of the model that is judged, and of the base model whose numbers were tuned.
        condition: of Zheng et al. 2026: "3.1" for branches of two or more layers, "B.1" for those of one.
        optimizer: whose tables, as for `transfer_hyperparameters`; left out, as the recipes say.

    Raises:
        TypeError, ValueError: what is no recipe; models that are not one at two sizes (`paired`); optimizers that are
            unknown or differ; a recipe without numbers.

    Source: Zheng et al. 2026, sections 4.1 and 4.4, tables 3 .. 7 and 9 .. 13.
    """
    require_choice("condition", condition, CONDITIONS)
    judge = _Judge(target, base, condition, optimizer)
    cells = tuple(_gathered(cell for pair in judge.pairs for cell in judge.cells(pair)))
    if not cells:
        raise ValueError("the recipes have no numbers to compare: give standard deviations, rates, decays or epsilons")
    numbers = {hyperparameter_table(name, CONDITIONS[condition]).number: name for name in judge.optimizers}
    tables = " and ".join(f"table {number} ({name})" for number, name in numbers.items())
    notes = dict.fromkeys([*judge.notes, *recipe_notes(target, base, judge.sizes, judge.pairs), *_untold(judge.sizes)])
    return RecipeReport(judge.sizes, f"Zheng et al. 2026, {tables}, condition {condition}", cells, tuple(notes))


class _Judge:
    """Two recipes side by side."""

    def __init__(self, target: Recipe, base: Recipe, condition: str, optimizer: str | None) -> None:
        self.sizes, self.pairs = paired(target, base)
        self.notes: list[str] = []
        self._recipes, self._condition = (target, base), condition
        chosen = None if optimizer is None else optimizers_by_role(optimizer, CONDITIONS[condition])
        self._vectors_decay = any(pair.weight.weight_decay for pair in self.pairs if is_vector(pair.role))
        self._names = {pair.weight.name: _optimizer_of(pair, chosen, CONDITIONS[condition]) for pair in self.pairs}
        self.optimizers = list(dict.fromkeys(self._names.values()))

    def cells(self, pair: Pair) -> Iterator[RecipeCell]:
        """Of one parameter; those of the other choice of its multiplier where all of these agree."""
        as_printed = list(self._cells(pair, 1.0))
        moved = self._moved(pair)
        if moved != 1 and not all(cell.agrees for cell in as_printed):
            other = list(self._cells(pair, moved))
            if all(cell.agrees for cell in other):
                self.notes.append(
                    f"{pair.label}: the multiplier is {moved:.4g} times the table's, and standard deviation, rate, "
                    "decay and epsilon make up for it, which is the same training"
                )
                return iter(other)
        return iter(as_printed)

    def _moved(self, pair: Pair) -> float:
        """By what the multiplier is larger than the table's; 1 where weights cannot make up for it."""
        name, multiplier = self._names[pair.weight.name], pair.weight.multiplier
        if name not in _MOVES or multiplier is None or not multiplier:
            return 1.0
        wanted = (pair.base.multiplier or 1.0) * pair.factor(self.sizes, name, "block_multiplier", self._condition)
        return multiplier / wanted

    def _cells(self, pair: Pair, moved: float) -> Iterator[RecipeCell]:
        name = self._names[pair.weight.name]
        power, of_epsilon = _MOVES.get(name, (0, 0))
        powers = {"block_multiplier": 1, INITIAL_STD: -1, "learning_rate": -power, "weight_decay": power}
        own = [each for each in hyperparameters_of(name, CONDITIONS[self._condition]) if each.endswith("_epsilon")]
        for hyperparameter in (*_NUMBERS, *own):
            numbers = self._numbers(pair, hyperparameter)
            if numbers is None:
                continue
            value, base = numbers
            of_table = "initial_variance" if hyperparameter == INITIAL_STD else hyperparameter
            scaling = pair.scaling(name, of_table, self._condition)
            if hyperparameter == INITIAL_STD:
                scaling = scaling ** Fraction(1, 2)
            factor = scaling.at(self.sizes.width_ratio, self.sizes.depth_ratio)
            expected = base * factor * moved ** powers.get(hyperparameter, of_epsilon)
            slack = log(1 + TOLERANCE) + (self._slack(pair) if hyperparameter == INITIAL_STD else 0.0)
            place = (pair.column_of(hyperparameter) or "fixed", (pair.label,), (pair.weight.kind,), hyperparameter)
            agrees = _agree(value, expected, slack)
            if not agrees and hyperparameter == "weight_decay" and is_vector(pair.role) and not self._vectors_decay:
                agrees = True
                self.notes.append(f"{pair.label} does not decay, as is the custom; the table has {expected:.3g}")
            yield RecipeCell(*place, value, base, str(scaling), expected, agrees)

    def _numbers(self, pair: Pair, hyperparameter: str) -> tuple[float, float] | None:
        """The recipe's and the base model's; None where there is none, with a note where it should be."""
        if hyperparameter == INITIAL_STD:
            both = [
                recipe.std_of(each)[0] for recipe, each in zip(self._recipes, (pair.weight, pair.base), strict=True)
            ]
        else:
            field = _NUMBERS.get(hyperparameter, "epsilon")
            both = [getattr(each, field) for each in (pair.weight, pair.base)]
        if hyperparameter == "block_multiplier":
            if pair.weight.multiplier is None:
                return None
            both[1] = 1.0 if both[1] is None else both[1]
        if both[0] is None or both[1] is None:
            self.notes.append(f"{pair.label} {hyperparameter}: not given, and not compared")
            return None
        return both[0], both[1]

    def _slack(self, pair: Pair) -> float:
        """What drawn weights leave open of the logarithm of a ratio of standard deviations; nothing of gains."""
        if pair.role == "norm_gain":
            return 0.0
        counts = [recipe.std_of(each)[1] for recipe, each in zip(self._recipes, (pair.weight, pair.base), strict=True)]
        slack = ERRORS * sqrt(sum(1 / (2 * count) for count in counts))
        if slack > log(TELLS) and pair.weight.std:
            self.notes.append(
                f"{pair.weight.kind!r} has so few numbers that their standard deviation is not told from one "
                f"{exp(slack):.2g} times as large"
            )
        return slack


def _untold(sizes: Sizes) -> Iterator[str]:
    """Ratios so near 1 that even a root of them is within the tolerance."""
    for name, ratio in (("width", sizes.width_ratio), ("depth", sizes.depth_ratio)):
        if 0 < abs(log(ratio)) <= 2 * log(1 + TOLERANCE):
            yield f"the {name} is {ratio:.4g} times the base model's, too near 1 to tell a wrong power; compare others"


def _agree(value: float, expected: float, slack: float) -> bool:
    if not (value and expected):
        return value == expected
    return abs(log(value / expected)) <= slack


def _optimizer_of(pair: Pair, chosen: dict[str, str] | None, block_depth: int) -> str:
    """The name of the optimizer that steps a parameter, as it is chosen, or as both recipes say."""
    if chosen is not None:
        if pair.column and pair.column not in chosen:
            others = ", ".join(dict.fromkeys(chosen.values()))
            raise ValueError(
                f"{pair.weight.name!r} is a vector, which {others} does not step: name who steps it, {others}-adamw"
            )
        return chosen.get(pair.column) or chosen["output"]
    names = [_named(each) for each in (pair.weight, pair.base)]
    if names[0] != names[1]:
        raise ValueError(f"{pair.weight.name!r} is stepped by {names[0]}, and in the base model by {names[1]}")
    hyperparameter_table(names[0], block_depth)
    return names[0]


def _named(weight: ModelWeight) -> str:
    if weight.optimizer is None:
        raise ValueError(f"the recipe names no optimizer of {weight.name!r}; choose one for all, optimizer='adamw'")
    return weight.optimizer


def _gathered(cells: Iterable[RecipeCell]) -> Iterator[RecipeCell]:
    """Cells of one column and one number as one, with all their roles; standard deviations are drawn, and differ."""
    gathered: dict[Any, RecipeCell] = {}
    for cell in cells:
        own = cell.kinds if cell.hyperparameter == INITIAL_STD else ()
        numbers = tuple(f"{number:.6g}" for number in (cell.value, cell.base, cell.expected))
        key = (cell.column, cell.hyperparameter, cell.agrees, *own, *(() if own else numbers))
        before = gathered.get(key)
        if before is not None:
            roles, kinds = ((*getattr(before, each), *getattr(cell, each)) for each in ("roles", "kinds"))
            cell = replace(before, roles=tuple(dict.fromkeys(roles)), kinds=tuple(dict.fromkeys(kinds)))
        gathered[key] = cell
    yield from gathered.values()
