"""Muon-Kimi: Muon's direction at the size of AdamW's (P1 section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from meanfield.optimizers.base import Gradient, Place
from meanfield.optimizers.linear_algebra.factored import Direction, scaled
from meanfield.optimizers.muon import Muon

# The root mean square of an element of AdamW's updates, as Muon-Kimi takes it.
ELEMENT_SIZE = 0.2


@dataclass(frozen=True)
class MuonKimi:
    """A = 0.2 sqrt(max(n_in, n_out)) times Muon's."""

    momentum: float = 0.95
    newton_schulz_steps: int | None = 5
    elementwise: ClassVar[bool] = False
    curved: ClassVar[bool] = False

    def step(self, state: Direction | None, gradient: Gradient, place: Place) -> tuple[Direction, Direction]:
        direction, moved = Muon(self.momentum, self.newton_schulz_steps).step(state, gradient, place)
        return scaled(direction, ELEMENT_SIZE * float(max(direction.shape)) ** 0.5), moved
