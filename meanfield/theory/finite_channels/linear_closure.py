"""Linear nets at any number of channels, exactly: second moments close over four points (docs/theory.md section 20).

Of one layer, at points (samples and sites) p, p', q, q', with means over its rows a and b, these are

    cc = E C(p, p') C(q, q'),   ct = E C(p, p') T(q, q'),   tt = E T(p, p') T(q, q'),   C = mean z_a z_a,
    crossed = E mean Theta_ab(p, p') Theta_ab(q, q'),   T = mean Theta_aa,
    driven = E mean z_a(p) Theta_ab(q, q') z_b(p'), held by p, q, q', p'.

Let Tr(.)/k be the mean over the stencil's k offsets, n the number of rows below, 1/(k n) the variance of weights,
G = Tr(C)/k and K = Tr(T)/k + k n G. The n' rows above have E C C' = E G G' + 2 exchanges / n' and so on: exchanges
are the other ways to pair the four weights of one row.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.common.validation import require_array
from meanfield.nets.families.layered import INPUT_LAYOUT, Sequential
from meanfield.theory.finite_channels.every_pair import Pairs
from meanfield.theory.mean_field.inputs import given_product
from meanfield.theory.outputs.batch_points import errors_below
from meanfield.theory.outputs.independent_errors import factor_below
from meanfield.theory.outputs.points import EveryPair


class FourPoints(Protocol):
    """A representation of functions of four points."""

    def carried(self, moment: Array) -> Array:
        """The mean over the stencil's offsets, of which the first two points take one and the last two another."""

    def transposed(self, moment: Array, *axes: int) -> Array:
        """The function with its points in another order, as `numpy.transpose` has axes."""


def crossed_moments(net: Sequential, points: FourPoints, cc: Array, drawn: bool) -> Iterator[Array]:
    """The moment ``crossed`` of layers 1 .. L by the fan-in rule, from E C C' of the input.

    Where the input is ``drawn``, its channels are independent rows and ``cc`` is what infinitely many of them have.
    """

    def exchanged(moment: Array) -> Array:
        """What pairs of points make of one row's second moments: both ways to pair points of one with the other's."""
        return points.transposed(moment, 0, 2, 1, 3) + points.transposed(moment, 0, 2, 3, 1)

    if drawn:
        cc = cc + exchanged(cc) / net.channels_by_layer[0]
    ct = tt = crossed = driven = np.zeros_like(cc)
    for below, above in pairwise(net.channels_by_layer):
        own = below * net.taps
        gg, gt, kk = points.carried(cc), points.carried(ct), points.carried(tt)
        gk, kk = own * gg + gt, own**2 * gg + own * (gt + points.transposed(gt, 2, 3, 0, 1)) + kk
        apart = points.transposed(points.carried(points.transposed(crossed, 0, 2, 1, 3)), 0, 2, 1, 3)
        swapped = points.transposed(apart, 0, 1, 3, 2)
        driven = points.carried(driven)
        between = points.transposed(driven, 0, 3, 1, 2)
        opposite = points.transposed(between, 1, 0, 2, 3)
        cc = gg + exchanged(gg) / above
        ct = gk + (between + opposite) / above
        tt = kk + (apart + swapped) / above
        crossed = apart + (kk + swapped) / above
        driven = driven + points.transposed(gk + opposite, 0, 2, 3, 1) / above
        yield crossed


class EveryFour:
    """Functions of four points as arrays (points, points, points, points), for any input and padding."""

    def __init__(self, net: Sequential) -> None:
        self._pairs = Pairs(net)

    def carried(self, moment: Array) -> Array:
        size = self._pairs.count**2
        return self._pairs.carried(moment.reshape(size, size)).reshape(moment.shape)

    def transposed(self, moment: Array, *axes: int) -> Array:
        return moment.transpose(axes)


def exact_terms_of_pairs(net: Sequential, inputs: ArrayLike | None) -> tuple[Array, Array]:
    """E B_l and E F_l for l = 1 .. L of a linear net by the fan-in rule, with white or given inputs: (L,) each.

    In linear nets the errors that labels make at layer l depend on the matrices above it alone. With C_l the covariance
    of errors between points of one channel (section 9), B_l = n_l mean_p sum_rs C_l(r, s) E mean Theta_ab(p, r)
    Theta_ab(p, s).
    """
    count, points = net.inputs * net.sites, EveryPair(net)
    gram = np.eye(count)
    if inputs is not None:
        batch = require_array("inputs", inputs, net.input_shape, INPUT_LAYOUT)
        gram = given_product(net, batch)[1].reshape(count, count)
        if not gram.any():
            raise ValueError("inputs are zero everywhere, where a linear net has no changes: give others")
    errors = [errors_below(net, points, points.labels(np.eye(net.inputs)[..., None], net.is_pooled))]
    for place in range(net.depth - 1, 0, -1):
        errors.append(factor_below(net, place) * points.pulled_back(errors[-1]))
    moments = crossed_moments(net, EveryFour(net), np.multiply.outer(gram, gram), drawn=inputs is None)
    by_pair = [np.einsum("prps->rs", crossed) / count for crossed in moments]
    label = [np.vdot(error, pair) for error, pair in zip(reversed(errors), by_pair, strict=True)]
    overlap = [np.trace(pair) / count for pair in by_pair]
    return np.array(net.channels_by_layer[1:]) * label, np.array(overlap)
