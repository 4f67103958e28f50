"""How weights move in the first step of an optimizer: a matrix for every weight, made of its whole gradient.

Gradient descent needs no such matrix, as U X^T times X is U times a Gram matrix (`passes.GradientMoves`). Signs and
polar factors are no sums over samples or uses: the gradient of a weight is added up over all its uses, the optimizer
makes its direction A of that, and at every use the output moves by A X.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from meanfield.common.validation import Array, PremiseWarning
from meanfield.nets.maps import Weight
from meanfield.nets.net import Chain, Net
from meanfield.optimizers.base import Gradient, NoStep, Optimizer, Place, blocks, fresh, times
from meanfield.optimizers.first_steps import FirstStep
from meanfield.optimizers.linear_algebra import Direction, dense, of_net
from meanfield.simulation.maps.base import Multiplier, Use, WeightedOperation, weighted_operation_of
from meanfield.simulation.maps.weighted import VectorOperation
from meanfield.simulation.passes import ErrorsByPlace, Forward, WeightMoves, backward, gradient_changes, tangent
from meanfield.simulation.passes import Place as PlaceInNet
from meanfield.simulation.training.losses import LOSSES
from meanfield.simulation.weights import Dense, grouped

# Where a direction depends on the size of the step, as SSO's, it is that of a step of this size: as good as none.
SMALL_STEP = 1e-6

# Sums below this many rounding errors of their terms are 0; where terms cancel, backward passes leave about one.
ROUNDING = 64

# Of signs that an epsilon leaves less than this, the step is more gradient descent than AdamW's.
LEAST_KEPT = 0.5

# The role of a weight by its name, as `Net.role_of` gives it.
RoleOf = Callable[[str], str]


def whole_net(net: Net) -> Net:
    """The same net with its readout as one more unit, whose weights move as all others do."""
    return Chain.of(net, units=net.all_units, readout_unit=None)


def require_step(net: Net, step: FirstStep) -> None:
    """Raise ValueError for a net in which this first step is not defined."""
    methods = {name: step.method_of(net.role_of(name)) for name in net.weights}
    for name, method in methods.items():
        if method.draws_labels:
            raise ValueError(f"{method!r} draws labels for its curvature; give one that sums it over all outputs")
        if method.curved and net.couples_samples:
            raise ValueError(
                f"{method!r}, of weight {name!r}, adds up curvatures sample by sample, and under batch normalisation "
                "samples depend on each other; take an optimizer that needs none, such as 'adamw'"
            )


class Kept:
    """What an epsilon leaves of the signs of AdamW's first step: the mean of |A| over elements with a gradient."""

    def __init__(self, step: FirstStep, draws: int) -> None:
        self.epsilon, self._sizes, self._elements = step.epsilon, np.zeros(draws), np.zeros(draws)

    def count(self, slope: Direction) -> None:
        """Add the elements of one gradient, (D, out, in taps)."""
        for block in blocks(slope):
            sizes = np.abs(fresh(slope, block))
            self._elements[block[0]] += np.count_nonzero(sizes, axis=(1, 2))
            self._sizes[block[0]] += (sizes / (sizes + self.epsilon)).sum(axis=(1, 2), dtype=float)

    @property
    def shares(self) -> Array:
        """Of every draw, (D,); 1 where there is no gradient, or no epsilon."""
        return np.divide(self._sizes, self._elements, out=np.ones_like(self._sizes), where=self._elements > 0)


def warn_unless_kept(share: float, step: FirstStep) -> None:
    """Give a `PremiseWarning` where an epsilon leaves less than half of the signs."""
    if share < LEAST_KEPT:
        warnings.warn(
            f"epsilon {step.epsilon:g} leaves {share:.2g} of the first step of {step.name}: the mean of "
            "|G| / (|G| + epsilon) over all elements with a gradient, which is 1 for signs. The step is nearly that of "
            "gradient descent over epsilon; give an epsilon far below the gradients, or 0",
            PremiseWarning,
            stacklevel=2,
        )


def step_changes(
    state: Forward,
    slope: Any,
    step: FirstStep,
    role_of: RoleOf,
    loss: str = "squared",
    weight_decay: float = 0.0,
    kept: Kept | None = None,
) -> Iterator[Any]:
    """T_1 .. T_D, (D, C, r B, S), under the first step on every column r of dL/dout, (D, outputs, r B, sites).

    Of a net as it is under gradient descent, whose readout does not move; of a `whole_net` otherwise. ``kept`` counts
    what an epsilon leaves of the step.
    """
    if step.is_descent and not weight_decay:
        yield from gradient_changes(state, slope)
        return
    if state.readout is not None:
        raise ValueError("the readout of this net moves with it; give its whole net")
    units, columns, error = len(state.net.units), slope.shape[2] // state.setting.samples, slope
    if any(step.method_of(role_of(name)).curved for name in state.net.weights):
        curvature = LOSSES[loss].curvature(state.output, None, state.arrays)
        error = state.arrays.xp.concatenate([slope, curvature], axis=2)
    moves = StepMoves(state, backward(state, error, units), step, columns, role_of, weight_decay, kept)
    yield from tangent(state, moves, units, columns)


class StepMoves(WeightMoves):
    """Weights moved by +1 times the direction that a first step makes of the gradient of every error column.

    ``errors`` hold r ``columns``, and behind them those that make up the curvature of the loss, if the step needs it.
    They are used up: each is let go once its weight has moved. ``role_of`` says which role a weight has, by name. With
    ``weight_decay`` lambda the direction is A + lambda W.
    """

    def __init__(
        self,
        state: Forward,
        errors: ErrorsByPlace,
        step: FirstStep,
        columns: int,
        role_of: RoleOf,
        weight_decay: float = 0.0,
        kept: Kept | None = None,
    ) -> None:
        super().__init__(state, sorted(errors))
        self._errors, self._step, self._columns = errors, step, columns
        self._role_of, self._decay, self._kept = role_of, weight_decay, kept

    def _moved(self, places: list[PlaceInNet]) -> list[Any]:
        """One weight after the other, of those side by side."""
        own = weighted_operation_of(self._map(places[0]))
        errors, first, by_weight = [self._errors.pop(place) for place in places], 0, []
        for weight in self._map(places[0]).weights:
            last = first + own.rows(self._map(places[0]), weight, errors[0])
            uses: list[Use] = [
                HeldUse(self._map(place), weight, error[:, first:last], self._state.passages[place[0]], place[1])
                for place, error in zip(places, errors, strict=True)
            ]
            by_weight.append(self._moved_weight(own, weight, uses))
            first = last
        parts = zip(*by_weight, strict=True)
        return [rows[0] if len(rows) == 1 else self._state.arrays.xp.concatenate(rows, axis=1) for rows in parts]

    def _moved_weight(self, own: WeightedOperation, weight: Weight, uses: list[Use]) -> list[Any]:
        """The moves (D, rows, r B, S) at every use of a weight."""
        columns, xp = [use.by_column for use in uses], self._state.arrays.xp
        curvature = None
        if self._method(weight).curved:
            curvature = own.curvature(uses, [each[:, :, self._columns :] for each in columns])
        changes = []
        for column in range(self._columns):
            slope = self._gradient(own, uses, [each[:, :, column] for each in columns])
            changes.append(self._change(weight, Gradient(slope, curvature)))
            if self._kept and self._step.softens(self._role_of(weight.name)):
                self._kept.count(slope)
        moved = [xp.concatenate([own.moved_by(use, change) for change in changes], axis=2) for use in uses]
        if self._decay:
            decay = self._state.setting.weights[weight.name]
            for use, of_use in zip(uses, moved, strict=True):
                of_use += xp.concatenate([self._decay * own.moved_by(use, decay)] * self._columns, axis=2)
        return moved

    def _gradient(self, own: WeightedOperation, uses: list[Use], errors: list[Any]) -> Any:
        """The whole gradient of a weight; of a bias or a gain 0 where its terms cancel but for rounding.

        So they do below a normalisation, which takes a common shift or factor out: rounding errors have signs, too.
        """
        slope = own.gradient(uses, errors)
        if isinstance(own, VectorOperation):
            slope[np.abs(slope) < ROUNDING * np.finfo(slope.dtype).eps * own.gradient_terms(uses, errors)] = 0.0
        return slope

    def _method(self, weight: Weight) -> Optimizer:
        return self._step.method_of(self._role_of(weight.name))

    def _change(self, weight: Weight, gradient: Gradient) -> Multiplier:
        """The direction of all draws, group by group."""
        elementwise = self._step.elementwise(self._role_of(weight.name))
        if elementwise is not None and weight.groups == 1:
            return OfElements(gradient.slope, elementwise)
        if elementwise is not None:
            direction: Direction = elementwise(dense(gradient.slope))
        elif self._method(weight).takes_stacks:
            direction = self._direction(weight, gradient, self._state.setting.weights[weight.name])
        else:
            direction = self._one_by_one(weight, gradient.slope)
        if weight.groups == 1:
            return Product(direction)
        whole = dense(direction)
        return grouped(weight, lambda _, rows: Dense(whole[:, rows]), self._state.arrays.xp.concatenate)

    def _direction(self, weight: Weight, gradient: Gradient, matrix: Any) -> Direction:
        place = Place(matrix.matrix, SMALL_STEP, self._step.epsilon)
        try:
            return self._method(weight).step(None, gradient, place)[0]
        except NoStep as error:
            raise ValueError(
                f"{self._step.name} has no first step from rest at weight {weight.name!r}: {error}; take another "
                "optimizer, or other initial weights"
            ) from error

    def _one_by_one(self, weight: Weight, slope: Direction) -> Any:
        """Directions of optimizers that take one matrix at a time, (D, out, in taps)."""
        self._require_squares(weight, dense(slope))
        matrices = self._state.setting.weights[weight.name].matrix  # type: ignore[attr-defined]
        each = [
            self._direction(weight, Gradient(of_net(slope, draw)), Dense(matrices[min(draw, len(matrices) - 1)]))
            for draw in range(slope.shape[0])
        ]
        return np.stack([dense(direction) for direction in each])

    def _require_squares(self, weight: Weight, slope: Any) -> None:
        """Raise OverflowError unless floats hold the squares of every draw's gradient (D, out, in taps)."""
        sizes, limits = np.abs(slope).max(axis=(1, 2)), np.finfo(slope.dtype)
        held = (sizes == 0) | ((sizes > float(limits.tiny) ** 0.5) & (sizes < float(limits.max) ** 0.5))
        if not held.all():
            raise OverflowError(
                f"a gradient of weight {weight.name!r} is {sizes[~held][0]:.2g} in size, and {self._step.name} takes "
                "squares, which floats do not hold; give weights, inputs and errors of the size of 1"
            )


@dataclass(frozen=True)
class HeldUse(Use):
    """A use that holds what its weight reads while all columns of the weight move."""

    @cached_property
    def values(self) -> Any:
        return self.passage.input_of(self.place)

    @cached_property
    def patches(self) -> Any:
        own = weighted_operation_of(self.spec)
        return own.patches(self.spec, own.seen(self.spec, self.values, self.setting), self.setting)


@dataclass(frozen=True)
class Product:
    """A direction as what multiplies columns."""

    direction: Direction

    def times(self, columns: Any) -> Any:
        return times(self.direction, columns)


@dataclass(frozen=True)
class OfElements:
    """A function of every element of a gradient, as what multiplies columns; it is never held as a whole."""

    slope: Direction
    function: Callable[[Any], Any]

    def times(self, columns: Any) -> Any:
        draws, rows, _ = self.slope.shape
        image = np.empty((draws, rows, columns.shape[2]), dtype=columns.dtype)
        for block in blocks(self.slope):
            own = columns if len(columns) == 1 else columns[block[0]]
            image[block] = self.function(fresh(self.slope, block)) @ own
        return image
