"""Tied loops: one weight matrix, applied again and again to a residual stream (Wang et al. 2026, eq. 1).

h_{l+1} = h_l + eps W phi(h_l),   eps = L^(-alpha),   W_ij ~ N(0, sigma_W^2 / N),   h_0 ~ N(0, I)

alpha is that of the numbers that other residual nets take for `scaling` (`meanfield.nets.scalings`): a loop has L
branches, and eps is the factor on each.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from meanfield.common.validation import require_choice, require_finite, require_flag, require_positive, settle
from meanfield.nets.activations import ACTIVATIONS, Activation, activation_named
from meanfield.nets.maps import Linear, Pointwise, Weight
from meanfield.nets.net import Net, Unit
from meanfield.nets.scalings import require_factor

# Names of residual scalings, by their exponent alpha.
NAMED_SCALINGS = {"none": 0.0, "sqrt": 0.5, "linear": 1.0}


@dataclass(frozen=True, kw_only=True)
class Loop(Net):
    """L steps of width N, with the same weights at every step or with weights of their own."""

    depth: int
    width: int
    alpha: float | str = 1.0
    weight_variance: float = 2.0
    activation: str = "relu"
    tied: bool = True

    # One vector on one site, and the stream itself as the output. Fixed for the family, not fields.
    inputs: ClassVar[int] = 1  # type: ignore[misc]
    grid: ClassVar[tuple[int, ...]] = ()  # type: ignore[misc]
    readout_unit: ClassVar[None] = None  # type: ignore[misc]

    def __post_init__(self) -> None:
        alpha = self.alpha
        if isinstance(alpha, str):
            require_choice("alpha", alpha, NAMED_SCALINGS)
            alpha = NAMED_SCALINGS[alpha]
        exponent = require_finite("alpha", alpha, "a real number, or 'none', 'sqrt', 'linear'")
        self._settle_counts(depth="depth counts the steps of the loop", width="units of the stream")
        settle(
            self,
            alpha=exponent,
            weight_variance=require_positive("weight_variance", self.weight_variance, why="it is sigma_W^2"),
            tied=require_flag("tied", self.tied, why="one matrix, or one for every step"),
        )
        require_choice("activation", self.activation, ACTIVATIONS)
        require_factor("alpha", exponent, self.depth)

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


@dataclass(frozen=True, kw_only=True)
class TiedLoop(Loop):
    """L steps of one residual layer of width N, with the same weights at every step.

    h_{l+1} = h_l + eps W phi(h_l), h_0 ~ N(0, I). With ``tied=False`` every step has a matrix of its own: the deep
    stack that loops are compared with.

    Args:
        depth: steps L, at least 1.
        width: N.
        alpha: residual scaling eps = L^(-alpha), a real number, or "none" (0), "sqrt" (1/2), "linear" (1); the same
            as a number for the ``scaling`` of `ResidualMLP`.
        weight_variance: sigma_W^2, positive; W_ij has variance sigma_W^2 / N.
        activation: phi, "relu", "linear", "gelu", "silu", "tanh" or "erf".
        tied: whether all steps share W; if not, each has its own.

    Raises:
        TypeError, ValueError: a count that is not whole or below 1, an unknown name, numbers that are not finite, a
            variance that is not positive, or an alpha that leaves eps no place among the floats.

    Source: Wang et al. 2026, eq. 1, appendix B.

    Examples:
        >>> import meanfield as mf
        >>> mf.TiedLoop(depth=6, width=64, alpha=0.5).weight_shapes
        [(64, 64)]
    """
