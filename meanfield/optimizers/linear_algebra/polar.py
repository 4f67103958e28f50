"""The polar factor U V^T of a gradient U S V^T, by singular values and by Newton-Schulz iterations."""

import numpy as np

from meanfield.common.arrays import Array
from meanfield.optimizers.linear_algebra.factored import AT_A_TIME, Direction, Factored, rounding

# Jordan's quintic: it brings singular values in (0.003, 1] to about 0.7 .. 1.2 in five steps, not to 1.
QUINTIC = (3.4445, -4.7750, 2.0315)


def polar_factor(matrix: Direction) -> Factored:
    """U V^T on the support of the matrix, exactly (Zheng et al. 2026, C.4); of a stack, each.

    Matrices of a stack may differ in rank, so that columns of zeros stand where one has singular values of zero. One
    that is not finite gives nan.
    """
    if isinstance(matrix, Factored):
        left, core, right = matrix.core()
        inner = polar_factor(core)
        return Factored(left @ inner.left, right @ inner.right)
    finite = np.isfinite(np.abs(matrix).max(axis=(-2, -1)))[..., None]
    u, values, v = np.linalg.svd(np.where(finite[..., None], matrix, 0.0), full_matrices=False)
    kept = np.where(finite, values > rounding(values) * values[..., :1], np.nan).astype(matrix.dtype)
    return Factored(u * kept[..., None, :], v.swapaxes(-1, -2))


def newton_schulz(matrix: Direction, steps: int) -> Direction:
    """X <- a X + b X X^T X + c (X X^T)^2 X from X = G / |G|_F, the polar factor as Muon computes it; of a stack, each.

    An odd polynomial acts on singular values alone, so that iterating the small core between orthonormal bases is
    iterating the whole matrix.
    """
    if isinstance(matrix, Factored):
        left, core, right = matrix.core()
        return Factored(left @ _iterated(core, steps), right)
    if matrix.shape[-2] > matrix.shape[-1]:
        return _iterated(matrix.swapaxes(-1, -2), steps).swapaxes(-1, -2)
    return _iterated(matrix, steps)


def _iterated(matrix: Array, steps: int) -> Array:
    """The iteration on a matrix or a stack, which is cheapest with no more rows than columns.

    As many matrices at a time as a core's cache holds with what is made of them.
    """
    rows, columns = matrix.shape[-2:]
    stack = matrix.reshape(-1, rows, columns)
    made, together = np.empty_like(stack, order="C"), max(1, AT_A_TIME // (rows * columns))
    for first in range(0, len(stack), together):
        part = slice(first, first + together)
        made[part] = _quintic(stack[part], steps)
    return made.reshape(matrix.shape)


def _quintic(stack: Array, steps: int) -> Array:
    """The iteration on matrices (nets, rows, columns) that the cache holds, in arrays that all steps share."""
    (a, b, c), each, size = QUINTIC, (-2, -1), stack.shape[1]
    smallest = float(np.finfo(stack.dtype).tiny)
    # Squares of the smallest numbers would vanish.
    largest = np.maximum(np.abs(stack).max(axis=each, keepdims=True), smallest)
    x = np.divide(stack, largest, out=np.empty_like(stack, order="C"))
    x /= np.maximum(np.sqrt(np.square(x).sum(axis=each, keepdims=True)), smallest)
    after, square = np.empty_like(x), np.empty_like(x, shape=(len(x), size, size))
    factor = np.empty_like(square)
    diagonal = factor.reshape(len(x), -1)[:, :: size + 1]
    for _ in range(steps):
        np.matmul(x, x.swapaxes(-1, -2), out=square)
        np.matmul(square, square, out=factor)
        factor *= c
        factor += np.multiply(square, b, out=square)
        diagonal += a
        x, after = np.matmul(factor, x, out=after), x
    return x
