"""Two-point functions: what theory keeps of every two points of a batch, and what a layer's stencil makes of it.

A point is a sample and a site of its grid; N = samples x sites. Two protocols say what is asked of such functions,
and each has a lean representation beside `EveryPair`, N x N numbers, which serves both for any input and padding:

    `Transport`     how one layer carries second moments (docs/theory.md section 6): `Displacements` keeps one number
                    per displacement, enough on a circular grid with a stationary input, for pairs within one sample
                    and pairs of different samples
    `Points`        the sums over points that label and output term take: `Exchangeable` keeps four numbers, where all
                    points are alike

    diagonal(A) = Tr(A)/k        both sites step by the same offset        (one weight matrix seen twice)
    independent(A) = Pk A Pk^T/k^2   each site steps by its own offset     (two independent weight matrices)

On a circular grid the default input makes all points alike, whatever the stencil: it is white over sites, so that the
covariance at a displacement is made of that at the same displacement in the layer below.

A rectangular stencil is a product over the axes, so the sum over its k_1 k_2 offsets is a sum over k_1 along one axis
and then over k_2 along the other. Each shift is one addition of slices in place; nothing is padded or gathered.

What a matrix sees of the places of a channel, samples and sites: the patches of a stencil, a mean, or all sites.

A matrix is one of rows, (channel, tap) of a convolution and (channel, site) of a readout that sees all sites, on
features X whose columns are the places that it answers at. What it sends down, its transpose times the errors there,
is added up over the rows of a channel, at the places that they came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, Protocol

import numpy as np
from scipy.sparse import block_diag, csr_array

from meanfield.common.validation import Array
from meanfield.nets.lattice import OUTSIDE, SiteTable, axis_offsets, neighbours, reversed_neighbours
from meanfield.nets.layered import Sequential
from meanfield.nets.staged import Staged


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

    def mean_by_site(self, pairs: Array) -> Array:
        """Average over second sites and samples alone, by first site: (S,)."""

    def own(self, pairs: Array) -> Array:
        """c(p, p) by sample and site, (B, S), or one number where all sites are alike."""

    def at_second(self, by_site: Array) -> Array:
        """Numbers by site, (S,) or (B, S), at the second site of pairs, broadcastable to them."""


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

    def same_sites(self) -> Array:
        """1 for points at the same site, of any samples, else 0."""

    def labels(self, covariance: Array, everywhere: bool) -> Array:
        """E y y' of labels of this covariance between samples, (B, B, S or 1), at the same site or ``everywhere``."""

    def by_site(self, values: Array) -> Array:
        """The mean of values over samples, broadcastable to sites."""


class AllPairs:
    """What is the same for all points that are kept one by one, whatever their grid: pairs (N, N), values (N, 1)."""

    def variances(self, pairs: Array) -> tuple[Array, Array]:
        here = np.diagonal(pairs)
        return here[:, None], here[None]

    def product(self, left: Array, right: Array) -> Array:
        return np.asarray(left @ right)

    def contracted(self, left: Array, right: Array) -> Array:
        return np.vecdot(left, right)[:, None]

    def second(self, values: Array) -> Array:
        return values.T

    def transpose(self, pairs: Array) -> Array:
        return pairs.swapaxes(-1, -2)


@dataclass(frozen=True)
class EveryPair(AllPairs):
    """Points kept one by one, a sample's sites together: pairs are arrays (N, N), values (N, 1).

    Where ``mirrored``, a mirror along any axis changes nothing, and products are taken for points in a corner alone.
    """

    net: Sequential | Staged
    mirrored: bool = False

    @property
    def count(self) -> int:
        return self.net.inputs * self.net.sites

    def product(self, left: Array, right: Array) -> Array:
        if not self.mirrored:
            return super().product(left, right)
        net = self.net
        corner = left.reshape(net.inputs, *net.grid, -1)[:, *(slice((length + 1) // 2) for length in net.grid)]
        image = (corner.reshape(-1, len(left)) @ right).reshape(*corner.shape[:-1], net.inputs, *net.grid)
        for axis, length in enumerate(net.grid, start=1):
            first = image.take(range(length // 2), axis)
            image = np.concatenate([image, np.flip(first, (axis, axis + 1 + len(net.grid)))], axis)
        return image.reshape(left.shape)

    def diagonal(self, pairs: Array) -> Array:
        return self._stepped(pairs, 0, 1)

    def independent(self, pairs: Array) -> Array:
        return self._stepped(self._stepped(pairs, 0), 1)

    def first(self, pairs: Array) -> Array:
        return self._stepped(pairs, 0)

    def mean(self, pairs: Array) -> float:
        return float(pairs.mean())

    def mean_by_site(self, pairs: Array) -> Array:
        return np.asarray(pairs.reshape(self._shape).mean(axis=(0, 2, 3)))

    def own(self, pairs: Array) -> Array:
        return np.diagonal(pairs).reshape(self._shape[:2])

    def at_second(self, by_site: Array) -> Array:
        return np.broadcast_to(by_site, self._shape[:2]).reshape(1, self.count)

    def pulled_back(self, pairs: Array) -> Array:
        """The stencil of opposite offsets is the same one on a grid that is read backwards."""
        return self.diagonal(pairs[::-1, ::-1])[::-1, ::-1]

    def moved(self, values: Array) -> Array:
        return self._averaged(values, neighbours(*_lattice(self.net)))

    def moved_back(self, values: Array) -> Array:
        return self._averaged(values, reversed_neighbours(*_lattice(self.net)))

    def constant(self, value: float) -> Array:
        return np.full((self.count, 1), value)

    def within_samples(self) -> Array:
        sites = self.net.sites
        return np.asarray(np.kron(np.eye(self.net.inputs), np.ones((sites, sites))), dtype=np.float64)

    def same_sites(self) -> Array:
        samples = self.net.inputs
        return np.asarray(np.kron(np.ones((samples, samples)), np.eye(self.net.sites)), dtype=np.float64)

    def labels(self, covariance: Array, everywhere: bool) -> Array:
        sites = self.net.sites
        shared = np.ones((sites, sites)) if everywhere else np.eye(sites)
        return np.einsum("ijp,pr->ipjr", np.broadcast_to(covariance, (*covariance.shape[:2], sites)), shared).reshape(
            self.count, self.count
        )

    def by_site(self, values: Array) -> Array:
        return np.asarray(values.reshape(self.net.inputs, self.net.sites).mean(axis=0))

    @property
    def _shape(self) -> tuple[int, ...]:
        """(B, S, B, S), samples and sites of both points."""
        return (self.net.inputs, self.net.sites) * 2

    def _stepped(self, pairs: Array, *sides: int) -> Array:
        """(1/k) times the sum over the stencil, these sides of the pairs (..., N, N) stepping together."""
        by_site = pairs.reshape(*pairs.shape[:-2], *self._shape)
        total = sum_over_stencil(by_site, sides, *_lattice(self.net)).reshape(pairs.shape)
        if self.net.kernel:
            total /= self.net.taps
        return total

    def _averaged(self, values: Array, table: np.ndarray) -> Array:
        net = self.net
        arriving = np.where(table == OUTSIDE, 0.0, values.reshape(net.inputs, net.sites)[:, table])
        return (arriving.sum(axis=1) / net.taps).reshape(self.count, 1)


@dataclass(frozen=True)
class GridStep(AllPairs):
    """What one linear map makes of every two points of a batch, from the points of its grid to those of the next.

    A stencil of a stride has the site shifts S_Delta of the rows where it stands alone. Pairs are arrays (N, N), values
    (N, 1), as of `EveryPair`, N being that of either grid.
    """

    inputs: int
    grid: tuple[int, ...]
    kernel: tuple[int, ...]
    padding: str
    stride: tuple[int, ...] = ()

    def diagonal(self, pairs: Array) -> Array:
        """Tr(A)/k = (1/k) sum_Delta S_Delta A S_Delta^T."""
        sites = (self.inputs, prod(self.grid)) * 2
        total = sum_over_stencil(pairs.reshape(sites), (0, 1), self.grid, self.kernel, self.padding)
        kept = total[:, self._stands][..., self._stands] / prod(self.kernel)
        return np.asarray(kept.reshape(self.inputs * len(self._stands), -1))

    def pulled_back(self, pairs: Array) -> Array:
        """(1/k) sum_Delta S_Delta^T A S_Delta: the stencil of opposite offsets, on a grid that is read backwards."""
        samples, sites, above = self.inputs, prod(self.grid), len(self._stands)
        across, spread = np.zeros((samples, above, samples, sites)), np.zeros((samples, sites, samples, sites))
        across[..., self._stands] = pairs.reshape(samples, above, samples, above)
        spread[:, self._stands] = across
        total = sum_over_stencil(spread[:, ::-1, :, ::-1], (0, 1), self.grid, self.kernel, self.padding)
        return np.asarray(total[:, ::-1, :, ::-1].reshape(samples * sites, -1) / prod(self.kernel))

    def independent(self, pairs: Array) -> Array:
        """Pk A Pk^T / k^2."""
        return self.first(self.first(pairs).T).T

    def first(self, pairs: Array) -> Array:
        """Pk A / k, the first site steps alone; any leading axes are carried along."""
        if pairs.ndim == 2:
            return np.asarray(self._mean @ np.ascontiguousarray(pairs))
        return np.array([self.first(part) for part in pairs]).reshape(*pairs.shape[:-2], -1, pairs.shape[-1])

    moved = first

    def moved_back(self, values: Array) -> Array:
        """(1/k) sum_Delta S_Delta^T v."""
        return np.asarray(self._mean.T @ values)

    @cached_property
    def _stands(self) -> SiteTable:
        """The sites where the stencil stands."""
        return neighbours(self.grid, (1,) * len(self.grid), self.padding, 1, self.stride)[0]

    @cached_property
    def _mean(self) -> csr_array:
        """Pk/k for all samples."""
        table = neighbours(self.grid, self.kernel, self.padding, 1, self.stride)
        offsets, above = np.nonzero(table != OUTSIDE)
        shares = np.full(len(above), 1 / len(table)), (above, table[offsets, above])
        return csr_array(block_diag([csr_array(shares, shape=(table.shape[1], prod(self.grid)))] * self.inputs))


@dataclass(frozen=True)
class Displacements:
    """One number per displacement, for pairs within a sample and, where there are several, of different ones.

    Arrays (1 or 2, S); the displacement is that of the second site from the first.
    """

    net: Sequential | Staged

    def diagonal(self, pairs: Array) -> Array:
        return pairs

    def independent(self, pairs: Array) -> Array:
        return np.asarray(self.first(pairs)[..., neighbours(*_lattice(self.net))].mean(axis=-2))

    def first(self, pairs: Array) -> Array:
        if self.net.taps == 1:
            return pairs
        return np.asarray(pairs[..., reversed_neighbours(*_lattice(self.net))].mean(axis=-2))

    def transpose(self, pairs: Array) -> Array:
        return pairs[:, self._opposite]

    def variances(self, pairs: Array) -> tuple[Array, Array]:
        return pairs[0, 0], pairs[0, 0]

    def mean(self, pairs: Array) -> float:
        averages = pairs.mean(axis=1)  # within a sample and, where there are several, between two
        return float((averages[0] + (self.net.inputs - 1) * averages[-1]) / self.net.inputs)

    def mean_by_site(self, pairs: Array) -> Array:
        return np.full(self.net.sites, self.mean(pairs))

    def own(self, pairs: Array) -> Array:
        return pairs[0, 0]

    def at_second(self, by_site: Array) -> Array:
        return by_site

    @cached_property
    def _opposite(self) -> Any:
        """Place of every displacement's opposite."""
        lengths = np.array(self.net.grid, dtype=np.int64).reshape(-1, 1)
        opposite = -np.indices(self.net.grid).reshape(len(lengths), self.net.sites) % lengths
        return np.ravel_multi_index(tuple(opposite), self.net.grid) if len(lengths) else [0]


@dataclass(frozen=True)
class Exchangeable:
    """Points of samples and sites that are all alike: pairs are arrays (4,), values (1,).

    The four are A of a point with itself, with another site of its sample, with its own site in another sample, and
    with another site of another sample. Such matrices share their eigenvectors: products of what sums to zero over
    samples, or is the same in all, with what sums to zero over sites, or is the same at all.
    """

    inputs: int
    sites: int

    def variances(self, pairs: Array) -> tuple[Array, Array]:
        return pairs[:1], pairs[:1]

    def product(self, left: Array, right: Array) -> Array:
        return self._pairs(self._eigenvalues(left) * self._eigenvalues(right))

    def quotient(self, left: Array, right: Array) -> Array:
        """The left matrix times the inverse of the right one."""
        return self._pairs(self._eigenvalues(left) / self._eigenvalues(right))

    def contracted(self, left: Array, right: Array) -> Array:
        return np.asarray(self.counts @ (left * right))[None]

    def diagonal(self, pairs: Array) -> Array:
        return pairs

    pulled_back = moved = moved_back = second = transpose = by_site = diagonal

    def constant(self, value: float) -> Array:
        return np.array([value])

    def within_samples(self) -> Array:
        return np.array([1.0, 1.0, 0.0, 0.0])

    def same_sites(self) -> Array:
        return np.array([1.0, 0.0, 1.0, 0.0])

    def labels(self, covariance: Array, everywhere: bool) -> Array:
        own, other = covariance[0, 0, 0], covariance[0, -1, 0]
        return np.array([own, own * everywhere, other, other * everywhere])

    @property
    def counts(self) -> Array:
        """How many points each of the four numbers stands for."""
        return np.array(np.outer([1.0, self.inputs - 1.0], [1.0, self.sites - 1.0]).ravel())

    def _eigenvalues(self, pairs: Array) -> Array:
        return np.asarray(_to_modes(self.inputs) @ pairs.reshape(2, 2) @ _to_modes(self.sites).T)

    def _pairs(self, eigenvalues: Array) -> Array:
        return np.asarray((_from_modes(self.inputs) @ eigenvalues @ _from_modes(self.sites).T).ravel())


def _to_modes(count: int) -> Array:
    """The matrix from the numbers on and off the diagonal to the eigenvalues of vectors that sum to zero, and of
    constants."""
    return np.array([[1.0, -1.0], [1.0, count - 1.0]])


def _from_modes(count: int) -> Array:
    return np.array([[1 - 1 / count, 1 / count], [-1 / count, 1 / count]])


def _lattice(net: Sequential | Staged) -> tuple[tuple[int, ...], tuple[int, ...], str]:
    """Grid, kernel and padding."""
    return net.grid, net.kernel, net.padding


def sum_over_stencil(
    pairs: Array, sides: Sequence[int], grid: Sequence[int], kernel: Sequence[int], padding: str, dilation: int = 1
) -> Array:
    """sum_Delta of pairs of sites (.., S, B, S) whose ``sides`` step: (0, 1) both together, (0,) or (1,) one alone.

    Both together make sum_Delta S_Delta A S_Delta^T. A new array, unless the grid is empty.
    """
    values = pairs.reshape(*pairs.shape[:-3], *grid, pairs.shape[-2], *grid)
    for axis, taps in enumerate(kernel, start=-len(grid)):
        places = (axis - len(grid) - 1, axis)
        values = sum_along_axes(values, [places[side] for side in sides], taps, padding, dilation)
    return values.reshape(pairs.shape)


def sum_along_axes(values: Array, axes: Sequence[int], taps: int, padding: str, dilation: int = 1) -> Array:
    """sum_Delta values(.. p + Delta ..), where all of ``axes`` (of equal length) step together by each Delta.

    Outside the grid there is nothing ("zero"), or the far side ("circular"); Delta is ``dilation`` times a tap's place.
    """
    total = values.copy()  # the offset 0, which every stencil has
    for step in axis_offsets(taps):
        if step:
            for here, there in _overlaps(values.shape[axes[0]], dilation * step, padding, len(axes)):
                target = _along(total, axes, here)
                target += _along(values, axes, there)
    return total


def _overlaps(length: int, step: int, padding: str, axes: int) -> Iterator[tuple[list[slice], list[slice]]]:
    """Targets p of each axis, and p + step, in runs that do not cross the edge; for several axes, all combinations."""
    wrapped = step % length
    runs = [(slice(0, length - wrapped), slice(wrapped, length)), (slice(length - wrapped, length), slice(0, wrapped))]
    if padding == "zero":
        inside = max(length - abs(step), 0)
        start = max(-step, 0)
        runs = [(slice(start, start + inside), slice(start + step, start + step + inside))] if inside else []
    for axis_runs in product(runs, repeat=axes):
        yield [here for here, _ in axis_runs], [there for _, there in axis_runs]


def _along(values: Array, axes: Sequence[int], slices: Sequence[slice]) -> Array:
    index = [slice(None)] * values.ndim
    for axis, part in zip(axes, slices, strict=True):
        index[axis] = part
    return values[tuple(index)]


@dataclass(frozen=True)
class Patches:
    """Those of a hidden layer, or of a readout of this kind."""

    net: Sequential
    kind: str = "convolution"

    @property
    def rows(self) -> int:
        """Of one channel."""
        return {"pooled": 1, "convolution": self.net.taps, "flatten": self.net.sites}[self.kind]

    @property
    def columns(self) -> int:
        """Places that the matrix answers at, a sample's together."""
        return self.net.inputs * (self.net.sites if self.kind == "convolution" else 1)

    def seen(self, features: Array) -> Array:
        """Rows of all channels, (rows, columns), from their values at all places, (channels, places)."""
        net, by_site = self.net, features.reshape(len(features), self.net.inputs, self.net.sites)
        if self.kind == "pooled":
            return np.asarray(by_site.mean(axis=2))
        if self.kind == "flatten":
            return by_site.swapaxes(1, 2).reshape(-1, net.inputs)
        if not net.grid:
            return features
        return self._shifted(by_site[None], neighbours(net.grid, net.kernel, net.padding)).reshape(-1, self.columns)

    def sent_back(self, rows: Array) -> Array:
        """The sum over the rows of every channel, (channels, places), of what is sent to each, (rows, columns)."""
        net = self.net
        if self.kind == "pooled":
            return np.repeat(rows / net.sites, net.sites, axis=1)
        if self.kind == "flatten":
            return rows.reshape(-1, net.sites, net.inputs).swapaxes(1, 2).reshape(-1, net.inputs * net.sites)
        if not net.grid:
            return rows
        by_tap = rows.reshape(net.taps, -1, net.inputs, net.sites)
        arriving = self._shifted(by_tap, reversed_neighbours(net.grid, net.kernel, net.padding))
        return np.asarray(arriving.sum(axis=0).reshape(-1, self.columns))

    def as_rows(self, by_channel: Array) -> Array:
        """Rows of all channels in their order, (rows, columns), from each channel's, (channels, rows x columns)."""
        own = by_channel.reshape(len(by_channel), self.rows, self.columns)
        return (own if self.kind == "flatten" else own.swapaxes(0, 1)).reshape(-1, self.columns)

    def sum_over_rows(self, pairs: Array) -> Array:
        """The sum over the rows of one channel, over pairs of columns, of products over pairs of places."""
        net = self.net
        if self.kind == "convolution":
            return net.taps * EveryPair(net).diagonal(pairs)
        by_sites = pairs.reshape(net.inputs, net.sites, net.inputs, net.sites)
        if self.kind == "pooled":
            return np.asarray(by_sites.mean(axis=(1, 3)))
        return np.asarray(np.einsum("bpcp->bc", by_sites))

    def _shifted(self, by_site: Array, table: SiteTable) -> Array:
        """Values (taps or 1, channels, samples, sites) as every row of a table reaches them, the taps first."""
        by_tap = np.broadcast_to(by_site, (len(table), *by_site.shape[1:]))
        return np.stack([np.where(row == OUTSIDE, 0.0, tap[..., row]) for row, tap in zip(table, by_tap, strict=True)])
