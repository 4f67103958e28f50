"""Lion: the sign of an interpolated gradient (P1 C.7)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meanfield.optimizers.base import Gradient, Place, row_slices
from meanfield.optimizers.factored import Factored, add_momentum

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Lion:
    """A = sign(beta1 M + (1 - beta1) G), then M <- beta2 M + (1 - beta2) G; sign(G) without momentum."""

    beta1: float = 0.9
    beta2: float = 0.99

    def step(self, state: Factored | None, gradient: Gradient, place: Place) -> tuple[Array, Factored]:
        looked_at = add_momentum(state, self.beta1, gradient.slope, 1 - self.beta1)
        direction = np.empty(looked_at.shape)
        for rows in row_slices(looked_at.shape):
            np.sign(looked_at.left[rows] @ looked_at.right.T, out=direction[rows])
        return direction, add_momentum(state, self.beta2, gradient.slope, 1 - self.beta2)
