"""Sophia: the gradient over the curvature, clipped element by element (P1 C.8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from meanfield.optimizers.base import Gradient, Place, blocks, fresh

Array = NDArray[np.float64]
Means = tuple[Array, Array]


@dataclass(frozen=True)
class Sophia:
    """A = clip(m / max(rho h, epsilon), 1), h the running diagonal of the curvature, taken anew at every step.

    An epsilon of zero means its limit: where there is no curvature, the sign of m.
    """

    beta1: float = 0.965
    beta2: float = 0.99
    rho: float = 0.05
    elementwise: ClassVar[bool] = True
    curved: ClassVar[bool] = True

    def step(self, state: Means | None, gradient: Gradient, place: Place) -> tuple[Array, Means]:
        slope, curvature = gradient.slope, gradient.curvature
        if curvature is None:
            raise ValueError("Sophia divides by the diagonal of the Hessian; give the gradient its curvature")
        direction, mean, running = (np.empty_like(place.weights) for _ in range(3))
        for block in blocks(slope):
            m, h, g = mean[block], running[block], fresh(slope, block)
            np.multiply(g, 1 - self.beta1, out=m)
            np.multiply(curvature[block], 1 - self.beta2, out=h)
            if state:
                m += np.multiply(state[0][block], self.beta1, out=g)
                h += np.multiply(state[1][block], self.beta2, out=g)
            floor = np.maximum(np.multiply(h, self.rho, out=g), place.epsilon, out=g)
            if place.epsilon:
                np.clip(np.divide(m, floor, out=direction[block]), -1, 1, out=direction[block])
                continue
            # The clipped quotient without dividing by nothing: m cut at +- its floor, over the floor.
            cut = np.clip(m, -floor, floor) / (floor + (floor == 0))
            direction[block] = np.where(floor > 0, cut, np.sign(m))
        return direction, (mean, running)
