"""How one layer carries second moments over pairs of sites.

Two representations with one interface. `SitePairs` keeps every pair of sites of the batch and serves any input
and any padding. `Displacements` keeps one number per displacement, enough on a circular grid with a stationary
input, for pairs within one sample and pairs of different samples.

    diagonal(A) = Tr(A)/k        both sites step by the same offset        (one weight matrix seen twice)
    independent(A) = Pk A Pk^T/k^2   each site steps by its own offset     (two independent weight matrices)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.families.layered import Sequential
from meanfield.nets.lattice import neighbours, reversed_neighbours
from meanfield.theory.mean_field.shifts import sum_over_stencil


class Transport(Protocol):
    """What the mean-field recursion asks of a representation of site pairs."""

    def diagonal(self, pairs: Array) -> Array:
        """Tr(A)/k = (1/k) sum_Delta S_Delta A S_Delta^T."""

    def independent(self, pairs: Array) -> Array:
        """Pk A Pk^T / k^2 with Pk = sum_Delta S_Delta."""

    def first(self, pairs: Array) -> Array:
        """Pk A / k, the first site steps alone; any leading axes are carried along."""

    def transpose(self, pairs: Array) -> Array:
        """A with its two sites exchanged."""

    def variances(self, pairs: Array) -> tuple[Array, Array]:
        """c(p, p) and c(p', p') for every pair, broadcastable to the pairs."""

    def mean(self, pairs: Array) -> float:
        """Average over all pairs of sites."""

    def by_site(self, pairs: Array) -> Array:
        """Average over second sites and samples alone, by first site: (S,)."""


@dataclass(frozen=True)
class _OfNet:
    net: Sequential

    @property
    def lattice(self) -> tuple[tuple[int, ...], tuple[int, ...], str]:
        """Grid, kernel and padding."""
        return self.net.grid, self.net.kernel, self.net.padding


class SitePairs(_OfNet):
    """All pairs of sites of the batch: arrays (B, S, B, S)."""

    def diagonal(self, pairs: Array) -> Array:
        return self._averaged(pairs, 0, 1)

    def independent(self, pairs: Array) -> Array:
        return self._averaged(self._averaged(pairs, 0), 1)

    def first(self, pairs: Array) -> Array:
        return self._averaged(pairs, 0)

    def transpose(self, pairs: Array) -> Array:
        return pairs.transpose(2, 3, 0, 1)

    def variances(self, pairs: Array) -> tuple[Array, Array]:
        return both_sides(np.einsum("bpbp->bp", pairs))

    def mean(self, pairs: Array) -> float:
        return float(pairs.mean())

    def by_site(self, pairs: Array) -> Array:
        return np.asarray(pairs.mean(axis=(0, 2, 3)))

    def _averaged(self, pairs: Array, *sides: int) -> Array:
        """(1/k) times the sum over the stencil, these sides of the pairs stepping together."""
        total = sum_over_stencil(pairs, sides, *self.lattice)
        if self.net.kernel:
            total /= self.net.taps
        return total


def both_sides(by_site: Array) -> tuple[Array, Array]:
    """Numbers of every sample and site (B, S) at the first and at the second site of pairs, broadcastable to them."""
    return by_site[:, :, None, None], by_site[None, None]


class Displacements(_OfNet):
    """One number per displacement, for pairs within a sample and, where there are several, of different ones.

    Arrays (1 or 2, S); the displacement is that of the second site from the first.
    """

    def diagonal(self, pairs: Array) -> Array:
        return pairs

    def independent(self, pairs: Array) -> Array:
        return np.asarray(self.first(pairs)[..., neighbours(*self.lattice)].mean(axis=-2))

    def first(self, pairs: Array) -> Array:
        if self.net.taps == 1:
            return pairs
        return np.asarray(pairs[..., reversed_neighbours(*self.lattice)].mean(axis=-2))

    def transpose(self, pairs: Array) -> Array:
        return pairs[:, self._opposite]

    def variances(self, pairs: Array) -> tuple[Array, Array]:
        return pairs[0, 0], pairs[0, 0]

    def mean(self, pairs: Array) -> float:
        averages = pairs.mean(axis=1)  # within a sample and, where there are several, between two
        return float((averages[0] + (self.net.inputs - 1) * averages[-1]) / self.net.inputs)

    def by_site(self, pairs: Array) -> Array:
        return np.full(self.net.sites, self.mean(pairs))

    @cached_property
    def _opposite(self) -> Any:
        """Place of every displacement's opposite."""
        lengths = np.array(self.net.grid, dtype=np.int64).reshape(-1, 1)
        opposite = -np.indices(self.net.grid).reshape(len(lengths), self.net.sites) % lengths
        return np.ravel_multi_index(tuple(opposite), self.net.grid) if len(lengths) else [0]
