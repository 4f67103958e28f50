"""Averages over the softmax of Gaussian logits that attention needs, as functions of the angle between two tokens.

The logits of a head are Gaussian where its size is large: those of rows i, j and columns k, l have covariance
s^2 c_ij c_kl with c = rho + (1 - rho) delta. What all columns of a row share drops out, so that a row A is the softmax
of independent N(0, s^2 (1 - rho)), and two rows correlate by rho. With D = diag(A) - A A^T, the derivative of A in its
logits, and rows A1 .. A4 of which those of one token are one (a pattern),

    agreement    E A_i . A_j                        response     E tr D_i D_j
    products     E (A1 . A3)(A2 . A4),  E (A1 . A3) tr D2 D4,  E tr D1 D3 (A2 . A4),
                 E tr D1 D3 tr D2 D4 + tr D1 D3 D2 D4
    chain        E tr D1 D3 D4 D2

Logits that vanish, at the scale 1/size, leave A = 1/tokens and no response.

Source: docs/theory.md section 19; Hron et al. 2020 for the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np
from scipy.special import softmax

from meanfield.common.arrays import Array
from meanfield.common.quasi_random import even_normals
from meanfield.theory.transformers.patterns import PATTERNS
from meanfield.theory.transformers.series import tabulated

DEGREE = 12
# Points of the average, a power of 2, and the numbers that all of them hold.
LEAST_POINTS, MOST_POINTS, NUMBERS = 2**10, 2**13, 2**21
# Of the sequence of points, which has 21201 dimensions, five for every token.
MOST_TOKENS = 4240

# Rows of the table: agreement and response of one row and of two, and five averages of every pattern.
AGREEMENT, RESPONSE, PRODUCTS, CHAIN = 0, 2, 4, 4 + 4 * len(PATTERNS)
ROWS = CHAIN + len(PATTERNS)


def uniform_averages(tokens: int) -> Array:
    """The table of logits that vanish: (1, ROWS)."""
    table = np.zeros((1, ROWS))
    table[:, AGREEMENT : AGREEMENT + 2] = 1 / tokens
    table[:, PRODUCTS : PRODUCTS + len(PATTERNS)] = 1 / tokens**2
    return table


@lru_cache(maxsize=16)
def softmax_averages(tokens: int, logit_variance: float) -> Array:
    """The table of logits of this variance s^2 (of tokens of variance 1), by scrambled Sobol points: (terms, ROWS)."""
    at = partial(_averages_at, _normals(tokens), logit_variance)
    return tabulated(lambda angles: np.stack([at(float(angle)) for angle in angles], axis=1), DEGREE)


def _normals(tokens: int) -> Array:
    """(5, points, tokens): what rows share, and four rows of their own."""
    points = int(np.clip(2 ** int(np.log2(NUMBERS / (5 * tokens))), LEAST_POINTS, MOST_POINTS))
    return np.moveaxis(even_normals(5 * tokens).random(points).reshape(points, 5, tokens), 1, 0)


def _averages_at(normals: Array, logit_variance: float, angle: float) -> Array:
    """The rows of the table at one angle."""
    rho, (shared, *own) = max(np.cos(angle), 0.0), normals
    size = np.sqrt(2 * logit_variance) * np.sin(angle / 2)
    rows = [np.sqrt(rho) * shared + np.sqrt(1 - rho) * single for single in own]
    return _averages([softmax(size * row, axis=1) for row in rows])


def _averages(rows: Sequence[Array]) -> Array:
    """The rows of the table from four correlated rows (points, tokens)."""
    sums = _Sums(rows)
    single = [sums.dot(0, 0), sums.dot(0, 1), sums.trace(0, 0), sums.trace(0, 1)]
    products = np.array([sums.products(*pattern) for pattern in PATTERNS]).T
    return np.concatenate([[float(value.mean()) for value in single], products.ravel()])


class _Sums:
    """Sums over columns of products of rows, by point, each made once."""

    def __init__(self, rows: Sequence[Array]) -> None:
        self._rows = rows
        self._made: dict[tuple[int, ...], Array] = {}

    def dot(self, *rows: int) -> Array:
        """sum_k of the product of these rows."""
        key = tuple(sorted(rows))
        if key not in self._made:
            self._made[key] = np.prod([self._rows[row] for row in key], axis=0).sum(axis=1)
        return self._made[key]

    def trace(self, *cycle: int) -> Array:
        """tr of the product of the D = diag(A) - A A^T of these rows: a sum over which of them are A A^T."""
        total = self.dot(*cycle).copy()
        count = len(cycle)
        for chosen in range(1, 2**count):
            cuts = [place for place in range(count) if chosen >> place & 1]
            term = np.full_like(total, (-1.0) ** len(cuts))
            for start, end in zip(cuts, [*cuts[1:], cuts[0] + count], strict=True):
                term *= self.dot(*(cycle[place % count] for place in range(start, end + 1)))
            total += term
        return total

    def products(self, first: int, second: int, third: int, fourth: int) -> list[float]:
        """Of rows 1 .. 4: the four products and the chain."""
        agree, respond = (first, third), (second, fourth)
        values = [
            self.dot(*agree) * self.dot(*respond),
            self.dot(*agree) * self.trace(*respond),
            self.trace(*agree) * self.dot(*respond),
            self.trace(*agree) * self.trace(*respond) + self.trace(first, third, second, fourth),
            self.trace(first, third, fourth, second),
        ]
        return [float(value.mean()) for value in values]
