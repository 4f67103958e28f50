"""Softmax attention with the same heads at every step: logits of two steps correlate, at the scale size^(-1/2).

Exchangeable tokens. Logits of a head at steps u, v, rows i, j and columns k, l have covariance s^2 c_uv(i, j) c_uv(k,
l), as both steps have the head's queries and keys. With c = d + (e - d) delta, what all columns share drops out: rows
are softmaxes of T independent Gaussians of standard deviations alpha, beta and correlation r by column,

    alpha^2 = s^2 c_uu(i, i) (e_uu - d_uu),   beta^2 likewise of v,   alpha beta r = s^2 c_uv(i, j) (e_uv - d_uv)

and E A c A' = d + (e - d) Y with the agreement Y(alpha, beta, r) = E sum_k A_k A'_k, tabulated once as a Chebyshev
series in all three by averages over points of a low-discrepancy sequence.

Tokens that differ: heads are drawn with their queries and keys at all steps. At infinite width these are Gaussian
over steps and tokens, channel by channel, of covariance s c, c being that of the normalised stream. They are drawn
step by step given those before, for so many heads of the net's own size. Rotary positions and causal masks act on
them as in the net, and what values contribute is averaged exactly,

    E x_u(i) x_v(j) = s sum_kl E[A_u(i, k) A_v(j, l)] c_uv(k, l).

So the limit is that of many heads of this size, up to the error of an average over the heads that are drawn.

Source: docs/theory.md section 22.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev
from scipy.linalg import solve_triangular
from scipy.special import softmax

from meanfield.common.gaussian_averages import even_normals, points_within
from meanfield.common.validation import Array
from meanfield.nets.maps import ROTARY_BASE, Attention
from meanfield.theory.transformers.averages import chebyshev_rule

# Degrees of the series in a standard deviation and in the correlation.
SIZE_DEGREE, CORRELATION_DEGREE = 8, 10
# Points of the averages, a power of 2, and the numbers that all of them hold.
LEAST_POINTS, MOST_POINTS, TABLE_NUMBERS = 2**9, 2**13, 2**19


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
    points = points_within(TABLE_NUMBERS / (2 * tokens), LEAST_POINTS, MOST_POINTS)
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
    nodes, scale = chebyshev_rule(degree)
    return (1 + nodes) / 2, scale[:, None] * chebyshev.chebvander(nodes, degree).T


# Operations that the averages over heads may take, the fewest and most heads, and the most numbers that they hold.
OPERATIONS, LEAST_HEADS, MOST_HEADS, HEAD_NUMBERS = 2e9, 8, 512, 2**24
# Variance that is added to the queries and keys of every step, so that steps that are nearly one can be told apart.
JITTER = 1e-6


class DrawnHeads:
    """The heads of one attention, whose steps are met in turn."""

    def __init__(self, attention: Attention, gain: float, size: int, tokens: int, pairs: float) -> None:
        self._attention, self._gain, self._size, self._tokens = attention, gain, size, tokens
        self._heads = heads_drawn(tokens, size, pairs)
        self._random = np.random.default_rng(0)
        self._begin()

    def _begin(self) -> None:
        self._factors: list[Array] = []  # rows of the Cholesky factor of all steps' covariance: of step k, (T, k T)
        self._inverses: list[Array] = []  # of its blocks on the diagonal, (T, T)
        self._normals: list[Array] = []  # of every step, (T, heads * size)
        self._shares: list[Array] = []  # of every step, (heads T, T), columns k of all heads in turn by row j

    def mixed(self, covariance: Array) -> Array:
        """E A c A' of a step and all steps with its weights, from c between them, (k, T, T)."""
        tokens = self._tokens
        if len(covariance) == 1:
            self._begin()
        latest = self._next_shares(covariance)
        self._shares.append(np.ascontiguousarray(latest.swapaxes(1, 2)).reshape(-1, tokens))
        rows = np.ascontiguousarray(latest.swapaxes(0, 1)).reshape(-1, tokens)
        pairs = zip(covariance.astype(np.float32), self._shares, strict=True)
        sums = [(rows @ between).reshape(tokens, -1) @ shares for between, shares in pairs]
        return np.asarray(sums, dtype=float) / self._heads

    def _next_shares(self, covariance: Array) -> Array:
        """Softmaxes (heads, T, T) at the latest step, given those at the others."""
        tokens, factor = self._tokens, self._next_factor(covariance)
        self._normals.append(self._random.standard_normal((tokens, self._heads * self._size)))
        blocks = zip(np.split(factor, len(covariance), axis=1), self._normals, strict=True)
        drawn = np.sum([block @ normals for block, normals in blocks], axis=0)
        queries, keys = self._turned(drawn.reshape(tokens, 2, -1, self._size).transpose(1, 2, 0, 3))
        logits = self._gain / np.sqrt(self._size) * queries @ keys.swapaxes(1, 2)
        logits = np.concatenate([logits, -logits])  # -q is as likely as q
        if self._attention.causal:
            logits = np.where(np.tri(tokens) > 0, logits, -np.inf)
        return np.asarray(softmax(logits, axis=2), dtype=np.float32)

    def _next_factor(self, covariance: Array) -> Array:
        """The latest rows of the Cholesky factor, (T, k T), by substitution from block to block of those above."""
        tokens = self._tokens
        factor = np.empty((tokens, covariance.shape[0] * tokens))
        for step, (above, inverse) in enumerate(zip(self._factors, self._inverses, strict=True)):
            known = step * tokens
            rest = covariance[step] - factor[:, :known] @ above[:, :known].T
            np.matmul(rest, inverse.T, out=factor[:, known : known + tokens])
        left = factor[:, :-tokens]
        own = np.linalg.cholesky(covariance[-1] - left @ left.T + JITTER * np.eye(tokens))
        factor[:, -tokens:] = own
        self._factors.append(factor)
        self._inverses.append(solve_triangular(own, np.eye(tokens), lower=True))
        return factor

    def _turned(self, columns: Array) -> Array:
        """Queries or keys (..., T, size), turned by rotary positions where there are any."""
        if not self._attention.rotary:
            return columns
        middle = self._size // 2
        angle = np.arange(self._tokens)[:, None] * ROTARY_BASE ** (-np.arange(middle) / middle)
        turned = (columns[..., :middle] + 1j * columns[..., middle:]) * np.exp(1j * angle)
        return np.concatenate([turned.real, turned.imag], axis=-1)


def heads_drawn(tokens: int, size: int, pairs: float) -> int:
    """An even number of heads, of this size, that so many pairs of steps are averaged over."""
    by_time = OPERATIONS / (4 * tokens**3 * pairs)
    by_room = HEAD_NUMBERS / (np.sqrt(pairs) * tokens * max(tokens, size))
    return 2 * int(np.clip(min(by_time, by_room), LEAST_HEADS, MOST_HEADS) // 2)
