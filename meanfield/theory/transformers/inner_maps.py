"""What the inner map of a branch does to second moments over all pairs of points, with no symmetry among them.

An inner map has channels of covariance c and kernel K over points below it. Three things follow,

    up      O X    second moments of changes, alike and independent over channels, from below to above
    down    O^T C  second moments of errors from above to below
    fresh   E[Q C Q^T]  what errors of covariance C above do to the changes of a channel there, through the kernels Q
            from every channel of the map's own unit (or head) to it, given the values

Errors and moments have a leading axis, (..., N, N).

Source: docs/theory.md section 19.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from meanfield.common.arrays import Array
from meanfield.common.quasi_random import even_normals
from meanfield.nets.activations import Activation, activation_named
from meanfield.nets.maps import Attention, Gate, Map, Pointwise
from meanfield.theory.maps.base import Kinds, count
from meanfield.theory.maps.mixing import even_shares
from meanfield.theory.maps.softmax import POINTS, TOGETHER, drawn_shares, response, root

# Points of the averages over four gates and over heads, a power of 2, and the products that their matrices take.
LEAST_POINTS, MOST_POINTS, PRODUCTS = POINTS, 2**14, 2**26
# Values of a head that are drawn for every draw of its logits.
HEAD_CHANNELS = 4


class InnerMap(ABC):
    """The three passes of an inner map."""

    @abstractmethod
    def up(self, moments: Array) -> Array:
        """O X."""

    @abstractmethod
    def down(self, errors: Array) -> Array:
        """O^T C."""

    @abstractmethod
    def fresh(self, errors: Array) -> Array:
        """E[Q C Q^T]."""


def inner_map(part: Map, below: Kinds) -> InnerMap:
    """That of a branch, from the channels below it, which are alike."""
    covariance, kernel = below[0].covariance, below[0].kernel
    shape, points = covariance.shape, below[0].mean.size
    pairs = covariance.reshape(points, points), kernel.reshape(points, points)
    if isinstance(part, Attention):
        if part.scale == "inverse":
            return EvenAttention(np.asarray(np.kron(np.eye(shape[0]), even_shares(part, shape[1]))), pairs[1])
        return SoftmaxAttention(part, *pairs, shape, count(below) // 3 // part.heads)
    assert isinstance(part, Pointwise | Gate)
    sigma = activation_named(part.activation)
    return GatedUnits(sigma, *pairs) if isinstance(part, Gate) else HiddenUnits(sigma, *pairs)


@dataclass(frozen=True)
class EvenAttention(InnerMap):
    """Logits that vanish: fixed ``shares`` (N, N) of the values."""

    shares: Array
    kernel: Array

    def up(self, moments: Array) -> Array:
        return self.shares @ moments @ self.shares.T

    def down(self, errors: Array) -> Array:
        return self.shares.T @ errors @ self.shares

    def fresh(self, errors: Array) -> Array:
        kernel = self.up(self.kernel)
        return kernel @ errors @ kernel


@dataclass(frozen=True)
class HiddenUnits(InnerMap):
    """sigma(u) with u of ``covariance``: Q(p, p') = sigma'_p sigma'_p' K(p, p')."""

    sigma: Activation
    covariance: Array
    kernel: Array

    def up(self, moments: Array) -> Array:
        return self.passed() * moments

    def down(self, errors: Array) -> Array:
        return self.passed() * errors

    def passed(self) -> Array:
        """E Q / K."""
        return self._of_pairs(self.sigma.gate_product)

    def fresh(self, errors: Array) -> Array:
        return _mean_square(self._drawn_kernels(), errors)

    def _of_pairs(self, product: Callable[[Array, Array, Array], Array]) -> Array:
        variances = np.diag(self.covariance)
        return product(variances[:, None], variances, self.covariance)

    def _drawn_kernels(self) -> Iterator[Array]:
        for (u,) in _drawn(self.covariance, 1):
            yield _scaled(self.sigma.gate(u), self.kernel)


@dataclass(frozen=True)
class GatedUnits(HiddenUnits):
    """sigma(u) w: Q = sigma' sigma' w w' K + sigma sigma K."""

    def passed(self) -> Array:
        return self._of_pairs(self.sigma.gate_product) * self.covariance + self._of_pairs(self.sigma.product)

    def _drawn_kernels(self) -> Iterator[Array]:
        for u, w in _drawn(self.covariance, 2):
            yield _scaled(self.sigma.gate(u) * w, self.kernel) + _scaled(self.sigma.function(u), self.kernel)


def _drawn(covariance: Array, kinds: int) -> Iterator[Array]:
    """Gaussians of this covariance, ``kinds`` of them: (kinds, TOGETHER, N), `_points` in all."""
    turn, points = root(covariance), len(covariance)
    normals = even_normals(kinds * points)
    for _ in range(_points(points) // TOGETHER):
        yield normals.random(TOGETHER).reshape(TOGETHER, kinds, points).swapaxes(0, 1) @ turn.T


def _points(sites: int) -> int:
    return int(np.clip(2 ** int(np.log2(PRODUCTS / sites**3)), LEAST_POINTS, MOST_POINTS))


def _scaled(factors: Array, kernel: Array) -> Array:
    return factors[:, :, None] * kernel * factors[:, None]


def _mean_square(kernels: Iterator[Array], errors: Array) -> Array:
    """E[Q C Q^T]."""
    total = sum(np.einsum("dpr,...rs,dqs->...pq", drawn, errors, drawn, optimize=True) for drawn in kernels)
    return np.asarray(total / _points(errors.shape[-1]))


@dataclass(frozen=True)
class SoftmaxAttention(InnerMap):
    """Heads of ``size`` channels, rows A of softmaxes of Gaussian logits, D their derivatives.

    Queries, keys and values have the same c and K. Between channels a, b of a head, with values x_a, x_b,

        Q_ab(i, j) = delta_ab (A K A^T)(i, j) + sum_rs [x_a D_i]_r (K(i, j) c(r, s) + c(i, j) K(r, s)) [D_j x_b]_s
    """

    attention: Attention
    covariance: Array
    kernel: Array
    shape: tuple[int, ...]
    size: int

    def up(self, moments: Array) -> Array:
        covariance, total = self.covariance, np.zeros_like(moments)
        for shares, _ in self._shares():
            for place in np.ndindex(moments.shape[:-2]):
                moment = moments[place]
                turned = shares @ moment @ shares.swapaxes(1, 2)
                turned = turned + moment * response(shares, covariance, covariance)
                total[place] += (turned + covariance * response(shares, covariance, moment)).sum(axis=0)
        return total / POINTS

    def down(self, errors: Array) -> Array:
        covariance, total = self.covariance, np.zeros_like(errors)
        for shares, _ in self._shares():
            turned = shares.swapaxes(1, 2)
            for place in np.ndindex(errors.shape[:-2]):
                error = errors[place]
                back = turned @ error @ shares + error * response(shares, covariance, covariance)
                total[place] += (back + self._response_back(shares, error * covariance)).sum(axis=0)
        return total / POINTS

    def _response_back(self, shares: Array, weights: Array) -> Array:
        """sum_ij w_ij D_i c D_j."""
        turned, seen = shares.swapaxes(1, 2), shares @ self.covariance
        cross = turned @ (seen * (weights @ shares))
        both = turned @ (weights * (seen @ turned)) @ shares
        return (turned @ weights @ shares) * self.covariance - cross - cross.swapaxes(1, 2) + both

    def fresh(self, errors: Array) -> Array:
        channels, points = HEAD_CHANNELS, len(self.covariance)
        turn, total = root(self.covariance), np.zeros_like(errors)
        for shares, normals in self._shares(channels * points, _points(points)):
            values = normals.reshape(-1, channels, points) @ turn.T
            carried = shares @ self.kernel @ shares.swapaxes(1, 2)
            for first in range(channels):
                moved = self._moved(shares, values[:, first])
                for second in range(channels):
                    kernel = moved(values[:, second])
                    if first == second:
                        kernel, weight = kernel + carried, 1 / channels
                    else:
                        weight = (self.size - 1) / channels / (channels - 1)
                    total += weight * np.einsum("dpr,...rs,dqs->...pq", kernel, errors, kernel, optimize=True)
        return total / _points(points)

    def _moved(self, shares: Array, values: Array) -> Callable[[Array], Array]:
        """The part of Q by changes of logits as a function of x_b, for this x_a, both (points, N)."""
        turned = shares.swapaxes(1, 2)
        slopes = shares * (values[:, None] - (shares @ values[:, :, None]))
        sides = [(self.kernel, slopes @ self.covariance), (self.covariance, slopes @ self.kernel)]

        def kernel(others: Array) -> Array:
            weighed = turned * others[:, :, None]
            middle = (shares @ others[:, :, None]).swapaxes(1, 2)
            parts = [factor * (side @ weighed - (side @ turned) * middle) for factor, side in sides]
            return np.asarray(parts[0] + parts[1])

        return kernel

    def _shares(self, others: int = 0, points: int = POINTS) -> Iterator[tuple[Array, Array]]:
        return drawn_shares(self.attention, self.covariance, self.covariance, self.shape, others, points)
