"""What the inner map of a branch does to errors and changes over all pairs of points, with no symmetry among them.

An inner map x = phi(u) has channels u of covariance c and kernel K over points below it. Errors U and changes T, per
channel, have the letters of `meanfield.theory.transformers.every_pair`. Two things follow,

    down    from C and mu above: E U U' below, and the response E[U u'] c^(-1) to the values there
    up      from E T T' and E T u' below but for a channel's own errors, and from C and mu above: E T T' and E T x'
            above, where T gains Q U, Q(p, p') the kernel of a unit, or of a head, given its values

Errors and moments have a leading axis, (..., N, N).

Source: docs/theory.md section 19.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from meanfield.common.gaussian_averages import even_normals, points_within
from meanfield.common.machine import progress
from meanfield.common.validation import Array
from meanfield.nets.activations import Activation, activation_named
from meanfield.nets.maps import Attention
from meanfield.nets.transformer import TokenBranch
from meanfield.theory.maps import (
    POINTS,
    TOGETHER,
    Kinds,
    count,
    drawn_shares,
    even_shares,
    replicates_in_use,
    response,
    root,
)

# Points of the averages over four gates and over heads, a power of 2, and the products that their matrices take.
LEAST_POINTS, MOST_POINTS, PRODUCTS = 2**9, 2**14, 2**26
# Values of a head that are drawn for every draw of its logits.
HEAD_CHANNELS = 4


class InnerMap(ABC):
    """The two passes of an inner map."""

    @abstractmethod
    def down(self, noise: Array, features: Array) -> tuple[Array, Array]:
        """E U U' and the response below it."""

    @abstractmethod
    def up(self, moments: Array, along: Array, noise: Array, features: Array) -> tuple[Array, Array]:
        """E T T' and E T x' above it."""


def inner_map(branch: TokenBranch, below: Kinds) -> InnerMap:
    """That of a branch, from the channels below it, which are alike; attention at scale "inverse" sees values alone."""
    attention, activation = branch.attention, branch.inner
    covariance, kernel = below[-1].covariance, below[-1].kernel
    shape, points = covariance.shape, below[0].mean.size
    pairs = covariance.reshape(points, points), kernel.reshape(points, points)
    if attention and attention.scale == "inverse":
        return EvenAttention(np.asarray(np.kron(np.eye(shape[0]), even_shares(attention, shape[1]))), *pairs)
    if attention:
        return SoftmaxAttention(attention, *pairs, shape, count(below) // 3 // attention.heads)
    units = GatedUnits if activation.pointwise_activation is None else HiddenUnits
    return units(activation_named(activation.activation), *pairs)


@dataclass(frozen=True)
class EvenAttention(InnerMap):
    """Logits that vanish: fixed ``shares`` P (N, N) of the values, x = P u."""

    shares: Array
    covariance: Array
    kernel: Array

    def down(self, noise: Array, features: Array) -> tuple[Array, Array]:
        above = self._mixed(self.covariance)
        moments = noise + features @ above @ features.swapaxes(-1, -2)
        return self.shares.T @ moments @ self.shares, self.shares.T @ features @ self.shares

    def up(self, moments: Array, along: Array, noise: Array, features: Array) -> tuple[Array, Array]:
        own = self.kernel @ self.shares.T @ features @ self.shares
        cross = along @ own.swapaxes(-1, -2)
        driven = self.kernel @ self.shares.T @ noise @ self.shares @ self.kernel
        driven = driven + own @ self.covariance @ own.swapaxes(-1, -2)
        below = moments + cross + cross.swapaxes(-1, -2) + driven
        return self._mixed(below), self._mixed(along + own @ self.covariance)

    def _mixed(self, pairs: Array) -> Array:
        return np.asarray(self.shares @ pairs @ self.shares.T)


@dataclass(frozen=True)
class HiddenUnits(InnerMap):
    """x = sigma(u): Q(p, p') = sigma'_p sigma'_p' K(p, p')."""

    sigma: Activation
    covariance: Array
    kernel: Array

    def passed(self) -> Array:
        """E Q / K."""
        return self._of_pairs(self.sigma.gate_product)

    def draws(self) -> Iterator[tuple[Array, list[tuple[Array, Array]]]]:
        """Units x (points, N), and by stack of weights below them what they are made of, with its derivative."""
        for (u,) in _drawn(self.covariance, 1):
            yield self.sigma.function(u), [(u, self.sigma.gate(u))]

    def down(self, noise: Array, features: Array) -> tuple[Array, Array]:
        if not features.any():
            return self.passed() * noise, features
        inverse, squares, slopes = np.linalg.pinv(self.covariance), np.zeros_like(noise), np.zeros_like(noise)
        for units, stacks in self.draws():
            felt = units @ features.swapaxes(-1, -2)
            for below, slope in stacks:
                errors = (slope * felt).swapaxes(-1, -2)
                squares += errors @ errors.swapaxes(-1, -2)
                slopes += errors @ below
        points = _points(len(self.covariance))
        return self.passed() * noise + squares / points, slopes @ inverse / points

    def up(self, moments: Array, along: Array, noise: Array, features: Array) -> tuple[Array, Array]:
        """With y = m + rest, m the part of the change along u: T = sum over stacks of sigma' m, and Q U."""
        shares = along @ np.linalg.pinv(self.covariance)
        left = moments - shares @ along.swapaxes(-1, -2)
        squares, with_units = np.zeros_like(moments), np.zeros_like(moments)
        for units, stacks in self.draws():
            kernels = np.sum([slope[:, :, None] * self.kernel * slope[:, None] for _, slope in stacks], axis=0)
            squares += _sum_of_squares(kernels, noise)
            if features.any():
                felt = units @ features.swapaxes(-1, -2)
                moved = (kernels @ felt[..., None])[..., 0]
                moved = moved + sum(slope * (below @ shares.swapaxes(-1, -2)) for below, slope in stacks)
                squares += moved.swapaxes(-1, -2) @ moved
                with_units += moved.swapaxes(-1, -2) @ units
        points = _points(len(self.covariance))
        return self.passed() * left + squares / points, with_units / points

    def _of_pairs(self, product: Callable[[Array, Array, Array], Array]) -> Array:
        variances = np.diag(self.covariance)
        return product(variances[:, None], variances, self.covariance)


@dataclass(frozen=True)
class GatedUnits(HiddenUnits):
    """x = sigma(u) w: Q = (sigma' sigma' w w' + sigma sigma) K."""

    def passed(self) -> Array:
        return self._of_pairs(self.sigma.gate_product) * self.covariance + self._of_pairs(self.sigma.product)

    def draws(self) -> Iterator[tuple[Array, list[tuple[Array, Array]]]]:
        for u, w in _drawn(self.covariance, 2):
            signal = self.sigma.function(u)
            yield signal * w, [(u, self.sigma.gate(u) * w), (w, signal)]


def _drawn(covariance: Array, kinds: int) -> Iterator[Array]:
    """Gaussians of this covariance, ``kinds`` of them: (kinds, TOGETHER, N), `_points` in all."""
    turn, sites = root(covariance), len(covariance)
    normals = even_normals(kinds * sites)
    for _ in range(_points(sites) // TOGETHER):
        yield normals.random(TOGETHER).reshape(TOGETHER, kinds, sites).swapaxes(0, 1) @ turn.T


def _sum_of_squares(kernels: Array, errors: Array) -> Array:
    """sum_d Q_d C Q_d^T of kernels (d, N, N)."""
    return np.asarray((kernels @ errors[..., None, :, :] @ kernels.swapaxes(1, 2)).sum(axis=-3))


def _points(sites: int) -> int:
    return points_within(PRODUCTS / sites**3, LEAST_POINTS, MOST_POINTS)


@dataclass(frozen=True)
class SoftmaxAttention(InnerMap):
    """Heads of ``size`` channels, rows A of softmaxes of Gaussian logits, D their derivatives; few outputs, mu = 0.

    Queries, keys and values have the same c and K. Between channels a, b of a head, with values x_a, x_b,

        Q_ab(i, j) = delta_ab (A K A^T)(i, j) + sum_rs [x_a D_i]_r (K(i, j) c(r, s) + c(i, j) K(r, s)) [D_j x_b]_s
    """

    attention: Attention
    covariance: Array
    kernel: Array
    shape: tuple[int, ...]
    size: int

    def up(self, moments: Array, along: Array, noise: Array, features: Array) -> tuple[Array, Array]:
        return self._carried(moments) + self._fresh(noise), np.zeros_like(along)

    def _carried(self, moments: Array) -> Array:
        covariance, total = self.covariance, np.zeros_like(moments)
        for shares, _ in self._shares():
            for place in np.ndindex(moments.shape[:-2]):
                moment = moments[place]
                turned = shares @ moment @ shares.swapaxes(1, 2)
                turned = turned + moment * response(shares, covariance, covariance)
                total[place] += (turned + covariance * response(shares, covariance, moment)).sum(axis=0)
        return total / (POINTS * _replicates(POINTS))

    def down(self, noise: Array, features: Array) -> tuple[Array, Array]:
        return self._transposed(noise), np.zeros_like(features)

    def _transposed(self, errors: Array) -> Array:
        covariance, total = self.covariance, np.zeros_like(errors)
        for shares, _ in self._shares():
            turned = shares.swapaxes(1, 2)
            for place in np.ndindex(errors.shape[:-2]):
                error = errors[place]
                back = turned @ error @ shares + error * response(shares, covariance, covariance)
                total[place] += (back + self._response_back(shares, error * covariance)).sum(axis=0)
        return total / (POINTS * _replicates(POINTS))

    def _response_back(self, shares: Array, weights: Array) -> Array:
        """sum_ij w_ij D_i c D_j."""
        turned, seen = shares.swapaxes(1, 2), shares @ self.covariance
        cross = turned @ (seen * (weights @ shares))
        both = turned @ (weights * (seen @ turned)) @ shares
        return (turned @ weights @ shares) * self.covariance - cross - cross.swapaxes(1, 2) + both

    def _fresh(self, errors: Array) -> Array:
        """E Q C Q^T, by values that are drawn for every draw of the logits."""
        channels, points = HEAD_CHANNELS, len(self.covariance)
        turn, total = root(self.covariance), np.zeros_like(errors)
        drawn = self._shares(channels * points, _points(points))
        for shares, normals in progress(drawn, _points(points) // TOGETHER, "batch"):
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
                    total += weight * _sum_of_squares(kernel, errors)
        return total / (_points(points) * _replicates(_points(points)))

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
        """Yield the shares of `_replicates` of so many points."""
        for replicate in range(_replicates(points)):
            covariance = self.covariance
            yield from drawn_shares(self.attention, covariance, covariance, self.shape, others, points, replicate)


def _replicates(points: int) -> int:
    """Scramblings of so many points that have as many in all as the branch's own covariance and kernel took."""
    return max(1, POINTS * replicates_in_use() // points)
