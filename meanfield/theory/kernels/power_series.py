"""Sums of the Hermite series of pairs of Gaussians."""

import numpy as np

from meanfield.common.compiled import compiled


@compiled()
def power_series(coefficients, correlations):
    """sum_k a_k b_k rho^k for every row b of coefficients (rows, orders), a the last: (rows,)."""
    count, orders = coefficients.shape
    last, total = coefficients[count - 1], np.empty(count)
    for row in range(count):
        row_coefficients, rho, value = coefficients[row], correlations[row], 0.0
        for order in range(orders - 1, -1, -1):
            value = value * rho + last[order] * row_coefficients[order]
        total[row] = value
    return total
