"""SGD: the gradient itself (P1 C.5)."""

from __future__ import annotations

from dataclasses import dataclass

from meanfield.optimizers.base import Gradient, Place
from meanfield.optimizers.factored import Factored, add_momentum


@dataclass(frozen=True)
class SGD:
    """M <- beta M + G, A = M; without momentum A = G."""

    momentum: float = 0.9

    def step(self, state: Factored | None, gradient: Gradient, place: Place) -> tuple[Factored, Factored]:
        moved = add_momentum(state, self.momentum, gradient.slope, 1.0)
        return moved, moved
