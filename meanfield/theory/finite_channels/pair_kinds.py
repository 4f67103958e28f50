"""Kinds of pairs of sites on a circular grid whose sites are all alike, and what is carried for each kind.

What fluctuates at a pair (u, u') is correlated with the same at every other pair of one displacement, by their shift.
Such a function of shifts is made by one layer after the other: what a layer adds depends only on which of the four
sites coincide, and a layer spreads what is there by the stencil. It is read at one shift alone. So two functions of
shifts are carried: what was added at every shift, and in excess at that which is read ("here"); and what was added in
excess at shifts one displacement away ("shifted"), averaged over the displacements of this kind. Both are held as their
Fourier transforms, which are real, and of which a layer makes multiples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.nets.families.layered import Sequential
from meanfield.nets.lattice import neighbours

Pair = tuple[int, int]


@dataclass(frozen=True)
class Coincidences:
    """A second pair of sites where all differ that can, where shifts are read, and one displacement away from there."""

    apart: Pair
    here: Pair
    shifted: tuple[Pair, ...] = ()


@dataclass(frozen=True)
class PairKind:
    """Pairs of sites that differ alike; sites are labels, equal where sites are.

    Attributes:
        share: of all pairs of sites of the batch.
        waves: the mean over its displacements of plane waves, (S,).
        first: the pair (u, u').
        moved: pairs (v, v') of the same displacement.
        crossed: v, v' such that v' - v is the opposite displacement, shifted until (v, v') is (u', u).
    """

    share: float
    waves: Array
    first: Pair
    moved: Coincidences
    crossed: Coincidences

    def added(self, of_second: Callable[[Pair], ArrayLike], where: Coincidences, sites: int) -> Array:
        """What one layer adds, a function of the second pair: (..., 2, S)."""
        apart = np.asarray(of_second(where.apart))
        fields = np.zeros((*apart.shape, 2, sites))
        fields[..., 0, :] = (np.asarray(of_second(where.here)) - apart)[..., None]
        fields[..., 0, 0] += sites * apart
        for second in where.shifted:
            fields[..., 1, :] += (np.asarray(of_second(second)) - apart)[..., None]
        return fields

    def read(self, fields: Array) -> Array:
        """The value where it is asked for, averaged over displacements."""
        return np.asarray(fields[..., 0, :].mean(axis=-1) + fields[..., 1, :] @ self.waves / len(self.waves))


def pair_kinds(net: Sequential) -> Iterator[PairKind]:
    """A site with itself; with another one, twice the displacement being 0 or not; with sites of other samples."""
    places = net.inputs * net.sites
    grid = np.array(net.grid, dtype=int).reshape(-1, 1)
    doubled = 2 * np.indices(net.grid).reshape(len(grid), net.sites) % grid
    opposite = ~doubled.any(axis=0)
    opposite[0] = False
    itself, far = Coincidences((1, 1), (0, 0)), Coincidences((2, 3), (0, 1))
    still = np.ones(net.sites)
    yield PairKind(1 / places, still, (0, 0), itself, itself)
    if others := np.flatnonzero(~opposite)[1:].tolist():
        moved = Coincidences((2, 3), (0, 1), ((1, 2), (2, 0)))
        crossed = Coincidences((2, 3), (1, 0), ((0, 2), (2, 1)))
        yield PairKind(len(others) / places, _mean_wave(net, others).real, (0, 1), moved, crossed)
    if opposite.any():
        moved, crossed = Coincidences((2, 3), (0, 1), ((1, 0),)), Coincidences((2, 3), (1, 0), ((0, 1),))
        yield PairKind(opposite.sum() / places, _mean_wave(net, np.flatnonzero(opposite)).real, (0, 1), moved, crossed)
    if net.inputs > 1:
        yield PairKind(1 - net.sites / places, still, (0, 1), far, Coincidences((2, 3), (1, 0)))


def spreading(net: Sequential) -> Array:
    """What one layer makes of a function of shifts, each of two pairs stepping by an offset of its own: a factor."""
    return np.asarray(np.abs(_mean_wave(net, neighbours(net.grid, net.kernel, "circular")[:, 0])) ** 2)


def _mean_wave(net: Sequential, places: ArrayLike) -> Array:
    """The mean of plane waves over these places, by wave: (S,)."""
    return np.asarray(np.fft.fftn(np.bincount(places, minlength=net.sites).reshape(net.grid)).ravel() / np.size(places))
