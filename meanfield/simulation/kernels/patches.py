"""Loops that move values between sites: gather a stencil, its transpose, and its effect on a Gram matrix.

Arrays carry a leading axis of draws. ``table`` is a neighbour table of `meanfield.nets.lattice`; -1 stands for the
zero outside the grid. Of a strided stencil the sites of the result are those of another grid, S'.

A tap shifts whole runs of sites by the same step. Run by run, values pass through vector registers; site by site, each
is looked up in the table. On a grid of 32 x 32 runs take two thirds of the time; on small grids they are too short.

What comes in is laid in one piece, as arrays mostly are: each layout would be compiled by itself. Compiled loops
allocate nothing, which would double the time of their compilation.
"""

from functools import lru_cache

import numpy as np

from meanfield.common.compiled import compiled
from meanfield.common.validation import Array
from meanfield.nets.lattice import SiteTable

# Gathering goes run by run from so many sites on, if runs have so many sites on average.
MANY_SITES, LONG_RUN = 256, 8


def gather(values: Array, table: SiteTable) -> Array:
    """patches: (D, n, R, S) -> (D, n k, R S'), row (i, Delta) being channel i shifted by Delta."""
    draws, channels, rows, _ = values.shape
    taps, sites = table.shape
    out = np.empty((draws, channels * taps, rows * sites), values.dtype)
    _gather(np.ascontiguousarray(values), table, *_runs(table), out)
    return out


def gather_transpose(patches: Array, reversed_table: SiteTable, rows: int) -> Array:
    """patches^T: (D, n k, R S') -> (D, n, R, S), every site collecting what it gave to its neighbours."""
    taps, sites = reversed_table.shape
    out = np.zeros((len(patches), patches.shape[1] // taps, rows, sites), patches.dtype)
    _gather_transpose(np.ascontiguousarray(patches), reversed_table, *_runs(reversed_table), out)
    return out


def sum_over_shifts(gram: Array, table: SiteTable, samples: int) -> Array:
    """X^T X from sigma^T sigma: sum_Delta A(p + Delta, p' + Delta) for (D, B S, B S) site pairs."""
    out = np.zeros(gram.shape, gram.dtype)
    _sum_over_shifts(np.ascontiguousarray(gram), table, *_runs(table), samples, out)
    return out


def _runs(table: SiteTable) -> tuple[Array, Array]:
    return _runs_of(table.shape, table.tobytes())


@lru_cache(maxsize=256)
def _runs_of(shape: tuple[int, int], numbers: bytes) -> tuple[Array, Array]:
    """Stretches of sites that a tap shifts alike: (first site, where it reaches or -1, length); where each tap's end.

    Places in them are made unsigned where they are used: else every one could count from the end.
    """
    table = np.frombuffer(numbers, np.int64).reshape(shape)
    begins = np.ones(shape, bool)
    begins[:, 1:] = np.diff(table) != (table[:, :-1] >= 0)
    taps, first = np.nonzero(begins)
    lengths = np.diff(taps * shape[1] + first, append=table.size)
    return np.stack([first, table[begins], lengths], axis=1), np.append(0, np.cumsum(begins.sum(axis=1)))


@compiled()
def _gather(values, table, runs, ends, out):
    draws, channels, rows, _ = values.shape
    taps, sites = table.shape
    by_runs = _are_long(runs, table)
    for d in range(draws):
        for i in range(channels):
            for t in range(taps):
                target = out[d, i * taps + t]
                for r in range(rows):
                    source = values[d, i, r]
                    if by_runs:
                        _copy_runs(target, r * sites, source, runs[ends[t] : ends[t + 1]])
                        continue
                    for p in range(sites):
                        reached = table[t, p]
                        target[r * sites + p] = source[reached] if reached >= 0 else 0.0


@compiled()
def _gather_transpose(patches, reversed_table, runs, ends, out):
    draws, channels, rows, sites = out.shape
    taps, givers = reversed_table.shape[0], patches.shape[2] // rows
    by_runs = _are_long(runs, reversed_table)
    for d in range(draws):
        for i in range(channels):
            for t in range(taps):
                source = patches[d, i * taps + t]
                for r in range(rows):
                    target = out[d, i, r]
                    if by_runs:
                        _add_runs(target, source, r * givers, runs[ends[t] : ends[t + 1]])
                        continue
                    for p in range(sites):
                        giver = reversed_table[t, p]
                        if giver >= 0:
                            target[p] += source[r * givers + giver]


@compiled()
def _sum_over_shifts(gram, table, runs, ends, samples, out):
    draws = gram.shape[0]
    taps, sites = table.shape
    for d in range(draws):
        for b in range(samples):
            for p in range(sites):
                target = out[d, b * sites + p]
                for t in range(taps):
                    if table[t, p] < 0:
                        continue
                    source = gram[d, b * sites + table[t, p]]
                    for start in range(np.uint64(0), np.uint64(samples * sites), np.uint64(sites)):
                        for k in range(ends[t], ends[t + 1]):
                            if runs[k, 1] < 0:
                                continue
                            to, off = start + np.uint64(runs[k, 0]), start + np.uint64(runs[k, 1])
                            for i in range(np.uint64(runs[k, 2])):
                                target[to + i] += source[off + i]


@compiled()
def _are_long(runs, table):
    return table.shape[1] >= MANY_SITES and table.size >= LONG_RUN * len(runs)


@compiled()
def _copy_runs(target, offset, source, runs):
    """target(offset + p) <- source(p + Delta), or 0 where that is outside."""
    for k in range(len(runs)):
        to, off = np.uint64(offset + runs[k, 0]), np.uint64(runs[k, 1])
        if runs[k, 1] < 0:
            for i in range(np.uint64(runs[k, 2])):
                target[to + i] = 0.0
        else:
            for i in range(np.uint64(runs[k, 2])):
                target[to + i] = source[off + i]


@compiled()
def _add_runs(target, source, offset, runs):
    """target(p) += source(offset + p + Delta), where that is inside."""
    for k in range(len(runs)):
        if runs[k, 1] >= 0:
            to, off = np.uint64(runs[k, 0]), np.uint64(offset + runs[k, 1])
            for i in range(np.uint64(runs[k, 2])):
                target[to + i] += source[off + i]
