"""Attention at the scale size^(-1/2) over tokens that differ: heads drawn with their queries and keys at all steps.

At infinite width a head's queries and keys are Gaussian over steps and tokens, channel by channel, of covariance s c, c
being that of the normalised stream. They are drawn step by step given those before, for so many heads of the net's own
size. Rotary positions and causal masks act on them as in the net, and what values contribute is averaged exactly,

    E x_u(i) x_v(j) = s sum_kl E[A_u(i, k) A_v(j, l)] c_uv(k, l).

So the limit is that of many heads of this size, up to the error of an average over the heads that are drawn.

Source: docs/theory.md section 22.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import softmax

from meanfield.common.arrays import Array
from meanfield.nets.maps import Attention

# Operations that the averages over heads may take, the fewest and most heads, and the most numbers that they hold.
OPERATIONS, LEAST_HEADS, MOST_HEADS, NUMBERS = 2e9, 8, 512, 2**24
# Variance that is added to the queries and keys of every step, so that steps that are nearly one can be told apart.
JITTER = 1e-6
ROTARY_BASE = 10_000.0


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
    by_room = NUMBERS / (np.sqrt(pairs) * tokens * max(tokens, size))
    return 2 * int(np.clip(min(by_time, by_room), LEAST_HEADS, MOST_HEADS) // 2)
