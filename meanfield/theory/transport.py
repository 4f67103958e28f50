"""How one layer carries second moments over pairs of sites.

Two representations with one interface. `SitePairs` keeps every pair of sites of the batch and serves any input
and any padding. `Displacements` keeps one number per displacement, enough on a circular grid with a stationary
input, for pairs within one sample and pairs of different samples.

    diagonal(A) = Tr(A)/k        both sites step by the same offset        (one weight matrix seen twice)
    independent(A) = Pk A Pk^T/k^2   each site steps by its own offset     (two independent weight matrices)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from meanfield.architectures import Sequential
from meanfield.lattice import neighbours, reversed_neighbours
from meanfield.theory.shifts import sum_over_shifts

Array = NDArray[np.float64]


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

    def mean(self, pairs: Array, weight: Array | None = None) -> float:
        """Average over all pairs of sites, the second site weighted by ``weight`` (mean over sites of the rest)."""

    def by_site(self, pairs: Array, weight: Array | None = None) -> Array:
        """The same average over second sites and samples alone, by first site: (S,)."""


@dataclass(frozen=True)
class SitePairs:
    """All pairs of sites of the batch: arrays (B, S, B, S)."""

    architecture: Sequential

    def diagonal(self, pairs: Array) -> Array:
        return self._summed(pairs, [(first, second) for first, second in self._axes])

    def independent(self, pairs: Array) -> Array:
        alone = [[(axes[side],) for axes in self._axes] for side in (0, 1)]
        return self._summed(self._summed(pairs, alone[0]), alone[1])

    def first(self, pairs: Array) -> Array:
        return self._summed(pairs, [(first,) for first, _ in self._axes])

    def transpose(self, pairs: Array) -> Array:
        return pairs.transpose(2, 3, 0, 1)

    def variances(self, pairs: Array) -> tuple[Array, Array]:
        samples, sites = self.architecture.inputs, self.architecture.sites
        variance = np.einsum("bpbp->bp", pairs)
        return variance[:, :, None, None], variance.reshape(1, 1, samples, sites)

    def mean(self, pairs: Array, weight: Array | None = None) -> float:
        return float(self.by_site(pairs, weight).mean())

    def by_site(self, pairs: Array, weight: Array | None = None) -> Array:
        samples, sites = self.architecture.inputs, self.architecture.sites
        weights = np.broadcast_to(1.0 if weight is None else weight, (samples, sites)).ravel() / (samples * sites)
        return np.asarray((pairs.reshape(samples, sites, -1) @ weights).mean(axis=0))

    @property
    def _axes(self) -> list[tuple[int, int]]:
        """Every axis of the grid as one of the first and one of the second site, counted from the end."""
        count = len(self.architecture.grid)
        return [(axis - count - 1, axis) for axis in range(-count, 0)]

    def _summed(self, pairs: Array, sweeps: Sequence[tuple[int, ...]]) -> Array:
        """(1/k) times the sum over the stencil, one sweep for each axis of the grid; axes of a sweep step together."""
        net = self.architecture
        values = pairs.reshape(*pairs.shape[:-3], *net.grid, net.inputs, *net.grid)
        for axes, taps in zip(sweeps, net.kernel, strict=True):
            values = sum_over_shifts(values, axes, taps, net.padding)
        if sweeps:
            values /= net.taps
        return values.reshape(pairs.shape)


@dataclass(frozen=True)
class Displacements:
    """One number per displacement, for pairs within a sample and, where there are several, of different ones.

    Arrays (1 or 2, S); the displacement is that of the second site from the first.
    """

    architecture: Sequential

    def diagonal(self, pairs: Array) -> Array:
        return pairs

    def independent(self, pairs: Array) -> Array:
        return np.asarray(self.first(pairs)[..., neighbours(*self._lattice)].mean(axis=-2))

    def first(self, pairs: Array) -> Array:
        if self.architecture.taps == 1:
            return pairs
        return np.asarray(pairs[..., reversed_neighbours(*self._lattice)].mean(axis=-2))

    def transpose(self, pairs: Array) -> Array:
        return pairs[:, self._opposite]

    @cached_property
    def _opposite(self) -> Any:
        """Place of every displacement's opposite."""
        lengths = np.array(self.architecture.grid, dtype=np.int64).reshape(-1, 1)
        opposite = -np.indices(self.architecture.grid).reshape(len(lengths), self.architecture.sites) % lengths
        return np.ravel_multi_index(tuple(opposite), self.architecture.grid) if len(lengths) else [0]

    @property
    def _lattice(self) -> tuple[tuple[int, ...], tuple[int, ...], str]:
        return self.architecture.grid, self.architecture.kernel, self.architecture.padding

    def variances(self, pairs: Array) -> tuple[Array, Array]:
        return pairs[0, 0], pairs[0, 0]

    def mean(self, pairs: Array, weight: Array | None = None) -> float:
        samples = self.architecture.inputs
        averages = pairs.mean(axis=1)  # within a sample and, where there are several, between two
        average = (averages[0] + (samples - 1) * averages[-1]) / samples
        return float(average if weight is None else average * weight.mean())

    def by_site(self, pairs: Array, weight: Array | None = None) -> Array:
        return np.full(self.architecture.sites, self.mean(pairs, weight))
