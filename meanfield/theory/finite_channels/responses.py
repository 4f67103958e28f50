"""How the averages of a pair of sites answer to their covariance: slopes and curvatures at variance 1.

For a pair (u, v) the arguments are c_uv, c_uu, c_vv, in this order. With theta = pi - arccos(rho), s = sqrt(1 - rho^2)
and D = c_uu c_vv - c_uv^2, ReLU has

    E[sigma sigma] = (sqrt(D) + c_uv theta) / (2 pi),    E[sigma' sigma'] = theta / (2 pi),

from which the derivatives below follow at c_uu = c_vv = 1. A site with itself, and linear nets, have q c_uv and q.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.common.arrays import Array


@dataclass(frozen=True)
class Responses:
    """Averages of one pair of sites and their derivatives in (c_uv, c_uu, c_vv).

    Attributes:
        product, product_slope, product_curvature: E[sigma(u) sigma(v)], (3,), (3, 3).
        gate, gate_slope, gate_curvature: E[sigma'(u) sigma'(v)], (3,), (3, 3).
        edge: E[sigma(u) sigma''(v)], the mean of one site where the gate of the other opens.
    """

    product: float
    product_slope: Array
    product_curvature: Array
    gate: float
    gate_slope: Array
    gate_curvature: Array
    edge: float


def proportional(covariance: float, gain: float) -> Responses:
    """E[sigma sigma] = q c_uv."""
    none, flat = np.zeros(3), np.zeros((3, 3))
    return Responses(gain * covariance, np.array([gain, 0.0, 0.0]), flat, gain, none, flat, 0.0)


def relu(rho: float) -> Responses:
    """Of two sites of correlation rho < 1."""
    theta, s = np.pi - np.arccos(rho), np.sqrt((1 - rho) * (1 + rho))
    mixed, own, both = -rho / (2 * s), (2 * rho**2 - 1) / (4 * s), 1 / (4 * s)
    product_curvature = np.array([[1 / s, mixed, mixed], [mixed, own, both], [mixed, both, own]])
    mixed, own, both = -1 / (2 * s**3), rho / (2 * s) + rho / (4 * s**3), rho / (4 * s**3)
    gate_curvature = np.array([[rho / s**3, mixed, mixed], [mixed, own, both], [mixed, both, own]])
    turn = 2 * np.pi
    return Responses(
        product=(s + rho * theta) / turn,
        product_slope=np.array([theta, s / 2, s / 2]) / turn,
        product_curvature=product_curvature / turn,
        gate=theta / turn,
        gate_slope=np.array([1 / s, -rho / (2 * s), -rho / (2 * s)]) / turn,
        gate_curvature=gate_curvature / turn,
        edge=s / turn,
    )
