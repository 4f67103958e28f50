"""Softmaxes of one head at two steps, whose logits correlate as both have the head's queries and keys.

Logits of a head at steps u, v, rows i, j and columns k, l have covariance s^2 c_uv(i, j) c_uv(k, l). With exchangeable
tokens, c = d + (e - d) delta, what all columns share drops out: rows are softmaxes of T independent Gaussians of
standard deviations alpha, beta and correlation r by column,

    alpha^2 = s^2 c_uu(i, i) (e_uu - d_uu),   beta^2 likewise of v,   alpha beta r = s^2 c_uv(i, j) (e_uv - d_uv)

and E A c A' = d + (e - d) Y with the agreement Y(alpha, beta, r) = E sum_k A_k A'_k, tabulated once as a Chebyshev
series in all three by averages over points of a low-discrepancy sequence (docs/theory.md section 22).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import softmax

from meanfield.common.arrays import Array
from meanfield.common.quasi_random import even_normals

# Degrees of the series in a standard deviation and in the correlation.
SIZE_DEGREE, CORRELATION_DEGREE = 8, 10
# Points of the averages, a power of 2, and the numbers that all of them hold.
LEAST_POINTS, MOST_POINTS, NUMBERS = 2**9, 2**13, 2**19


class ExchangeableSoftmax:
    """The covariance of what softmaxes of exchangeable tokens make of values between steps."""

    def __init__(self, tokens: int, gain: float) -> None:
        self._gain, self._table = gain, agreement_table(tokens, gain)

    def mixed(self, covariance: Array, own: Array) -> Array:
        """E A c A' between a step and others, (k, 2), from c between them and of the others with themselves."""
        apart = covariance[:, 0] - covariance[:, 1]
        deviations = self._gain * np.sqrt(np.maximum(own[:, 0] * (own[:, 0] - own[:, 1]), 0.0))
        shared = self._gain**2 * covariance * apart[:, None]
        sizes = deviations[-1] * deviations
        correlation = np.divide(shared, sizes[:, None], out=np.zeros_like(shared), where=sizes[:, None] > 0)
        agreement = agreements(self._table, self._gain, deviations, np.clip(correlation, 0.0, 1.0))
        return covariance[:, 1:] + apart[:, None] * agreement


def agreements(table: Array, largest: float, deviations: Array, correlation: Array) -> Array:
    """Y of the last of ``deviations`` (k,) with each of them, at ``correlation`` (k, m): (k, m)."""
    powers = chebyshev.chebvander(2 * np.minimum(deviations / largest, 1.0) - 1, SIZE_DEGREE)
    series = powers @ np.tensordot(powers[-1], table, axes=1)
    return np.asarray(chebyshev.chebval(2 * correlation - 1, series.T[:, :, None], tensor=False))


@lru_cache(maxsize=16)
def agreement_table(tokens: int, largest: float) -> Array:
    """Coefficients of Y for deviations from 0 to ``largest`` and correlations from 0 to 1, (sizes, sizes, degrees)."""
    (sizes, to_sizes), (angles, to_degrees) = (_interpolation(d) for d in (SIZE_DEGREE, CORRELATION_DEGREE))
    points = int(np.clip(2 ** int(np.log2(NUMBERS / (2 * tokens))), LEAST_POINTS, MOST_POINTS))
    here, there = np.moveaxis(even_normals(2 * tokens).random(points).reshape(points, 2, tokens), 1, 0)
    rows = np.stack([softmax(largest * size * here, axis=1).ravel() for size in sizes])
    values = np.empty((len(sizes), len(sizes), len(angles)))
    for place, r in enumerate(angles):
        mixed = r * here + np.sqrt(1 - r * r) * there
        others = np.stack([softmax(largest * size * mixed, axis=1).ravel() for size in sizes])
        values[:, :, place] = rows @ others.T / points
    values = (values + values.swapaxes(0, 1)) / 2
    return np.asarray(np.einsum("abr,ia,jb,kr->ijk", values, to_sizes, to_sizes, to_degrees))


def _interpolation(degree: int) -> tuple[Array, Array]:
    """Chebyshev points of [0, 1], and the matrix that makes coefficients of values there."""
    nodes = chebyshev.chebpts1(degree + 1)
    scale = np.full(degree + 1, 2 / (degree + 1))
    scale[0] /= 2
    return (1 + nodes) / 2, scale[:, None] * chebyshev.chebvander(nodes, degree).T
