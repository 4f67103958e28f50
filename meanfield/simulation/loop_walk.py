"""Walking a loop step by step: h_{l+1} = h_l + eps W phi(h_l), for many draws at once.

Streams may grow beyond the range of floats (H ~ 2^L and more where alpha = 0). They are carried as h = 2^k g with k of
a draw's own, raised between two steps when g has grown; multiplication by powers of two is exact, so nothing else
changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from meanfield.nets.tied_loop import TiedLoop
from meanfield.simulation.slabs import Slabs
from meanfield.simulation.weights import Lazy, NormalSource, WeightMatrix, draw_dense

Array = NDArray[np.float64]
Exponents = NDArray[np.int64]

# Elements of g are brought back to about 1 when the largest exceeds 2^100: squares and sums stay far inside floats.
LARGEST_EXPONENT = 100


@dataclass(frozen=True)
class Step:
    """One step of D draws: arrays (D, N) in units of 2^exponent, with one exponent per draw.

    Attributes:
        before: h_{s-1}.
        features: phi(h_{s-1}).
        increment: r = W phi(h_{s-1}).
        total: the sum of the increments of all steps so far.
        stream: h_s.
        exponent: k.
    """

    before: Array
    features: Array
    increment: Array
    total: Array
    stream: Array
    exponent: Exponents


def draw_start(loop: TiedLoop, generators: list[Generator], inputs: Array | None) -> Array:
    """h_0 of every draw, (D, N): N(0, I), or the given vector."""
    if inputs is not None:
        return np.tile(inputs, (len(generators), 1))
    return np.stack([generator.standard_normal(loop.width) for generator in generators])


def step_matrices(
    loop: TiedLoop, generators: list[Generator], kind: str, right: int, left: int
) -> Iterator[WeightMatrix]:
    """The matrix of every step in turn: the same one throughout, or each step's own.

    ``right`` and ``left`` are the vectors that every step will multiply by its matrix from either side.
    """
    size, variance, uses = loop.width, loop.element_variance, loop.depth if loop.tied else 1
    normals, slabs = NormalSource(generators, loop.depth * (right + left) * size), Slabs()

    def drawn() -> WeightMatrix:
        if kind == "dense":
            return draw_dense(size, size, variance, generators)
        return Lazy(size, size, variance, normals, slabs, room=(uses * right, uses * left))

    shared = drawn() if loop.tied else None
    for _ in range(loop.depth):
        yield shared or drawn()


def walk(loop: TiedLoop, matrices: Iterable[WeightMatrix], start: Array) -> Iterator[Step]:
    """Steps 1 .. L from h_0 = ``start``."""
    stream, total, exponent = start, np.zeros_like(start), np.zeros(len(start), dtype=np.int64)
    for matrix in matrices:
        shift = _excess(stream)
        stream, total, exponent = _scaled(stream, -shift), _scaled(total, -shift), exponent + shift
        features = loop.sigma.function(stream)
        if not loop.sigma.homogeneous:
            features = _scaled(loop.sigma.function(_scaled(stream, exponent)), -exponent)
        increment = times(matrix, features)
        total = total + increment
        before, stream = stream, stream + loop.step_size * increment
        yield Step(before, features, increment, total, stream, exponent)


def times(matrix: WeightMatrix, vectors: Array) -> Array:
    """W v for one vector per draw, (D, N)."""
    return matrix.times(vectors[:, :, None])[:, :, 0]


def transpose_times(matrix: WeightMatrix, vectors: Array) -> Array:
    """W^T u for one vector per draw, (D, N)."""
    return matrix.transpose_times(vectors[:, :, None])[:, :, 0]


def _excess(stream: Array) -> Exponents:
    """By how many powers of two each draw's stream is to be made smaller: usually by none."""
    _, exponent = np.frexp(np.abs(stream).max(axis=1))
    return np.where(exponent > LARGEST_EXPONENT, exponent, 0).astype(np.int64)


def _scaled(vectors: Array, exponent: Exponents) -> Array:
    """2^exponent times the vectors, each draw with its own."""
    return np.ldexp(vectors, exponent[:, None]) if exponent.any() else vectors
