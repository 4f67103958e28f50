"""What the energy of a loop of homogeneous activation tends to, as the papers print it and as it is: for tests."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from meanfield.theory.loops import (
    has_closed_energy,
    log_correlation_law,
    log_correlation_terms,
    log_increment_gain,
    log_squared_binomials,
)

# Residual scalings between which the threshold is looked for, and how closely.
BRACKET = (0.0, 2.0)
TOLERANCE = 1e-6


def energy_exponent(loop):
    """Local exponent of ln H_L in L, between depths L and 2 L.

    For homogeneous activations it tends to 1 - alpha below alpha = 1, where H_L grows like the exponential of a power
    of L, and to 2 - 2 alpha above, where H_L - 1 falls as Theorem 1 (Wang et al. 2026) says; in independent stacks to 1
    - 2 alpha.
    """
    shallow, deep = (np.logaddexp(0.0, _log_correlation(loop.replace(depth=d))) for d in (loop.depth, 2 * loop.depth))
    return float(np.log2(deep / shallow))


def critical_alpha(loop):
    """Residual scaling alpha at which the exponent of ln H_L changes sign at this depth: from growth to decay.

    Tends to 1 in tied loops and 1/2 in independent stacks, from above and with a distance of O(1/L).
    """
    return float(brentq(lambda alpha: energy_exponent(loop.replace(alpha=alpha)), *BRACKET, xtol=TOLERANCE))


def _log_correlation(loop):
    """ln C_L, by the closed form where there is one."""
    terms = log_correlation_law if has_closed_energy(loop) else log_correlation_terms
    return float(terms(loop)[-1])


def log_energy_growth(loop):
    """Leading order of ln H_L at large depth where the energy is unbounded: alpha < 1 (independent: alpha < 1/2).

    Tied: 2 L ln(1 + eps sigma_W q^(1/2)), that is 2 sigma_W q^(1/2) L^(1 - alpha) to leading order, less a constant for
    ReLU and (1/2) ln L^(1 - alpha) and a constant for linear. Independent: L ln(1 + eps^2 sigma_W^2 q), that is
    sigma_W^2 q L^(1 - 2 alpha). It replaces that theorem, whose premise H = O(1) fails here.
    """
    x = log_increment_gain(loop)
    return float(loop.depth * (2 * np.logaddexp(0.0, x / 2) if loop.tied else np.logaddexp(0.0, x)))


def log_printed_energy(loop):
    """The papers' ln H_l, l = 1 .. L, with their constant set where it holds, at small eps L: (L,).

    Tied: H_l = 1 + x l^2 (Wang et al. 2026, Theorem 1); independent: H_l = 1 + x l, its counterpart at H = O(1).
    """
    power = 2 if loop.tied else 1
    return np.logaddexp(0.0, log_increment_gain(loop) + power * np.log(np.arange(1, loop.depth + 1)))


def log_energy_bounds(loop):
    """Lower and upper bound of the mean-field ln H_l of a tied loop, l = 1 .. L: two of (L,).

    As q Q_ab <= E[phi(h_a) phi(h_b)] <= q (Q_aa Q_bb)^(1/2), energies lie between those of the tied linear loop of
    weight variance q sigma_W^2 and those of a stream whose increments all point one way, y_l^2 = 1 + x (sum_{a<l}
    y_a)^2. In the limit of small steps and tau = (q sigma_W^2)^(1/2) eps L these are I_0(2 tau) and cosh(tau)^2: both
    grow like exp(2 tau), which settles the rate.
    """
    if not (loop.tied and loop.sigma.homogeneous):
        raise ValueError("bounds of the energy are for tied loops of activations that scale with the stream")
    x, length = log_increment_gain(loop), 0.0
    upper = np.empty(loop.depth)
    for step in range(loop.depth):
        upper[step] = np.logaddexp(0.0, x + 2 * length)
        length = np.logaddexp(length, upper[step] / 2)
    return np.logaddexp(0.0, log_squared_binomials(loop.depth, x)), upper
