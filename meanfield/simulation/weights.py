"""Gaussian weight matrices behind one interface: filled in advance, or revealed query by query.

The passes need no more of a matrix than its products with a few columns from either side. On the host draws have
streams of their own and matrices may be drawn when they are first looked up; on a device many draws are made at once
by batched matrix products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod, sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meanfield.common.seeds import Streams
from meanfield.common.validation import Array, require_array
from meanfield.nets.maps import Weight
from meanfield.nets.net import Net, joined_weights, uses
from meanfield.simulation.arrays import NUMPY, Arrays
from meanfield.simulation.kernels.gaussians import ROUNDING_POWER, NormalSource, reveal

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

    @property
    def matrix(self) -> Array:
        """Of dense groups, their elements one below the other."""
        return self._concatenate([group.matrix for group in self._groups], axis=1)  # type: ignore[attr-defined]

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
        for joint in joined_weights(holder.weights):
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


def given_weights(net: Net, weights: Mapping[str, Array], arrays: Arrays = NUMPY) -> Weights:
    """Numbers (D, n', m) by name, those of groups one below the other, as the passes take them."""
    kind = Filled if arrays.on_device else Dense
    return named(net, lambda weight, rows: kind(weights[weight.name][:, rows]), arrays.xp.concatenate)


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
            f"weights has {len(weights)} arrays; this net takes {len(wanted)}, of shapes {net.weight_shapes}"
        )
    layout = "(channels out, channels in, *kernel)"
    pairs = enumerate(zip(weights, wanted.values(), strict=True))
    given = [require_array(f"weights[{index}]", array, weight.shape, layout) for index, (array, weight) in pairs]
    return {name: array.reshape(1, len(array), -1) for name, array in zip(wanted, given, strict=True)}


def draw_dense(weight: Weight, normals: NormalSource) -> Dense:
    """One group of a weight in every draw."""
    return Dense(normals.drawn((weight.group_rows, weight.fan_in), np.sqrt(weight.variance)))


class DrawnInTurn(dict[str, WeightMatrix]):
    """The weights of a net's units by name, one draw per stream, "dense" or "lazy"; what is popped is gone.

    ``right`` and ``left`` are the columns, per sample and site, that each use of a weight multiplies by it from either
    side: a lazily revealed matrix has room for all of them from the start.
    """

    def __init__(self, net: Net, streams: Streams, kind: str, right: int, left: int) -> None:
        super().__init__()
        self._kind = kind
        places = net.places
        self._asked = {name: (uses * right * places, uses * left * places) for name, uses in net.use_counts.items()}
        self._left_to_draw = {name: net.weights[name] for name in self._asked}
        self._normals, self._slabs = NormalSource(streams), Slabs()

    def __missing__(self, name: str) -> WeightMatrix:
        self[name] = drawn = grouped(self._left_to_draw.pop(name), self._group)
        return drawn

    def _group(self, weight: Weight, _: slice) -> WeightMatrix:
        if self._kind == "dense":
            return draw_dense(weight, self._normals)
        return Lazy(weight, self._normals, self._slabs, self._asked[weight.name])


def numbers_revealed(weight: Weight, right: int, left: int) -> int:
    """Normals that a lazily revealed weight draws for so many columns from the right and from the left."""
    return right * weight.shape[0] + left * weight.fan_in * weight.groups


class Filled(Dense):
    """A matrix that holds all its elements; CuPy copies a transposed factor, so that the small one is transposed."""

    def transpose_times(self, columns: Any) -> Any:
        return (columns.swapaxes(1, 2) @ self.matrix).swapaxes(1, 2)


class Revealed:
    """`meanfield.simulation.weights.Lazy` by operations on whole arrays: the same mathematics and numbers.

    All draws take every step together, so that a step that one of them needs is made for all: every new direction is
    projected twice, and a direction that depends on earlier ones is kept as zeros.
    """

    def __init__(self, weight: Weight, normals: Any, arrays: Arrays, draws: int) -> None:
        rows, columns = weight.group_rows, weight.fan_in
        self._deviation, self._normals, self._arrays = sqrt(weight.variance), normals, arrays
        self._right = _SideOnDevice.empty(arrays, draws, columns, rows)
        self._left = _SideOnDevice.empty(arrays, draws, rows, columns)

    def times(self, columns: Any) -> Any:
        answers, self._right = self._ask(self._right, self._left, columns)
        return answers

    def transpose_times(self, columns: Any) -> Any:
        answers, self._left = self._ask(self._left, self._right, columns)
        return answers

    def _ask(self, side: _SideOnDevice, other: _SideOnDevice, columns: Any) -> tuple[Any, _SideOnDevice]:
        queries = self._arrays.xp.ascontiguousarray(columns.swapaxes(1, 2))
        basis, parts, independent = extended(self._arrays, side.basis, queries)
        known, (draws, count, _) = side.basis.shape[1], queries.shape
        image = self._normals.drawn((draws, count, side.images.shape[2]), self._deviation)
        if other.basis.shape[1]:
            fixed = basis[:, known:] @ other.images.swapaxes(1, 2) - image @ other.basis.swapaxes(1, 2)
            image += fixed @ other.basis
        image *= independent
        images = self._arrays.xp.concatenate([side.images, image], axis=1)
        return (parts @ images).swapaxes(1, 2), _SideOnDevice(basis, images)


@dataclass(frozen=True)
class _SideOnDevice:
    """What one side has asked: orthonormal directions (D, known, size) and their images (D, known, image size)."""

    basis: Any
    images: Any

    @classmethod
    def empty(cls, arrays: Arrays, draws: int, size: int, image_size: int) -> _SideOnDevice:
        basis, images = (arrays.xp.zeros((draws, 0, length), dtype=arrays.precision) for length in (size, image_size))
        return cls(basis, images)


def extended(arrays: Arrays, basis: Any, queries: Any) -> tuple[Any, Any, Any]:
    """The basis with the queries' new directions, the queries' parts along all of it, and which directions are new.

    (D, known, size), (D, r, size) -> (D, known + r, size), (D, r, known + r) and (D, r, 1), of zeros and ones. Queries
    meet the known directions in one matrix product, and each other one by one.
    """
    xp, known, (draws, count, _) = arrays.xp, basis.shape[1], queries.shape
    rows = xp.concatenate([basis, queries], axis=1)
    parts = xp.zeros((draws, count, known + count), dtype=arrays.precision)
    rounding = float(np.finfo(arrays.precision).eps) ** ROUNDING_POWER
    lengths = xp.sqrt(arrays.squared_norms(queries)).astype(arrays.precision)
    independent = xp.zeros((draws, count, 1), dtype=arrays.precision)
    _subtract(rows[:, known:], rows[:, :known], parts[:, :, :known])
    for k in range(count):
        own = known + k
        direction, part = rows[:, own : own + 1], parts[:, k : k + 1]
        _subtract(direction, rows[:, known:own], part[:, :, known:own])
        _subtract(direction, rows[:, :own], part[:, :, :own])
        left = xp.sqrt(arrays.squared_norms(direction[:, 0])).astype(arrays.precision)
        new = (left > rounding * lengths[:, k]).astype(arrays.precision)
        independent[:, k, 0] = new
        part[:, 0, own] = left * new
        direction *= (new / (left + (1 - new)))[:, None, None]
    return rows, parts, independent


def _subtract(vectors: Any, rows: Any, parts: Any) -> None:
    """Take from the vectors (D, r, size) their components along orthonormal rows, and add these to their ``parts``."""
    if rows.shape[1]:
        products = vectors @ rows.swapaxes(1, 2)
        vectors -= products @ rows
        parts += products


def draw_device_weights(net: Net, normals: Any, kind: str, arrays: Arrays, draws: int) -> Weights:
    """All weights of a net by name for a group of draws, "dense" or "lazy"."""

    if kind == "lazy":
        return revealed(net, lambda weight: Revealed(weight, normals, arrays, draws), arrays.xp.concatenate)

    def filled(weight: Weight, _: slice) -> WeightMatrix:
        return Filled(normals.drawn((draws, weight.group_rows, weight.fan_in), sqrt(weight.variance)))

    return named(net, filled, arrays.xp.concatenate)


# Large enough that NumPy asks the system for huge pages (a page fault per 2 MiB instead of per 4 KiB: touching new
# memory then takes a third of the time). Just below 32 MiB, the largest block after whose release the C library of
# Linux keeps freed memory, up to twice the block, for the next request (mallopt(3), M_MMAP_THRESHOLD).
BLOCK_BYTES = 30 << 20

# Blocks that wait for the next draw, as touching new memory takes a sixth of a large draw's time; at most so many.
MOST_SPARE = 16
_spare: list[NDArray[np.uint8]] = []
# The C library keeps memory, as above, once a block has been released; so values beside the blocks stay in place, too.
np.empty(BLOCK_BYTES, np.uint8)


class Slabs:
    """Uninitialised arrays from large blocks; a block serves anew when none of its arrays is in use."""

    def __init__(self, precision: str = "float64") -> None:
        self._precision = np.dtype(precision)
        self._rest = np.empty(0, precision)

    def empty(self, shape: tuple[int, ...]) -> Array:
        """An uninitialised array of this shape."""
        numbers = prod(shape)
        if numbers > self._rest.size:
            self._rest = self._block(numbers)
        numbers_given, self._rest = self._rest[:numbers], self._rest[numbers:]
        return numbers_given.reshape(shape)

    def _block(self, numbers: int) -> Array:
        if numbers * self._precision.itemsize > BLOCK_BYTES:
            return np.empty(numbers, self._precision)
        return np.asarray(_Lent()).view(self._precision)


class _Lent:
    """A block that becomes a spare one with the end of the last array that uses it, all of which refer to this."""

    def __init__(self) -> None:
        self._block = _spare.pop() if _spare else np.empty(BLOCK_BYTES, np.uint8)
        self.__array_interface__ = self._block.__array_interface__

    def __del__(self, spare: list[NDArray[np.uint8]] = _spare) -> None:
        if len(spare) < MOST_SPARE:
            spare.append(self._block)


def give_back() -> None:
    """Leave the spare blocks to the system."""
    _spare.clear()
