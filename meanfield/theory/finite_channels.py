"""Label term and overlap energy at finite channels, over their leading order (docs/theory.md section 20).

ReLU nets have first order in 1/channels (`meanfield.theory.first_order_kernels`) and the higher orders of one site.
Linear nets are exact at any number of channels, as their second moments close over four points. Of one layer, at
points (samples and sites) p, p', q, q', with means over its rows a and b, these are

    cc = E C(p, p') C(q, q'),   ct = E C(p, p') T(q, q'),   tt = E T(p, p') T(q, q'),   C = mean z_a z_a,
    crossed = E mean Theta_ab(p, p') Theta_ab(q, q'),   T = mean Theta_aa,
    driven = E mean z_a(p) Theta_ab(q, q') z_b(p'), held by p, q, q', p'.

Let Tr(.)/k be the mean over the stencil's k offsets, n the number of rows below, 1/(k n) the variance of weights, G =
Tr(C)/k and K = Tr(T)/k + k n G. The n' rows above have E C C' = E G G' + 2 exchanges / n' and so on: exchanges are
the other ways to pair the four weights of one row.

On circular grids with white inputs these moments do not change if all four points move alike, and are sums of
products of plane waves at the points, of wave numbers k1 + k2 + k3 + k4 = 0. With Q_ij = k_i + k_j,

    a layer     multiplies by lambda(Q), Q that of the two points that step together, lambda(Q) = |mean_D e^{i Q D}|^2
                over the stencil's offsets D,
    an exchange gives the points another order,
    the input   depends on Q_12, Q_13, Q_14 alone: E C C' of infinitely many channels is 1 where Q_12 = 0.

So each triple (Q_12, Q_13, Q_14) is a recursion by itself, and a second moment of the kernel at points p, r and p, s
needs those with Q_13 = 0. With k = k1 and k' = k2,

    E F_l = mean over k and k' of crossed(k + k', 0, k - k') .

The label term of a pooled readout has k' = 0 along the grid. Samples are an axis on which the stencil has one tap.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import pairwise, permutations
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.validation import Array, require_array, require_choice, takes
from meanfield.nets.lattice import axis_offsets
from meanfield.nets.layered import INPUT_LAYOUT, Sequential
from meanfield.theory.exact import overlap_energies
from meanfield.theory.first_order_kernels import Pairs, first_order, first_order_of_pairs
from meanfield.theory.mean_field.label_term import errors_below, factor_below, label_profiles
from meanfield.theory.mean_field.layers import given_product, mean_field_profiles
from meanfield.theory.recursions import GATES
from meanfield.theory.two_points import EveryPair

QUANTITIES = ("label_term", "overlap_energy")
# Points (samples and sites) whose pairs are followed one by one: seconds a layer.
MOST_POINTS = 36
# Layers over channels up to which ReLU nets on grids are held against draws.
CHECKED = 0.25
# Different waves of linear nets on circular grids, sites / 2 + 1 along each axis: 64 x 64 sites take 0.1 s a layer.
MOST_WAVES = 1200


@takes(Sequential)
def finite_channel_factor(net: Sequential, inputs: ArrayLike | None = None, quantity: str = QUANTITIES[0]) -> Array:
    """E B_l or E F_l over its leading order in 1/channels, for layers 1 .. L: (L,).

    Linear nets are exact at any number of channels and layers, as their second moments close; on circular grids with
    drawn inputs up to 64 x 64 sites or 2048 on a line.

    For ReLU, with a_l the relative correction of first order in 1/channels, i_l the part of it that the Gram matrix of
    the drawn input makes, o_l that of one site, and f_l the exact factor of one site with as many units, it is taken as

        (1 + i_l) f_l^((a_l - i_l) / o_l).

    So first order is complete; higher orders are those of one site, scaled. One site is exact at any width, and so is
    layer 1. At L/C = 1/4, draws of ReLU nets agree within their errors: 1 % on a line of 4 sites, 4 % on 8 x 8.

    Args:
        net: plain, of "relu" or "linear" units; it may have any head, weight variance and samples.
        inputs: given inputs; drawn by the net's law if not given. With these, and under zero padding, every pair of
            points is followed by itself, of up to 36 points, for ReLU by averages good to 1 % of the correction.
        quantity: "label_term", for ReLU not under a pooled readout, or "overlap_energy". On a circular grid with drawn
            inputs, under another readout, both have the same factor.

    Raises:
        ValueError: another net, too many points, another quantity, or inputs that leave a site without features.

    Source: docs/theory.md section 20.
    """
    if why := finite_channel_refusal(net, inputs, quantity):
        raise ValueError(why)
    if net.activation == "linear" and net.inputs * net.sites > 1:
        return _exact(net.replace(weight_variance=None), inputs, quantity)
    return resummed(net, inputs, quantity)


def _exact(net: Sequential, inputs: ArrayLike | None, quantity: str) -> Array:
    """The factor of a linear net by the fan-in rule: (L,)."""
    terms = exact_terms_of_waves(net) if _alike(net, inputs) else exact_terms_of_pairs(net, inputs)
    if quantity == "overlap_energy":
        leading = mean_field_profiles(net, inputs)[0]
    else:
        leading = label_profiles(net, inputs).mean(axis=1)
    return np.asarray(terms[QUANTITIES.index(quantity)] / leading)


def resummed(net: Sequential, inputs: ArrayLike | None = None, quantity: str = QUANTITIES[0]) -> Array:
    """First order complete, and higher orders as of one site: (L,)."""
    shape = dict.fromkeys(("grid", "kernel"), (1,)) if net.grid else {}
    alone = net.replace(inputs=1, weight_variance=None, **shape)  # of as many channels, by the fan-in rule
    of_one_site = first_order(alone, given_input=True)
    hidden, of_input = _coefficients(net, inputs, quantity)
    power = np.divide(hidden, of_one_site, out=np.ones(net.depth), where=of_one_site > 0)
    log_one_site = overlap_energies(alone) - np.log(mean_field_profiles(alone)[0])
    return np.asarray((1 + of_input) * np.exp(power * log_one_site))


def _coefficients(net: Sequential, inputs: ArrayLike | None, quantity: str) -> tuple[Array, Array]:
    """First order that hidden layers make, and that the input makes."""

    def coefficient(given_input: bool) -> Array:
        if _alike(net, inputs):
            return first_order(net, given_input)
        return first_order_of_pairs(net, inputs, given_input)[QUANTITIES.index(quantity)]

    hidden = coefficient(given_input=True)
    fixed = inputs is not None or net.input_law == "normalised"
    return hidden, np.zeros_like(hidden) if fixed else coefficient(given_input=False) - hidden


def _alike(net: Sequential, inputs: ArrayLike | None) -> bool:
    """Whether all points are."""
    return inputs is None and net.covers_evenly


@takes(Sequential)
def finite_channel_refusal(net: Sequential, inputs: ArrayLike | None = None, quantity: str = QUANTITIES[0]) -> str:
    """Why `finite_channel_factor` does not serve this net, and what does; empty if it does."""
    require_choice("quantity", quantity, QUANTITIES)
    points = net.inputs * net.sites
    reasons = {
        "has skip connections": net.has_skips,
        f"has {net.activation!r} units": net.activation not in GATES,
        "has a pooled readout, where the label term's corrections are known for 'linear' units alone": net.is_pooled
        and quantity == "label_term"
        and net.activation != "linear",
        "draws several normalised inputs": inputs is None and net.input_law == "normalised" and net.inputs > 1,
        f"has linear units on a grid of {net.grid} sites, larger than the 64 x 64 sites, or 2048 on a line, that are "
        "followed exactly": net.activation == "linear"
        and _alike(net, inputs)
        and prod(length // 2 + 1 for length in net.grid) > MOST_WAVES,
        f"has {points} points, more than the {MOST_POINTS} whose pairs are followed where edges or given inputs make "
        "them differ": points > MOST_POINTS and not _alike(net, inputs),
    }
    if why := next((why for why, holds in reasons.items() if holds), ""):
        return (
            "corrections in 1/channels are derived for plain nets of 'relu' or 'linear' units with a convolutional "
            f"readout; this {type(net).__name__} {why}: change that, or draw it at two numbers of channels"
        )
    return ""


@takes(Sequential)
def unchecked_channels_warning(net: Sequential) -> str:
    """What to say where `finite_channel_factor` is neither exact nor held against draws; "" elsewhere."""
    channels = min(net.channels_by_layer[1:])
    if net.activation == "linear" or net.inputs * net.sites == 1 or net.depth <= CHECKED * channels:
        return ""
    return (
        "what channels make of a ReLU net of several points is complete at first order in 1/channels, and is held "
        f"against draws up to depth / channels = {CHECKED:g}; here that is {net.depth / channels:.2g}: take more "
        "channels, or `simulate` the net"
    )


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
        _, gram = given_product(net, batch)
        if not gram.any():
            raise ValueError("inputs are zero everywhere, where a linear net has no changes: give others")
    errors = [errors_below(net, points, points.labels(np.eye(net.inputs)[..., None], not net.output_grid))]
    for place in range(net.depth - 1, 0, -1):
        errors.append(factor_below(net, place) * points.pulled_back(errors[-1]))
    moments = crossed_moments(net, EveryFour(net), np.multiply.outer(gram, gram), drawn=inputs is None)
    by_pair = [np.einsum("prps->rs", crossed) / count for crossed in moments]
    label = [np.vdot(error, pair) for error, pair in zip(reversed(errors), by_pair, strict=True)]
    overlap = [np.trace(pair) / count for pair in by_pair]
    return np.array(net.channels_by_layer[1:]) * label, np.array(overlap)


# In which order the three sums Q stand for points (1, 2), (1, 3) and (1, 4).
ORDERS = list(permutations(range(3)))
# Factors lambda that agree to so many decimals are one.
DECIMALS = 12


def exact_terms_of_waves(net: Sequential) -> tuple[Array, Array]:
    """E B_l and E F_l for l = 1 .. L of a linear net by the fan-in rule, with white inputs: (L,) each.

    Labels are independent, of variance 1. With s_h the head's variance, M, B and S outputs, samples and sites, and
    means over k and k' as above, B_l = s_h n_L mean(crossed) / (M B S), times the taps of a convolutional readout, or
    the squared sites of a flattening one.
    """
    overlap = _means(net, pooled=False)
    taps = {"pooled": 1, "convolution": net.taps, "flatten": net.sites**2}[net.readout]
    scale = net.head_variance * taps * net.channels_by_layer[-1] / (net.outputs * net.inputs * net.sites)
    return scale * (_means(net, pooled=True) if net.is_pooled else overlap), overlap


def _means(net: Sequential, pooled: bool) -> Array:
    waves = PairsOfWaves(net, pooled)
    return np.array([waves.mean(moment) for moment in crossed_moments(net, waves, waves.white(), drawn=True)])


class PairsOfWaves:
    """Functions of four points as arrays (6, N): in every order of Q_12, Q_13 = 0 and Q_14, for N kinds of pairs k, k'.

    Pairs are of one kind where lambda agrees, and whether Q vanishes. ``pooled`` means k' = 0 along the grid.
    """

    def __init__(self, net: Sequential, pooled: bool) -> None:
        along_grid = [_axis(*shape, pooled) for shape in zip(net.grid, net.kernel, strict=True)]
        factors, vanishing, share = (reduce(np.kron, of) for of in zip(_axis(net.inputs, 1), *along_grid, strict=True))
        sums, differences = np.nonzero(share)
        self._share = share[sums, differences]
        triples = np.array([sums, np.full_like(sums, np.flatnonzero(vanishing)[0]), differences])
        together = triples[[order[0] for order in ORDERS]]
        self._factors, self._vanishing = factors[together], vanishing[together]

    def white(self) -> Array:
        """E C C' of infinitely many channels that are white over points."""
        return self._vanishing.astype(float)

    def carried(self, moment: Array) -> Array:
        return self._factors * moment

    def transposed(self, moment: Array, *axes: int) -> Array:
        order = [_sum_of(axes.index(0), axes.index(point)) for point in (1, 2, 3)]
        return np.asarray(moment[[ORDERS.index(tuple(of[place] for place in order)) for of in ORDERS]])

    def mean(self, moment: Array) -> float:
        """The mean over k and k', at Q_12 = k + k', Q_13 = 0 and Q_14 = k - k'."""
        return float(self._share @ moment[ORDERS.index((0, 1, 2))])


def _sum_of(first: int, second: int) -> int:
    """Which of Q_12, Q_13, Q_14 two points have, numbered from 0, up to sign."""
    low, high = sorted((first, second))
    return high - 1 if low == 0 else 5 - low - high


def _axis(length: int, taps: int, still: bool = False) -> tuple[Array, Array, Array]:
    """The kinds of waves along one axis: lambda, whether the wave vanishes, and what share of pairs k, k' has both
    k + k' and k - k'.

    ``still``: only k' = 0.
    """
    waves = np.arange(length)
    factors = np.abs(np.exp(2j * np.pi / length * np.outer(waves, axis_offsets(taps))).mean(axis=1)) ** 2
    apart = np.where(waves == 0, -1.0, np.round(factors, DECIMALS))
    _, first, kinds = np.unique(apart, return_index=True, return_inverse=True)
    second = waves[: 1 if still else length, None]
    pairs = kinds[(waves + second) % length] * len(first) + kinds[(waves - second) % length]
    share = np.bincount(pairs.ravel(), minlength=len(first) ** 2).reshape(len(first), -1) / pairs.size
    return factors[first], first == 0, share
