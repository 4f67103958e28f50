"""What the outputs drive along the features, where averages over three sites suffice.

Under a convolutional readout mu is diagonal: H(p) = mu(p) s(z_p). Then all of A_l is made of averages over at most
three sites, which for ReLU are elementary. With g = P(a, b > 0), D_ab = (c_a c_b - c_ab^2)^(1/2) / (2 pi) = xx - c g
and P3 = -1/4 + (g_ab + g_ac + g_bc)/2 the probability that three are on,

    E[1_a b c+]  = c_bc g_ac + c_ab D_ac / c_a
    E[1_a b+ c+] = c_bc P3 + [D_bc + (c_ab D_ac + c_ac D_ab) / c_a] / 2

without singularities where sites are fully correlated; for linear gates D = 0, and the same code serves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.families.layered import Sequential
from meanfield.theory.outputs.points import Points


@dataclass(frozen=True)
class LayerAverages:
    """One layer's covariance c, g = E[s' s'] and xx = E[s s], over pairs of points."""

    covariance: Array
    gate: Array
    product: Array

    @classmethod
    def at(cls, architecture: Sequential, points: Points, covariance: Array) -> LayerAverages:
        sigma, ends = architecture.sigma, points.variances(covariance)
        return cls(covariance, sigma.gate_product(*ends, covariance), sigma.product(*ends, covariance))


@dataclass(frozen=True)
class Change:
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

    def change(self, layer: LayerAverages, along: Array, kernel: Array, with_z: Array) -> Change:
        """What m + w does, from K and R."""


@dataclass(frozen=True)
class ConvolutionDrive:
    """A convolutional readout: mu by point."""

    architecture: Sequential
    points: Points

    def top(self) -> Array:
        net, points = self.architecture, self.points
        scale = net.head_variance * net.taps / (net.sites * net.inputs)
        return scale * points.moved_back(points.constant(1.0))

    def square(self, layer: LayerAverages, along: Array) -> Array:
        return along * self.points.second(along) * layer.product

    def below(self, layer: LayerAverages, along: Array) -> Array:
        return self.architecture.sigma.gain * self.points.moved_back(along)

    def change(self, layer: LayerAverages, along: Array, kernel: Array, with_z: Array) -> Change:
        return weighted_change(self.architecture, self.points, layer, kernel * self.points.second(along), with_z)


@dataclass(frozen=True)
class LinearPooledDrive:
    """A pooled readout of a linear net: mu over pairs of points."""

    architecture: Sequential
    points: Points

    def top(self) -> Array:
        return pooled_top(self.architecture, self.points)

    def square(self, layer: LayerAverages, along: Array) -> Array:
        points = self.points
        return points.product(points.product(along, layer.product), points.transpose(along))

    def below(self, layer: LayerAverages, along: Array) -> Array:
        return self.points.pulled_back(along)

    def change(self, layer: LayerAverages, along: Array, kernel: Array, with_z: Array) -> Change:
        weight = self.points.product(kernel, along)
        return weighted_change(self.architecture, self.points, layer, weight, with_z)


def pooled_top(architecture: Sequential, points: Points) -> Array:
    """mu_L of a pooled readout, s_h / (B S^2) between points of one sample."""
    return architecture.head_variance / (architecture.inputs * architecture.sites**2) * points.within_samples()


def weighted_change(
    architecture: Sequential, points: Points, layer: LayerAverages, weight: Array, with_z: Array
) -> Change:
    """What m + w does where w(p) = sum_r weight(p, r) s(z_r)."""
    alone, shared = architecture.sigma.triple or (0.0, 0.0)
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
    return Change(
        2 * architecture.sigma.gain * points.contracted(with_z, weight) + points.contracted(carried, weight),
        points.contracted(weight, 2 * turned + three),
        turned + three,
    )
