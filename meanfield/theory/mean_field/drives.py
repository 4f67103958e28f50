"""What the outputs drive along the features: averages over the few points of one channel that meet in the output
term.

Under a convolutional readout mu is diagonal: H(p) = mu(p) s(z_p). Then all of A_l is made of averages over at most
three sites, which for ReLU are elementary. With g = P(a, b > 0), D_ab = (c_a c_b - c_ab^2)^(1/2) / (2 pi) = xx - c g
and P3 = -1/4 + (g_ab + g_ac + g_bc)/2 the probability that three are on,

    E[1_a b c+]  = c_bc g_ac + c_ab D_ac / c_a
    E[1_a b+ c+] = c_bc P3 + [D_bc + (c_ab D_ac + c_ac D_ab) / c_a] / 2

without singularities where sites are fully correlated; for linear gates D = 0, and the same code serves.

Under a pooled readout H(p) = sum_r mu(p, r) s(z_r) runs over the sites of the point's sample, so that averages over
up to five sites arise. They close in linear nets, and where all points are alike. Exchangeable Gaussians are
independent given one number x they share, z_p = c_1^(1/2) x + (c_0 - c_1)^(1/2) e_p, and averages over any sites are
then integrals over x of products of one-site moments: `SiteSums`.

A polynomial in sums over the sites of one sample is a sum of a coefficient times factors: gate, feature or z itself
at the point OWN, at another point SIBLING of its sample, or summed over all its sites ("sum"). Sites are independent
given x; a product of sums is one over all ways in which its indices coincide, and where they do a site has the moment
of all factors that meet there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from itertools import product
from math import prod
from operator import mul
from typing import Protocol

import numpy as np
from scipy.special import ndtr

from meanfield.common.validation import Array
from meanfield.nets.layered import Sequential
from meanfield.theory.two_points import Exchangeable, Points


@dataclass(frozen=True)
class LayerAverages:
    """One layer's covariance c, g = E[s' s'] and xx = E[s s], over pairs of points."""

    covariance: Array
    gate: Array
    product: Array

    @classmethod
    def at(cls, net: Sequential, points: Points, covariance: Array) -> LayerAverages:
        sigma, ends = net.sigma, points.variances(covariance)
        return cls(covariance, sigma.gate_product(*ends, covariance), sigma.product(*ends, covariance))


@dataclass(frozen=True)
class DrivenChange:
    """What m + w adds to a layer's change: to A_l, to the next layer's Y and to its R, before the weights.

    Attributes:
        energy: E (m + w)^2 - E m^2, by point.
        gated_energy: E s'^2 (m + w)^2 - q E m^2, by point.
        gated_with_features: E s'(p) (m + w)(p) s(p'), over pairs.
    """

    energy: Array
    gated_energy: Array
    gated_with_features: Array


class Drive(Protocol):
    """A readout's mu, from the top down, and what it does to changes."""

    def top(self) -> Array:
        """mu of the last layer."""

    def square(self, layer: LayerAverages, along: Array) -> Array:
        """E[s'(p) H(p) s'(r) H(r)] over pairs."""

    def below(self, layer: LayerAverages, along: Array) -> Array:
        """(1/k) sum_D S_D^T E[d(s' H)/dz] S_D: mu of the layer below, before its factors."""

    def change(self, layer: LayerAverages, along: Array, kernel: Array, with_z: Array) -> DrivenChange:
        """What m + w does, from K and R."""


@dataclass(frozen=True)
class ConvolutionDrive:
    """A convolutional readout: mu by point."""

    net: Sequential
    points: Points

    def top(self) -> Array:
        net, points = self.net, self.points
        scale = net.head_variance * net.taps / (net.sites * net.inputs)
        return scale * points.moved_back(points.constant(1.0))

    def square(self, layer: LayerAverages, along: Array) -> Array:
        return along * self.points.second(along) * layer.product

    def below(self, layer: LayerAverages, along: Array) -> Array:
        return self.net.sigma.gain * self.points.moved_back(along)

    def change(self, layer: LayerAverages, along: Array, kernel: Array, with_z: Array) -> DrivenChange:
        return weighted_change(self.net, self.points, layer, kernel * self.points.second(along), with_z)


@dataclass(frozen=True)
class LinearPooledDrive:
    """A pooled readout of a linear net: mu over pairs of points."""

    net: Sequential
    points: Points

    def top(self) -> Array:
        return pooled_top(self.net, self.points)

    def square(self, layer: LayerAverages, along: Array) -> Array:
        points = self.points
        return points.product(points.product(along, layer.product), points.transpose(along))

    def below(self, layer: LayerAverages, along: Array) -> Array:
        return self.points.pulled_back(along)

    def change(self, layer: LayerAverages, along: Array, kernel: Array, with_z: Array) -> DrivenChange:
        weight = self.points.product(kernel, along)
        return weighted_change(self.net, self.points, layer, weight, with_z)


def pooled_top(net: Sequential, points: Points) -> Array:
    """mu_L of a pooled readout, s_h / (B S^2) between points of one sample."""
    return net.head_variance / (net.inputs * net.sites**2) * points.within_samples()


def weighted_change(
    net: Sequential, points: Points, layer: LayerAverages, weight: Array, with_z: Array
) -> DrivenChange:
    """What m + w does where w(p) = sum_r weight(p, r) s(z_r)."""
    alone, shared = net.sigma.triple or (0.0, 0.0)
    covariance, gate, product = layer.covariance, layer.gate, layer.product
    excess = product - covariance * gate  # D
    variance, _ = points.variances(covariance)
    inverse = np.divide(1.0, variance, out=np.zeros_like(variance), where=variance > 0)
    own, _ = points.variances(with_z)
    turned = with_z * gate + own * inverse * excess
    carried = points.product(weight, product)
    three = carried + points.product(weight * gate, covariance)
    three += inverse * points.contracted(weight, covariance) * excess
    three += inverse * points.contracted(weight, excess) * covariance
    three = shared * three + (alone + shared * gate) * points.product(weight, covariance)
    return DrivenChange(
        2 * net.sigma.gain * points.contracted(with_z, weight) + points.contracted(carried, weight),
        points.contracted(weight, 2 * turned + three),
        turned + three,
    )


FEATURE, GATE, Z = "feature", "gate", "z"


@dataclass(frozen=True)
class PooledDrive:
    """A pooled readout over exchangeable points of independent samples: mu over pairs, 0 between samples."""

    net: Sequential
    points: Exchangeable

    def top(self) -> Array:
        return pooled_top(self.net, self.points)

    def square(self, layer: LayerAverages, along: Array) -> Array:
        sums = SiteSums(layer.covariance, self.points.sites)
        own, sibling = _driven(along, OWN), _driven(along, SIBLING)
        there = sums.given(own)
        other = float(sums.weights @ there**2)
        return np.array([sums.mean(own, own), sums.mean(own, sibling), other, other])

    def below(self, layer: LayerAverages, along: Array) -> Array:
        """E[d(s' H)/dz]: gates on both sides, and on a point itself what it meets where its gate opens."""
        meets = (self.points.sites - 1) * along[1] * (layer.product - layer.covariance * layer.gate)[1]
        opening = np.array([meets / layer.covariance[0], 0.0, 0.0, 0.0])
        return along * layer.gate + opening

    def change(self, layer: LayerAverages, along: Array, kernel: Array, with_z: Array) -> DrivenChange:
        points, sums = self.points, SiteSums(layer.covariance, self.points.sites)
        mean = points.quotient(with_z, layer.covariance)
        along_z = points.contracted(with_z, mean)
        own, from_others = _own_change(along, kernel, mean), _from_other_samples(along, kernel, mean)
        count = points.inputs - 1
        # given x, samples are independent: means and mean square of what all others add
        once, squared = count * sums.given(from_others), count * sums.given(from_others, from_others)
        squared = squared + count * (count - 1) * sums.given(from_others) ** 2
        gate, feature = ((1.0, ((GATE, OWN),)),), ((1.0, ((FEATURE, OWN),)),)
        sibling = ((1.0, ((FEATURE, SIBLING),)),)

        def energy(*factors: SitePolynomial) -> float:
            total = sums.given(own, own, *factors) + 2 * sums.given(own, *factors) * once
            return float(sums.weights @ (total + sums.given(*factors) * squared))

        def with_feature(factor: SitePolynomial) -> float:
            return float(sums.weights @ (sums.given(own, gate, factor) + sums.given(gate, factor) * once))

        beyond = sums.given(own, gate) * sums.given(feature) + sums.given(gate) * (
            sums.given(from_others, feature) + (count - 1) * sums.given(from_others) * sums.given(feature)
        )
        other = float(sums.weights @ beyond)
        pairs = np.array([with_feature(feature), with_feature(sibling), other, other])
        return DrivenChange(energy() - along_z, energy(gate) - self.net.sigma.gain * along_z, pairs)


def _driven(along: Array, point: str) -> SitePolynomial:
    """s'(p) H(p)."""
    return (along[0] - along[1], ((FEATURE, point),)), (along[1], ((GATE, point), (FEATURE, "sum")))


def _from_other_samples(along: Array, kernel: Array, mean: Array) -> SitePolynomial:
    """What a sample adds to m + w at a point of another: sums over its sites."""
    return (
        (mean[2], ((Z, "sum"),)),
        (kernel[2] * (along[0] - along[1]), ((FEATURE, "sum"),)),
        (kernel[2] * along[1], ((GATE, "sum"), (FEATURE, "sum"))),
    )


def _own_change(along: Array, kernel: Array, mean: Array) -> SitePolynomial:
    """What a point's own sample adds to m + w there."""
    driven = tuple(((kernel[0] - kernel[1]) * scale, factors) for scale, factors in _driven(along, OWN))
    return (
        (mean[0] - mean[1], ((Z, OWN),)),
        (mean[1], ((Z, "sum"),)),
        (kernel[1] * (along[0] - along[1]), ((FEATURE, "sum"),)),
        (kernel[1] * along[1], ((GATE, "sum"), (FEATURE, "sum"))),
        *driven,
    )


OWN, SIBLING, SUM = "own", "sibling", "sum"
Factor = tuple[str, str]
SitePolynomial = tuple[tuple[float, tuple[Factor, ...]], ...]
# What meets at a site: whether a gate or feature is among it, and the power of z.
Meeting = tuple[bool, int]
# Largest x followed, in standard deviations; beyond is less than a float resolves.
REACH = 9.0
STEP = 0.1
# Smallest variance that a site has of its own, of its whole variance.
CLOSEST = 1e-14


class SiteSums:
    """Averages at one layer's covariance: of a point with itself, and with any other."""

    def __init__(self, covariance: Array, sites: int) -> None:
        self.sites = sites
        self._products: dict[tuple[Meeting, ...], Array] = {}
        same, across = covariance[0], covariance[1]
        steepness = np.sqrt(1 + across / max(same - across, CLOSEST * same))
        # The trapezoidal rule in u, x = sinh(u) / steepness: some 100 points to rounding, however steep the gates in x.
        end = np.arcsinh(REACH * steepness)
        u = np.linspace(-end, end, 2 * int(np.ceil(end / STEP)) + 1)
        self._x = np.sinh(u) / steepness
        weights = np.cosh(u) * np.exp(-(self._x**2) / 2)
        self.weights = weights / weights.sum()
        self._centre, self._spread = np.sqrt(across) * self._x, np.sqrt(max(same - across, CLOSEST * same))

    def mean(self, *polynomials: SitePolynomial) -> float:
        return float(self.weights @ self.given(*polynomials))

    def given(self, *polynomials: SitePolynomial) -> Array:
        """The mean of the product of polynomials at every x."""
        weights: defaultdict[tuple[Meeting, ...], float] = defaultdict(float)
        for terms in product(*polynomials):
            coefficient = prod(scale for scale, _ in terms)
            factors = tuple(factor for _, group in terms for factor in group)
            for meetings, count in _coincidences(factors, self.sites):
                weights[meetings] += coefficient * count
        return sum((weight * self._product(meetings) for meetings, weight in weights.items()), np.zeros_like(self._x))

    def _product(self, meetings: tuple[Meeting, ...]) -> Array:
        if meetings not in self._products:
            self._products[meetings] = reduce(
                mul, (self._moments[meeting] for meeting in meetings), np.ones_like(self._x)
            )
        return self._products[meetings]

    @cached_property
    def _moments(self) -> dict[Meeting, Array]:
        """E[z^k] and E[z^k 1(z > 0)] of one site at every x."""
        centre, spread = self._centre, self._spread
        ratio = centre / spread
        on = ndtr(ratio)
        edge = spread * np.exp(-(ratio**2) / 2) / np.sqrt(2 * np.pi)
        square = centre**2 + spread**2
        return {
            (False, 1): centre,
            (False, 2): square,
            (True, 0): on,
            (True, 1): centre * on + edge,
            (True, 2): square * on + centre * edge,
        }


@lru_cache(maxsize=4096)
def _coincidences(factors: tuple[Factor, ...], sites: int) -> tuple[tuple[tuple[Meeting, ...], int], ...]:
    """What meets at the sites of a product, and in how many ways: the sum over all values of the summed indices."""
    ways: Counter[tuple[Meeting, ...]] = Counter()
    fixed = [place for place in (OWN, SIBLING) if any(where == place for _, where in factors)]
    start = {place: [kind for kind, where in factors if where == place] for place in fixed}
    free = [kind for kind, where in factors if where == SUM]
    for groups, count in _placed(free, list(start.values()), sites):
        ways[tuple(sorted(map(_meeting, groups)))] += count
    return tuple(ways.items())


def _placed(kinds: list[str], groups: list[list[str]], sites: int) -> Iterator[tuple[list[list[str]], int]]:
    """Every way to put factors on the sites of these groups or on new ones, and how many choices of sites it has."""
    if not kinds:
        yield groups, 1
        return
    first, *remaining = kinds
    for place, group in enumerate(groups):
        yield from _placed(remaining, [*groups[:place], [*group, first], *groups[place + 1 :]], sites)
    for placed, count in _placed(remaining, [*groups, [first]], sites):
        yield placed, count * (sites - len(groups))


def _meeting(kinds: list[str]) -> Meeting:
    return any(kind != "z" for kind in kinds), sum(kind != "gate" for kind in kinds)
