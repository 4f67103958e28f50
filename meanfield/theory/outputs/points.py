"""Functions of two points of a batch, and the sums over points that label and output term take of them.

A point is a sample and a site of its grid; N = samples x sites. `EveryPair` keeps N x N numbers and serves any input
and padding. `meanfield.theory.outputs.exchangeable` keeps four, where all points are alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.families.layered import Sequential
from meanfield.nets.lattice import OUTSIDE, neighbours, reversed_neighbours
from meanfield.theory.mean_field.shifts import sum_over_stencil


class Points(Protocol):
    """Two points p, r of a batch: arrays ``pairs`` of A(p, r); by point p: arrays ``values`` that multiply pairs."""

    def variances(self, pairs: Array) -> tuple[Array, Array]:
        """A(p, p) and A(r, r) for every pair, broadcastable to pairs."""

    def product(self, left: Array, right: Array) -> Array:
        """sum_s left(p, s) right(s, r)."""

    def contracted(self, left: Array, right: Array) -> Array:
        """sum_r left(p, r) right(p, r), by point p."""

    def diagonal(self, pairs: Array) -> Array:
        """(1/k) sum_Delta A(p + Delta, r + Delta)."""

    def pulled_back(self, pairs: Array) -> Array:
        """(1/k) sum_Delta A(p - Delta, r - Delta)."""

    def moved(self, values: Array) -> Array:
        """(1/k) sum_Delta v(p + Delta)."""

    def moved_back(self, values: Array) -> Array:
        """(1/k) sum_Delta v(p - Delta)."""

    def constant(self, value: float) -> Array:
        """The same value at every point."""

    def second(self, values: Array) -> Array:
        """v(r) for every pair: values by the second point."""

    def transpose(self, pairs: Array) -> Array:
        """A(r, p)."""

    def within_samples(self) -> Array:
        """1 for points of one sample, else 0."""

    def labels(self, covariance: Array, everywhere: bool) -> Array:
        """E y y' of labels of this covariance between samples, (B, B, S or 1), at the same site or ``everywhere``."""

    def by_site(self, values: Array) -> Array:
        """The mean of values over samples, broadcastable to sites."""


@dataclass(frozen=True)
class EveryPair:
    """Points kept one by one: pairs are arrays (N, N), values (N, 1).

    Where ``mirrored``, a mirror along any axis changes nothing, and products are taken for points in a corner alone.
    """

    architecture: Sequential
    mirrored: bool = False

    @property
    def count(self) -> int:
        return self.architecture.inputs * self.architecture.sites

    def variances(self, pairs: Array) -> tuple[Array, Array]:
        here = np.diagonal(pairs)
        return here[:, None], here[None]

    def product(self, left: Array, right: Array) -> Array:
        if not self.mirrored:
            return np.asarray(left @ right)
        net = self.architecture
        corner = left.reshape(net.inputs, *net.grid, -1)[:, *(slice((length + 1) // 2) for length in net.grid)]
        image = (corner.reshape(-1, len(left)) @ right).reshape(*corner.shape[:-1], net.inputs, *net.grid)
        for axis, length in enumerate(net.grid, start=1):
            first = image.take(range(length // 2), axis)
            image = np.concatenate([image, np.flip(first, (axis, axis + 1 + len(net.grid)))], axis)
        return image.reshape(left.shape)

    def contracted(self, left: Array, right: Array) -> Array:
        return np.vecdot(left, right)[:, None]

    def diagonal(self, pairs: Array) -> Array:
        net = self.architecture
        by_site = pairs.reshape(net.inputs, net.sites, net.inputs, net.sites)
        return sum_over_stencil(by_site, (0, 1), net.grid, net.kernel, net.padding).reshape(pairs.shape) / net.taps

    def pulled_back(self, pairs: Array) -> Array:
        """The stencil of opposite offsets is the same one on a grid that is read backwards."""
        return self.diagonal(pairs[::-1, ::-1])[::-1, ::-1]

    def moved(self, values: Array) -> Array:
        return self._averaged(values, neighbours(*self._lattice))

    def moved_back(self, values: Array) -> Array:
        return self._averaged(values, reversed_neighbours(*self._lattice))

    def constant(self, value: float) -> Array:
        return np.full((self.count, 1), value)

    def second(self, values: Array) -> Array:
        return values.T

    transpose = second

    def within_samples(self) -> Array:
        sites = self.architecture.sites
        return np.asarray(np.kron(np.eye(self.architecture.inputs), np.ones((sites, sites))), dtype=np.float64)

    def labels(self, covariance: Array, everywhere: bool) -> Array:
        sites = self.architecture.sites
        shared = np.ones((sites, sites)) if everywhere else np.eye(sites)
        return np.einsum("ijp,pr->ipjr", np.broadcast_to(covariance, (*covariance.shape[:2], sites)), shared).reshape(
            self.count, self.count
        )

    def by_site(self, values: Array) -> Array:
        return np.asarray(values.reshape(self.architecture.inputs, self.architecture.sites).mean(axis=0))

    @property
    def _lattice(self) -> tuple[tuple[int, ...], tuple[int, ...], str]:
        return self.architecture.grid, self.architecture.kernel, self.architecture.padding

    def _averaged(self, values: Array, table: np.ndarray) -> Array:
        net = self.architecture
        arriving = np.where(table == OUTSIDE, 0.0, values.reshape(net.inputs, net.sites)[:, table])
        return (arriving.sum(axis=1) / net.taps).reshape(self.count, 1)
