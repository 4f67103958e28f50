"""What loops are to the library: one residual layer on a stream, over and over (P2 eq. 1).

h_{l+1} = h_l + eps W phi(h_l),   eps = L^(-alpha),   W_ij ~ N(0, sigma_W^2 / N)
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from meanfield.nets.activations import Activation, activation_named
from meanfield.nets.maps import Linear, Pointwise, Weight
from meanfield.nets.net import Net
from meanfield.nets.units import Unit


class Loop(Net):
    """L steps of width N, with the same weights at every step or with weights of their own, as numbers from a spec."""

    depth: int
    width: int
    alpha: float | str
    weight_variance: float
    activation: str
    tied: bool

    # One vector on one site, and the stream itself as the output. Fixed for the family, not fields.
    inputs: ClassVar[int] = 1  # type: ignore[misc]
    grid: ClassVar[tuple[int, ...]] = ()  # type: ignore[misc]
    readout_unit: ClassVar[None] = None  # type: ignore[misc]

    @property
    def sigma(self) -> Activation:
        """phi."""
        return activation_named(self.activation)

    @property
    def step_size(self) -> float:
        """eps = L^(-alpha)."""
        return float(self.depth ** -float(self.alpha))

    @property
    def element_variance(self) -> float:
        """Variance of one element of W: sigma_W^2 / N."""
        return self.weight_variance / self.width

    @property
    def first_channels(self) -> int:  # type: ignore[override]
        return self.width

    @cached_property
    def units(self) -> tuple[Unit, ...]:  # type: ignore[override]
        """h + eps W phi(h), step by step; tied steps share the weight W, others have W1 .. WL."""
        names = ["W"] if self.tied else [f"W{step}" for step in range(1, self.depth + 1)]
        shape, phi = (self.width, self.width), Pointwise(self.activation)
        branches = [(phi, Linear((Weight(name, shape, self.element_variance),))) for name in names]
        return tuple(Unit(branches[step % len(branches)], step, self.step_size) for step in range(self.depth))
