"""Closed forms of loops with homogeneous activations, phi(t z) = t phi(z): energies, bounds, growth with depth.

Equations are those of Wang et al. 2026. Everything depends on x = eps^2 sigma_W^2 q alone, where q = E phi(h)^2 / H is
the gain: 1/2 for ReLU, 1 for linear. In natural logarithms, at H_0 = 1 and infinite width.
"""

from __future__ import annotations

from math import log

import numpy as np
from scipy.special import gammaln, logsumexp

from meanfield.common.arrays import Array
from meanfield.nets.families.loop import LARGEST_LOG_STEP, Loop
from meanfield.theory.laws.branches import power_of
from meanfield.theory.loops.covariance import increment_scale


def has_closed_energy(loop: Loop) -> bool:
    """Whether `log_correlation_law` serves this loop."""
    return loop.sigma.homogeneous and (not loop.tied or loop.activation == "linear")


def log_correlation_law(loop: Loop) -> Array:
    """ln C_l of H_l = H_0 + C_l, l = 1 .. L, in closed form: (L,).

    Independent: H_l = (1 + x)^l, exact at any width for linear nets (appendix B with its constant). Tied linear:
    H_l = sum_j C(l, j)^2 x^j, as W^j h_0 and W^k h_0 are orthogonal at infinite width; at alpha = 1 and L -> infinity
    it is I_0(2 sigma_W), and for alpha < 1 it grows like exp(2 sigma_W L^(1 - alpha)).

    Raises:
        ValueError: the loop has no closed energy.
    """
    if not has_closed_energy(loop):
        raise ValueError(
            f"a loop with tied={loop.tied} and activation {loop.activation!r} has no closed energy; independent steps "
            "of 'relu' or 'linear' and tied ones of 'linear' have: take the mean field"
        )
    x = log_increment_gain(loop)
    if loop.tied:
        return log_squared_binomials(loop.depth, x)
    grown = np.arange(1, loop.depth + 1) * np.logaddexp(0.0, x)
    return np.asarray(grown + np.log(-np.expm1(-grown)))


def loop_exponent(loop: Loop) -> float:
    """x of eta ~ L^x that keeps |dh_L| fixed under one update of isotropic signs; NaN where it is no power of L.

    alpha - 1 in tied loops of alpha >= 1, where the changes of all steps add up (eq. 4), and alpha - 1/2 in
    independent stacks of alpha >= 1/2, where they are independent and add up in squares. Below, changes grow with the
    stream, exponentially for homogeneous activations.

    Raises:
        NoPower: as `step_exponent`.
    """
    threshold, alpha = 1.0 if loop.tied else 0.5, step_exponent(loop)
    return alpha - threshold if alpha >= threshold else float("nan")


def step_exponent(loop: Loop) -> float:
    """alpha of eps = L^(-alpha), read off the sizes of steps at several depths.

    Raises:
        NoPower: steps whose size is no power of their number.
    """
    depths = [2**power for power in range(7) if abs(float(loop.alpha)) * log(2**power) <= LARGEST_LOG_STEP]
    return -power_of(depths, [loop.replace(depth=depth).step_size for depth in depths], "size of a step") + 0.0


def log_increment_gain(loop: Loop) -> float:
    """ln x, x = eps^2 sigma_W^2 q: the energy of one increment over that of the stream."""
    return increment_scale(loop) + log(loop.sigma.gain)


def log_squared_binomials(depth: int, log_x: float) -> Array:
    """ln sum_{j=1..l} C(l, j)^2 x^j for l = 1 .. depth."""
    factorials, powers = gammaln(np.arange(1.0, depth + 2)), log_x * np.arange(1.0, depth + 1)
    return np.array(
        [
            logsumexp(2 * (factorials[last] - factorials[1 : last + 1] - factorials[last - 1 :: -1]) + powers[:last])
            for last in range(1, depth + 1)
        ]
    )
