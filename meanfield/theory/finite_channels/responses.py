"""How the averages of a pair of sites answer to their covariance: slopes and curvatures at variance 1.

For a pair (u, v) the arguments are c_uv, c_uu, c_vv, in this order. With theta = pi - arccos(rho), s = sqrt(1 - rho^2)
and D = c_uu c_vv - c_uv^2, ReLU has

    E[sigma sigma] = (sqrt(D) + c_uv theta) / (2 pi),    E[sigma' sigma'] = theta / (2 pi),

from which the derivatives below follow at c_uu = c_vv = 1. A site with itself, and linear nets, have q c_uv and q.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from meanfield.common.arrays import Array

# Curvatures go as (1 - rho)^(-3/2): two sites closer to correlation 1 than this are taken as one.
ALIKE = 1e-8


@dataclass(frozen=True)
class Responses:
    """Averages of one pair of sites, or of arrays (P,) of them, and their derivatives in (c_uv, c_uu, c_vv).

    Attributes:
        product, product_slope, product_curvature: E[sigma(u) sigma(v)], (3, ...), (3, 3, ...).
        gate, gate_slope, gate_curvature: E[sigma'(u) sigma'(v)], likewise.
        edge: E[sigma(u) sigma''(v)], the mean of one site where the gate of the other opens.
    """

    product: Any
    product_slope: Array
    product_curvature: Array
    gate: Any
    gate_slope: Array
    gate_curvature: Array
    edge: Any


def proportional(covariance: Any, gain: float) -> Responses:
    """E[sigma sigma] = q c_uv."""
    none, flat = np.zeros(3), np.zeros((3, 3))
    return Responses(gain * covariance, np.array([gain, 0.0, 0.0]), flat, gain, none, flat, 0.0)


def relu(rho: Any) -> Responses:
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


def of_pairs(first: Array, second: Array, covariance: Array, activation: str) -> Responses:
    """Of pairs (P,) of any variances: derivatives (3, P) and (3, 3, P), by homogeneity from those at variance 1."""
    size = np.sqrt(first * second)
    rho = np.clip(covariance / size, -1.0, 1.0)
    alike = (rho > 1 - ALIKE) | (activation == "linear")
    gain = 1.0 if activation == "linear" else 0.5
    apart, same = relu(np.where(alike, 0.0, rho)), proportional(rho, gain)

    def chosen(name: str) -> Array:
        of_two, of_one = (np.asarray(getattr(kind, name), dtype=float) for kind in (apart, same))
        of_one = of_one if of_one.shape == of_two.shape else np.broadcast_to(of_one[..., None], of_two.shape)
        return np.where(alike, of_one, of_two)

    scale = np.array([size, first, second])
    twice = scale[:, None] * scale
    return Responses(
        product=size * chosen("product"),
        product_slope=size * chosen("product_slope") / scale,
        product_curvature=size * chosen("product_curvature") / twice,
        gate=chosen("gate"),
        gate_slope=chosen("gate_slope") / scale,
        gate_curvature=chosen("gate_curvature") / twice,
        edge=np.sqrt(first / second) * chosen("edge"),
    )
