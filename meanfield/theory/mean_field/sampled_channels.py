"""Averages over one channel of a layer at even points: of what outputs drive, and of births that are signs.

What errors at the outputs have along the outputs drives a layer along its features: H(p) = sum_r mu(p, r) s(z_r),
with any mu of N x N numbers. With gates such averages run over up to five points, and with signs over all of them at
once. They are taken over points of one channel's z and v, and of one row of features, the same for every layer. Parts
that are closed are not taken here (`meanfield.theory.mean_field.plain_steps`), so that what is sampled vanishes where
nothing is driven and births are linear.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from meanfield.common.gaussian_averages import even_normals
from meanfield.common.validation import Array
from meanfield.nets.activations import Activation
from meanfield.theory.mean_field.births import Channel, SignTerms, roots, sign_births
from meanfield.theory.mean_field.label_term import LayerAverages, LayerKernel
from meanfield.theory.mean_field.output_term import DrivenChange

# Points of a channel, and of a row of features.
CHANNEL_POINTS, FEATURE_POINTS = 512, 512

Pull = Callable[[Array], Array]


class ChannelPoints(NamedTuple):
    """Points of one channel, (points, N) each: v, s', s, the change before births but for its rest, and the births."""

    fresh: Array
    gate: Array
    features: Array
    before: Array
    births: Array

    def signs(self, channel: Channel) -> SignTerms:
        """What the births add."""
        count, gated = len(self.births), self.gate * self.births
        added = (2 * self.before + self.births) * self.births
        _, inverse = roots(channel.errors)
        with_features = gated.T @ self.features / count
        return SignTerms(
            np.mean(added, axis=0)[:, None],
            np.mean(self.gate**2 * added, axis=0)[:, None],
            with_features if channel.along.any() else np.zeros_like(with_features),  # rounding of what is odd
            gated.T @ self.fresh / count @ (inverse @ inverse),
        )

    def products(self, channel: Channel, rest: Array, gate_product: Array) -> Array:
        """E s'(p) T(p) s'(r) T(r) over pairs, from E y y', the ``rest``, and E s' s'."""
        along_z = channel.with_z @ np.linalg.lstsq(channel.covariance, channel.with_z.T, rcond=None)[0]
        gated = self.gate * (self.before + self.births)
        return np.asarray(gate_product * (rest - along_z) + gated.T @ gated / len(gated))


class SampledChannels:
    """A `Drive` and a source of `SignTerms` for any mu over pairs of N points.

    Args:
        sigma: the activation.
        points: N.
        pulled_back: (1/k) sum_D A(p - D, r - D) over pairs.
        replicate: which scrambling of the even points.
    """

    def __init__(self, sigma: Activation, points: int, pulled_back: Pull, replicate: int) -> None:
        self._sigma, self._pulled_back = sigma, pulled_back
        normals, self._features = _normals(points, replicate)
        self._values, self._errors = normals[:, :points], normals[:, points:]

    def features(self, covariance: Array) -> Array:
        """Points of the features of a layer of this covariance, (points, N)."""
        return self._sigma.function(self._features @ roots(covariance)[0])

    def square(self, layer: LayerAverages, along: Array) -> Array:
        """E[s'(p) H(p) s'(r) H(r)] over pairs."""
        _, driven = self._driven(layer, along)
        return np.asarray(driven.T @ driven / len(driven))

    def below(self, layer: LayerAverages, along: Array) -> Array:
        """(1/k) sum_D S_D^T E[d(s' H)/dz] S_D: by parts E[s' H z] c^-1."""
        z, driven = self._driven(layer, along)
        slopes = np.linalg.lstsq(layer.covariance, z.T @ driven / len(z), rcond=None)[0].T
        return self._pulled_back(np.asarray(slopes, dtype=float))

    def change(self, layer: LayerAverages, along: Array, kernel: Array, with_z: Array) -> DrivenChange:
        """What m + w does, m the part of the change along z and w = K s' H."""
        z, driven = self._driven(layer, along)
        before = _along_values(z, layer.covariance, with_z)
        both, gate = before + driven @ kernel.T, self._sigma.gate(z)
        own = np.mean(before**2, axis=0)[:, None]
        return DrivenChange(
            np.mean(both**2, axis=0)[:, None] - own,
            np.mean((gate * both) ** 2, axis=0)[:, None] - np.diagonal(layer.gate)[:, None] * own,
            (gate * both).T @ self._sigma.function(z) / len(z),
        )

    def quadratic_sums(self, layer: LayerKernel, errors: Array) -> tuple[Array, Array]:
        """sum_rs K(p, r) K(p, s) C(r, s) E[s'(r) s'(s)], and with E[s'(p)^2 s'(r) s'(s)], of any activation."""
        (averages, kernel), root = layer, roots(errors)[0]
        gate = self._sigma.gate(self._values @ roots(averages.covariance)[0])
        carried = (gate[:, None] * kernel) @ root
        gated = np.mean(gate**2 * np.sum(carried**2, axis=2), axis=0)
        fresh = np.sum(kernel * (kernel @ (errors * averages.gate)), axis=1)
        return fresh[:, None], gated[:, None]

    def at(self, channel: Channel, seen: Array | None, fan_in: int) -> ChannelPoints:
        """The channel at its points, which have v of both signs, so that what is odd in it vanishes exactly.

        Births are signs where ``seen`` has points of the features that the matrix sees, (points, N), and 0 elsewhere.
        """
        z = self._values @ roots(channel.covariance)[0]
        v = self._errors @ roots(channel.errors)[0]
        z, v = np.concatenate([z, z]), np.concatenate([v, -v])
        gate, features = self._sigma.gate(z), self._sigma.function(z)
        errors = gate * (v + features @ channel.along.T)
        before = _along_values(z, channel.covariance, channel.with_z) + errors @ channel.kernel.T
        births = np.zeros_like(errors) if seen is None else fan_in * sign_births(errors, seen)
        return ChannelPoints(v, gate, features, before, births)

    def _driven(self, layer: LayerAverages, along: Array) -> tuple[Array, Array]:
        """z and s' H at the points."""
        z = self._values @ roots(layer.covariance)[0]
        return z, self._sigma.gate(z) * (self._sigma.function(z) @ along.T)


def _along_values(z: Array, covariance: Array, with_z: Array) -> Array:
    """m = R c^-1 z."""
    return np.asarray(z @ np.linalg.lstsq(covariance, with_z.T, rcond=None)[0])


@lru_cache(maxsize=64)
def _normals(points: int, replicate: int) -> tuple[Array, Array]:
    """Even points of z and v, (points, 2 N), and of features, (points, N): the same for all errors of a net."""
    channels, features = even_normals(2 * points, 2 * replicate), even_normals(points, 2 * replicate + 1)
    return channels.random(CHANNEL_POINTS), features.random(FEATURE_POINTS)
