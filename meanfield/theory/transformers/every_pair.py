"""Label and output terms of Transformers whose tokens differ, from matrices over all pairs of points.

Points are tokens of all samples. Errors go down unit by unit, changes up; a term is the mean over points of the
change's variance, under the errors of labels or of outputs. Outputs are followed at any number of them over the
width; behind attention at the scale 1/size^(1/2), at few of them.

A unit is z' = [norm](z + a f(z)). With z the stream, K its kernel, U the error and T the change there, per channel,

    U(p) = v(p) + sum_r mu(p, r) z(r)        v independent of z, of covariance C over points (`GaussianErrors`)
    T(p) = y(p) + sum_r K(p, r) U(r)         y jointly Gaussian with z, E y z' = R and E y y' = Y (`GaussianChanges`)

Labels have mu = R = 0. All arrays over pairs of points are (..., N, N), errors and changes with leading axes.

Source: docs/theory.md section 19.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from meanfield.common.machine import progress
from meanfield.common.validation import Array
from meanfield.nets.maps import Normalisation
from meanfield.nets.net import Unit
from meanfield.nets.transformer import TokenBranch, TokenStream
from meanfield.theory.maps import Kinds, count, mean_and_deviation, total
from meanfield.theory.tangent_kernels import Trail, trails
from meanfield.theory.transformers.inner_maps import InnerMap, inner_map

# Tokens, samples included, of which logits and a few values fit into the dimensions of the sequence of points.
MOST_PAIRED = 143


@dataclass(frozen=True)
class PairTerms:
    """The terms by layer: covariance of the stream (2 D, B, T, B, T), and label and output term (2 D,)."""

    covariance: Array
    label_term: Array
    output_term: Array


def pair_terms(net: TokenStream, inputs: Array | None) -> PairTerms:
    """The terms of a net without tied weights on inputs (B, n, T), white ones if not given."""
    *passed, readout = trails(net, inputs)
    units = [pair_unit(unit, trail, net.first_channels) for unit, trail in zip(net.units, passed, strict=True)]
    passages, errors = [], _top_errors(net, readout)
    for unit in progress(units[::-1], len(units), "unit"):
        passages.append(unit.down(errors))
        errors = passages[-1].below
    changes, terms = GaussianChanges(np.zeros_like(errors.noise), np.zeros_like(errors.noise)), []
    upward = zip(units, reversed(passages), strict=True)
    for unit, passage in progress(upward, len(units), "unit"):
        changes = unit.up(changes, passage)
        moments, _ = changes.totals(passage.above, unit.kernel_above, unit.covariance_above)
        terms.append(np.einsum("epp->e", moments) / moments.shape[-1])
    covariance = np.array([total(trail.after[-1], "covariance") / count(trail.after[-1]) for trail in passed])
    label, output = np.array(terms).T
    return PairTerms(covariance, label, output)


def follows_features(net: TokenStream) -> bool:
    """Whether outputs are followed along the features that drive them, or are taken to be few."""
    return net.attention.scale == "inverse"


def _top_errors(net: TokenStream, readout: Trail) -> GaussianErrors:
    """Errors at the last value, of labels and of outputs: (2, N, N).

    Between tokens that the readout takes with weights w, C = (s_h / M B^2) E[y y'] w w', y the labels, or the outputs;
    outputs have mu = (s_h / B) w w' within a sample besides. Where all tokens have weights of their own, w w' is 1.
    """
    unit = net.readout_unit
    assert unit is not None
    weight = unit.branch[-1].weights[0]
    taken = np.eye(net.tokens)
    if net.pooling is not None:
        tokens = np.full(net.tokens, 1 / net.tokens) if net.pooling.kind == "mean" else np.eye(net.tokens)[-1]
        taken = np.outer(tokens, tokens)
    targets = np.stack([np.eye(net.inputs), over_points(readout.after[-1], "covariance")])
    noise = weight.variance / (weight.shape[0] * net.inputs**2) * np.kron(targets, taken)
    features = np.zeros_like(noise)
    if follows_features(net):
        features[1] = weight.variance / net.inputs * np.kron(np.eye(net.inputs), taken)
    errors = GaussianErrors(np.asarray(noise), features)
    start: Any = unit.branch[0]
    return division(start, readout.branch[0]).errors_below(errors)[0] if start.normalises else errors


@dataclass(frozen=True)
class GaussianErrors:
    """``noise`` C, and ``features`` mu: what they take of the values themselves."""

    noise: Array
    features: Array


@dataclass(frozen=True)
class GaussianChanges:
    """``rest`` Y, and ``along`` R."""

    rest: Array
    along: Array

    def totals(self, errors: GaussianErrors, kernel: Array, covariance: Array) -> tuple[Array, Array]:
        """E T T' and E T z' of values of this kernel and covariance under these errors."""
        own = kernel @ errors.features
        moments = self.rest + _both(self.along @ _turned(own)) + kernel @ errors.noise @ kernel
        return moments + own @ covariance @ _turned(own), self.along + own @ covariance


@dataclass(frozen=True)
class Division:
    """A normalisation: the deviations (N,) that it divides points by, and the covariance behind it.

    Its Jacobian also takes out the part of an error, and of a change, along the values of the same point.
    """

    deviations: Array
    covariance: Array

    @property
    def products(self) -> Array:
        return np.asarray(np.outer(self.deviations, self.deviations))

    @property
    def undivided(self) -> Array:
        """Covariance before it, without the part that it takes off all channels alike."""
        return self.products * self.covariance

    def errors_below(self, errors: GaussianErrors) -> tuple[GaussianErrors, Array]:
        """The errors before it, and the parts along the values (..., N), that were taken out."""
        taken = np.einsum("...pp->...p", errors.features @ self.covariance)
        features = (errors.features - _diagonal(taken)) / self.products
        return GaussianErrors(errors.noise / self.products, features), taken

    def totals_above(self, moments: Array, along: Array) -> tuple[Array, Array]:
        """E T T' and E T z' behind it from those before it."""
        with_values = along / self.deviations
        parts = np.einsum("...pp->...p", with_values)[..., None]
        left = with_values - parts * self.covariance
        moments = moments - _both(with_values * _turned(parts)) + parts * self.covariance * _turned(parts)
        return moments / self.products, left / self.deviations[:, None]


@dataclass(frozen=True)
class UnitErrors:
    """Errors of one unit: behind it, behind its join, behind the inner map, what its branch adds to the stream below,
    and there; and what the normalisation behind the join takes out."""

    above: GaussianErrors
    joined: GaussianErrors
    inner: GaussianErrors
    branch: GaussianErrors
    below: GaussianErrors
    taken: Array


@dataclass(frozen=True)
class PairUnit:
    """A unit of a branch [norm,] linear, inner map, linear.

    Attributes:
        inner: the inner map.
        first, last: s_1 m/n of the first matrix and a^2 s_2 of the last one, s their variances times fan-in, m/n the
            channels behind the inner map over the width.
        width_ratio: m/n.
        before, after: the normalisations before the branch and behind the join.
        covariance, kernel: of the stream below; joined_covariance, joined_kernel: behind the join.
    """

    inner: InnerMap
    first: float
    last: float
    width_ratio: float
    before: Division | None
    after: Division | None
    covariance: Array
    kernel: Array
    joined_covariance: Array
    joined_kernel: Array

    @property
    def covariance_above(self) -> Array:
        return self.after.covariance if self.after else self.joined_covariance

    @property
    def kernel_above(self) -> Array:
        return self.joined_kernel / self.after.products if self.after else self.joined_kernel

    def down(self, above: GaussianErrors) -> UnitErrors:
        """C <- C' + mu' (c' - c) mu'^T + branch, mu <- mu' + branch."""
        joined, taken = self.after.errors_below(above) if self.after else (above, np.zeros(above.noise.shape[:-1]))
        share, features = self.last / self.width_ratio, joined.features
        moments = joined.noise + features @ self.joined_covariance @ _turned(features)
        inner = GaussianErrors(share * moments, share * features)
        noise, response = self.inner.down(inner.noise, inner.features)
        branch = GaussianErrors(self.first * noise, self.first * response)
        if self.before:
            branch, _ = self.before.errors_below(branch)
        kept = joined.noise + features @ (self.joined_covariance - self.covariance) @ _turned(features)
        below = GaussianErrors(kept + branch.noise, features + branch.features)
        return UnitErrors(above, joined, inner, branch, below, taken)

    def up(self, changes: GaussianChanges, errors: UnitErrors) -> GaussianChanges:
        """Y <- Y + E (K b)(K b)' + E y (K b)' + E (K b) y' + a^2 s_2 (inner), b what the branch adds to the error.

        R <- R + E (K b) z' + a^2 s_2 (inner) likewise.
        """
        moments, along = changes.totals(errors.below, self.kernel, self.covariance)
        if self.before:
            moments, along = self.before.totals_above(moments, along)
        gain = self.first / self.width_ratio
        above = self.inner.up(gain * moments, gain * along, errors.inner.noise, errors.inner.features)
        carried, with_values = changes.totals(errors.branch, self.kernel, self.covariance)
        return self._normalised(
            GaussianChanges(carried + self.last * above[0], with_values + self.last * above[1]), errors
        )

    def _normalised(self, joined: GaussianChanges, errors: UnitErrors) -> GaussianChanges:
        """Behind the normalisation: y <- y / s - L h, with the parts of T and U along its values h in L."""
        if self.after is None:
            return joined
        _, along = joined.totals(errors.joined, self.joined_kernel, self.joined_covariance)
        products, values = self.after.products, self.after.covariance
        parts = np.einsum("...pp->...p", along) / self.after.deviations**2
        lost = _diagonal(parts) + self.kernel_above @ _diagonal(errors.taken)
        rest, with_values = joined.rest / products, joined.along / products
        rest = rest - _both(lost @ _turned(with_values)) + lost @ values @ _turned(lost)
        return GaussianChanges(rest, with_values - lost @ values)


def pair_unit(unit: Unit, trail: Trail, width: int) -> PairUnit:
    """The unit of a net of this width, from what stands below and behind its maps."""
    branch = TokenBranch.of(unit)
    ratio = branch.channels / width
    before = None if branch.before is None else division(branch.before, trail.branch[0])
    after = None if branch.after is None else division(branch.after, trail.after[0])
    added = branch.multiplier**2 * over_points(trail.branch[-1], "covariance")
    if before:
        covariance = before.undivided
        joined = covariance + added
    else:
        assert after
        joined = after.undivided
        covariance = joined - added
    return PairUnit(
        inner_map(branch, trail.branch[2 if before else 1]),
        branch.gain_below * ratio,
        branch.multiplier**2 * branch.gain_above,
        ratio,
        before,
        after,
        covariance,
        over_points(trail.branch[0], "kernel"),
        joined,
        over_points(trail.after[0], "kernel"),
    )


def division(normalisation: Normalisation, below: Kinds) -> Division:
    """What a normalisation does to values of these kinds."""
    mean, deviation = (part.ravel() for part in mean_and_deviation(normalisation, below))
    own = (total(below, "mean") / count(below)).ravel()
    pairs = over_points(below, "covariance")
    shifts = np.outer(own, mean)
    centred = pairs - shifts - shifts.T + np.outer(mean, mean)
    return Division(deviation, centred / np.outer(deviation, deviation))


def over_points(kinds: Kinds, name: str) -> Array:
    """The mean over channels of c or t, (N, N)."""
    points = kinds[0].mean.size
    return np.asarray((total(kinds, name) / count(kinds)).reshape(points, points))


def _turned(pairs: Array) -> Array:
    return pairs.swapaxes(-1, -2)


def _both(pairs: Array) -> Array:
    return pairs + pairs.swapaxes(-1, -2)


def _diagonal(values: Array) -> Array:
    return values[..., None] * np.eye(values.shape[-1])
