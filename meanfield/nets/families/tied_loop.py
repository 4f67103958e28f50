"""Tied loops: one weight matrix, applied over and over on a residual stream (P2 eq. 1).

    h_{l+1} = h_l + eps W phi(h_l),   eps = L^(-alpha),   W_ij ~ N(0, sigma_W^2 / N),   h_0 ~ N(0, I)

With ``tied=False`` every step has a matrix of its own: the deep stack that loops are compared with (P2 appendix B).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from meanfield.common.validation import (
    require_choice,
    require_count,
    require_finite,
    require_flag,
    require_positive,
    settle,
)
from meanfield.nets.activations import ACTIVATIONS
from meanfield.nets.families.loop import Loop

# The papers' names of residual scalings, by their exponent alpha.
NAMED_SCALINGS = {"none": 0.0, "sqrt": 0.5, "linear": 1.0}

# |ln eps| at most: eps^2 stands in energies, whose squares are summed.
LARGEST_LOG_STEP = 100.0


@dataclass(frozen=True, kw_only=True)
class TiedLoop(Loop):
    """L steps of one residual layer of width N, with the same weights at every step (P2 eq. 1).

    Args:
        depth: steps L, at least 1.
        width: N.
        alpha: residual scaling eps = L^(-alpha), a real number, or "none" (0), "sqrt" (1/2), "linear" (1).
        weight_variance: sigma_W^2, positive; W_ij has variance sigma_W^2 / N.
        activation: phi, "relu", "linear", "gelu" or "tanh".
        tied: whether all steps share W; if not, each has its own.

    Raises:
        TypeError, ValueError: a count that is not whole or below 1, an unknown name, numbers that are not finite, a
            variance that is not positive, or an alpha that leaves eps no place among the floats.
    """

    depth: int
    width: int
    alpha: float | str = 1.0
    weight_variance: float = 2.0
    activation: str = "relu"
    tied: bool = True

    def __post_init__(self) -> None:
        alpha = self.alpha
        if isinstance(alpha, str):
            require_choice("alpha", alpha, NAMED_SCALINGS)
            alpha = NAMED_SCALINGS[alpha]
        exponent = require_finite("alpha", alpha, "a real number, or 'none', 'sqrt', 'linear'")
        settle(
            self,
            depth=require_count("depth", self.depth, why="depth counts the steps of the loop"),
            width=require_count("width", self.width, why="units of the stream"),
            alpha=exponent,
            weight_variance=require_positive("weight_variance", self.weight_variance, why="it is sigma_W^2"),
            tied=require_flag("tied", self.tied, why="one matrix, or one for every step"),
        )
        require_choice("activation", self.activation, ACTIVATIONS)
        if abs(exponent) * log(self.depth) > LARGEST_LOG_STEP:
            raise ValueError(
                f"alpha is {exponent:g}, and the step size {self.depth}^({-exponent:g}) leaves the range of floats; at "
                f"depth {self.depth} give an alpha within +-{LARGEST_LOG_STEP / log(self.depth):.3g}"
            )
