"""What hidden units and softmaxes do to pairs and fours of tokens, tabulated as functions of the angle between two.

Tokens of white inputs are exchangeable. So E[Theta_{a p1, b p3} Theta_{a p2, b p4}], a and b two channels, depends
only on which of p1 .. p4 are one token: 15 patterns, written as tuples that number the tokens in the order of their
first place, (0, 0, 0, 0) to (0, 1, 2, 3). p1 and p2 are on the side of channel a, p3 and p4 on that of b.

After a normalisation two tokens are Gaussians of variance 1 and correlation rho = cos(angle), 0 <= rho <= 1. Gaussian
averages over them are smooth functions of the angle, also where they are not of rho (ReLU at rho = 1), and are kept
as Chebyshev series.

Feed-forward nets. Hidden units are Gaussians u of variance s at every token and correlation rho between two (gated
ones: u and an independent w of the same law). With X the feature sigma(u) or sigma(u) w,

    variance      E X^2
    contraction   (E X^2 - E X X') / (1 - rho)
    passed        E sigma' sigma', or E sigma' sigma' w w' + E sigma sigma: what a hidden unit hands on of a kernel
    fresh         the mean, by pattern of four tokens, of the product of that factor of tokens 1, 3 and that of 2, 4

Attention. The logits of a head are Gaussian where its size is large: those of rows i, j and columns k, l have
covariance s^2 c_ij c_kl with c = rho + (1 - rho) delta. What all columns of a row share drops out, so that a row A is
the softmax of independent N(0, s^2 (1 - rho)), and two rows correlate by rho. With D = diag(A) - A A^T, the
derivative of A in its logits, and rows A1 .. A4 of which those of one token are one (a pattern),

    agreement    E A_i . A_j                        response     E tr D_i D_j
    products     E (A1 . A3)(A2 . A4),  E (A1 . A3) tr D2 D4,  E tr D1 D3 (A2 . A4),
                 E tr D1 D3 tr D2 D4 + tr D1 D3 D2 D4
    chain        E tr D1 D3 D4 D2

Logits that vanish, at the scale 1/size, leave A = 1/tokens and no response.

Source: docs/theory.md section 19; Hron et al. 2020 for the kernel of softmax attention.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from math import prod

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import softmax

from meanfield.common.gaussian_averages import even_normals, points_within
from meanfield.common.validation import Array
from meanfield.nets.activations import Activation, activation_named
from meanfield.nets.maps import Gate, Pointwise


def _canonical(tokens: Sequence[int]) -> tuple[int, ...]:
    """The tokens renumbered in the order of their first place."""
    order = list(dict.fromkeys(tokens))
    return tuple(order.index(token) for token in tokens)


PATTERNS = sorted({_canonical(tokens) for tokens in product(range(4), repeat=4)})
PLACE = {pattern: place for place, pattern in enumerate(PATTERNS)}


def differ(first: int, second: int) -> Array:
    """By pattern: 0 if these two of the four tokens (counted from 1) are one, 1 if they are two."""
    return np.array([int(pattern[first - 1] != pattern[second - 1]) for pattern in PATTERNS])


def averages_over_two(tokens: int, side: int) -> Array:
    """Averages over the two tokens of one side (0: p1, p2; 1: p3, p4): (2, 2, patterns) shares of the patterns.

    The first axis says whether the two that are averaged over are one token (0) or two (1), the second whether the two
    of the other side are. Averages over two tokens are 0 where a sample has one token.
    """
    shares = np.zeros((2, 2, len(PATTERNS)))
    for apart, others in enumerate([(0, 0), (0, 1)]):
        for first, first_count in _choices(others, tokens):
            pair = (first, first)
            shares[0, apart, _place(pair, others, side)] += first_count / tokens
            for second, count in _choices((*others, first), tokens):
                if second != first and tokens > 1:
                    weight = first_count * count / (tokens * (tokens - 1))
                    shares[1, apart, _place((first, second), others, side)] += weight
    return shares


def _choices(known: Sequence[int], tokens: int) -> Iterator[tuple[int, int]]:
    """The tokens that are known, one of each, and a new one for all others, with their number."""
    named = sorted(set(known))
    yield from ((token, 1) for token in named)
    yield len(named), max(tokens - len(named), 0)


def _place(pair: tuple[int, int], others: tuple[int, int], side: int) -> int:
    return PLACE[_canonical(others + pair if side else pair + others)]


def tabulated(functions: Callable[[Array], Array], degree: int) -> Array:
    """Coefficients (degree + 1, functions) of ``functions``, which take angles (A,) and give (functions, A)."""
    nodes, scale = chebyshev_rule(degree)
    values = functions(np.pi / 4 * (1 + nodes))
    return np.ascontiguousarray((values @ chebyshev.chebvander(nodes, degree) * scale).T)


def chebyshev_rule(degree: int) -> tuple[Array, Array]:
    """The points in [-1, 1] of a Chebyshev series of this degree, and the factors of sums over them by order."""
    scale = np.full(degree + 1, 2 / (degree + 1))
    scale[0] /= 2
    return chebyshev.chebpts1(degree + 1), scale


HIDDEN_DEGREE = 40
# Nodes of the trapezoid rule over a standard normal, which is below 1e-17 beyond its reach.
REACH, NODES = 9.0, 121
GAUSS_NODES = 24


@dataclass(frozen=True)
class HiddenAverages:
    """``feature_variance`` and ``passed`` of one token; series (17, ...) of contraction, passed and fresh of two."""

    feature_variance: float
    passed: float
    series: Array


def hidden_averages(activation: Pointwise | Gate, variance: float) -> HiddenAverages:
    """Averages over hidden units of this variance."""
    sigma = activation_named(activation.activation)
    if activation.pointwise_activation is None:
        averages: Callable[[Array], Array] = partial(_by_quadrature, _gated_units, sigma, variance)
    elif sigma.name in ("relu", "linear"):
        averages = partial({"relu": _relu_units, "linear": _linear_units}[sigma.name], variance)
    else:
        averages = partial(_by_quadrature, _smooth_units, sigma, variance)
    feature_variance, passed, *_ = averages(np.zeros(1))[:, 0]
    return HiddenAverages(
        float(feature_variance), float(passed), tabulated(lambda angle: averages(angle)[2:], HIDDEN_DEGREE)
    )


def _linear_units(variance: float, angle: Array) -> Array:
    """Rows: variance, passed of one token; contraction, passed and fresh (15) of two: (19, A)."""
    return np.concatenate([np.full((3, len(angle)), [[variance], [1.0], [variance]]), np.ones((16, len(angle)))])


def _relu_units(variance: float, angle: Array) -> Array:
    both = (np.pi - angle) / (2 * np.pi)
    triple = 0.5 - 0.75 * angle / np.pi
    by_blocks = {1: np.full_like(angle, 0.5), 2: both, 3: triple, 4: _four_positive(angle)}
    fresh = [by_blocks[len(set(pattern))] for pattern in PATTERNS]
    half = np.sin(angle / 2)
    turned = np.divide(np.sin(angle) - angle * np.cos(angle), 2 * half**2, out=np.zeros_like(angle), where=angle > 0)
    contraction = 0.5 * variance * (1 - turned / np.pi)
    start = np.full((2, len(angle)), [[0.5 * variance], [0.5]])
    return np.concatenate([start, [contraction, both, *fresh]])


def _four_positive(angle: Array) -> Array:
    """The probability that four Gaussians, every two at this angle, are positive, by Plackett's derivative in rho."""
    nodes, weights = np.polynomial.legendre.leggauss(GAUSS_NODES)
    latest = np.pi / 2 - angle
    sine = np.sin(latest[:, None] * (1 + nodes) / 2)
    pairs = 0.25 + np.arcsin(sine / (1 + 2 * sine)) / (2 * np.pi)
    return np.asarray(1 / 16 + 3 / np.pi * latest / 2 * (pairs @ weights))


def _by_quadrature(
    kind: Callable[[Activation, float, float], Array], sigma: Activation, variance: float, angle: Array
) -> Array:
    """The rows of `_linear_units`, for analytic sigma: one angle after the other."""
    return np.stack([kind(sigma, variance, float(turn)) for turn in angle], axis=1)


def _normal_rule() -> tuple[Array, Array]:
    nodes = np.linspace(-REACH, REACH, NODES)
    weights = np.exp(-(nodes**2) / 2)
    return nodes, weights / weights.sum()


class _TokenMeans:
    """Means over hidden units u = sqrt(s) (sqrt(rho) x + sqrt(1 - rho) y), x shared by tokens and y of each token."""

    def __init__(self, sigma: Activation, variance: float, angle: float) -> None:
        nodes, self._weights = _normal_rule()
        self.correlation, self._variance, self._sigma, self._angle = np.cos(angle), variance, sigma, angle
        shared, own = np.sqrt(variance * max(self.correlation, 0.0)), np.sqrt(2 * variance) * np.sin(angle / 2)
        values = shared * nodes[:, None] + own * nodes
        self._factors = {"f": sigma.function(values), "g": sigma.gate(values)}

    def mean(self, pattern: Sequence[int], letters: str) -> float:
        """E of a product over positions of the tokens of ``pattern``: sigma where the letter is f, sigma' for g."""
        blocks = [
            prod(self._factors[letter] for token, letter in zip(pattern, letters, strict=True) if token == block)
            for block in set(pattern)
        ]
        return float(self._weights @ prod(np.asarray(block) @ self._weights for block in blocks))

    def half_square_difference(self) -> float:
        """E (sigma(u) - sigma(u'))^2 / (2 (1 - rho)), which keeps its digits as the angle vanishes."""
        nodes, weights = _normal_rule()
        if self._angle < 1e-6:
            return self._variance * self.mean((0, 0), "gg")
        apart = np.sqrt(self._variance) * np.sin(self._angle / 2) * nodes
        middle = np.sqrt(self._variance) * np.cos(self._angle / 2) * nodes[:, None]
        difference = self._sigma.function(middle + apart) - self._sigma.function(middle - apart)
        return float(weights @ (difference**2) @ weights / (4 * np.sin(self._angle / 2) ** 2))


def _smooth_units(sigma: Activation, variance: float, angle: float) -> Array:
    tokens = _TokenMeans(sigma, variance, angle)
    fresh = [tokens.mean(pattern, "gggg") for pattern in PATTERNS]
    same, apart = (0, 0), (0, 1)
    start = [
        tokens.mean(same, "ff"),
        tokens.mean(same, "gg"),
        tokens.half_square_difference(),
        tokens.mean(apart, "gg"),
    ]
    return np.array([*start, *fresh])


def _gated_units(sigma: Activation, variance: float, angle: float) -> Array:
    tokens = _TokenMeans(sigma, variance, angle)
    same, apart, rho = (0, 0), (0, 1), variance * tokens.correlation
    passed = [variance * tokens.mean(same, "gg") + tokens.mean(same, "ff"), rho * tokens.mean(apart, "gg")]
    passed[1] += tokens.mean(apart, "ff")
    contraction = variance * (tokens.mean(same, "ff") + tokens.correlation * tokens.half_square_difference())
    fresh = [_gated_fresh(tokens, pattern, variance) for pattern in PATTERNS]
    return np.array([variance * tokens.mean(same, "ff"), passed[0], contraction, passed[1], *fresh])


def _gated_fresh(tokens: _TokenMeans, pattern: Sequence[int], variance: float) -> float:
    """E (g1 g3 w1 w3 + f1 f3)(g2 g4 w2 w4 + f2 f4), f = sigma(u) and g = sigma'(u)."""

    def covariance(first: int, second: int) -> float:
        return variance * (1.0 if pattern[first] == pattern[second] else tokens.correlation)

    pairs = [((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2))]
    four = sum(covariance(*first) * covariance(*second) for first, second in pairs)
    return (
        four * tokens.mean(pattern, "gggg")
        + covariance(0, 2) * tokens.mean(pattern, "gfgf")
        + covariance(1, 3) * tokens.mean(pattern, "fgfg")
        + tokens.mean(pattern, "ffff")
    )


SOFTMAX_DEGREE = 12
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
    at = partial(_row_averages_at, _row_normals(tokens), logit_variance)
    return tabulated(lambda angles: np.stack([at(float(angle)) for angle in angles], axis=1), SOFTMAX_DEGREE)


def _row_normals(tokens: int) -> Array:
    """(5, points, tokens): what rows share, and four rows of their own."""
    points = points_within(NUMBERS / (5 * tokens), LEAST_POINTS, MOST_POINTS)
    return np.moveaxis(even_normals(5 * tokens).random(points).reshape(points, 5, tokens), 1, 0)


def _row_averages_at(normals: Array, logit_variance: float, angle: float) -> Array:
    """The rows of the table at one angle."""
    rho, (shared, *own) = max(np.cos(angle), 0.0), normals
    size = np.sqrt(2 * logit_variance) * np.sin(angle / 2)
    rows = [np.sqrt(rho) * shared + np.sqrt(1 - rho) * single for single in own]
    return _row_averages([softmax(size * row, axis=1) for row in rows])


def _row_averages(rows: Sequence[Array]) -> Array:
    """The rows of the table from four correlated rows (points, tokens)."""
    sums = _RowSums(rows)
    single = [sums.dot(0, 0), sums.dot(0, 1), sums.trace(0, 0), sums.trace(0, 1)]
    products = np.array([sums.products(*pattern) for pattern in PATTERNS]).T
    return np.concatenate([[float(value.mean()) for value in single], products.ravel()])


class _RowSums:
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
        """The four products and the chain of rows 1 .. 4."""
        agree, respond = (first, third), (second, fourth)
        values = [
            self.dot(*agree) * self.dot(*respond),
            self.dot(*agree) * self.trace(*respond),
            self.trace(*agree) * self.dot(*respond),
            self.trace(*agree) * self.trace(*respond) + self.trace(first, third, second, fourth),
            self.trace(first, third, fourth, second),
        ]
        return [float(value.mean()) for value in values]
