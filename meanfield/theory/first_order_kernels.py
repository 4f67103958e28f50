"""Squared tangent kernels to first order in 1/channels, on circular grids with white inputs: docs/theory.md section
20.

Sites are alike there, so that at leading order every layer has one covariance rho of two sites (variance 1) and two
kernels, K of a site with itself and of two sites. Per kind of pair (u, u'), a layer carries

    shift     what the means of c(u, u') and K(u, u') are off their leading order,
    joint     covariances of c(u, u'), c(u, u), c(u', u'), K(u, u') with the same at the pair (v, v'),
    crossed   V = E Theta_ij(u, v)^2,  X = E Theta_ij(u, v) Theta_ij(u', v') of two channels,  and four means
              R = phi(a)^T Theta(u, v) phi(b) / n^2, a one of u, u' and b one of v, v', behind the gates.

Kinds of pairs: what fluctuates at a pair (u, u') is correlated with the same at every other pair of one displacement,
by their shift. Such a function of shifts is made by one layer after the other: what a layer adds depends only on
which of the four sites coincide, and a layer spreads what is there by the stencil. It is read at one shift alone. So
two functions of shifts are carried: what was added at every shift, and in excess at that which is read ("here"); and
what was added in excess at shifts one displacement away ("shifted"), averaged over the displacements of this kind.
Both are held as their Fourier transforms, which are real, and of which a layer makes multiples.

Averages over several sites of one channel, any two of which have the same correlation: a pre-activation is z_p =
sqrt(rho) x + sqrt(1 - rho) y_p, all standard Gaussians. Given x sites are independent, so that an average of products
over any number of sites is an integral over x alone.

Responses, of the averages of a pair of sites to their covariance: for a pair (u, v) the arguments are c_uv, c_uu,
c_vv, in this order. With theta = pi - arccos(rho), s = sqrt(1 - rho^2) and D = c_uu c_vv - c_uv^2, ReLU has

    E[sigma sigma] = (sqrt(D) + c_uv theta) / (2 pi),    E[sigma' sigma'] = theta / (2 pi),

from which the derivatives below follow at c_uu = c_vv = 1. A site with itself, and linear nets, have q c_uv and q.

For any input and padding every pair of points is followed by itself. The recursion is the one above, for points
(samples and sites) that need not be alike. What is followed at two pairs of points is a matrix (P, P), P the square
of the number of points, so that few points are served. Averages over four points are means over quasi-random
Gaussians, good to 1 % of the correction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, kron
from scipy.special import ndtr

from meanfield.common.gaussian_averages import even_normals
from meanfield.common.validation import Array, require_array
from meanfield.nets.lattice import OUTSIDE, neighbours
from meanfield.nets.layered import INPUT_LAYOUT, Sequential
from meanfield.theory.mean_field.layers import given_product, input_variance, label_weights

PairOfSites = tuple[int, int]


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
    """Yield for layers 1 .. L the rows below, the fluctuations below and those of the layer."""
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

    def responses(self, pair: PairOfSites) -> Responses:
        """How this pair, a site with itself or two sites, responds."""
        return self.apart if pair[0] != pair[1] else self.same

    def kernel(self, pair: PairOfSites) -> float:
        """K of this pair."""
        return self.kernels[pair[0] != pair[1]]

    def above(self, pair: PairOfSites) -> float:
        """K of this pair one layer up."""
        seen = self.responses(pair)
        return (self.energy * seen.product + seen.gate * self.kernel(pair)) / self.gain


@dataclass(frozen=True)
class Fluctuations:
    """The fluctuations of one kind of pair at one layer: shift (2,), joint (4, 4, 2, S), crossed (6, 2, S), as the
    module says."""

    kind: PairKind
    shift: Array
    joint: Array
    crossed: Array

    @property
    def covariance(self) -> Array:
        """The covariance of c(u, u'), c(u, u), c(u', u'), K(u, u'): (4, 4)."""
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


def _response(rows: Rows, pair: PairOfSites) -> Array:
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

    def factors(pair: PairOfSites) -> list[tuple[int, ...]]:
        u, v = pair
        return [(1, u, v), (1, u, u), (1, v, v), (0, u, v)]

    def covariances(second: PairOfSites) -> Array:
        of_row = [[rows.sites.covariance(a, b) for b in factors(second)] for a in factors(kind.first)]
        return np.asarray(to_layer @ of_row @ to_layer.T / rows.channels)

    return kind.added(covariances, kind.moved, net.sites)


def _through_gates(rows: Rows, pair: PairOfSites, crossed: Array) -> Array:
    """What two channels' gates and weights make of V, X and the four R: per leg, a slope of sigma and one of sigma'."""
    seen = rows.responses(pair)
    gate, edge = seen.gate / rows.gain, seen.edge / rows.gain
    v, x, r, r_second, r_first, r_both = crossed
    both = gate**2 * r_both + gate * edge * (r_second + r_first) + edge**2 * r
    return np.array([v, gate**2 * x, r, gate * r_second + edge * r, gate * r_first + edge * r, both])


def _added_to_crossed(net: Sequential, rows: Rows, kind: PairKind) -> Array:
    """What Theta_ii of each row adds to V, X and the four R."""
    u, moved = kind.first

    def of_rows(second: PairOfSites) -> list[float]:
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


@dataclass(frozen=True)
class Coincidences:
    """A second pair of sites where all differ that can, where shifts are read, and one displacement away from there."""

    apart: PairOfSites
    here: PairOfSites
    shifted: tuple[PairOfSites, ...] = ()


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
    first: PairOfSites
    moved: Coincidences
    crossed: Coincidences

    def added(self, of_second: Callable[[PairOfSites], ArrayLike], where: Coincidences, sites: int) -> Array:
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


# Beyond this many standard deviations an average of fourth powers has nothing left.
REACH = 10.0
# Panels of the integral double in length away from 0, where gates open; nodes and weights of each.
PANEL = leggauss(24)


class AlikeSites:
    """One channel at sites of variance 1 and this correlation, through "relu" or "linear" units."""

    def __init__(self, correlation: float, activation: str) -> None:
        shared, alone = np.sqrt(correlation), np.sqrt(1 - correlation)
        nodes, self._weights = _nodes(alone / shared if shared else np.inf)
        on, density = ndtr(nodes * shared / alone), np.exp(-np.square(nodes * shared / alone) / 2) / np.sqrt(2 * np.pi)
        if activation == "linear":
            on, density = np.ones_like(nodes), np.zeros_like(nodes)
        mean = shared * nodes
        moments = [on, mean * on + alone * density]
        for power in (1, 2, 3):
            moments.append(mean * moments[power] + power * alone**2 * moments[power - 1])
        self._given_shared = moments
        self._known: dict[tuple[int, ...], float] = {}

    def average(self, *factors: tuple[int, ...]) -> float:
        """E of a product of factors (power, *sites): the power of sigma times the gate, at each of these sites."""
        powers: dict[int, int] = {}
        for power, *sites in factors:
            for site in sites:
                powers[site] = powers.get(site, 0) + power
        kind = tuple(sorted(powers.values()))
        if kind not in self._known:
            self._known[kind] = float(np.prod([self._given_shared[power] for power in kind], axis=0) @ self._weights)
        return self._known[kind]

    def covariance(self, left: tuple[int, ...], right: tuple[int, ...]) -> float:
        """The covariance of two such factors."""
        return self.average(left, right) - self.average(left) * self.average(right)


def _nodes(scale: float) -> tuple[Array, Array]:
    """Nodes and weights of an average over x ~ N(0, 1) of what changes on this scale near 0."""
    ends = [0.0, min(scale, 1.0)]
    while ends[-1] < REACH:
        ends.append(min(2 * ends[-1], REACH))
    half = np.diff(ends)[:, None] / 2
    nodes, weights = PANEL
    positive = ((np.array(ends[:-1])[:, None] + half) + half * nodes).ravel()
    density = (half * weights).ravel() * np.exp(-np.square(positive) / 2) / np.sqrt(2 * np.pi)
    return np.concatenate([-positive, positive]), np.concatenate([density, density])


# Curvatures go as (1 - rho)^(-3/2): two sites closer to correlation 1 than this are taken as one.
ALIKE = 1e-8


@dataclass(frozen=True)
class Responses:
    """Averages of one pair of sites, or of arrays (P,) of them, and their derivatives in (c_uv, c_uu, c_vv).

    Attributes:
        product, product_slope, product_curvature: E[sigma(u) sigma(v)], (3, ...), (3, 3, ...).
        gate, gate_slope, gate_curvature: E[sigma'(u) sigma'(v)], likewise.
        edge: E[sigma(u) sigma''(v)], the mean of one site where the gate of the other opens.
    """

    product: Any
    product_slope: Array
    product_curvature: Array
    gate: Any
    gate_slope: Array
    gate_curvature: Array
    edge: Any


def proportional(covariance: Any, gain: float) -> Responses:
    """E[sigma sigma] = q c_uv."""
    none, flat = np.zeros(3), np.zeros((3, 3))
    return Responses(gain * covariance, np.array([gain, 0.0, 0.0]), flat, gain, none, flat, 0.0)


def relu(rho: Any) -> Responses:
    """The responses of two sites of correlation rho < 1."""
    theta, s = np.pi - np.arccos(rho), np.sqrt((1 - rho) * (1 + rho))
    mixed, own, both = -rho / (2 * s), (2 * rho**2 - 1) / (4 * s), 1 / (4 * s)
    product_curvature = np.array([[1 / s, mixed, mixed], [mixed, own, both], [mixed, both, own]])
    mixed, own, both = -1 / (2 * s**3), rho / (2 * s) + rho / (4 * s**3), rho / (4 * s**3)
    gate_curvature = np.array([[rho / s**3, mixed, mixed], [mixed, own, both], [mixed, both, own]])
    turn = 2 * np.pi
    return Responses(
        product=(s + rho * theta) / turn,
        product_slope=np.array([theta, s / 2, s / 2]) / turn,
        product_curvature=product_curvature / turn,
        gate=theta / turn,
        gate_slope=np.array([1 / s, -rho / (2 * s), -rho / (2 * s)]) / turn,
        gate_curvature=gate_curvature / turn,
        edge=s / turn,
    )


def of_pairs(first: Array, second: Array, covariance: Array, activation: str) -> Responses:
    """The responses of pairs (P,) of any variances: derivatives (3, P) and (3, 3, P), by homogeneity from those at
    variance 1."""
    size = np.sqrt(first * second)
    rho = np.clip(covariance / size, -1.0, 1.0)
    alike = (rho > 1 - ALIKE) | (activation == "linear")
    gain = 1.0 if activation == "linear" else 0.5
    apart, same = relu(np.where(alike, 0.0, rho)), proportional(rho, gain)

    def chosen(name: str) -> Array:
        of_two, of_one = (np.asarray(getattr(kind, name), dtype=float) for kind in (apart, same))
        of_one = of_one if of_one.shape == of_two.shape else np.broadcast_to(of_one[..., None], of_two.shape)
        return np.where(alike, of_one, of_two)

    scale = np.array([size, first, second])
    twice = scale[:, None] * scale
    return Responses(
        product=size * chosen("product"),
        product_slope=size * chosen("product_slope") / scale,
        product_curvature=size * chosen("product_curvature") / twice,
        gate=chosen("gate"),
        gate_slope=chosen("gate_slope") / scale,
        gate_curvature=chosen("gate_curvature") / twice,
        edge=np.sqrt(first / second) * chosen("edge"),
    )


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
