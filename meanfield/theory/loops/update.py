"""One update of a loop's weights: how far it moves the stream at infinite width.

Delta W is independent of W with entries of variance eta^2 / N, as a sign update has whose signs are isotropic. To first
order in eta, R_ls = E[dh_l . dh_s] / N obeys the double sum of the covariance with another summand (docs/theory.md
section 11):

    R_ls = eps^2 sum_{a<l, b<s} { eta^2 E[phi(h_a) phi(h_b)] + sigma_W^2 E[phi'(h_a) phi'(h_b)] R_ab }

(Wang et al. 2026, whose equations and theorems are meant below). The first part is the update itself, the second
carries what earlier steps moved. Stacks with a matrix per step have an update per step, and keep a = b alone.
"""

from __future__ import annotations

from math import log

import numpy as np

from meanfield.common.arrays import Array
from meanfield.common.validation import takes
from meanfield.nets.families.loop import Loop
from meanfield.theory.loops.covariance import PairSum, increment_scale, log_correlation_terms, steps


@takes(Loop)
def log_own_energies(loop: Loop) -> Array:
    """ln of the part of E|dh_s|^2 / N that the update makes by itself, eta^2 eps^2 sum E[phi phi] at eta = 1: (L,).

    The paper's leading term; the rest is what steps carry of earlier changes.

    Source: eq. 7, appendix D.1.
    """
    return log_correlation_terms(loop) - log(loop.weight_variance)


@takes(Loop)
def log_update_energies(loop: Loop) -> Array:
    """ln E|dh_s|^2 / N, s = 1 .. L, after one isotropic update at learning rate eta = 1; it goes as eta^2: (L,).

    Grows as (eta eps L)^2 in tied loops of alpha >= 1, as Theorem 2 says, and as eta^2 eps^2 L in independent stacks
    of alpha >= 1/2. In tied loops of alpha < 1 and homogeneous activations it grows exponentially with the stream:
    E|dh_L|^2 ~ eta^2 L^(1-alpha) E|h_L|^2, so that a fixed relative change asks for eta ~ L^((alpha-1)/2), and a fixed
    absolute one for an exponentially small eta, where the theorem has L^(alpha-1).

    Raises:
        ValueError: the variance of the stream of a smooth activation leaves what its averages are computed for.

    Source: eqs. 3, 6, 7.
    """
    carried = increment_scale(loop)
    driven = carried - log(loop.weight_variance)
    moved, sums, energies = np.array([-np.inf]), PairSum(loop), np.empty(loop.depth)
    for index, step in enumerate(steps(loop)):
        moved = sums.add(np.logaddexp(driven + step.features, carried + step.gates + moved))
        energies[index] = moved[-1]
    return energies
