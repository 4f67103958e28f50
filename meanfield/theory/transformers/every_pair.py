"""Label and output terms of Transformers whose tokens differ, from matrices over all pairs of points.

Points are tokens of all samples. Errors go down unit by unit, changes up; a term is the mean over points of the
change's variance, under the errors of labels or of outputs. Outputs are followed at any number of them over the
width; behind attention at the scale 1/size^(1/2), at few of them.

A unit is z' = [norm](z + a f(z)). With z the stream, K its kernel, U the error and T the change there, per channel,

    U(p) = v(p) + sum_r mu(p, r) z(r)        v independent of z, of covariance C over points (`GaussianErrors`)
    T(p) = y(p) + sum_r K(p, r) U(r)         y jointly Gaussian with z, E y z' = R and E y y' = Y (`GaussianChanges`)

Labels have mu = R = 0. All arrays over pairs of points are (..., N, N), errors and changes with leading axes.

What the inner map of a branch does to errors and changes over all pairs of points, with no symmetry among them.

An inner map x = phi(u) has channels u of covariance c and kernel K over points below it. Errors U and changes T, per
channel, have the letters above. Two things follow,

    down    from C and mu above: E U U' below, and the response E[U u'] c^(-1) to the values there
    up      from E T T' and E T u' below but for a channel's own errors, and from C and mu above: E T T' and E T x'
            above, where T gains Q U, Q(p, p') the kernel of a unit, or of a head, given its values

Errors and moments have a leading axis, (..., N, N).

Source: docs/theory.md section 19.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanfield.common.gaussian_averages import even_normals, points_within
from meanfield.common.machine import progress
from meanfield.common.validation import Array
from meanfield.nets.activations import Activation, activation_named
from meanfield.nets.maps import Attention, Normalisation
from meanfield.nets.net import Unit
from meanfield.nets.transformer import TokenBranch, TokenStream
from meanfield.theory.maps import (
    POINTS,
    TOGETHER,
    Kinds,
    count,
    drawn_shares,
    even_shares,
    mean_and_deviation,
    replicates_in_use,
    response,
    root,
    total,
)
from meanfield.theory.tangent_kernels import Trail, trails

# Points of the averages over four gates and over heads, a power of 2, and the products that their matrices take.
LEAST_POINTS, MOST_POINTS, PRODUCTS = 2**9, 2**14, 2**26
# Values of a head that are drawn for every draw of its logits.
HEAD_CHANNELS = 4


class InnerMap(ABC):
    """The two passes of an inner map."""

    @abstractmethod
    def down(self, noise: Array, features: Array) -> tuple[Array, Array]:
        """E U U' and the response below it."""

    @abstractmethod
    def up(self, moments: Array, along: Array, noise: Array, features: Array) -> tuple[Array, Array]:
        """E T T' and E T x' above it."""


def inner_map(branch: TokenBranch, below: Kinds) -> InnerMap:
    """That of a branch, from the channels below it, which are alike; attention at scale "inverse" sees values alone."""
    covariance, kernel = below[-1].covariance, below[-1].kernel
    shape, points = covariance.shape, below[0].mean.size
    pairs = covariance.reshape(points, points), kernel.reshape(points, points)
    match branch.inner:
        case Attention(scale="inverse") as attention:
            return EvenAttention(np.asarray(np.kron(np.eye(shape[0]), even_shares(attention, shape[1]))), *pairs)
        case Attention() as attention:
            return SoftmaxAttention(attention, *pairs, shape, count(below) // 3 // attention.heads)
        case activation:
            units = GatedUnits if activation.pointwise_activation is None else HiddenUnits
            return units(activation_named(activation.activation), *pairs)


@dataclass(frozen=True)
class EvenAttention(InnerMap):
    """Logits that vanish: fixed ``shares`` P (N, N) of the values, x = P u."""

    shares: Array
    covariance: Array
    kernel: Array

    def down(self, noise: Array, features: Array) -> tuple[Array, Array]:
        above = self._mixed(self.covariance)
        moments = noise + features @ above @ features.swapaxes(-1, -2)
        return self.shares.T @ moments @ self.shares, self.shares.T @ features @ self.shares

    def up(self, moments: Array, along: Array, noise: Array, features: Array) -> tuple[Array, Array]:
        own = self.kernel @ self.shares.T @ features @ self.shares
        cross = along @ own.swapaxes(-1, -2)
        driven = self.kernel @ self.shares.T @ noise @ self.shares @ self.kernel
        driven = driven + own @ self.covariance @ own.swapaxes(-1, -2)
        below = moments + cross + cross.swapaxes(-1, -2) + driven
        return self._mixed(below), self._mixed(along + own @ self.covariance)

    def _mixed(self, pairs: Array) -> Array:
        return np.asarray(self.shares @ pairs @ self.shares.T)


@dataclass(frozen=True)
class HiddenUnits(InnerMap):
    """x = sigma(u): Q(p, p') = sigma'_p sigma'_p' K(p, p')."""

    sigma: Activation
    covariance: Array
    kernel: Array

    def passed(self) -> Array:
        """E Q / K."""
        return self._of_pairs(self.sigma.gate_product)

    def draws(self) -> Iterator[tuple[Array, list[tuple[Array, Array]]]]:
        """Units x (points, N), and by stack of weights below them what they are made of, with its derivative."""
        for (u,) in _drawn(self.covariance, 1):
            yield self.sigma.function(u), [(u, self.sigma.gate(u))]

    def down(self, noise: Array, features: Array) -> tuple[Array, Array]:
        if not features.any():
            return self.passed() * noise, features
        inverse, squares, slopes = np.linalg.pinv(self.covariance), np.zeros_like(noise), np.zeros_like(noise)
        for units, stacks in self.draws():
            felt = units @ features.swapaxes(-1, -2)
            for below, slope in stacks:
                errors = (slope * felt).swapaxes(-1, -2)
                squares += errors @ errors.swapaxes(-1, -2)
                slopes += errors @ below
        points = _points(len(self.covariance))
        return self.passed() * noise + squares / points, slopes @ inverse / points

    def up(self, moments: Array, along: Array, noise: Array, features: Array) -> tuple[Array, Array]:
        """With y = m + rest, m the part of the change along u: T = sum over stacks of sigma' m, and Q U."""
        shares = along @ np.linalg.pinv(self.covariance)
        left = moments - shares @ along.swapaxes(-1, -2)
        squares, with_units = np.zeros_like(moments), np.zeros_like(moments)
        for units, stacks in self.draws():
            kernels = np.sum([slope[:, :, None] * self.kernel * slope[:, None] for _, slope in stacks], axis=0)
            squares += _sum_of_squares(kernels, noise)
            if features.any():
                felt = units @ features.swapaxes(-1, -2)
                moved = (kernels @ felt[..., None])[..., 0]
                moved = moved + sum(slope * (below @ shares.swapaxes(-1, -2)) for below, slope in stacks)
                squares += moved.swapaxes(-1, -2) @ moved
                with_units += moved.swapaxes(-1, -2) @ units
        points = _points(len(self.covariance))
        return self.passed() * left + squares / points, with_units / points

    def _of_pairs(self, product: Callable[[Array, Array, Array], Array]) -> Array:
        variances = np.diag(self.covariance)
        return product(variances[:, None], variances, self.covariance)


@dataclass(frozen=True)
class GatedUnits(HiddenUnits):
    """x = sigma(u) w: Q = (sigma' sigma' w w' + sigma sigma) K."""

    def passed(self) -> Array:
        return self._of_pairs(self.sigma.gate_product) * self.covariance + self._of_pairs(self.sigma.product)

    def draws(self) -> Iterator[tuple[Array, list[tuple[Array, Array]]]]:
        for u, w in _drawn(self.covariance, 2):
            signal = self.sigma.function(u)
            yield signal * w, [(u, self.sigma.gate(u) * w), (w, signal)]


def _drawn(covariance: Array, kinds: int) -> Iterator[Array]:
    """Gaussians of this covariance, ``kinds`` of them: (kinds, TOGETHER, N), `_points` in all."""
    turn, sites = root(covariance), len(covariance)
    normals = even_normals(kinds * sites)
    for _ in range(_points(sites) // TOGETHER):
        yield normals.random(TOGETHER).reshape(TOGETHER, kinds, sites).swapaxes(0, 1) @ turn.T


def _sum_of_squares(kernels: Array, errors: Array) -> Array:
    """sum_d Q_d C Q_d^T of kernels (d, N, N)."""
    return np.asarray((kernels @ errors[..., None, :, :] @ kernels.swapaxes(1, 2)).sum(axis=-3))


def _points(sites: int) -> int:
    return points_within(PRODUCTS / sites**3, LEAST_POINTS, MOST_POINTS)


@dataclass(frozen=True)
class SoftmaxAttention(InnerMap):
    """Heads of ``size`` channels, rows A of softmaxes of Gaussian logits, D their derivatives; few outputs, mu = 0.

    Queries, keys and values have the same c and K. Between channels a, b of a head, with values x_a, x_b,

        Q_ab(i, j) = delta_ab (A K A^T)(i, j) + sum_rs [x_a D_i]_r (K(i, j) c(r, s) + c(i, j) K(r, s)) [D_j x_b]_s
    """

    attention: Attention
    covariance: Array
    kernel: Array
    shape: tuple[int, ...]
    size: int

    def up(self, moments: Array, along: Array, noise: Array, features: Array) -> tuple[Array, Array]:
        return self._carried(moments) + self._fresh(noise), np.zeros_like(along)

    def _carried(self, moments: Array) -> Array:
        covariance, total = self.covariance, np.zeros_like(moments)
        for shares, _ in self._shares():
            for place in np.ndindex(moments.shape[:-2]):
                moment = moments[place]
                turned = shares @ moment @ shares.swapaxes(1, 2)
                turned = turned + moment * response(shares, covariance, covariance)
                total[place] += (turned + covariance * response(shares, covariance, moment)).sum(axis=0)
        return total / (POINTS * _replicates(POINTS))

    def down(self, noise: Array, features: Array) -> tuple[Array, Array]:
        return self._transposed(noise), np.zeros_like(features)

    def _transposed(self, errors: Array) -> Array:
        covariance, total = self.covariance, np.zeros_like(errors)
        for shares, _ in self._shares():
            turned = shares.swapaxes(1, 2)
            for place in np.ndindex(errors.shape[:-2]):
                error = errors[place]
                back = turned @ error @ shares + error * response(shares, covariance, covariance)
                total[place] += (back + self._response_back(shares, error * covariance)).sum(axis=0)
        return total / (POINTS * _replicates(POINTS))

    def _response_back(self, shares: Array, weights: Array) -> Array:
        """sum_ij w_ij D_i c D_j."""
        turned, seen = shares.swapaxes(1, 2), shares @ self.covariance
        cross = turned @ (seen * (weights @ shares))
        both = turned @ (weights * (seen @ turned)) @ shares
        return (turned @ weights @ shares) * self.covariance - cross - cross.swapaxes(1, 2) + both

    def _fresh(self, errors: Array) -> Array:
        """E Q C Q^T, by values that are drawn for every draw of the logits."""
        channels, points = HEAD_CHANNELS, len(self.covariance)
        turn, total = root(self.covariance), np.zeros_like(errors)
        drawn = self._shares(channels * points, _points(points))
        for shares, normals in progress(drawn, _points(points) // TOGETHER, "batch"):
            values = normals.reshape(-1, channels, points) @ turn.T
            carried = shares @ self.kernel @ shares.swapaxes(1, 2)
            for first in range(channels):
                moved = self._moved(shares, values[:, first])
                for second in range(channels):
                    kernel = moved(values[:, second])
                    if first == second:
                        kernel, weight = kernel + carried, 1 / channels
                    else:
                        weight = (self.size - 1) / channels / (channels - 1)
                    total += weight * _sum_of_squares(kernel, errors)
        return total / (_points(points) * _replicates(_points(points)))

    def _moved(self, shares: Array, values: Array) -> Callable[[Array], Array]:
        """The part of Q by changes of logits as a function of x_b, for this x_a, both (points, N)."""
        turned = shares.swapaxes(1, 2)
        slopes = shares * (values[:, None] - (shares @ values[:, :, None]))
        sides = [(self.kernel, slopes @ self.covariance), (self.covariance, slopes @ self.kernel)]

        def kernel(others: Array) -> Array:
            weighed = turned * others[:, :, None]
            middle = (shares @ others[:, :, None]).swapaxes(1, 2)
            parts = [factor * (side @ weighed - (side @ turned) * middle) for factor, side in sides]
            return np.asarray(parts[0] + parts[1])

        return kernel

    def _shares(self, others: int = 0, points: int = POINTS) -> Iterator[tuple[Array, Array]]:
        """Yield the shares of `_replicates` of so many points."""
        for replicate in range(_replicates(points)):
            covariance = self.covariance
            yield from drawn_shares(self.attention, covariance, covariance, self.shape, others, points, replicate)


def _replicates(points: int) -> int:
    """Scramblings of so many points that have as many in all as the branch's own covariance and kernel took."""
    return max(1, POINTS * replicates_in_use() // points)


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
