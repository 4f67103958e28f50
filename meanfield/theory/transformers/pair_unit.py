"""One unit of a stream of tokens, z' = [norm](z + a f(z)), as errors pass it downwards and changes upwards.

Points are tokens of all samples. With z the stream, K its kernel, U the error and T the change there, per channel,

    U(p) = v(p) + sum_r mu(p, r) z(r)        v independent of z, of covariance C over points (`Errors`)
    T(p) = y(p) + sum_r K(p, r) U(r)         y jointly Gaussian with z, E y z' = R and E y y' = Y (`Changes`)

Labels have mu = R = 0. All arrays over pairs of points are (..., N, N), errors and changes with leading axes.

Source: docs/theory.md section 19.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.maps import Linear, Map, Normalisation
from meanfield.nets.units import Unit
from meanfield.theory.maps.base import Kinds, count, total
from meanfield.theory.maps.mixing import mean_and_deviation
from meanfield.theory.maps.value_kernels import Trail
from meanfield.theory.transformers.inner_maps import InnerMap, inner_map


@dataclass(frozen=True)
class Errors:
    """``noise`` C, and ``features`` mu: what they take of the values themselves."""

    noise: Array
    features: Array


@dataclass(frozen=True)
class Changes:
    """``rest`` Y, and ``along`` R."""

    rest: Array
    along: Array

    def totals(self, errors: Errors, kernel: Array, covariance: Array) -> tuple[Array, Array]:
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

    def errors_below(self, errors: Errors) -> tuple[Errors, Array]:
        """Those before it, and the parts along the values (..., N), that were taken out."""
        taken = np.einsum("...pp->...p", errors.features @ self.covariance)
        features = (errors.features - _diagonal(taken)) / self.products
        return Errors(errors.noise / self.products, features), taken

    def totals_above(self, moments: Array, along: Array) -> tuple[Array, Array]:
        """E T T' and E T z' behind it from those before it."""
        with_values = along / self.deviations
        parts = np.einsum("...pp->...p", with_values)[..., None]
        left = with_values - parts * self.covariance
        moments = moments - _both(with_values * _turned(parts)) + parts * self.covariance * _turned(parts)
        return moments / self.products, left / self.deviations[:, None]


@dataclass(frozen=True)
class Passage:
    """Errors of one unit: behind it, behind its join, behind the inner map, what its branch adds to the stream below,
    and there; and what the normalisation behind the join takes out."""

    above: Errors
    joined: Errors
    inner: Errors
    branch: Errors
    below: Errors
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

    def down(self, above: Errors) -> Passage:
        """C <- C' + mu' (c' - c) mu'^T + branch, mu <- mu' + branch."""
        joined, taken = self.after.errors_below(above) if self.after else (above, np.zeros(above.noise.shape[:-1]))
        share, features = self.last / self.width_ratio, joined.features
        moments = joined.noise + features @ self.joined_covariance @ _turned(features)
        inner = Errors(share * moments, share * features)
        noise, response = self.inner.down(inner.noise, inner.features)
        branch = Errors(self.first * noise, self.first * response)
        if self.before:
            branch, _ = self.before.errors_below(branch)
        kept = joined.noise + features @ (self.joined_covariance - self.covariance) @ _turned(features)
        below = Errors(kept + branch.noise, features + branch.features)
        return Passage(above, joined, inner, branch, below, taken)

    def up(self, changes: Changes, errors: Passage) -> Changes:
        """Y <- Y + E (K b)(K b)' + E y (K b)' + E (K b) y' + a^2 s_2 (inner), b what the branch adds to the error.

        R <- R + E (K b) z' + a^2 s_2 (inner) likewise.
        """
        moments, along = changes.totals(errors.below, self.kernel, self.covariance)
        if self.before:
            moments, along = self.before.totals_above(moments, along)
        gain = self.first / self.width_ratio
        above = self.inner.up(gain * moments, gain * along, errors.inner.noise, errors.inner.features)
        carried, with_values = changes.totals(errors.branch, self.kernel, self.covariance)
        return self._normalised(Changes(carried + self.last * above[0], with_values + self.last * above[1]), errors)

    def _normalised(self, joined: Changes, errors: Passage) -> Changes:
        """Behind the normalisation: y <- y / s - L h, with the parts of T and U along its values h in L."""
        if self.after is None:
            return joined
        _, along = joined.totals(errors.joined, self.joined_kernel, self.joined_covariance)
        products, values = self.after.products, self.after.covariance
        parts = np.einsum("...pp->...p", along) / self.after.deviations**2
        lost = _diagonal(parts) + self.kernel_above @ _diagonal(errors.taken)
        rest, with_values = joined.rest / products, joined.along / products
        rest = rest - _both(lost @ _turned(with_values)) + lost @ values @ _turned(lost)
        return Changes(rest, with_values - lost @ values)


def pair_unit(unit: Unit, trail: Trail, width: int) -> PairUnit:
    """The unit of a net of this width, from what stands below and behind its maps."""
    parts = [place for place, part in enumerate(unit.branch) if not isinstance(part, Normalisation)]
    first, inner, last = [unit.branch[place] for place in parts]
    assert isinstance(first, Linear)
    assert isinstance(last, Linear)
    # Of values, where queries and keys stand beside them.
    below, above = (matrix.weights[-1].variance * matrix.weights[-1].fan_in for matrix in (first, last))
    ratio = last.weights[0].fan_in / width
    before, after = division(unit.branch[: parts[0]], trail.branch[0]), division(unit.after, trail.after[0])
    branch = unit.multiplier**2 * over_points(trail.branch[-1], "covariance")
    if before:
        covariance = before.undivided
        joined = covariance + branch
    else:
        assert after
        joined = after.undivided
        covariance = joined - branch
    return PairUnit(
        inner_map(inner, trail.branch[parts[1]]),
        below * ratio,
        unit.multiplier**2 * above,
        ratio,
        before,
        after,
        covariance,
        over_points(trail.branch[0], "kernel"),
        joined,
        over_points(trail.after[0], "kernel"),
    )


def division(normalisations: Sequence[Map], below: Kinds) -> Division | None:
    """The one that stands there, if any."""
    for normalisation in normalisations:
        assert isinstance(normalisation, Normalisation)
        mean, deviation = (part.ravel() for part in mean_and_deviation(normalisation, below))
        own = (total(below, "mean") / count(below)).ravel()
        pairs = over_points(below, "covariance")
        shifts = np.outer(own, mean)
        centred = pairs - shifts - shifts.T + np.outer(mean, mean)
        return Division(deviation, centred / np.outer(deviation, deviation))
    return None


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
