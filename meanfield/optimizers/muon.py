"""Muon: the polar factor of the momentum (Zheng et al. 2026, C.4)."""

from dataclasses import dataclass

from meanfield.optimizers.base import Gradient, Optimizer, Place
from meanfield.optimizers.linear_algebra.factored import Direction, add_momentum, scaled
from meanfield.optimizers.linear_algebra.polar import newton_schulz, polar_factor

# The root mean square of an element of AdamW's updates, as Muon-Kimi takes it.
ELEMENT_SIZE = 0.2


@dataclass(frozen=True)
class Muon(Optimizer):
    """M <- beta M + G, A = U V^T of G + beta M (Nesterov); U V^T of G without momentum (eq. 16).

    ``newton_schulz_steps`` is how Muon computes U V^T in practice; None takes singular values, as the paper defines it.
    """

    momentum: float = 0.95
    newton_schulz_steps: int | None = 5

    @property
    def takes_stacks(self) -> bool:
        return True

    def step(self, state: Direction | None, gradient: Gradient, place: Place) -> tuple[Direction, Direction]:
        moved = add_momentum(state, self.momentum, gradient.slope, 1.0)
        looked_at = add_momentum(moved, self.momentum, gradient.slope, 1.0)
        if self.newton_schulz_steps is None:
            return polar_factor(looked_at), moved
        return newton_schulz(looked_at, self.newton_schulz_steps), moved


@dataclass(frozen=True)
class MuonKimi(Muon):
    """Muon's direction at the size of AdamW's: A = 0.2 sqrt(max(n_in, n_out)) times Muon's (section 4.2)."""

    def step(self, state: Direction | None, gradient: Gradient, place: Place) -> tuple[Direction, Direction]:
        direction, moved = super().step(state, gradient, place)
        return scaled(direction, ELEMENT_SIZE * float(max(direction.shape[-2:])) ** 0.5), moved
