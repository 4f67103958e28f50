"""SGD: the gradient itself (P1 C.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from meanfield.optimizers.base import Gradient, Place
from meanfield.optimizers.linear_algebra.factored import Direction, add_momentum


@dataclass(frozen=True)
class SGD:
    """M <- beta M + G, A = M; without momentum A = G."""

    momentum: float = 0.9
    elementwise: ClassVar[bool] = True
    curved: ClassVar[bool] = False

    def step(self, state: Direction | None, gradient: Gradient, place: Place) -> tuple[Direction, Direction | None]:
        moved = add_momentum(state, self.momentum, gradient.slope, 1.0)
        return moved, moved if self.momentum else None
