"""Loops that move values between sites: gather a stencil, its transpose, and its effect on a Gram matrix.

Arrays carry a leading axis of draws. ``table`` is a neighbour table of `meanfield.lattice`; -1 stands for the
zero outside the grid. (A cached kernel and everything it calls stay in this one file: Numba does not notice an
edited callee elsewhere.)
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def gather(values, table):
    """patches: (D, n, R, S) -> (D, n k, R S), row (i, Delta) being channel i shifted by Delta."""
    draws, channels, rows, sites = values.shape
    taps = table.shape[0]
    out = np.empty((draws, channels * taps, rows * sites), values.dtype)
    for d in range(draws):
        for i in range(channels):
            for t in range(taps):
                target = out[d, i * taps + t]
                for r in range(rows):
                    source = values[d, i, r]
                    for p in range(sites):
                        reached = table[t, p]
                        target[r * sites + p] = source[reached] if reached >= 0 else 0.0
    return out


@njit(cache=True, nogil=True)
def gather_transpose(patches, reversed_table, rows):
    """patches^T: (D, n k, R S) -> (D, n, R, S), every site collecting what it gave to its neighbours."""
    draws = patches.shape[0]
    taps, sites = reversed_table.shape
    channels = patches.shape[1] // taps
    out = np.zeros((draws, channels, rows, sites), patches.dtype)
    for d in range(draws):
        for i in range(channels):
            for t in range(taps):
                source = patches[d, i * taps + t]
                for r in range(rows):
                    target = out[d, i, r]
                    for p in range(sites):
                        giver = reversed_table[t, p]
                        if giver >= 0:
                            target[p] += source[r * sites + giver]
    return out


# Run by run, not site by site through the table, sums use vector registers: two thirds of the time on 32 x 32 sites.
# Sites are unsigned, as then nothing counts from the end.
@njit(cache=True, nogil=True)
def sum_over_shifts(gram, table, samples):
    """X^T X from sigma^T sigma: sum_Delta A(p + Delta, p' + Delta) for (D, B S, B S) site pairs."""
    draws = gram.shape[0]
    taps, sites = table.shape
    runs, ends = _runs(table)
    out = np.zeros_like(gram)
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
                            to, off = start + runs[k, 0], start + runs[k, 1]
                            for i in range(runs[k, 2]):
                                target[to + i] += source[off + i]
    return out


@njit(cache=True, nogil=True)
def _runs(table):
    """Stretches of sites that a tap shifts alike: (first site, where it reaches, length), and where each tap's end."""
    taps, sites = table.shape
    found, ends, count = np.empty((taps * sites, 3), np.uint64), np.zeros(taps + 1, np.int64), 0
    for t in range(taps):
        first = 0
        while first < sites:
            last = first + 1
            if table[t, first] >= 0:
                while last < sites and table[t, last] == table[t, first] + last - first:
                    last += 1
                found[count, 0], found[count, 1], found[count, 2] = first, table[t, first], last - first
                count += 1
            first = last
        ends[t + 1] = count
    return found[:count], ends
