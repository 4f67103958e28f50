"""Sophia: the gradient over the curvature, clipped element by element (P1 C.8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meanfield.optimizers.base import Gradient, Place, row_slices
from meanfield.optimizers.factored import Factored, add_momentum

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sophia:
    """A = clip(m / max(rho h, epsilon), 1), h the running diagonal of the Hessian, taken anew at every step.

    An epsilon of zero means its limit: where there is no curvature, the sign of m.
    """

    beta1: float = 0.965
    beta2: float = 0.99
    rho: float = 0.05

    def step(
        self, state: tuple[Factored, Factored] | None, gradient: Gradient, place: Place
    ) -> tuple[Array, tuple[Factored, Factored]]:
        if gradient.curvature is None:
            raise ValueError("Sophia divides by the diagonal of the Hessian; give the gradient its curvature")
        before = state or (None, None)
        mean = add_momentum(before[0], self.beta1, gradient.slope, 1 - self.beta1)
        curvature = add_momentum(before[1], self.beta2, gradient.curvature, 1 - self.beta2)
        direction = np.empty(mean.shape)
        for rows in row_slices(mean.shape):
            numerator = mean.left[rows] @ mean.right.T
            floor = self.rho * (curvature.left[rows] @ curvature.right.T)
            np.maximum(floor, place.epsilon, out=floor)
            # The clipped quotient without dividing: the numerator cut at +- its floor, over the floor.
            direction[rows] = np.sign(numerator)
            np.divide(np.clip(numerator, -floor, floor, out=numerator), floor, out=direction[rows], where=floor > 0)
        return direction, (mean, curvature)
