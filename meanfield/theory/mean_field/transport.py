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
from meanfield.nets.lattice import OUTSIDE, neighbours, reversed_neighbours
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

    def within(self, pairs: Array) -> Array:
        """What a sample shares with itself, per pair of its own sites."""

    def pulled_back(self, pairs: Array) -> Array:
        """(1/k) sum_Delta S_Delta^T A S_Delta of pairs within a sample: the adjoint of `diagonal`."""

    def at_site(self, pairs: Array) -> Array:
        """A(p, p), by site."""

    def bilinear(self, left: Array, form: Array, right: Array) -> Array:
        """sum over samples i and their sites r, s of left(p; i r) form_i(r, s) right(p; i s), by first site p."""

    def moved(self, values: Array) -> Array:
        """Pk v / k of values by first site."""


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
        return both_sides(self.at_site(pairs))

    def mean(self, pairs: Array) -> float:
        return float(pairs.mean())

    def by_site(self, pairs: Array) -> Array:
        return np.asarray(pairs.mean(axis=(0, 2, 3)))

    def within(self, pairs: Array) -> Array:
        return np.einsum("bpbr->bpr", pairs)

    def pulled_back(self, pairs: Array) -> Array:
        table = reversed_neighbours(*self.lattice)
        total = np.zeros_like(pairs)
        for shift in table:
            shifted = pairs[:, shift][:, :, shift]
            shifted[:, shift == OUTSIDE] = 0.0
            shifted[:, :, shift == OUTSIDE] = 0.0
            total += shifted
        return total / len(table)

    def at_site(self, pairs: Array) -> Array:
        return np.einsum("bpbp->bp", pairs)

    def bilinear(self, left: Array, form: Array, right: Array) -> Array:
        samples, sites = self.net.inputs, self.net.sites
        first, second = (pairs.transpose(2, 0, 1, 3).reshape(samples, -1, sites) for pairs in (left, right))
        return np.vecdot(first @ form, second).sum(axis=0).reshape(samples, sites)

    def moved(self, values: Array) -> Array:
        table = neighbours(*self.lattice)
        return np.asarray(np.where(table == OUTSIDE, 0.0, values[:, table]).sum(axis=1) / self.net.taps)

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

    def within(self, pairs: Array) -> Array:
        return np.asarray(pairs[0])

    def pulled_back(self, pairs: Array) -> Array:
        return pairs

    def at_site(self, pairs: Array) -> Array:
        return np.asarray(pairs[0, 0])

    def bilinear(self, left: Array, form: Array, right: Array) -> Array:
        """By Fourier transforms, as on a torus the sums are convolutions; one number, the same at every site."""
        grid, axes = self.net.grid, tuple(range(1, 1 + len(self.net.grid)))
        first, second = (np.fft.rfftn(pairs.reshape(-1, *grid), axes=axes) for pairs in (left, right))
        samples = np.array([1.0, self.net.inputs - 1.0])[: len(left)]
        spectrum = np.tensordot(samples, first.conj() * second, 1)[None]
        return np.asarray(np.vdot(np.fft.irfftn(spectrum, grid, axes=axes), form))

    def moved(self, values: Array) -> Array:
        return values

    @cached_property
    def _opposite(self) -> Any:
        """Place of every displacement's opposite."""
        lengths = np.array(self.net.grid, dtype=np.int64).reshape(-1, 1)
        opposite = -np.indices(self.net.grid).reshape(len(lengths), self.net.sites) % lengths
        return np.ravel_multi_index(tuple(opposite), self.net.grid) if len(lengths) else [0]
