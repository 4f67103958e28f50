"""Matrices of low rank by their factors: what gradients of a few samples are, and what many updates are made of.

A gradient of B samples is left @ right.T with B columns on each side, and so are momenta and preconditioners built
from it: after t steps their rank is t B at most. With factors an n x n update costs n (t B)^2 instead of n^3, and is
exact. Once factors have as many numbers as the matrix, they are multiplied out for good.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg import get_lapack_funcs

from meanfield.common.arrays import Array

# Numbers that work in a cache takes at a time, few enough for its intermediate results to stay there. For elements of
# matrices of 1024 x 1024, fresh memory would cost more than the arithmetic.
AT_A_TIME = 1 << 15

# Columns that LAPACK's factorisations take together, for which they want room.
BLOCK = 32


def rounding(values: Array) -> float:
    """At this precision, singular values below this share of the largest are zeros up to rounding."""
    return 1e-10 if values.dtype == np.float64 else 1e-5


@dataclass(frozen=True)
class Factored:
    """The matrix left @ right.T, (n_out, n_in), by its factors (n_out, r) and (n_in, r); or a stack of such matrices,
    with one more axis in front.
    """

    left: Array
    right: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return *self.left.shape[:-1], self.right.shape[-2]

    @property
    def rank(self) -> int:
        """r, which the rank of the matrix is at most."""
        return self.left.shape[-1]

    def __getitem__(self, block: Any) -> Array:
        """A block of the matrices, multiplied out: (which of a stack, which rows), or (which rows,)."""
        *nets, rows = block
        return self.left[(*nets, rows)] @ self.right[tuple(nets)].swapaxes(-1, -2)

    def of_net(self, net: int) -> Factored:
        """One matrix of a stack."""
        return Factored(self.left[net], self.right[net])

    def dense(self) -> Array:
        return self.left @ self.right.swapaxes(-1, -2)

    def times(self, scale: float) -> Factored:
        return Factored(scale * self.left, self.right)

    def plus(self, other: Factored) -> Factored:
        """The sum, of rank at most both ranks together."""
        return Factored(
            np.concatenate([self.left, other.left], axis=-1), np.concatenate([self.right, other.right], axis=-1)
        )

    def core(self) -> tuple[Array, Array, Array]:
        """Orthonormal columns on the left, a small matrix, orthonormal columns on the right."""
        (left, above), (right, below) = thin_qr(self.left), thin_qr(self.right)
        return left, above @ below.swapaxes(-1, -2), right

    def spectral_norm(self) -> float:
        """Largest singular value, to rounding."""
        return float(np.linalg.norm(self.core()[1], 2))


Direction = Array | Factored


def is_worth_factors(shape: tuple[int, ...], rank: int) -> bool:
    """Whether factors of that many columns are fewer numbers than the matrix (n_out, n_in)."""
    outputs, inputs = shape[-2:]
    return rank * (outputs + inputs) < outputs * inputs


def scaled(direction: Direction, factor: float) -> Direction:
    """factor times a matrix, in the same form."""
    return direction.times(factor) if isinstance(direction, Factored) else factor * direction


def dense(direction: Direction) -> Array:
    return direction.dense() if isinstance(direction, Factored) else direction


def singular(matrix: Direction) -> tuple[Array, Array, Array]:
    """Compact singular value decomposition (U, s, V) with columns of U and V, s descending and not zero."""
    if isinstance(matrix, Factored):
        left, middle, right = matrix.core()
        u, s, v = np.linalg.svd(middle)
        kept = slice(_rank(s))
        return left @ u[:, kept], s[kept], right @ v[kept].T
    u, s, v = np.linalg.svd(matrix, full_matrices=False)
    kept = slice(_rank(s))
    return u[:, kept], s[kept], v[kept].T


def _rank(values: Array) -> int:
    return int(np.count_nonzero(values > rounding(values) * values[0])) if values.size else 0


def thin_qr(columns: Array) -> tuple[Array, Array]:
    """Orthonormal columns Q and the upper triangle R of a matrix Q R, or of every one of a stack.

    Of one matrix by LAPACK directly: for few columns NumPy's overhead takes longer than the work.
    """
    if columns.ndim > 2 or not isinstance(columns, np.ndarray):
        basis, triangle = np.linalg.qr(columns)
        return basis, triangle
    factorise, form = _routines(columns.dtype.char)
    rank = min(columns.shape)
    packed, scales, _, _ = factorise(columns, lwork=BLOCK * max(1, columns.shape[1]))
    basis, _, _ = form(packed[:, :rank], scales, lwork=BLOCK * max(1, rank))
    return basis, packed[:rank] * _upper(rank, columns.shape[1], columns.dtype.char)


@lru_cache
def _routines(kind: str) -> tuple[Any, Any]:
    return tuple(get_lapack_funcs(("geqrf", "orgqr"), dtype=kind))


@lru_cache
def _upper(rows: int, columns: int, kind: str) -> Array:
    return np.triu(np.ones((rows, columns), kind))


def add_momentum(momentum: Direction | None, decay: float, gradient: Direction, share: float) -> Direction:
    """decay momentum + share gradient, as factors while these are worth it; a decay of zero forgets the momentum."""
    new = scaled(gradient, share)
    if momentum is None or decay == 0:
        return new
    kept = scaled(momentum, decay)
    if isinstance(kept, Factored) and isinstance(new, Factored) and is_worth_factors(new.shape, kept.rank + new.rank):
        return kept.plus(new)
    return dense(kept) + dense(new)
