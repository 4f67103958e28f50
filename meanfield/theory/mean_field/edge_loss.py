"""What zero padding costs with depth: the rate at which signals leave the grid, and the depths at which that shows.

Per layer a stencil carries sites by P = Pk / k, which loses what steps outside. Its top eigenvalue lambda < 1 is the
product over the axes of theirs, for three taps (1 + 2 cos(pi / (N + 1))) / 3. Covariances and kernels of one site decay
like lambda^l, second moments of kernels, and with them the overlap energy, like lambda^(2 l). Where that ends a cubic
law l^3 lambda^(2 l), growth turns at l = 3 / (-2 ln lambda), about 0.456 (N + 1)^2 for three taps in one dimension.

ReLU nets lose energy long before: a site near the edge and its neighbour inwards lose different shares of what they
have in common, so their correlation stays below 1, their gates differ, and kernels are no longer shared between sites.
(On 64 sites at layer 400, K of neighbours near the edge is 0.07 of K of one site; under circular padding 0.26.) The
layer at which half of the energy is left grows more slowly than N^2, which linear nets follow.

Even stencils drift: P is triangular (two taps: lambda = 1/2 on every grid), the law of lambda sets in only when all has
crossed the grid, and growth turns after of the order of N layers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import ceil

import numpy as np

from meanfield.common.validation import Array, require_counts, takes
from meanfield.nets.lattice import OUTSIDE, neighbours, require_same_dimension
from meanfield.nets.layered import Sequential
from meanfield.theory.mean_field.layers import input_products, layer_moments


def transport_eigenvalue(grid: int | tuple[int, ...], kernel: int | tuple[int, ...]) -> float:
    """lambda, the largest eigenvalue of Pk/k under zero padding: the share of a signal that one layer keeps, far down.

    Between 1/k and 1; 1 - lambda is of order (s/N)^2 for odd stencils of half-span s on N sites.

    Raises:
        TypeError, ValueError: lengths that are no counts, or grid and kernel of different dimension.

    Source: docs/theory.md section 7.
    """
    grid, kernel = require_counts("grid", grid), require_counts("kernel", kernel)
    require_same_dimension(grid, kernel)
    return float(np.prod([_axis_eigenvalue(sites, taps) for sites, taps in zip(grid, kernel, strict=True)]))


def _axis_eigenvalue(sites: int, taps: int) -> float:
    table = neighbours((sites,), (taps,), "zero")
    matrix = np.zeros((sites, sites))
    offset, site = np.nonzero(table != OUTSIDE)
    np.add.at(matrix, (site, table[offset, site]), 1 / taps)
    return float(np.abs(np.linalg.eigvals(matrix)).max())


@dataclass(frozen=True)
class EdgeLoss:
    """Overlap energies of one net under both paddings, and the depths at which zero padding shows.

    Attributes:
        zero, circular: F_1 .. F_l.
    """

    zero: Array
    circular: Array

    @property
    def ratio(self) -> Array:
        return self.zero / self.circular

    @property
    def half_depth(self) -> float:
        """Layer at which half of the circular energy is left; nan if that is before layer 1 or after the last."""
        return _crossing(np.log(np.arange(1, len(self.zero) + 1)), np.log(self.ratio), np.log(0.5))

    @property
    def lost_power_depth(self) -> float:
        """Layer at which the growth exponent d ln F / d ln l has fallen one below the circular one."""
        return _crossing(*_local_exponents(self.ratio), -1.0)

    @property
    def turning_depth(self) -> float:
        """Layer at which the overlap energy is largest, its growth exponent 0."""
        return _crossing(*_local_exponents(self.zero), 0.0)

    @property
    def decay(self) -> float:
        """ln of the factor by which the ratio falls in the last layer."""
        return float(np.log(self.ratio[-1] / self.ratio[-2]))


@takes(Sequential)
def edge_loss(net: Sequential, limit: int, beyond: float = 3.0) -> EdgeLoss:
    """Walk up a net, whose own depth does not matter, to so many times the turn of its growth, or to layer ``limit``.

    Beyond the turn the decay settles: within 1 % of 2 ln lambda at 3 times the turn in one dimension, at 5 in two.
    """
    zero: list[float] = []
    for energy in _overlap_energies(net.replace(depth=limit, padding="zero")):
        zero.append(energy)
        if len(zero) >= ceil(beyond * (1 + int(np.argmax(zero)))) > 2:
            break
    circular = islice(_overlap_energies(net.replace(depth=limit, padding="circular")), len(zero))
    return EdgeLoss(np.array(zero), np.array(list(circular)))


def _overlap_energies(net: Sequential) -> Iterator[float]:
    transport, product = input_products(net, None)
    for channels, moments in zip(net.channels_by_layer[1:], layer_moments(net, transport, product), strict=True):
        yield transport.mean(moments.overlap(channels))


def _local_exponents(energy: Array) -> tuple[Array, Array]:
    """The local exponents between one layer and the next: the mean of ln l, and d ln F / d ln l."""
    log_layer = np.log(np.arange(1, len(energy) + 1))
    return (log_layer[1:] + log_layer[:-1]) / 2, np.diff(np.log(energy)) / np.diff(log_layer)


def _crossing(log_layer: Array, value: Array, target: float) -> float:
    """exp of where a falling value first passes the target, interpolated; nan if it does not, or starts below."""
    below = np.flatnonzero(value < target)
    if len(below) == 0 or below[0] == 0:
        return float("nan")
    after = below[0]
    share = (value[after - 1] - target) / (value[after - 1] - value[after])
    return float(np.exp(log_layer[after - 1] + share * (log_layer[after] - log_layer[after - 1])))
