"""AdamW: the gradient's running mean over its running size (P1 C.6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meanfield.optimizers.base import Gradient, Place, row_slices

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """Running means of the gradient and of its square, and the number of steps in them."""

    first: Array
    second: Array
    steps: int


@dataclass(frozen=True)
class AdamW:
    """A = m_hat / (sqrt(v_hat) + epsilon) (P1 eq. 19); sign(G) without momentum and epsilon (eq. 20).

    P1 prints epsilon under the root; its table scales epsilon as sqrt(v_hat), which is right beside the root only.
    """

    beta1: float = 0.9
    beta2: float = 0.95

    def step(self, state: Moments | None, gradient: Gradient, place: Place) -> tuple[Array, Moments]:
        slope, before = gradient.slope, state or Moments(np.zeros(0), np.zeros(0), 0)
        steps = before.steps + 1
        bias = 1 - self.beta1**steps, 1 - self.beta2**steps
        first, second, direction = (np.empty(slope.shape) for _ in range(3))
        for rows in row_slices(slope.shape):
            m, v, g = first[rows], second[rows], slope.left[rows] @ slope.right.T
            np.multiply(g, 1 - self.beta1, out=m)
            np.multiply(np.square(g, out=g), 1 - self.beta2, out=v)
            if before.steps:
                m += self.beta1 * before.first[rows]
                v += self.beta2 * before.second[rows]
            size = np.sqrt(np.divide(v, bias[1], out=g), out=g)
            size += place.epsilon
            direction[rows] = 0.0
            np.divide(m, size, out=direction[rows], where=size > 0)
            direction[rows] /= bias[0]
        return direction, Moments(first, second, steps)
