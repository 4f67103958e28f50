"""Squared tangent kernels to first order in 1/channels, on circular grids with white inputs: docs/theory.md section 20.

Sites are alike there, so that at leading order every layer has one covariance rho of two sites (variance 1) and two
kernels, K of a site with itself and of two sites. Per kind of pair (u, u'), a layer carries

    shift     what the means of c(u, u') and K(u, u') are off their leading order,
    joint     covariances of c(u, u'), c(u, u), c(u', u'), K(u, u') with the same at the pair (v, v'),
    crossed   V = E Theta_ij(u, v)^2,  X = E Theta_ij(u, v) Theta_ij(u', v') of two channels,  and four means
              R = phi(a)^T Theta(u, v) phi(b) / n^2, a one of u, u' and b one of v, v', behind the gates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.families.layered import Sequential
from meanfield.theory.finite_channels.alike_sites import AlikeSites
from meanfield.theory.finite_channels.pair_kinds import Pair, PairKind, pair_kinds, spreading
from meanfield.theory.finite_channels.responses import Responses, proportional, relu


@dataclass(frozen=True)
class Rows:
    """What all rows of one layer share: channels n, fan-in q n k, averages over sites, kernels at leading order,
    and what the stencil makes of shifts."""

    channels: int
    energy: float
    gain: float
    sites: AlikeSites
    same: Responses
    apart: Responses
    kernels: tuple[float, float]
    spreading: Array

    def responses(self, pair: Pair) -> Responses:
        """Of this pair, a site with itself or two sites."""
        return self.apart if pair[0] != pair[1] else self.same

    def kernel(self, pair: Pair) -> float:
        """K of this pair."""
        return self.kernels[pair[0] != pair[1]]

    def above(self, pair: Pair) -> float:
        """K of this pair one layer up."""
        seen = self.responses(pair)
        return (self.energy * seen.product + seen.gate * self.kernel(pair)) / self.gain


@dataclass(frozen=True)
class Fluctuations:
    """Of one kind of pair at one layer: shift (2,), joint (4, 4, 2, S), crossed (6, 2, S), as the module says."""

    kind: PairKind
    shift: Array
    joint: Array
    crossed: Array

    @property
    def covariance(self) -> Array:
        """Of c(u, u'), c(u, u), c(u', u'), K(u, u'): (4, 4)."""
        return self.kind.read(self.joint)

    def squared_kernel(self, kernel: float) -> float:
        """First order of E m^2, m the mean of Theta_aa(u, u') over rows given the layers below."""
        return float(self.covariance[3, 3] + 2 * kernel * self.shift[1])

    def behind_gates(self, rows: Rows) -> tuple[Array, float, float]:
        """First order of E sigma sigma, E sigma' sigma' Theta_aa and E sigma' sigma' Theta_aa^2 of two sites."""
        seen, kernel = rows.responses(self.kind.first), rows.kernel(self.kind.first)
        among, with_kernel = self.covariance[:3, :3], self.covariance[:3, 3]
        features = seen.product_slope[0] * self.shift[0] + np.sum(seen.product_curvature * among) / 2
        gate = seen.gate_slope[0] * self.shift[0] + np.sum(seen.gate_curvature * among) / 2
        between, exchanged, *means = self.kind.read(self.crossed)
        along = seen.gate_slope @ [means[0] + means[3], 2 * means[1], 2 * means[2]] / rows.gain**2
        mixed = seen.gate_slope @ with_kernel + along
        once = seen.gate * self.shift[1] + kernel * gate + mixed
        square = self.squared_kernel(kernel) + between + exchanged
        return features, once, seen.gate * square + kernel**2 * gate + 2 * kernel * mixed


def first_order(net: Sequential, given_input: bool = False) -> Array:
    """The coefficient of relative corrections, times 1/channels: E F_l / leading order = 1 + this + ..., (L,).

    Where ``given_input``, the Gram matrix of the input's features is taken as its mean.
    """
    coefficients, leading, first = [], 0.0, 0.0
    for number, (rows, below, above) in enumerate(_layers(net, given_input), start=1):
        for old, new in zip(below, above, strict=True):
            kind = old.kind
            kernel, gate = rows.kernel(kind.first), rows.responses(kind.first).gate
            square = old.squared_kernel(kernel) + kind.read(old.crossed[:2]).sum()
            leading += kind.share * (gate / rows.gain**2 - 1) * kernel**2 / rows.channels
            first += kind.share * (old.behind_gates(rows)[2] / rows.gain**2 - square) / rows.channels
            kernel, channels = rows.above(kind.first), net.channels_by_layer[number]
            leading += kind.share * kernel**2 / channels
            first += kind.share * (new.squared_kernel(kernel) + kind.read(new.crossed[1])) / channels
        coefficients.append(first / leading)
    return np.array(coefficients)


def _layers(net: Sequential, given_input: bool) -> Iterator[tuple[Rows, list[Fluctuations], list[Fluctuations]]]:
    """For layers 1 .. L: the rows below, fluctuations below and those of the layer."""
    rho, kernels, gain, factor = 0.0, (0.0, 0.0), net.sigma.gain, spreading(net)
    shapes = (2,), (4, 4, 2, net.sites), (6, 2, net.sites)
    below = [Fluctuations(kind, *map(np.zeros, shapes)) for kind in pair_kinds(net)]
    for number, (channels, _) in enumerate(pairwise(net.channels_by_layer)):
        same = proportional(1.0, gain)
        apart = relu(rho) if net.activation == "relu" else proportional(rho, gain)
        sites = AlikeSites(rho, net.activation)
        rows = Rows(channels, channels * net.taps * gain, gain, sites, same, apart, kernels, factor)
        above = [_carried(net, rows, state, fixed=given_input and not number) for state in below]
        yield rows, below, above
        rho, kernels, below = apart.product / gain, (rows.above((0, 0)), rows.above((0, 1))), above


def _carried(net: Sequential, rows: Rows, state: Fluctuations, fixed: bool) -> Fluctuations:
    """Fluctuations one layer up; ``fixed`` features add none of their own."""
    kind, added = state.kind, _added_to_crossed(net, rows, state.kind)
    features, once, _ = state.behind_gates(rows)
    response = _response(rows, kind.first)
    joint = np.einsum("ia,jb,abws->ijws", response, response, state.joint, optimize=True)
    if not fixed:
        joint += _added_to_joint(net, rows, kind)
    shift = np.array([features, rows.energy * features + once]) / rows.gain
    return replace(
        state,
        shift=shift,
        joint=joint * rows.spreading,
        crossed=(_through_gates(rows, kind.first, state.crossed) + added) * rows.spreading,
    )


def _response(rows: Rows, pair: Pair) -> Array:
    """How c and K above answer to c(u, u'), c(u, u), c(u', u') and K(u, u') below: (4, 4)."""
    seen = rows.responses(pair)
    response = np.diag([0.0, rows.gain, rows.gain, seen.gate])
    response[0, :3] = seen.product_slope
    response[3, :3] = rows.energy * seen.product_slope + rows.kernel(pair) * seen.gate_slope
    return response / rows.gain


def _added_to_joint(net: Sequential, rows: Rows, kind: PairKind) -> Array:
    """Covariances of what the mean over n rows has beyond its mean."""
    to_layer = np.diag([1.0, 1.0, 1.0, rows.kernel(kind.first)]) / rows.gain
    to_layer[3, 0] = rows.energy / rows.gain

    def factors(pair: Pair) -> list[tuple[int, ...]]:
        u, v = pair
        return [(1, u, v), (1, u, u), (1, v, v), (0, u, v)]

    def covariances(second: Pair) -> Array:
        of_row = [[rows.sites.covariance(a, b) for b in factors(second)] for a in factors(kind.first)]
        return np.asarray(to_layer @ of_row @ to_layer.T / rows.channels)

    return kind.added(covariances, kind.moved, net.sites)


def _through_gates(rows: Rows, pair: Pair, crossed: Array) -> Array:
    """What two channels' gates and weights make of V, X and the four R: per leg, a slope of sigma and one of sigma'."""
    seen = rows.responses(pair)
    gate, edge = seen.gate / rows.gain, seen.edge / rows.gain
    v, x, r, r_second, r_first, r_both = crossed
    both = gate**2 * r_both + gate * edge * (r_second + r_first) + edge**2 * r
    return np.array([v, gate**2 * x, r, gate * r_second + edge * r, gate * r_first + edge * r, both])


def _added_to_crossed(net: Sequential, rows: Rows, kind: PairKind) -> Array:
    """What Theta_ii of each row adds to V, X and the four R."""
    u, moved = kind.first

    def of_rows(second: Pair) -> list[float]:
        v, back = second
        average, here = rows.sites.average, rows.kernel((u, v)) / rows.channels
        square, product = here * rows.kernel((u, v)), here * rows.kernel((moved, back))
        quarter = rows.gain**2
        return [
            square * average((0, u, v)) / quarter,
            product * average((0, u, v, moved, back)) / quarter,
            here * average((1, u, v)),
            here * average((1, u, back), (0, v)),
            here * average((1, moved, v), (0, u)),
            here * average((1, moved, back), (0, u, v)),
        ]

    return kind.added(of_rows, kind.crossed, net.sites)
