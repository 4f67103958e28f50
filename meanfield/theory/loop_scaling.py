"""How a loop's energy scales with its depth, and the residual scaling at which it stops growing."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from meanfield.nets.loop import Loop
from meanfield.theory.loop_covariance import log_correlation_terms
from meanfield.theory.loop_laws import has_closed_energy, log_correlation_law

# Residual scalings between which the threshold is looked for, and how closely.
BRACKET = (0.0, 2.0)
TOLERANCE = 1e-6


def energy_exponent(loop: Loop) -> float:
    """Local exponent of ln H_L in L, between depths L and 2 L.

    For homogeneous activations it tends to 1 - alpha below alpha = 1, where H_L grows like the exponential of a power
    of L, and to 2 - 2 alpha above, where H_L - 1 falls as P2 Theorem 1 says; in independent stacks to 1 - 2 alpha.
    """
    shallow, deep = (np.logaddexp(0.0, _log_correlation(loop.replace(depth=d))) for d in (loop.depth, 2 * loop.depth))
    return float(np.log2(deep / shallow))


def critical_alpha(loop: Loop) -> float:
    """Residual scaling alpha at which the exponent of ln H_L changes sign at this depth: from growth to decay.

    Tends to 1 in tied loops and 1/2 in independent stacks, from above and with a distance of O(1/L).

    Raises:
        ValueError: no change of sign for alpha between 0 and 2 at this depth; take a larger one.
    """
    ends = [energy_exponent(loop.replace(alpha=alpha)) for alpha in BRACKET]
    if not ends[0] > 0 > ends[1]:
        raise ValueError(
            f"the exponents at alpha = {BRACKET[0]:g} and {BRACKET[1]:g} are {ends[0]:.3g} and {ends[1]:.3g} at depth "
            f"{loop.depth}: they do not enclose a threshold; take a larger depth"
        )
    return float(brentq(lambda alpha: energy_exponent(loop.replace(alpha=alpha)), *BRACKET, xtol=TOLERANCE))


def _log_correlation(loop: Loop) -> float:
    """ln C_L, by the closed form where there is one."""
    terms = log_correlation_law if has_closed_energy(loop) else log_correlation_terms
    return float(terms(loop)[-1])
