"""Gaussian weight matrices behind one interface: filled in advance, or revealed query by query.

The passes need no more of a matrix than its products with a few columns from either side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.common.seeds import Streams
from meanfield.common.validation import require_array
from meanfield.nets.maps import Weight
from meanfield.nets.net import Net
from meanfield.nets.units import joined, uses
from meanfield.simulation.kernels.normals import NormalSource
from meanfield.simulation.kernels.reveal import reveal
from meanfield.simulation.weights.slabs import Slabs

Empty = Callable[[tuple[int, ...]], Array]

KINDS = ("dense", "lazy")
# Energies may also be drawn without matrices, by the Gram process.
ENERGY_KINDS = (*KINDS, "gram")


class WeightMatrix(Protocol):
    """A draw of W, (D, n', m), for D networks at once."""

    def times(self, columns: Array) -> Array:
        """W columns: (D, m, r) -> (D, n', r)."""

    def transpose_times(self, columns: Array) -> Array:
        """W^T columns: (D, n', r) -> (D, m, r)."""


# The drawn weights of a net, by name.
Weights = dict[str, WeightMatrix]


class Dense:
    """A matrix that holds all its elements."""

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix

    def times(self, columns: Array) -> Array:
        return self.matrix @ columns

    def transpose_times(self, columns: Array) -> Array:
        return self.matrix.swapaxes(1, 2) @ columns


class Grouped:
    """Matrices of groups of channels: group g out is the g-th matrix times group g in."""

    def __init__(self, groups: list[WeightMatrix], concatenate: Callable[..., Array]) -> None:
        self._groups, self._concatenate = groups, concatenate

    def times(self, columns: Array) -> Array:
        return self._concatenate([group.times(part) for group, part in self._parts(columns)], axis=1)

    def transpose_times(self, columns: Array) -> Array:
        return self._concatenate([group.transpose_times(part) for group, part in self._parts(columns)], axis=1)

    def _parts(self, columns: Array) -> Iterator[tuple[WeightMatrix, Array]]:
        size = columns.shape[1] // len(self._groups)
        return ((group, columns[:, g * size : (g + 1) * size]) for g, group in enumerate(self._groups))


class Lazy:
    """One group of a weight with i.i.d. N(0, s) elements, revealed query by query; exact for any adaptive sequence.

    It keeps orthonormal bases of the columns seen from the right, with A = W Q_R, and from the left, with B = W^T Q_L.
    A new direction q, orthogonal to Q_R, has W q = Q_L B^T q + (I - Q_L Q_L^T) sqrt(s) xi with xi fresh: its part along
    Q_L is already known, the rest is independent of everything seen (docs/theory.md section 12). A query costs O(n r)
    instead of O(n^2), in numbers drawn, in arithmetic and in memory. Answers stay the same in any later query; the
    order of the queries decides which numbers go where, so another order makes another draw of the same law.

    ``room`` is how many directions from the right and from the left have space from the start: a matrix that is asked
    often would otherwise move all it knows every time.
    """

    def __init__(self, weight: Weight, normals: NormalSource, slabs: Slabs, room: tuple[int, int] = (0, 0)) -> None:
        rows, columns = weight.group_rows, weight.fan_in
        self._deviation, self._normals, self._slabs = np.sqrt(weight.variance), normals, slabs
        self._right = _Side(normals.draws, columns, rows, room[0], normals.precision)
        self._left = _Side(normals.draws, rows, columns, room[1], normals.precision)

    def times(self, columns: Array) -> Array:
        return self._ask(self._right, self._left, columns)

    def transpose_times(self, columns: Array) -> Array:
        return self._ask(self._left, self._right, columns)

    def _ask(self, side: _Side, other: _Side, columns: Array) -> Array:
        """Answer the columns; vectors lie in one piece, columns outermost in memory.

        The first queries come from the forward and the backward pass; they and their answers live as long as the draw
        and are kept in slabs. Later ones come from the tangent, which soon lets the matrix go.
        """
        queries = np.ascontiguousarray(columns.swapaxes(1, 2))
        draws, count, _ = queries.shape
        known, empty = side.known, self._normals.empty if side.known else self._slabs.empty
        answers = empty((draws, count, side.images.shape[2]))
        side.extend(count, empty)
        opposite = (known, other.known, other.basis, other.images)
        reveal(queries, side.basis, side.images, *opposite, self._normals.states, self._deviation, answers)
        return answers.swapaxes(1, 2)


class _Side:
    """What one side has asked: orthonormal directions (D, room, size) and their images (D, room, image size).

    The first ``known`` rows of each are in use.
    """

    __slots__ = ("basis", "images", "known")

    def __init__(self, draws: int, size: int, image_size: int, room: int, precision: str = "float64") -> None:
        self.basis = np.empty((draws, room, size), precision)
        self.images = np.empty((draws, room, image_size), precision)
        self.known = 0

    def extend(self, count: int, empty: Empty) -> None:
        """Take in ``count`` more directions, in the room that is left or in new arrays."""
        before, self.known = self.known, self.known + count
        if self.known > self.basis.shape[1]:
            self.basis = _moved(self.basis, before, self.known, empty)
            self.images = _moved(self.images, before, self.known, empty)


def _moved(array: Array, known: int, rows: int, empty: Empty) -> Array:
    draws, _, size = array.shape
    longer = empty((draws, rows, size))
    if known:
        longer[:, :known] = array[:, :known]
    return longer


# The matrix of one group of a weight, which has these of its rows.
GroupMatrix = Callable[[Weight, slice], WeightMatrix]


def grouped(weight: Weight, matrix_of: GroupMatrix, concatenate: Callable[..., Array] = np.concatenate) -> WeightMatrix:
    """A weight as the passes take it, group by group."""
    size = weight.group_rows
    groups = [matrix_of(weight, slice(first, first + size)) for first in range(0, size * weight.groups, size)]
    return groups[0] if weight.groups == 1 else Grouped(groups, concatenate)


def named(net: Net, matrix_of: GroupMatrix, concatenate: Callable[..., Array] = np.concatenate) -> Weights:
    """The weights of a net by name."""
    return {name: grouped(weight, matrix_of, concatenate) for name, weight in net.weights.items()}


def revealed(
    net: Net, matrix_of: Callable[[Weight], WeightMatrix], concatenate: Callable[..., Array] = np.concatenate
) -> Weights:
    """Lazily revealed weights of a net by name; those of one law side by side are one matrix under all their names.

    They see the same columns, which one matrix meets once.
    """
    drawn: Weights = {}
    for _, _, holder in uses(net.all_units):
        for joint in joined(holder.weights):
            if joint[0].name not in drawn:
                rows = sum(weight.shape[0] for weight in joint)
                whole = replace(joint[0], shape=(rows, *joint[0].shape[1:]))
                matrix = grouped(whole, lambda weight, _: matrix_of(weight), concatenate)
                drawn |= dict.fromkeys((weight.name for weight in joint), matrix)
    return drawn


def draw_weights(net: Net, streams: Streams, kind: str, precision: str = "float64") -> Weights:
    """All weights of a net by name, one draw per stream, "dense" or "lazy"; biases are matrices of one column."""
    normals, slabs = NormalSource(streams, precision), Slabs(precision)
    if kind == "dense":
        return named(net, lambda weight, _: draw_dense(weight, normals))
    return revealed(net, lambda weight: Lazy(weight, normals, slabs, _room(net, weight)))


def _room(net: Net, weight: Weight) -> tuple[int, int]:
    """What a tied weight is asked at all its uses for the columns of labels and outputs, right and left."""
    columns = net.use_counts[weight.name] * net.places
    return (3 * columns, 2 * columns) if columns > net.places else (0, 0)


def given_weights(
    net: Net, weights: Mapping[str, Array], concatenate: Callable[..., Array] = np.concatenate
) -> Weights:
    """Numbers (D, n', m) by name, those of groups one below the other, as the passes take them."""
    return named(net, lambda weight, rows: Dense(weights[weight.name][:, rows]), concatenate)


def checked_weights(net: Net, weights: Sequence[ArrayLike]) -> dict[str, Array]:
    """Weights by name, (1, out, in taps), of one net from arrays in the order of its weights, each of its shape.

    Raises:
        TypeError, ValueError: another number of arrays, another shape, or values that are not finite real numbers.
    """
    wanted = net.weights
    if isinstance(weights, str | Mapping) or not isinstance(weights, Sequence | np.ndarray):
        raise TypeError(f"weights is of type {type(weights).__name__}; give a list of arrays, one for each weight")
    if len(weights) != len(wanted):
        raise ValueError(
            f"weights has {len(weights)} arrays; this architecture takes {len(wanted)}, of shapes {net.weight_shapes}"
        )
    layout = "(channels out, channels in, *kernel)"
    pairs = enumerate(zip(weights, wanted.values(), strict=True))
    given = [require_array(f"weights[{index}]", array, weight.shape, layout) for index, (array, weight) in pairs]
    return {name: array.reshape(1, len(array), -1) for name, array in zip(wanted, given, strict=True)}


def draw_dense(weight: Weight, normals: NormalSource) -> Dense:
    """One group of a weight in every draw."""
    return Dense(normals.drawn((weight.group_rows, weight.fan_in), np.sqrt(weight.variance)))
