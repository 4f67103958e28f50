"""Squared tangent kernels to first order in 1/channels, for any input and padding: every pair of points by itself.

The recursion is that of `meanfield.theory.first_order_alike_sites`, for points (samples and sites) that need not be
alike. What is followed at two pairs of points is a matrix (P, P), P the square of the number of points, so that few
points are served. Averages over four points are means over quasi-random Gaussians, good to 1 % of the correction.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, kron

from meanfield.common.gaussian_averages import even_normals
from meanfield.common.validation import Array, require_array
from meanfield.nets.lattice import OUTSIDE, neighbours
from meanfield.nets.layered import INPUT_LAYOUT, Sequential
from meanfield.theory.first_order_alike_sites import Responses, of_pairs
from meanfield.theory.mean_field.layers import given_product, input_variance, label_weights

# Two to this power are the Gaussians of an average over four points.
LOG_SAMPLES = 13


def first_order_of_pairs(net: Sequential, inputs: ArrayLike | None, given_input: bool) -> tuple[Array, Array]:
    """Relative corrections of first order in 1/channels to label term and overlap energy, (L,) each.

    Where inputs are drawn and ``given_input``, the Gram matrix of their features is taken as its mean.

    Raises:
        ValueError: given inputs that leave a point without features.
    """
    pairs, gain, channels = Pairs(net), net.sigma.gain, net.channels_by_layer
    weights = label_weights(net, [np.ones(())] * net.depth)
    leading = first = np.zeros(pairs.count**2)
    below, corrections = _input_moments(net, pairs), []
    for number, (n, above) in enumerate(pairwise(channels)):
        if number or inputs is None:
            seen = _responses(net, pairs, below)
            leading = leading + (seen.gate / gain**2 - 1) * below.kernel**2 / n
            first = first + (_behind_gates(pairs, below, seen, gain)[2] / gain**2 - _square(pairs, below)) / n
            below = _layer_above(net, pairs, below, seen, n, fixed=given_input and not number)
        else:
            below = _first_layer(net, pairs, below, inputs)
        leading = pairs.apart @ leading + below.kernel**2 / above
        exchanged = below.crossed[np.arange(pairs.count**2), pairs.swapped]
        first = pairs.apart @ first + (_squared_mean(below) + exchanged) / above
        at_second = np.tile(np.broadcast_to(weights[number], net.sites), net.inputs)[pairs.second]
        corrections.append(((first @ at_second) / (leading @ at_second), first.sum() / leading.sum()))
    label, overlap = np.array(corrections).T
    return label, overlap


@dataclass(frozen=True)
class PairMoments:
    """The moments of one layer, by pair of points (u, u'), at leading order and beyond.

    Attributes:
        covariance, kernel: c and K at leading order, (P,).
        shift_c, shift_k: what the means of c and K are off, (P,).
        cc, ck, kk: covariances of c and K, (P, P).
        crossed: E Theta_ij(u, v) Theta_ij(u', v') of two channels, by (u, u') and (v, v').
        driven: phi(r)^T Theta(u, v) phi(r') / n^2 behind gates, by (r, u) and (r', v).
    """

    covariance: Array
    kernel: Array
    shift_c: Array
    shift_k: Array
    cc: Array
    ck: Array
    kk: Array
    crossed: Array
    driven: Array


class Pairs:
    """Where pairs of points stand in arrays, and what one layer makes of them."""

    def __init__(self, net: Sequential) -> None:
        self.count = net.inputs * net.sites
        self.first, self.second = np.divmod(np.arange(self.count**2), self.count)
        self.here, self.there, self.swapped = (
            self.at(*pair) for pair in ((self.first, self.first), (self.second, self.second), (self.second, self.first))
        )
        self.arguments = np.array([np.arange(self.count**2), self.here, self.there])  # c(u, u'), c(u, u), c(u', u')
        shifts = [_shift(net, places) for places in neighbours(net.grid, net.kernel, net.padding)]
        self.together = csr_array(sum(kron(shift, shift) for shift in shifts) / net.taps)
        self.apart = csr_array(kron(sum(shifts), sum(shifts)) / net.taps**2)

    def at(self, first: Array, second: Array) -> Array:
        """Place of a pair."""
        return np.asarray(first * self.count + second)

    def map_of(self, slopes: Any) -> csr_array:
        """The linear map of c with these derivatives in its three arguments, (3, P)."""
        size = self.count**2
        rows = np.tile(np.arange(size), 3)
        return csr_array((np.ravel(slopes), (rows, self.arguments.ravel())), shape=(size, size))

    def carried(self, moments: Array) -> Array:
        """Carry both pairs of a (P, P) through a layer, each of whose pairs steps together."""
        return np.asarray(self.together @ (self.together @ moments.T).T)


def _shift(net: Sequential, places: Array) -> csr_array:
    """S_Delta of all samples."""
    inside = np.flatnonzero(places != OUTSIDE)
    alone = csr_array((np.ones(len(inside)), (inside, places[inside])), shape=(net.sites, net.sites))
    return csr_array(kron(np.eye(net.inputs), alone))


def _input_moments(net: Sequential, pairs: Pairs) -> PairMoments:
    """White inputs, above which there are no kernels yet."""
    none, nothing = np.zeros(pairs.count**2), np.zeros((pairs.count**2,) * 2)
    covariance = input_variance(net) * (pairs.first == pairs.second)
    return PairMoments(covariance, none, none, none, *[nothing] * 5)


def _first_layer(net: Sequential, pairs: Pairs, below: PairMoments, inputs: ArrayLike) -> PairMoments:
    """Given inputs fix c and K of layer 1."""
    batch = require_array("inputs", inputs, net.input_shape, INPUT_LAYOUT)
    carried = pairs.together @ given_product(net, batch)[1].ravel()
    if not carried[pairs.here].all():
        raise ValueError(
            "inputs leave some site of layer 1 without features, where gates have no average: give inputs that are not "
            "zero, or negative under 'relu', all over a stencil"
        )
    kernel = net.channels_by_layer[0] * net.taps * carried
    return PairMoments(carried / net.sigma.gain, kernel, *[below.shift_c] * 2, *[below.cc] * 5)


def _responses(net: Sequential, pairs: Pairs, moments: PairMoments) -> Responses:
    variances = moments.covariance[pairs.here], moments.covariance[pairs.there]
    return of_pairs(*variances, moments.covariance, net.activation)


def _squared_mean(moments: PairMoments) -> Array:
    """First order of E m^2, m the mean of Theta_aa over rows given the layers below."""
    return np.asarray(np.diagonal(moments.kk) + 2 * moments.kernel * moments.shift_k)


def _square(pairs: Pairs, moments: PairMoments) -> Array:
    """First order of E Theta_aa^2."""
    between = moments.crossed[pairs.here, pairs.there]
    exchanged = moments.crossed[pairs.arguments[0], pairs.swapped]
    return np.asarray(_squared_mean(moments) + between + exchanged)


def _behind_gates(pairs: Pairs, moments: PairMoments, seen: Responses, gain: float) -> tuple[Array, Array, Array]:
    """First order of E sigma sigma, E sigma' sigma' Theta_aa and E sigma' sigma' Theta_aa^2, by pair."""
    places, (here, there, swapped) = pairs.arguments, (pairs.here, pairs.there, pairs.swapped)
    among, shifts = moments.cc[places[:, None], places], moments.shift_c[places]
    features = (seen.product_slope * shifts).sum(0) + (seen.product_curvature * among).sum((0, 1)) / 2
    gate = (seen.gate_slope * shifts).sum(0) + (seen.gate_curvature * among).sum((0, 1)) / 2
    driven = moments.driven
    own = driven[here, there] + driven[swapped, places[0]]
    along = np.array([own, 2 * driven[here, places[0]], 2 * driven[swapped, there]])
    mixed = (seen.gate_slope * (moments.ck[places, places[0]] + along / gain**2)).sum(0)
    once = seen.gate * moments.shift_k + moments.kernel * gate + mixed
    square = seen.gate * _square(pairs, moments) + moments.kernel**2 * gate + 2 * moments.kernel * mixed
    return features, once, square


def _layer_above(
    net: Sequential, pairs: Pairs, below: PairMoments, seen: Responses, channels: int, fixed: bool
) -> PairMoments:
    """Moments one layer up; ``fixed`` features add no noise of their own."""
    gain, energy = net.sigma.gain, channels * net.taps * net.sigma.gain
    rows = _RowAverages(net, pairs, below.covariance, channels)
    features, once, _ = _behind_gates(pairs, below, seen, gain)
    shift_c, carried = pairs.together @ features / gain, pairs.together @ seen.product
    cc, ck, kk = (pairs.carried(moments) / gain**2 for moments in _joint(pairs, below, seen, None if fixed else rows))
    by_points = below.kernel.reshape(pairs.count, pairs.count)
    crossed = np.multiply.outer(seen.gate, seen.gate) * below.crossed + np.kron(by_points, by_points) * rows.four_gates
    legs = pairs.map_of([seen.gate, np.zeros_like(seen.gate), seen.edge])
    along = np.kron(np.ones_like(by_points), by_points) * rows.gated_features
    return PairMoments(
        covariance=carried / gain,
        kernel=(energy * carried + pairs.together @ (seen.gate * below.kernel)) / gain,
        shift_c=shift_c,
        shift_k=energy * shift_c + pairs.together @ once / gain,
        cc=cc,
        ck=energy * cc + ck,
        kk=energy**2 * cc + energy * (ck + ck.T) + kk,
        crossed=pairs.carried(crossed) / gain**2,
        driven=pairs.carried(legs @ (legs @ below.driven.T).T / gain**2 + along),
    )


def _joint(pairs: Pairs, below: PairMoments, seen: Responses, rows: _RowAverages | None) -> tuple[Array, Array, Array]:
    """Covariances of sigma sigma and sigma' sigma' Theta_aa, as means over rows, with ``rows`` their own noise."""
    slopes, turning = pairs.map_of(seen.product_slope), pairs.map_of(below.kernel * seen.gate_slope)
    cc = slopes @ (slopes @ below.cc).T
    ck = slopes @ ((turning @ below.cc).T + below.ck * seen.gate)
    mixed = (turning @ below.ck) * seen.gate
    kk = turning @ (turning @ below.cc).T + mixed + mixed.T + seen.gate[:, None] * below.kk * seen.gate
    if rows is None:
        return cc, ck, kk
    of_gates = below.kernel[:, None] * rows.gates * below.kernel
    return cc + rows.features, ck + rows.features_with_gates * below.kernel, kk + of_gates


class _RowAverages:
    """Averages over four points of a row, over the number of rows: covariances of two products, and their means."""

    def __init__(self, net: Sequential, pairs: Pairs, covariance: Array, channels: int) -> None:
        points = pairs.count
        values, vectors = np.linalg.eigh(covariance.reshape(points, points))
        normals = even_normals(points).random(2**LOG_SAMPLES)
        z = normals @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        gates, features = net.sigma.gate(z), net.sigma.function(z)
        on, products, gated = (
            (a[:, pairs.first] * b[:, pairs.second])
            for a, b in ((gates, gates), (features, features), (features, gates))
        )
        count = channels * len(z)
        self.four_gates, self.gated_features = on.T @ on / count, gated.T @ gated / count
        on, products = on - on.mean(axis=0), products - products.mean(axis=0)
        self.gates, self.features, self.features_with_gates = (
            left.T @ right / count for left, right in ((on, on), (products, products), (products, on))
        )
