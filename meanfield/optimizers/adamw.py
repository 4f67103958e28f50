"""AdamW: the gradient's running mean over its running size (P1 C.6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meanfield.optimizers.base import Gradient, Place

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
        slope = gradient.slope.dense()
        first, second, steps = (1 - self.beta1) * slope, (1 - self.beta2) * slope**2, 1
        if state is not None:
            first += self.beta1 * state.first
            second += self.beta2 * state.second
            steps += state.steps
        size = np.sqrt(second / (1 - self.beta2**steps))
        size += place.epsilon
        direction = np.divide(first, size, out=np.zeros_like(first), where=size > 0)
        direction /= 1 - self.beta1**steps
        return direction, Moments(first, second, steps)
