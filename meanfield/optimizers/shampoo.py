"""Shampoo: the gradient between inverse roots of its own second moments (Zheng et al. 2026, C.9)."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from meanfield.common.arrays import Array
from meanfield.optimizers.base import Gradient, Optimizer, Place
from meanfield.optimizers.linear_algebra.factored import Direction, Factored, add_momentum, rounding, thin_qr


@dataclass(frozen=True)
class Moments:
    """M, and roots of L and R: columns whose products with their transposes are L and R."""

    mean: Direction
    left: Array
    right: Array
    steps: int


@dataclass(frozen=True)
class Shampoo(Optimizer):
    """A = (L_hat + epsilon)^(-1/4) M (R_hat + epsilon)^(-1/4) (eq. 22); U V^T without momentum and epsilon.

    L and R are running means of G G^T and G^T G. M, L and R vanish outside the span of past gradients, so that powers
    taken within it are exact.
    """

    beta1: float = 0.95
    beta2: float = 0.95

    def step(self, state: Moments | None, gradient: Gradient, place: Place) -> tuple[Direction, Moments]:
        before = (state.mean, state.left, state.right, state.steps) if state else (None, None, None, 0)
        left, right = second_moments(before[1], before[2], gradient.slope, self.beta2)
        mean = add_momentum(before[0], self.beta1, gradient.slope, 1 - self.beta1)
        steps = before[3] + 1
        correction = 1 - self.beta2**steps
        roots = [partial(_inverse_root, root, correction, place.epsilon) for root in (left, right)]
        if isinstance(mean, Factored):
            direction: Direction = Factored(roots[0](mean.left), roots[1](mean.right))
        else:
            direction = roots[1](roots[0](mean).T).T
        return direction, Moments(mean, left, right, steps)


def second_moments(left: Array | None, right: Array | None, slope: Direction, beta: float) -> tuple[Array, Array]:
    """Roots of the running means of G G^T and G^T G, their columns orthogonal and of descending length."""
    if isinstance(slope, Factored):
        (_, above), (_, below) = thin_qr(slope.left), thin_qr(slope.right)
        fresh = slope.left @ below.T, slope.right @ above.T
    else:
        fresh = slope, slope.T
    return _running(left, fresh[0], beta), _running(right, fresh[1], beta)


def _running(root: Array | None, fresh: Array, beta: float) -> Array:
    columns = (1 - beta) ** 0.5 * fresh  # a number of Python's own leaves the precision as it is
    if root is not None and beta > 0:
        columns = np.hstack([beta**0.5 * root, columns])
    axes, lengths = _principal_axes(columns)
    return axes[:, lengths > rounding(columns) * lengths[0]]


def _principal_axes(columns: Array) -> tuple[Array, Array]:
    """Orthogonal columns U S of a matrix U S V^T, and their lengths S, the longest first."""
    if columns.dtype == np.float64:
        vectors, lengths, _ = np.linalg.svd(columns, full_matrices=False)
        return vectors * lengths, lengths
    # Squares in double precision keep the lengths that single precision tells from rounding, in a third of the time.
    wide = columns.astype(np.float64)
    is_tall = len(wide) > wide.shape[1]
    squares, vectors = np.linalg.eigh(wide.T @ wide if is_tall else wide @ wide.T)
    lengths = np.sqrt(np.maximum(squares, 0.0))
    axes = wide @ vectors if is_tall else vectors * lengths
    return axes[:, ::-1].astype(columns.dtype), lengths[::-1]


def _inverse_root(root: Array, correction: float, epsilon: float, columns: Array) -> Array:
    """(root root^T / correction + epsilon)^(-1/4) applied to columns in the span of the root."""
    lengths = np.linalg.norm(root, axis=0)
    basis = root / lengths
    powers = (lengths**2 / correction + epsilon) ** -0.25
    return basis @ (powers[:, None] * (basis.T @ columns))
