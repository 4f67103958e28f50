"""What the outputs drive along the features under a pooled readout, where all points are alike.

H(p) = sum_r mu(p, r) s(z_r) runs over the sites of the point's sample, so that averages over up to five sites arise.
Exchangeable Gaussians are independent given one number x they share, z_p = c_1^(1/2) x + (c_0 - c_1)^(1/2) e_p, and
averages over any sites are then integrals over x of products of one-site moments: `SiteSums`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.families.layered import Sequential
from meanfield.theory.outputs.drives import Change, LayerAverages, pooled_top
from meanfield.theory.outputs.exchangeable import Exchangeable
from meanfield.theory.outputs.site_sums import OWN, SIBLING, Polynomial, SiteSums

FEATURE, GATE, Z = "feature", "gate", "z"


@dataclass(frozen=True)
class PooledDrive:
    """A pooled readout over exchangeable points of independent samples: mu over pairs, 0 between samples."""

    architecture: Sequential
    points: Exchangeable

    def top(self) -> Array:
        return pooled_top(self.architecture, self.points)

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

    def change(self, layer: LayerAverages, along: Array, kernel: Array, with_z: Array) -> Change:
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

        def energy(*factors: Polynomial) -> float:
            total = sums.given(own, own, *factors) + 2 * sums.given(own, *factors) * once
            return float(sums.weights @ (total + sums.given(*factors) * squared))

        def with_feature(factor: Polynomial) -> float:
            return float(sums.weights @ (sums.given(own, gate, factor) + sums.given(gate, factor) * once))

        beyond = sums.given(own, gate) * sums.given(feature) + sums.given(gate) * (
            sums.given(from_others, feature) + (count - 1) * sums.given(from_others) * sums.given(feature)
        )
        other = float(sums.weights @ beyond)
        pairs = np.array([with_feature(feature), with_feature(sibling), other, other])
        return Change(energy() - along_z, energy(gate) - self.architecture.sigma.gain * along_z, pairs)


def _driven(along: Array, point: str) -> Polynomial:
    """s'(p) H(p)."""
    return (along[0] - along[1], ((FEATURE, point),)), (along[1], ((GATE, point), (FEATURE, "sum")))


def _from_other_samples(along: Array, kernel: Array, mean: Array) -> Polynomial:
    """What a sample adds to m + w at a point of another: sums over its sites."""
    return (
        (mean[2], ((Z, "sum"),)),
        (kernel[2] * (along[0] - along[1]), ((FEATURE, "sum"),)),
        (kernel[2] * along[1], ((GATE, "sum"), (FEATURE, "sum"))),
    )


def _own_change(along: Array, kernel: Array, mean: Array) -> Polynomial:
    """What a point's own sample adds to m + w there."""
    driven = tuple(((kernel[0] - kernel[1]) * scale, factors) for scale, factors in _driven(along, OWN))
    return (
        (mean[0] - mean[1], ((Z, OWN),)),
        (mean[1], ((Z, "sum"),)),
        (kernel[1] * (along[0] - along[1]), ((FEATURE, "sum"),)),
        (kernel[1] * along[1], ((GATE, "sum"), (FEATURE, "sum"))),
        *driven,
    )
