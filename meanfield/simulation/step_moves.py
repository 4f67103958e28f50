"""How weights move in the first step of an optimizer: a matrix for every weight, made of its whole gradient.

Gradient descent needs no such matrix, as U X^T times X is U times a Gram matrix (`passes.GradientMoves`). Signs and
polar factors are no sums over samples or uses: the gradient of a weight is added up over all its uses, the optimizer
makes its direction A of that, and at every use the output moves by A X.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from meanfield.common.array_libraries import is_on_host, library_of, on_host
from meanfield.common.validation import Array, PremiseWarning
from meanfield.nets.maps import Weight
from meanfield.nets.net import Chain, Net
from meanfield.optimizers.base import Gradient, NoStep, Optimizer, Place, blocks, fresh, times
from meanfield.optimizers.first_steps import SMALL_STEP, FirstStep
from meanfield.optimizers.linear_algebra import Direction, Factored, brought, dense, of_net
from meanfield.simulation.maps.base import Multiplier, Setting, Use, WeightedOperation, weighted_operation_of
from meanfield.simulation.maps.weighted import VectorOperation, side_by_side
from meanfield.simulation.passes import (
    ErrorsByPlace,
    Forward,
    MapPlace,
    WeightMoves,
    backward,
    gradient_changes,
    tangent,
)
from meanfield.simulation.training.losses import LOSSES
from meanfield.simulation.weights import Dense, grouped

# Sums below this many rounding errors of their terms are 0; where terms cancel, backward passes leave about one.
ROUNDING = 64

# Of signs that an epsilon leaves less than this, the step is more gradient descent than AdamW's.
LEAST_KEPT = 0.5

# The role of a weight by its name, as `Net.role_of` gives it.
RoleOf = Callable[[str], str]
# Sums of error columns, each by the coefficients of all columns.
Sums = tuple[tuple[float, ...], ...]


def whole_net(net: Net) -> Net:
    """The same net with its readout as one more unit, whose weights move as all others do."""
    return Chain.of(net, units=net.all_units, readout_unit=None)


def require_step(net: Net, step: FirstStep) -> None:
    """Raise ValueError for a net in which this first step is not defined."""
    roles = {name: net.role_of(name) for name in net.weights}
    step.require_epsilon(roles.values())
    methods = {name: step.method_of(role) for name, role in roles.items()}
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
            sizes = fresh(slope, block)
            xp = library_of(sizes)
            sizes = xp.abs(sizes)
            counted = (sizes > 0).sum(axis=(1, 2)), (sizes / (sizes + self.epsilon)).sum(axis=(1, 2), dtype=float)
            self._elements[block[0]] += on_host(counted[0])
            self._sizes[block[0]] += on_host(counted[1])

    @property
    def shares(self) -> Array:
        """Of every draw, (D,); 1 where there is no gradient, or no epsilon."""
        return np.divide(self._sizes, self._elements, out=np.ones_like(self._sizes), where=self._elements > 0)


class EpsilonWarning(PremiseWarning):
    """An epsilon leaves less than half of the signs of a first step."""


def warn_unless_kept(share: float, epsilon: float, name: str) -> None:
    """Give an `EpsilonWarning` where an epsilon leaves less than half of the signs."""
    if share < LEAST_KEPT:
        warnings.warn(
            f"epsilon {epsilon:g} leaves {share:.2g} of the first step of {name}: the mean of "
            "|G| / (|G| + epsilon) over all elements with a gradient, which is 1 for signs. The step is nearly that of "
            "gradient descent over epsilon; give an epsilon far below the gradients, or 0",
            EpsilonWarning,
            stacklevel=2,
        )


def step_changes(
    state: Forward,
    slope: Any,
    step: FirstStep,
    role_of: RoleOf,
    loss: str = "squared",
    weight_decay: float = 0.0,
    sums: Sums = (),
    kept: Kept | None = None,
) -> Iterator[Any]:
    """T_1 .. T_D, (D, C, r B, S), under the first step on every column r of dL/dout, (D, outputs, r B, sites).

    Behind these come steps on ``sums`` of the columns, each as its coefficients: errors are linear in those at the
    outputs, and directions are not, so that the sums are taken where the weights are. ``kept`` counts what an epsilon
    leaves of the step.

    Of a net as it is under gradient descent, whose readout does not move; of a `whole_net` otherwise, or where there
    are no patches, so that every weight moves by a matrix.
    """
    if step.is_descent and not (weight_decay or sums or state.arrays.convolution):
        yield from gradient_changes(state, slope)
        return
    if state.readout is not None:
        raise ValueError("the readout of this net moves with it; give its whole net")
    units, error = len(state.net.units), slope
    if is_curved(state.net, step, role_of):
        curvature = LOSSES[loss].curvature(state.output, None, state.arrays)
        error = state.arrays.xp.concatenate([slope, curvature], axis=2)
    columns = slope.shape[2] // state.setting.samples
    moves = StepMoves(state, backward(state, error, units), step, columns, role_of, weight_decay, sums, kept)
    yield from tangent(state, moves, units, columns + len(sums))


def is_curved(net: Net, step: FirstStep, role_of: RoleOf) -> bool:
    """Whether some weight of the net needs the curvature of the loss, in columns for all outputs."""
    return any(step.method_of(role_of(name)).curved for name in net.weights)


class StepMoves(WeightMoves):
    """Weights moved by +1 times the direction that a first step makes of the gradient of every error column.

    ``errors`` hold r ``columns``, and behind them those that make up the curvature of the loss, if the step needs it.
    With ``sums`` of the columns there are as many columns more, behind the r.
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
        sums: Sums = (),
        kept: Kept | None = None,
    ) -> None:
        super().__init__(state, sorted(errors))
        self._errors, self._step, self._given, self._columns = errors, step, columns, columns + len(sums)
        self._role_of, self._decay, self._sums, self._kept = role_of, weight_decay, sums, kept

    def _moved(self, places: list[MapPlace], maps: list[Any], seen: Iterable[Any], setting: Setting) -> list[Any]:
        """One weight after the other, of those side by side."""
        own = weighted_operation_of(maps[0])
        errors, first, by_weight = [self._error(place, setting) for place in places], 0, []
        for weight in maps[0].weights:
            last = first + own.rows(maps[0], weight, errors[0])
            uses: list[Use] = [
                HeldUse(spec, weight, error[:, first:last], self._state.passages[place[0]], place[1])
                for spec, place, error in zip(maps, places, errors, strict=True)
            ]
            by_weight.append(self._moved_weight(own, weight, uses))
            first = last
        parts = zip(*by_weight, strict=True)
        return [rows[0] if len(rows) == 1 else self._state.arrays.xp.concatenate(rows, axis=1) for rows in parts]

    def _error(self, place: MapPlace, setting: Setting) -> Any:
        """The error at a place, with the sums of its columns behind those given."""
        error = self._errors.pop(place)
        if not self._sums:
            return error
        columns = setting.by_sample(error)
        given, curved = columns[:, :, : self._given], columns[:, :, self._given :]
        added = [sum(factor * given[:, :, column] for column, factor in enumerate(each)) for each in self._sums]
        xp = self._state.arrays.xp
        whole = xp.concatenate([given, xp.stack(added, axis=2), curved], axis=2)
        return whole.reshape(*error.shape[:2], -1, error.shape[3])

    def _moved_weight(self, own: WeightedOperation, weight: Weight, uses: list[Use]) -> list[Any]:
        """The moves (D, rows, r B, S) at every use of a weight."""
        elementwise = self._step.elementwise(self._role_of(weight.name))
        if elementwise is not None and weight.groups == 1 and own.by_rows:
            moved = self._moved_rows(own, weight, uses, elementwise)
        else:
            moved = self._moved_by_column(own, weight, uses)
        if self._decay:
            decay: Any = self._state.setting.weights[weight.name]
            xp = self._state.arrays.xp
            for use, of_use in zip(uses, moved, strict=True):
                of_use += xp.concatenate([self._decay * own.moved_by(use, decay)] * self._columns, axis=2)
        return moved

    def _moved_rows(
        self, own: WeightedOperation, weight: Weight, uses: list[Use], elementwise: Callable[[Any], Any]
    ) -> list[Any]:
        """All columns at once, element by element: each is one more of every row of a gradient."""
        columns = [use.by_column[:, :, : self._columns] for use in uses]
        rows = [each.reshape(each.shape[0], -1, *each.shape[3:]) for each in columns]
        change = OfElements(slope := own.gradient(uses, rows), elementwise)
        self._count(weight, slope)
        moved = [own.moved_by(use, change) for use in uses]
        return [each.reshape(len(each), -1, self._columns * each.shape[2], each.shape[3]) for each in moved]

    def _moved_by_column(self, own: WeightedOperation, weight: Weight, uses: list[Use]) -> list[Any]:
        columns, curvature = [use.by_column for use in uses], None
        if self._method(weight).curved:
            curvature = own.curvature(uses, [each[:, :, self._columns :] for each in columns])
        changes = []
        for column in range(self._columns):
            slope = self._gradient(own, uses, [each[:, :, column] for each in columns])
            self._count(weight, slope)
            changes.append(self._change(weight, Gradient(slope, curvature)))
        return [side_by_side([own.moved_by(use, change) for change in changes], self._state.setting) for use in uses]

    def _gradient(self, own: WeightedOperation, uses: list[Use], errors: list[Any]) -> Any:
        """The whole gradient of a weight; of a bias or a gain 0 where its terms cancel but for rounding.

        So they do below a normalisation, which takes a common shift or factor out: rounding errors have signs, too.
        """
        slope = own.gradient(uses, errors)
        if isinstance(own, VectorOperation):
            xp, rounding = self._state.arrays.xp, ROUNDING * float(np.finfo(slope.dtype).eps)
            return xp.where(xp.abs(slope) < rounding * own.gradient_terms(uses, errors), 0.0, slope)
        return slope

    def _count(self, weight: Weight, slope: Direction) -> None:
        """Add to what an epsilon leaves, where this weight's step has one."""
        if self._kept and self._step.softens(self._role_of(weight.name)):
            self._kept.count(slope)

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
        # Stencils of groups have patches: nothing asks for all elements at once.
        by_group: Any = grouped(weight, lambda _, rows: Dense(whole[:, rows]), self._state.arrays.xp.concatenate)
        return by_group

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
        """Directions of optimizers that take one matrix at a time on the host, (D, out, in taps)."""
        held: Any = self._state.setting.weights[weight.name]
        slope, matrices = brought(slope), on_host(held.matrix)
        self._require_squares(weight, dense(slope))
        each = [
            self._direction(weight, Gradient(of_net(slope, draw)), Dense(matrices[min(draw, len(matrices) - 1)]))
            for draw in range(slope.shape[0])
        ]
        directions = np.stack([dense(direction) for direction in each])
        return self._state.arrays.moved(directions) if self._state.arrays.on_device else directions

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
        return super().values

    @cached_property
    def patches(self) -> Any:
        return super().patches


@dataclass(frozen=True)
class Product:
    """A direction as what multiplies columns."""

    direction: Direction

    @property
    def matrix(self) -> Any:
        return dense(self.direction)

    def times(self, columns: Any) -> Any:
        return times(self.direction, columns)


@dataclass(frozen=True)
class OfElements:
    """A function of every element of a gradient, as what multiplies columns; it is never held as a whole."""

    slope: Direction
    function: Callable[[Any], Any]

    @property
    def matrix(self) -> Any:
        return self.function(dense(self.slope))

    def times(self, columns: Any) -> Any:
        slope, (draws, rows, _) = self.slope, self.slope.shape
        if not is_on_host(columns):
            return self.matrix @ columns
        if isinstance(slope, Factored):  # products take a sixth less time where the right factor lies as it is read
            slope = replace(slope, right=np.asarray(slope.right.swapaxes(1, 2), order="C").swapaxes(1, 2))
        image = np.empty((draws, rows, columns.shape[2]), dtype=columns.dtype)
        for block in blocks(slope):
            own = columns if len(columns) == 1 else columns[block[0]]
            np.matmul(self.function(fresh(slope, block)), own, out=image[block])
        return image
