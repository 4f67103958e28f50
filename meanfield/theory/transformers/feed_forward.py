"""What a feed-forward net's hidden units do to pairs and fours of tokens, as functions of the angle between two.

Hidden units are Gaussians u of variance s at every token and correlation rho between two (gated ones: u and an
independent w of the same law). With X the feature sigma(u) or sigma(u) w,

    variance      E X^2
    contraction   (E X^2 - E X X') / (1 - rho)
    passed        E sigma' sigma', or E sigma' sigma' w w' + E sigma sigma: what a hidden unit hands on of a kernel
    fresh         the mean, by pattern of four tokens, of the product of that factor of tokens 1, 3 and that of 2, 4

Source: docs/theory.md section 19.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.activations import Activation, activation_named
from meanfield.nets.maps import Gate, Pointwise
from meanfield.theory.transformers.patterns import PATTERNS
from meanfield.theory.transformers.series import tabulated

DEGREE = 40
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
    if isinstance(activation, Gate):
        averages: Callable[[Array], Array] = partial(_by_quadrature, _gated, sigma, variance)
    elif sigma.name in ("relu", "linear"):
        averages = partial({"relu": _relu, "linear": _linear}[sigma.name], variance)
    else:
        averages = partial(_by_quadrature, _pointwise, sigma, variance)
    feature_variance, passed, *_ = averages(np.zeros(1))[:, 0]
    return HiddenAverages(float(feature_variance), float(passed), tabulated(lambda angle: averages(angle)[2:], DEGREE))


def _linear(variance: float, angle: Array) -> Array:
    """Rows: variance, passed of one token; contraction, passed and fresh (15) of two: (19, A)."""
    return np.concatenate([np.full((3, len(angle)), [[variance], [1.0], [variance]]), np.ones((16, len(angle)))])


def _relu(variance: float, angle: Array) -> Array:
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
    """Rows as of `_linear`, for analytic sigma: one angle after the other."""
    return np.stack([kind(sigma, variance, float(turn)) for turn in angle], axis=1)


def _normal() -> tuple[Array, Array]:
    nodes = np.linspace(-REACH, REACH, NODES)
    weights = np.exp(-(nodes**2) / 2)
    return nodes, weights / weights.sum()


class _Tokens:
    """Means over hidden units u = sqrt(s) (sqrt(rho) x + sqrt(1 - rho) y), x shared by tokens and y of each token."""

    def __init__(self, sigma: Activation, variance: float, angle: float) -> None:
        nodes, self._weights = _normal()
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
        nodes, weights = _normal()
        if self._angle < 1e-6:
            return self._variance * self.mean((0, 0), "gg")
        apart = np.sqrt(self._variance) * np.sin(self._angle / 2) * nodes
        middle = np.sqrt(self._variance) * np.cos(self._angle / 2) * nodes[:, None]
        difference = self._sigma.function(middle + apart) - self._sigma.function(middle - apart)
        return float(weights @ (difference**2) @ weights / (4 * np.sin(self._angle / 2) ** 2))


def _pointwise(sigma: Activation, variance: float, angle: float) -> Array:
    tokens = _Tokens(sigma, variance, angle)
    fresh = [tokens.mean(pattern, "gggg") for pattern in PATTERNS]
    same, apart = (0, 0), (0, 1)
    start = [
        tokens.mean(same, "ff"),
        tokens.mean(same, "gg"),
        tokens.half_square_difference(),
        tokens.mean(apart, "gg"),
    ]
    return np.array([*start, *fresh])


def _gated(sigma: Activation, variance: float, angle: float) -> Array:
    tokens = _Tokens(sigma, variance, angle)
    same, apart, rho = (0, 0), (0, 1), variance * tokens.correlation
    passed = [variance * tokens.mean(same, "gg") + tokens.mean(same, "ff"), rho * tokens.mean(apart, "gg")]
    passed[1] += tokens.mean(apart, "ff")
    contraction = variance * (tokens.mean(same, "ff") + tokens.correlation * tokens.half_square_difference())
    fresh = [_gated_fresh(tokens, pattern, variance) for pattern in PATTERNS]
    return np.array([variance * tokens.mean(same, "ff"), passed[0], contraction, passed[1], *fresh])


def _gated_fresh(tokens: _Tokens, pattern: Sequence[int], variance: float) -> float:
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
