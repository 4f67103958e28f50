"""Linear nets on circular grids with white inputs, at any number of channels and sites: exactly, by pairs of waves.

There the moments of `meanfield.theory.finite_channels.linear_closure` do not change if all four points move alike, and
are sums of products of plane waves at the points, of wave numbers k1 + k2 + k3 + k4 = 0. With Q_ij = k_i + k_j,

    a layer     multiplies by lambda(Q), Q that of the two points that step together, lambda(Q) = |mean_D e^{i Q D}|^2
                over the stencil's offsets D,
    an exchange gives the points another order,
    the input   depends on Q_12, Q_13, Q_14 alone: E C C' of infinitely many channels is 1 where Q_12 = 0.

So each triple (Q_12, Q_13, Q_14) is a recursion by itself, and a second moment of the kernel at points p, r and p, s
needs those with Q_13 = 0. With k = k1 and k' = k2,

    E F_l = mean over k and k' of crossed(k + k', 0, k - k') .

The label term of a pooled readout has k' = 0 along the grid. Samples are an axis on which the stencil has one tap.
"""

from __future__ import annotations

from functools import reduce
from itertools import permutations

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.families.layered import Sequential
from meanfield.nets.lattice import axis_offsets
from meanfield.theory.finite_channels.linear_closure import crossed_moments

# In which order the three sums Q stand for points (1, 2), (1, 3) and (1, 4).
ORDERS = list(permutations(range(3)))
# Factors lambda that agree to so many decimals are one.
DECIMALS = 12


def exact_terms_of_waves(net: Sequential) -> tuple[Array, Array]:
    """E B_l and E F_l for l = 1 .. L of a linear net by the fan-in rule, with white inputs: (L,) each.

    Labels are independent, of variance 1. With s_h the head's variance, M, B and S outputs, samples and sites, and
    means over k and k' as above, B_l = s_h n_L mean(crossed) / (M B S), times the taps of a convolutional readout.
    """
    overlap = _means(net, pooled=False)
    taps = 1 if net.is_pooled else net.taps
    scale = net.head_variance * taps * net.channels_by_layer[-1] / (net.outputs * net.inputs * net.sites)
    return scale * (_means(net, pooled=True) if net.is_pooled else overlap), overlap


def _means(net: Sequential, pooled: bool) -> Array:
    waves = PairsOfWaves(net, pooled)
    return np.array([waves.mean(moment) for moment in crossed_moments(net, waves, waves.white(), drawn=True)])


class PairsOfWaves:
    """Functions of four points as arrays (6, N): in every order of Q_12, Q_13 = 0 and Q_14, for N kinds of pairs k, k'.

    Pairs are of one kind where lambda agrees, and whether Q vanishes. ``pooled`` means k' = 0 along the grid.
    """

    def __init__(self, net: Sequential, pooled: bool) -> None:
        along_grid = [_axis(*shape, pooled) for shape in zip(net.grid, net.kernel, strict=True)]
        factors, vanishing, share = (reduce(np.kron, of) for of in zip(_axis(net.inputs, 1), *along_grid, strict=True))
        sums, differences = np.nonzero(share)
        self._share = share[sums, differences]
        triples = np.array([sums, np.full_like(sums, np.flatnonzero(vanishing)[0]), differences])
        together = triples[[order[0] for order in ORDERS]]
        self._factors, self._vanishing = factors[together], vanishing[together]

    def white(self) -> Array:
        """E C C' of infinitely many channels that are white over points."""
        return self._vanishing.astype(float)

    def carried(self, moment: Array) -> Array:
        return self._factors * moment

    def transposed(self, moment: Array, *axes: int) -> Array:
        order = [_sum_of(axes.index(0), axes.index(point)) for point in (1, 2, 3)]
        return np.asarray(moment[[ORDERS.index(tuple(of[place] for place in order)) for of in ORDERS]])

    def mean(self, moment: Array) -> float:
        """Over k and k', at Q_12 = k + k', Q_13 = 0 and Q_14 = k - k'."""
        return float(self._share @ moment[ORDERS.index((0, 1, 2))])


def _sum_of(first: int, second: int) -> int:
    """Which of Q_12, Q_13, Q_14 two points have, numbered from 0, up to sign."""
    low, high = sorted((first, second))
    return high - 1 if low == 0 else 5 - low - high


def _axis(length: int, taps: int, still: bool = False) -> tuple[Array, Array, Array]:
    """Of kinds of waves along one axis: lambda, whether the wave vanishes, and the share of pairs by k + k' and k - k'.

    ``still``: only k' = 0.
    """
    waves = np.arange(length)
    factors = np.abs(np.exp(2j * np.pi / length * np.outer(waves, axis_offsets(taps))).mean(axis=1)) ** 2
    apart = np.where(waves == 0, -1.0, np.round(factors, DECIMALS))
    _, first, kinds = np.unique(apart, return_index=True, return_inverse=True)
    second = waves[: 1 if still else length, None]
    pairs = kinds[(waves + second) % length] * len(first) + kinds[(waves - second) % length]
    share = np.bincount(pairs.ravel(), minlength=len(first) ** 2).reshape(len(first), -1) / pairs.size
    return factors[first], first == 0, share
