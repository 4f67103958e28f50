"""The polar factor U V^T of a gradient U S V^T, by singular values and by Newton-Schulz iterations."""

from __future__ import annotations

import numpy as np

from meanfield.optimizers.factored import Factored

# Jordan's quintic: it brings singular values in (0.003, 1] to about 0.7 .. 1.2 in five steps, not to 1.
QUINTIC = (3.4445, -4.7750, 2.0315)
SMALLEST = 1e-300


def polar_factor(matrix: Factored) -> Factored:
    """U V^T on the support of the matrix, exactly (P1 C.4)."""
    left, _, right = matrix.singular()
    return Factored(left, right)


def newton_schulz(matrix: Factored, steps: int) -> Factored:
    """X <- a X + b X X^T X + c (X X^T)^2 X from X = G / |G|_F, the polar factor as Muon computes it.

    An odd polynomial acts on singular values alone, so that iterating the small core between orthonormal bases is
    iterating the whole matrix.
    """
    left, x, right = matrix.core()
    a, b, c = QUINTIC
    x = x / max(float(np.abs(x).max(initial=0.0)), SMALLEST)  # squares of the smallest numbers would vanish
    x = x / max(float(np.linalg.norm(x)), SMALLEST)
    for _ in range(steps):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return Factored(left @ x, right)
