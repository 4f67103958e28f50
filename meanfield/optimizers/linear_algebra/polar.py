"""The polar factor U V^T of a gradient U S V^T, by singular values and by Newton-Schulz iterations."""

import numpy as np

from meanfield.common.arrays import Array
from meanfield.optimizers.linear_algebra.factored import Direction, Factored, singular

# Jordan's quintic: it brings singular values in (0.003, 1] to about 0.7 .. 1.2 in five steps, not to 1.
QUINTIC = (3.4445, -4.7750, 2.0315)


def polar_factor(matrix: Direction) -> Factored:
    """U V^T on the support of the matrix, exactly (Zheng et al. 2026, C.4)."""
    left, _, right = singular(matrix)
    return Factored(left, right)


def newton_schulz(matrix: Direction, steps: int) -> Direction:
    """X <- a X + b X X^T X + c (X X^T)^2 X from X = G / |G|_F, the polar factor as Muon computes it.

    An odd polynomial acts on singular values alone, so that iterating the small core between orthonormal bases is
    iterating the whole matrix.
    """
    if isinstance(matrix, Factored):
        left, core, right = matrix.core()
        return Factored(left @ _iterated(core, steps), right)
    if matrix.shape[0] > matrix.shape[1]:
        return _iterated(matrix.T, steps).T
    return _iterated(matrix, steps)


def _iterated(x: Array, steps: int) -> Array:
    """The iteration on a matrix, which is cheapest with no more rows than columns."""
    a, b, c = QUINTIC
    smallest = float(np.finfo(x.dtype).tiny)
    x = x / max(float(np.abs(x).max(initial=0.0)), smallest)  # squares of the smallest numbers would vanish
    x = x / max(float(np.linalg.norm(x)), smallest)
    for _ in range(steps):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x
