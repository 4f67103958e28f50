"""Closed forms of loops with homogeneous activations, phi(t z) = t phi(z): energies, bounds, growth with depth.

Everything depends on x = eps^2 sigma_W^2 q alone, where q = E phi(h)^2 / H is the gain: 1/2 for ReLU, 1 for linear. In
natural logarithms, at H_0 = 1 and infinite width.
"""

from __future__ import annotations

from math import log

import numpy as np
from scipy.special import gammaln, logsumexp

from meanfield.common.arrays import Array
from meanfield.nets.families.loop import Loop
from meanfield.theory.loops.covariance import increment_scale


def has_closed_energy(loop: Loop) -> bool:
    """Whether `log_correlation_law` serves this loop."""
    return loop.sigma.homogeneous and (not loop.tied or loop.activation == "linear")


def log_correlation_law(loop: Loop) -> Array:
    """ln C_l of H_l = H_0 + C_l, l = 1 .. L, in closed form: (L,).

    Independent: H_l = (1 + x)^l, exact at any width for linear nets (P2 appendix B with its constant). Tied linear:
    H_l = sum_j C(l, j)^2 x^j, as W^j h_0 and W^k h_0 are orthogonal at infinite width; at alpha = 1 and L -> infinity
    it is I_0(2 sigma_W), and for alpha < 1 it grows like exp(2 sigma_W L^(1 - alpha)).

    Raises:
        ValueError: the loop has no closed energy.
    """
    if not has_closed_energy(loop):
        raise ValueError(
            f"a loop with tied={loop.tied} and activation {loop.activation!r} has no closed energy; independent steps "
            "of 'relu' or 'linear' and tied ones of 'linear' have: take the mean field, or `log_energy_bounds`"
        )
    x = log_increment_gain(loop)
    if loop.tied:
        return _squared_binomials(loop.depth, x)
    grown = np.arange(1, loop.depth + 1) * np.logaddexp(0.0, x)
    return np.asarray(grown + np.log(-np.expm1(-grown)))


def log_energy_bounds(loop: Loop) -> tuple[Array, Array]:
    """Lower and upper bound of the mean-field ln H_l of a tied loop, l = 1 .. L: two of (L,).

    As q Q_ab <= E[phi(h_a) phi(h_b)] <= q (Q_aa Q_bb)^(1/2), energies lie between those of the tied linear loop of
    weight variance q sigma_W^2 and those of a stream whose increments all point one way, y_l^2 = 1 + x (sum_{a<l}
    y_a)^2. In the limit of small steps and tau = (q sigma_W^2)^(1/2) eps L these are I_0(2 tau) and cosh(tau)^2: both
    grow like exp(2 tau), which settles the rate.

    Raises:
        ValueError: independent steps, or an activation that is not homogeneous.
    """
    _require_tied("bounds of the energy", loop)
    x, length = log_increment_gain(loop), 0.0
    upper = np.empty(loop.depth)
    for step in range(loop.depth):
        upper[step] = np.logaddexp(0.0, x + 2 * length)
        length = np.logaddexp(length, upper[step] / 2)
    return np.logaddexp(0.0, _squared_binomials(loop.depth, x)), upper


def loop_exponent(loop: Loop) -> float:
    """x of eta ~ L^x that keeps |dh_L| fixed under one update of isotropic signs; NaN where it is no power of L.

    alpha - 1 in tied loops of alpha >= 1, where the changes of all steps add up (P2 eq. 4), and alpha - 1/2 in
    independent stacks of alpha >= 1/2, where they are independent and add up in squares. Below, changes grow with the
    stream, exponentially for homogeneous activations.
    """
    threshold = 1.0 if loop.tied else 0.5
    alpha = float(loop.alpha)
    return alpha - threshold if alpha >= threshold else float("nan")


def log_increment_gain(loop: Loop) -> float:
    """ln x, x = eps^2 sigma_W^2 q: the energy of one increment over that of the stream."""
    return increment_scale(loop) + log(loop.sigma.gain)


def _squared_binomials(depth: int, log_x: float) -> Array:
    """ln sum_{j=1..l} C(l, j)^2 x^j for l = 1 .. depth."""
    factorials = np.asarray(gammaln(np.arange(1, depth + 2)), dtype=float)
    powers = log_x * np.arange(depth + 1, dtype=float)
    return np.array([logsumexp(_terms(factorials[: last + 1], powers)[1:]) for last in range(1, depth + 1)])


def _terms(factorials: Array, powers: Array) -> Array:
    """ln C(l, j)^2 x^j for j = 0 .. l."""
    return np.asarray(2 * (factorials[-1] - factorials - factorials[::-1]) + powers[: len(factorials)])


def _require_homogeneous(what: str, loop: Loop) -> None:
    if not loop.sigma.homogeneous:
        raise ValueError(
            f"{what} has a closed form for 'relu' and 'linear' alone, which scale with the stream; activation is "
            f"{loop.activation!r}: take the mean field"
        )


def _require_tied(what: str, loop: Loop) -> None:
    _require_homogeneous(what, loop)
    if not loop.tied:
        raise ValueError(f"{what} are for tied loops; independent steps have the energy itself in closed form")
