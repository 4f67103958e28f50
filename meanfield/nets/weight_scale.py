"""How large the weights of a net are: the fan-in rule 1/(q fan_in), or another variance sigma_W^2/fan_in."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from meanfield.common.gaussian_averages import LARGEST_VARIANCE, mean_square
from meanfield.common.validation import require_positive, settle
from meanfield.nets.activations import Activation, activation_named


class WeightScale:
    """What follows from sigma_W^2; None is the fan-in rule, sigma_W^2 = 1/q (P0 eq. 1)."""

    activation: str
    weight_variance: float | None

    input_law: ClassVar[str]

    @cached_property
    def sigma(self) -> Activation:
        return activation_named(self.activation)

    @property
    def variance_factor(self) -> float:
        """Variance of the weights over that of the fan-in rule: q sigma_W^2, or 1 under the rule."""
        return 1.0 if self.weight_variance is None else self.weight_variance * self.sigma.gain

    @property
    def input_energy(self) -> float:
        """E[sigma(x)^2] of normalised inputs, at which z^(1) has variance 1: 1/sigma_W^2, q under the fan-in rule."""
        return self.sigma.gain / self.variance_factor

    def _check_weight_variance(self) -> None:
        """Settle sigma_W^2; raise unless it is positive and, where inputs are scaled so, some give z^(1) variance 1."""
        if self.weight_variance is None:
            return
        given = require_positive(
            "weight_variance", self.weight_variance, why="it is sigma_W^2, the variance of the weights times fan-in"
        )
        settle(self, weight_variance=given)
        reached = mean_square(self.sigma.function, LARGEST_VARIANCE)
        if self.input_law == "normalised" and not self.sigma.homogeneous and self.input_energy >= reached:
            raise ValueError(
                f"weight_variance is {given:g}: inputs are scaled so that z^(1) has variance 1, which takes "
                f"E[sigma(x)^2] = {self.input_energy:g}, and {self.activation} reaches {reached:.4g}; "
                f"give more than {1 / reached:.4g}"
            )
