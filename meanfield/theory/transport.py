"""How one layer carries second moments over pairs of sites.

Two representations with one interface. `SitePairs` keeps every pair of sites of the batch and serves any input
and any padding. `Displacements` keeps one number per displacement, enough on a circular grid with a stationary
input, for pairs within one sample and pairs of different samples.

    diagonal(A) = Tr(A)/k        both sites step by the same offset        (one weight matrix seen twice)
    independent(A) = Pk A Pk^T/k^2   each site steps by its own offset     (two independent weight matrices)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from meanfield.architectures import Sequential
from meanfield.lattice import neighbours, reversed_neighbours

Array = NDArray[np.float64]

# One row and one column of zeros behind the sites: where the index -1 of a neighbour table, outside, reads its zero.
EDGES = [(0, 0), (0, 1), (0, 0), (0, 1)]


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


@dataclass(frozen=True)
class SitePairs:
    """All pairs of sites of the batch: arrays (B, S, B, S)."""

    architecture: Sequential

    def diagonal(self, pairs: Array) -> Array:
        padded = np.pad(pairs, EDGES)
        total = sum(padded[:, row][:, :, :, row] for row in self._table)
        return np.asarray(total / self.architecture.taps)

    def independent(self, pairs: Array) -> Array:
        second = np.pad(self.first(pairs), [(0, 0)] * 2 + EDGES[2:])
        return np.asarray(sum(second[:, :, :, row] for row in self._table) / self.architecture.taps)

    def first(self, pairs: Array) -> Array:
        padded = np.pad(pairs, [(0, 0)] * (pairs.ndim - 3) + [(0, 1), (0, 0), (0, 0)])
        return np.asarray(sum(padded[..., row, :, :] for row in self._table) / self.architecture.taps)

    def transpose(self, pairs: Array) -> Array:
        return pairs.transpose(2, 3, 0, 1)

    def variances(self, pairs: Array) -> tuple[Array, Array]:
        samples, sites = self.architecture.inputs, self.architecture.sites
        variance = np.einsum("bpbp->bp", pairs)
        return variance[:, :, None, None], variance.reshape(1, 1, samples, sites)

    def mean(self, pairs: Array, weight: Array | None = None) -> float:
        return float((pairs if weight is None else pairs * weight).mean())

    @property
    def _table(self) -> NDArray[np.int64]:
        return neighbours(self.architecture.grid, self.architecture.kernel, self.architecture.padding)


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
        lengths = np.array(self.architecture.grid, dtype=np.int64).reshape(-1, 1)
        opposite = -np.indices(self.architecture.grid).reshape(len(lengths), self.architecture.sites) % lengths
        return pairs[:, np.ravel_multi_index(tuple(opposite), self.architecture.grid) if len(lengths) else [0]]

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
