"""Lion: the sign of an interpolated gradient (P1 C.7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from meanfield.optimizers.base import Gradient, Place, blocks

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Lion:
    """A = sign(beta1 M + (1 - beta1) G), then M <- beta2 M + (1 - beta2) G; sign(G) without momentum."""

    beta1: float = 0.9
    beta2: float = 0.99
    elementwise: ClassVar[bool] = True
    curved: ClassVar[bool] = False

    def step(self, state: Array | None, gradient: Gradient, place: Place) -> tuple[Array, Array]:
        slope = gradient.slope
        direction, mean = np.empty_like(place.weights), np.empty_like(place.weights)
        for block in blocks(slope):
            g = slope[block]
            looked_at, m = (1 - self.beta1) * g, np.multiply(g, 1 - self.beta2, out=mean[block])
            if state is not None:
                looked_at += self.beta1 * state[block]
                m += self.beta2 * state[block]
            np.sign(looked_at, out=direction[block])
        return direction, mean
