"""Gaussian weight matrices behind one interface: filled in advance, or revealed only where they are looked at.

All that the passes need of a matrix is its product with a few columns from either side.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from meanfield.architectures import Sequential
from meanfield.simulation.kernels.normals import fill_normal
from meanfield.simulation.kernels.reveal import reveal

Array = NDArray[np.float64]

KINDS = ("dense", "lazy")


class WeightMatrix(Protocol):
    """A draw of W, (D, n', m), for D networks at once."""

    def times(self, columns: Array) -> Array:
        """W columns: (D, m, r) -> (D, n', r)."""

    def transpose_times(self, columns: Array) -> Array:
        """W^T columns: (D, n', r) -> (D, m, r)."""


class Dense:
    """A matrix whose every element is at hand."""

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix

    def times(self, columns: Array) -> Array:
        return self.matrix @ columns

    def transpose_times(self, columns: Array) -> Array:
        return self.matrix.swapaxes(1, 2) @ columns


class Lazy:
    """A matrix with i.i.d. N(0, s) elements, revealed query by query; exact in law for any adaptive sequence.

    Kept are orthonormal bases of the columns seen from the right, with A = W Q_R, and from the left, with
    B = W^T Q_L. A new direction q, orthogonal to Q_R, has W q = Q_L B^T q + (I - Q_L Q_L^T) sqrt(s) xi with xi fresh:
    its part along Q_L is already known, the rest is independent of everything seen (THEORY section 7). A query costs
    O(n r) instead of O(n^2), in numbers drawn, in arithmetic and in memory.
    """

    def __init__(self, rows: int, columns: int, variance: float, normals: NormalSource) -> None:
        self._deviation = np.sqrt(variance)
        self._normals = normals
        self._right = _Side.empty(normals.draws, columns, rows)
        self._left = _Side.empty(normals.draws, rows, columns)

    def times(self, columns: Array) -> Array:
        answers, self._right = self._ask(self._right, self._left, columns)
        return answers

    def transpose_times(self, columns: Array) -> Array:
        answers, self._left = self._ask(self._left, self._right, columns)
        return answers

    def _ask(self, side: _Side, other: _Side, columns: Array) -> tuple[Array, _Side]:
        count = columns.shape[2]
        normals = self._normals.take((count, side.images.shape[2]))
        new = side.extended(count)
        known, seen = side.known, (other.basis, other.images)
        return reveal(columns, new.basis, new.images, known, *seen, normals, self._deviation), new


@dataclass(frozen=True)
class _Side:
    """What one side has asked: orthonormal directions (D, known, size) and their images (D, known, image size)."""

    basis: Array
    images: Array

    @classmethod
    def empty(cls, draws: int, size: int, image_size: int) -> _Side:
        return cls(np.empty((draws, 0, size)), np.empty((draws, 0, image_size)))

    @property
    def known(self) -> int:
        return self.basis.shape[1]

    def extended(self, count: int) -> _Side:
        """With room for ``count`` more directions."""
        return _Side(*(_with_rows(array, count) for array in (self.basis, self.images)))


def _with_rows(array: Array, count: int) -> Array:
    draws, known, size = array.shape
    longer = np.empty((draws, known + count, size))
    longer[:, :known] = array
    return longer


class NormalSource:
    """Standard normals of several draws at once, each draw from its own generator, through one buffer filled in blocks.

    What a draw gets does not depend on the block, nor on the draws beside it.
    """

    BLOCK = 1 << 15

    def __init__(self, generators: list[Generator]) -> None:
        self.draws = len(generators)
        self._generators = generators
        self._stock = np.empty((self.draws, self.BLOCK))
        self._used = self.BLOCK

    def take(self, shape: tuple[int, ...]) -> Array:
        """The next numbers of every draw: (D, *shape)."""
        taken = np.empty((self.draws, prod(shape)))
        done = 0
        while done < taken.shape[1]:
            if self._used == self.BLOCK:
                self._refill()
            part = min(taken.shape[1] - done, self.BLOCK - self._used)
            taken[:, done : done + part] = self._stock[:, self._used : self._used + part]
            done, self._used = done + part, self._used + part
        return taken.reshape(-1, *shape)

    def _refill(self) -> None:
        for generator, row in zip(self._generators, self._stock, strict=True):
            fill_normal(generator, row, 1.0)
        self._used = 0


def draw_weights(architecture: Sequential, generators: list[Generator], kind: str) -> list[WeightMatrix]:
    """W^(1) .. W^(L) and the readout, one draw per generator: i.i.d. N(0, s) by layer, "dense" or "lazy"."""
    sizes = [(shape[0], prod(shape[1:])) for shape in architecture.weight_shapes]
    layers = zip(sizes, architecture.weight_variances, strict=True)
    if kind == "lazy":
        normals = NormalSource(generators)
        return [Lazy(rows, columns, variance, normals) for (rows, columns), variance in layers]
    return [_draw_dense(rows, columns, variance, generators) for (rows, columns), variance in layers]


def _draw_dense(rows: int, columns: int, variance: float, generators: list[Generator]) -> Dense:
    matrix = np.empty((len(generators), rows, columns))
    for generator, one in zip(generators, matrix, strict=True):
        fill_normal(generator, one.reshape(-1), np.sqrt(variance))
    return Dense(matrix)
