"""Rows of the covariance of a stream that normalisations divide."""

import numpy as np

from meanfield.common.arrays import Array
from meanfield.common.compiled import compiled


def cumulated(start: Array, sums: Array, divisors: Array) -> Array:
    """X_0 = start, X_{v+1} = (X_v + sums_v) / d_{v+1} of the second token, the last one undivided: (v + 1, *E).

    ``sums`` is (v, *E), ``divisors`` (v - 1, m), m the last axis of E or, where all of E has one divisor, 1.
    """
    shape = (-1, divisors.shape[1])
    rows = np.empty((len(sums) + 1, *start.shape))
    flat = rows.reshape(len(rows), *start.reshape(shape).shape)
    flat[0] = start.reshape(shape)
    _cumulate(flat, sums.reshape(len(sums), *flat.shape[1:]), divisors)
    return rows


@compiled()
def _cumulate(rows, sums, divisors):
    """Fill ``rows`` from the first."""
    count, firsts, seconds = sums.shape
    for value in range(count):
        for first in range(firsts):
            for second in range(seconds):
                total = rows[value, first, second] + sums[value, first, second]
                if value < count - 1:
                    total /= divisors[value, second]
                rows[value + 1, first, second] = total
