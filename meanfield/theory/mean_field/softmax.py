"""Softmax of Gaussian outputs on average: the mean square of a probability.

Softmax of independent Gaussian logits has

    E p_t^2 = E e^{2 z_t} / (sum_s e^{z_s})^2 = int_0^inf u E[e^{2z} e^{-u e^z}] phi(u)^{C-1} du,  phi(u) = E e^{-u e^z}

by 1/x^2 = int u e^{-ux} du, so that the C logits come apart and one average over z and one over u remain.
"""

import numpy as np

from meanfield.common.validation import require_count

# Beyond, an average over N(0, 1) is below rounding; the step resolves exp(sqrt(v) x) and exp(-u e^z) for v up to 25.
REACH = 9.0
STEP = 0.02
LARGEST_VARIANCE = 25.0


def mean_square_probability(classes: int, variance: float) -> float:
    """E p_1^2 of softmax over ``classes`` logits z ~ N(0, variance): 1 / classes^2 at variance 0.

    E |p - y|^2 = 1 - 1/C + C (E p_1^2 - 1/C^2) for a label y drawn uniformly, of which the paper has the first two
    terms.

    Raises:
        ValueError: a variance that is negative or above `LARGEST_VARIANCE`.

    Source: Zhang et al. 2026, section G.
    """
    require_count("classes", classes)
    if not 0 <= variance <= LARGEST_VARIANCE:
        raise ValueError(f"variance of the logits is {variance:g}; it must be from 0 to {LARGEST_VARIANCE:g}")
    logits = np.arange(-REACH, REACH + STEP / 2, STEP)
    weights = np.exp(-logits * logits / 2) * (STEP / np.sqrt(2 * np.pi))
    logits = np.sqrt(variance) * logits
    # u runs over what an e^z can be the inverse of, and further down, as the integrand falls like u^2 only.
    spread = np.sqrt(variance) * REACH
    log_u = np.arange(-spread - 20.0 - np.log(classes), spread + 6.0, STEP)
    decay = np.exp(-np.exp(log_u[:, None] + logits))
    squared = decay @ (weights * np.exp(2 * logits))
    integrand = np.exp(2 * log_u) * squared * (decay @ weights) ** (classes - 1)
    return float(integrand.sum() * STEP)
