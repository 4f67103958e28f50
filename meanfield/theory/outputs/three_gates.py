"""Averages over three smooth gates, where all points are alike.

Exchangeable Gaussians are independent given one number x that they share, z_p = c_1^(1/2) x + (c_0 - c_1)^(1/2) e_p, so
that t(p, r, s) = E[s'(p)^2 s'(r) s'(s)] is an integral over x of products of moments of s' given x. It depends on which
of the points are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.common.arrays import Array
from meanfield.common.gaussian_averages import gaussian_nodes
from meanfield.nets.activations import Activation
from meanfield.theory.outputs.exchangeable import Exchangeable


@dataclass(frozen=True)
class AlikeGates:
    """t where all points are the same, where p is r or s alone, where r is s alone, and where all differ."""

    same: float
    one_below: float
    two_below: float
    different: float

    @classmethod
    def at(cls, sigma: Activation, covariance: Array) -> AlikeGates:
        """At the covariance of a point with itself and with any other one, the second number."""
        own, other = covariance[:2]
        nodes, weights = gaussian_nodes(float(own))
        z = np.sqrt(other) * nodes[:, None] + np.sqrt(max(own - other, 0.0)) * nodes
        gate = sigma.gate(z)
        once, twice, thrice = (gate**power @ weights for power in (1, 2, 3))
        same = sigma.gate(np.sqrt(own) * nodes) ** 4 @ weights
        products = thrice * once, twice**2, twice * once**2
        return cls(float(same), *(float(weights @ at_x) for at_x in products))

    def quadratic(self, points: Exchangeable, kernel: Array, errors: Array, both: Array) -> Array:
        """sum_rs K(p, r) K(p, s) C(r, s) t(p, r, s) by point, from ``both`` K C."""
        own = kernel[0] ** 2 * errors[0]
        once_same = 2 * (kernel[0] * points.contracted(kernel, errors)[0] - own)
        twice = errors[0] * points.contracted(kernel, kernel)[0] - own
        rest = points.contracted(both, kernel)[0] - own - once_same - twice
        parts = own * self.same, once_same * self.one_below, twice * self.two_below, rest * self.different
        return np.array([sum(parts)])
