"""Label and output terms of Transformers whose tokens differ, from matrices over all pairs of points.

Points are tokens of all samples. At leading order errors are independent and alike over channels, of covariance C over
points. What a channel's change is made of by its own errors has the second moment K C K over points, K its kernel; what
the errors of all other channels add has Y. With K', C' those behind the join of a unit, before a normalisation there,

    C  = C' + a^2 s_1 s_2 O^T C'
    Y' = (1 + a^2 s_1 s_2 O)(Y + K C K) - K C' K + (a^2 s_2)^2 (n/m) E[Q C' Q^T]

with s_1, s_2 the variances of the unit's matrices times their fan-in, O what the inner map does to second moments, and
Q the kernel of one of its m channels (`meanfield.theory.transformers.inner_maps`). Normalisations divide.

Source: docs/theory.md section 19.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.families.token_stream import TokenStream
from meanfield.nets.maps import Linear, Map, Normalisation, Pooling
from meanfield.nets.units import Unit
from meanfield.theory.maps.base import Kinds, count, total
from meanfield.theory.maps.mixing import mean_and_deviation
from meanfield.theory.maps.value_kernels import Trail, trails
from meanfield.theory.transformers.inner_maps import InnerMap, inner_map

# Tokens, samples included, of which logits and a few values fit into the dimensions of the sequence of points.
MOST_PAIRED = 143


@dataclass(frozen=True)
class PairTerms:
    """By layer: covariance of the stream (2 D, B, T, B, T), and label and output term under few outputs (2 D,)."""

    covariance: Array
    label_term: Array
    output_term: Array


def pair_terms(net: TokenStream, inputs: Array | None) -> PairTerms:
    """The terms of a net without tied weights on inputs (B, n, T), white ones if not given."""
    *passed, readout = trails(net, inputs)
    steps = [_step(unit, trail, net.first_channels) for unit, trail in zip(net.units, passed, strict=True)]
    errors = [_top_errors(net, readout)]
    for step in reversed(steps):
        errors.append(step.down(errors[-1]))
    rest, terms = np.zeros_like(errors[0]), []
    for step, below, above in zip(steps, errors[:0:-1], errors[-2::-1], strict=True):
        rest = step.up(rest, below, above)
        terms.append(np.einsum("epp->e", rest + step.kernel_above @ above @ step.kernel_above) / rest.shape[-1])
    covariance = np.array([total(trail.after[-1], "covariance") / count(trail.after[-1]) for trail in passed])
    label, output = np.array(terms).T
    return PairTerms(covariance, label, output)


@dataclass(frozen=True)
class _Step:
    """One unit. Arrays over pairs of points (N, N); errors and moments have a leading axis, of labels and of outputs.

    Attributes:
        inner: the inner map.
        gain: a^2 s_1 s_2.
        fresh_gain: (a^2 s_2)^2 n/m.
        before, after: what the normalisations before the branch and behind the join divide by.
        kernel_below, kernel_joined: kernel of the stream below, and behind the join before it is normalised.
    """

    inner: InnerMap
    gain: float
    fresh_gain: float
    before: Array
    after: Array
    kernel_below: Array
    kernel_joined: Array

    @property
    def kernel_above(self) -> Array:
        return self.kernel_joined / self.after

    def down(self, errors: Array) -> Array:
        """C below from C above."""
        joined = errors / self.after
        return np.asarray(joined + self.gain * self.inner.down(joined) / self.before)

    def up(self, rest: Array, errors_below: Array, errors_above: Array) -> Array:
        """Y above from Y below."""
        joined = errors_above / self.after
        moments = rest + self.kernel_below @ errors_below @ self.kernel_below
        moments = moments + self.gain * self.inner.up(moments / self.before)
        fresh = self.fresh_gain * self.inner.fresh(joined)
        return np.asarray((moments - self.kernel_below @ joined @ self.kernel_below + fresh) / self.after)


def _step(unit: Unit, trail: Trail, width: int) -> _Step:
    parts = [place for place, part in enumerate(unit.branch) if not isinstance(part, Normalisation)]
    first, inner, last = [unit.branch[place] for place in parts]
    assert isinstance(first, Linear)
    assert isinstance(last, Linear)
    below, above = (matrix.weights[0].variance * matrix.weights[0].fan_in for matrix in (first, last))
    passed_on = unit.multiplier**2 * above
    return _Step(
        inner_map(inner, trail.branch[parts[1]]),
        passed_on * below,
        passed_on**2 * width / last.weights[0].fan_in,
        _divisors(unit.branch[: parts[0]], trail.branch[0]),
        _divisors(unit.after, trail.after[0]),
        _over_points(trail.branch[0], "kernel"),
        _over_points(trail.after[0], "kernel"),
    )


def _over_points(kinds: Kinds, name: str) -> Array:
    """The mean over channels of c or t, (N, N)."""
    points = kinds[0].mean.size
    return (total(kinds, name) / count(kinds)).reshape(points, points)


def _divisors(normalisations: Sequence[Map], below: Kinds) -> Array:
    """What they divide second moments by, (N, N); 1 of none."""
    divisors = np.ones((1, 1))
    for normalisation in normalisations:
        assert isinstance(normalisation, Normalisation)
        deviation = mean_and_deviation(normalisation, below)[1].ravel()
        divisors = np.outer(deviation, deviation)
    return divisors


def _top_errors(net: TokenStream, readout: Trail) -> Array:
    """Covariance of the errors at the last value, of labels and of outputs: (2, N, N).

    (s_h / M B^2) E[y y'] w w' between tokens that the readout takes with weights w, y the labels, or the outputs.
    """
    unit = net.readout_unit
    assert unit is not None
    pooling = next(part for part in unit.branch if isinstance(part, Pooling))
    weight = unit.branch[-1].weights[0]
    tokens = np.full(net.tokens, 1 / net.tokens) if pooling.kind == "mean" else np.eye(net.tokens)[-1]
    outputs = _over_points(readout.after[-1], "covariance")
    targets = np.stack([np.eye(net.inputs), outputs])
    place = [part for part in unit.branch if isinstance(part, Normalisation)]
    share = weight.variance / (weight.shape[0] * net.inputs**2)
    return np.asarray(share * np.kron(targets, np.outer(tokens, tokens)) / _divisors(place, readout.branch[0]))
