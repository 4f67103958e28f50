"""Lion: the sign of an interpolated gradient (P1 C.7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from meanfield.optimizers.base import Gradient, Place, blocks, fresh

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
            g, m, seen = fresh(slope, block), mean[block], direction[block]
            np.multiply(g, 1 - self.beta2, out=m)
            np.multiply(g, 1 - self.beta1, out=seen)
            if state is not None:
                seen += np.multiply(state[block], self.beta1, out=g)
                m += np.multiply(state[block], self.beta2, out=g)
            np.sign(seen, out=seen)
        return direction, mean
