"""Pointwise activations and the Gaussian averages that the theory needs of them.

An activation is a datum: its function, its derivative (the gate), and closed-form averages over a pair of
zero-mean Gaussians (u, v) with variances ``c_u``, ``c_v`` and covariance ``c_uv``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meanfield.validation import require_choice

Array = NDArray[np.float64]
GaussianAverage = Callable[[Array, Array, Array], Array]


@dataclass(frozen=True)
class Activation:
    """One pointwise nonlinearity sigma, dimensionless and independent of width and depth.

    Attributes:
        name: the word that specs use.
        function: sigma.
        gate: sigma', the factor that a tangent or an error picks up (zero at the kink of ReLU).
        gain: q = E[sigma'(G)^2] for G ~ N(0, 1); weights of variance 1/(q fan_in) conserve energy
            (P0 eq. 1).
        product: E[sigma(u) sigma(v)].
        gate_product: E[sigma'(u) sigma'(v)].
        gate_square_product: E[sigma'(u)^2 sigma'(v)^2].
        square_product: E[sigma(u)^2 sigma(v)^2].
    """

    name: str
    function: Callable[[Array], Array]
    gate: Callable[[Array], Array]
    gain: float
    product: GaussianAverage
    gate_product: GaussianAverage
    gate_square_product: GaussianAverage
    square_product: GaussianAverage


def _correlation(c_u: Array, c_v: Array, c_uv: Array) -> tuple[Array, Array]:
    """Standard deviations' product and the correlation, 0 where a variance vanishes."""
    scale = np.sqrt(c_u * c_v)
    safe = np.where(scale > 0, scale, 1.0)
    return scale, np.clip(np.where(scale > 0, c_uv / safe, 0.0), -1.0, 1.0)


def _relu_product(c_u: Array, c_v: Array, c_uv: Array) -> Array:
    """Arc-cosine kernel of degree one: sqrt(c_u c_v) kappa_1(rho)."""
    scale, rho = _correlation(c_u, c_v, c_uv)
    angle = np.pi - np.arccos(rho)
    return np.asarray(scale * (np.sqrt(1 - rho * rho) + rho * angle) / (2 * np.pi))


def _relu_gate_product(c_u: Array, c_v: Array, c_uv: Array) -> Array:
    """Probability that both units are on: kappa_0(rho); a unit of variance zero is off."""
    scale, rho = _correlation(c_u, c_v, c_uv)
    return np.where(scale > 0, (np.pi - np.arccos(rho)) / (2 * np.pi), 0.0)


def _relu_square_product(c_u: Array, c_v: Array, c_uv: Array) -> Array:
    """Arc-cosine kernel of degree two: c_u c_v [3 rho sqrt(1 - rho^2) + (1 + 2 rho^2)(pi - arccos rho)] / (2 pi)."""
    scale, rho = _correlation(c_u, c_v, c_uv)
    angle = np.pi - np.arccos(rho)
    return np.asarray(scale**2 * (3 * rho * np.sqrt(1 - rho * rho) + (1 + 2 * rho * rho) * angle) / (2 * np.pi))


def _linear_square_product(c_u: Array, c_v: Array, c_uv: Array) -> Array:
    return np.asarray(c_u * c_v + 2 * c_uv**2)


def _linear_product(c_u: Array, c_v: Array, c_uv: Array) -> Array:
    return np.asarray(c_uv)


def _linear_gate_product(c_u: Array, c_v: Array, c_uv: Array) -> Array:
    return np.ones_like(c_uv)


RELU = Activation(
    name="relu",
    function=lambda z: np.maximum(z, 0.0),
    gate=lambda z: (z > 0).astype(z.dtype),
    gain=0.5,
    product=_relu_product,
    gate_product=_relu_gate_product,
    gate_square_product=_relu_gate_product,
    square_product=_relu_square_product,
)

LINEAR = Activation(
    name="linear",
    function=lambda z: z,
    gate=np.ones_like,
    gain=1.0,
    product=_linear_product,
    gate_product=_linear_gate_product,
    gate_square_product=_linear_gate_product,
    square_product=_linear_square_product,
)

ACTIVATIONS = {activation.name: activation for activation in (RELU, LINEAR)}


def activation_named(name: str) -> Activation:
    """The activation with this name; ValueError naming the choices if there is none."""
    require_choice("activation", name, ACTIVATIONS)
    return ACTIVATIONS[name]
