"""Matrices of low rank by their factors: what gradients of a few samples are, and what many updates are made of.

A gradient of B samples is left @ right.T with B columns on each side, and so are momenta and preconditioners built
from it: t steps have rank t B at most. By factors an n x n update costs n (t B)^2 instead of n^3, and is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Singular values below this share of the largest are what rounding leaves of zeros.
ROUNDING = 1e-10


@dataclass(frozen=True)
class Factored:
    """The matrix left @ right.T, (n_out, n_in), by its factors (n_out, r) and (n_in, r)."""

    left: Array
    right: Array

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.left), len(self.right)

    def dense(self) -> Array:
        return self.left @ self.right.T

    def times(self, scale: float) -> Factored:
        return Factored(scale * self.left, self.right)

    def plus(self, other: Factored) -> Factored:
        """The sum, of rank at most both ranks together."""
        return Factored(np.hstack([self.left, other.left]), np.hstack([self.right, other.right]))

    def core(self) -> tuple[Array, Array, Array]:
        """Orthonormal columns on the left, a small matrix, orthonormal columns on the right."""
        (left, above), (right, below) = np.linalg.qr(self.left), np.linalg.qr(self.right)
        return left, above @ below.T, right

    def singular(self) -> tuple[Array, Array, Array]:
        """Compact singular value decomposition (U, s, V) with columns of U and V, s descending and not zero."""
        left, middle, right = self.core()
        u, s, v = np.linalg.svd(middle)
        rank = int(np.count_nonzero(s > ROUNDING * s[0])) if s.size else 0
        return left @ u[:, :rank], s[:rank], right @ v[:rank].T

    def spectral_norm(self) -> float:
        """Largest singular value, to rounding."""
        return float(np.linalg.norm(self.core()[1], 2))


def add_momentum(momentum: Factored | None, decay: float, gradient: Factored, share: float) -> Factored:
    """decay momentum + share gradient; what a decay of zero forgets leaves no columns behind."""
    new = gradient.times(share)
    return new if momentum is None or decay == 0 else momentum.times(decay).plus(new)
