"""Gaussian matrices of many draws at once on a device: filled, or lazily revealed by batched matrix products."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from meanfield.nets.maps import Weight
from meanfield.nets.net import Net
from meanfield.simulation.arrays.arrays import Arrays
from meanfield.simulation.kernels.reveal import ROUNDING_POWER
from meanfield.simulation.weights.matrices import Dense, WeightMatrix, Weights, named, revealed


class Filled(Dense):
    """A matrix that holds all its elements; CuPy copies a transposed factor, so that the small one is transposed."""

    def transpose_times(self, columns: Any) -> Any:
        return (columns.swapaxes(1, 2) @ self.matrix).swapaxes(1, 2)


class Revealed:
    """`meanfield.simulation.weights.matrices.Lazy` by operations on whole arrays: the same mathematics and numbers.

    All draws take every step together, so that a step that one of them needs is made for all: every new direction is
    projected twice, and a direction that depends on earlier ones is kept as zeros.
    """

    def __init__(self, weight: Weight, normals: Any, arrays: Arrays, draws: int) -> None:
        rows, columns = weight.group_rows, weight.fan_in
        self._deviation, self._normals, self._arrays = sqrt(weight.variance), normals, arrays
        self._right = _Side.empty(arrays, draws, columns, rows)
        self._left = _Side.empty(arrays, draws, rows, columns)

    def times(self, columns: Any) -> Any:
        answers, self._right = self._ask(self._right, self._left, columns)
        return answers

    def transpose_times(self, columns: Any) -> Any:
        answers, self._left = self._ask(self._left, self._right, columns)
        return answers

    def _ask(self, side: _Side, other: _Side, columns: Any) -> tuple[Any, _Side]:
        queries = self._arrays.xp.ascontiguousarray(columns.swapaxes(1, 2))
        basis, parts, independent = extended(self._arrays, side.basis, queries)
        known, (draws, count, _) = side.basis.shape[1], queries.shape
        image = self._normals.drawn((draws, count, side.images.shape[2]), self._deviation)
        if other.basis.shape[1]:
            fixed = basis[:, known:] @ other.images.swapaxes(1, 2) - image @ other.basis.swapaxes(1, 2)
            image += fixed @ other.basis
        image *= independent
        images = self._arrays.xp.concatenate([side.images, image], axis=1)
        return (parts @ images).swapaxes(1, 2), _Side(basis, images)


@dataclass(frozen=True)
class _Side:
    """What one side has asked: orthonormal directions (D, known, size) and their images (D, known, image size)."""

    basis: Any
    images: Any

    @classmethod
    def empty(cls, arrays: Arrays, draws: int, size: int, image_size: int) -> _Side:
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
