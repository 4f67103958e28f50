"""RMS operator norms of Gaussian matrices, at finite sizes and in the limit, by which slopes over ladders are cleared.

Products of weights are taken over what finite matrices have on average (`gaussian_norm`), times the limit
(`limit_norm`), so that slopes are not those of sqrt(n_in) + sqrt(n_out).
"""

import numpy as np


def gaussian_norm(outputs: int, inputs: int) -> float:
    """Mean RMS operator norm of a matrix of unit variance, up to o(n^(-2/3)) (Johnstone, Tracy-Widom mean -1.2065)."""
    if min(outputs, inputs) == 1:
        return float(np.sqrt(inputs / outputs) * np.sqrt(max(outputs, inputs)))
    edge = (np.sqrt(outputs) + np.sqrt(inputs)) ** 2
    width = np.sqrt(edge) * (1 / np.sqrt(outputs) + 1 / np.sqrt(inputs)) ** (1 / 3)
    return float(np.sqrt(inputs / outputs) * np.sqrt(edge - 1.2065 * width))


def limit_norm(outputs: int, inputs: int) -> float:
    """Theta's argument in eq. 6 with the larger root alone: what the norm is proportional to at infinite width."""
    return float(np.sqrt(inputs / outputs) * np.sqrt(max(outputs, inputs)))
