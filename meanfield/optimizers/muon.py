"""Muon: the polar factor of the momentum (P1 C.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from meanfield.optimizers.base import Gradient, Place
from meanfield.optimizers.linear_algebra.factored import Direction, add_momentum
from meanfield.optimizers.linear_algebra.polar import newton_schulz, polar_factor


@dataclass(frozen=True)
class Muon:
    """M <- beta M + G, A = U V^T of G + beta M (Nesterov); U V^T of G without momentum (P1 eq. 16).

    ``newton_schulz_steps`` is how Muon computes U V^T in practice; None takes singular values, as P1 defines it.
    """

    momentum: float = 0.95
    newton_schulz_steps: int | None = 5
    elementwise: ClassVar[bool] = False
    curved: ClassVar[bool] = False

    def step(self, state: Direction | None, gradient: Gradient, place: Place) -> tuple[Direction, Direction]:
        moved = add_momentum(state, self.momentum, gradient.slope, 1.0)
        looked_at = add_momentum(moved, self.momentum, gradient.slope, 1.0)
        if self.newton_schulz_steps is None:
            return polar_factor(looked_at), moved
        return newton_schulz(looked_at, self.newton_schulz_steps), moved
