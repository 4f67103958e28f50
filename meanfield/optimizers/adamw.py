"""AdamW: the gradient's running mean over its running size (P1 C.6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from meanfield.optimizers.base import Gradient, Place, blocks, fresh

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
    elementwise: ClassVar[bool] = True
    curved: ClassVar[bool] = False

    def step(self, state: Moments | None, gradient: Gradient, place: Place) -> tuple[Array, Moments]:
        slope = gradient.slope
        steps = 1 + (state.steps if state else 0)
        bias = 1 - self.beta1**steps, 1 - self.beta2**steps
        first, second, direction = (np.empty_like(place.weights) for _ in range(3))
        for block in blocks(slope):
            m, v, g = first[block], second[block], fresh(slope, block)
            np.multiply(g, 1 - self.beta1, out=m)
            np.multiply(np.square(g, out=g), 1 - self.beta2, out=v)
            if state:
                m += np.multiply(state.first[block], self.beta1, out=g)
                v += np.multiply(state.second[block], self.beta2, out=g)
            size = np.sqrt(np.divide(v, bias[1], out=g), out=g)
            size += place.epsilon or size == 0  # where that is 0, so is m
            quotient = np.divide(m, size, out=direction[block])
            quotient /= bias[0]
        return direction, Moments(first, second, steps)
