"""The output term A_l of plain nets at leading order in 1/channels, while outputs over channels stay fixed.

Outputs that are as many as channels drive the net along its own features, as the mean of W^T W is s_h M. Every
channel is alike, so all is Gaussian averages over the points p (samples and sites) of one channel. Its error is

    U_l(p) = s'(z_p) [v(p) + H(p)],   H(p) = sum_r mu_l(p, r) s(z_r)

with v Gaussian of covariance C_l, independent of z; and its change is

    T_l(p) = y(p) + sum_r U_l(r) K_l(r, p),   y jointly Gaussian with z, R = E y z, Y = E y^2,

K the tangent kernel of docs/theory.md section 6. Write m = R c^-1 z for the part of y along z and w(p) = sum_r K(p,
r) s'(z_r) H(r) for what the outputs' mean adds. With S_D the shifts of the stencil's k taps, f variance factor of the
weights between two layers, n channels, q gain, s_h, B, S, M head variance, samples, sites and outputs,

    C_L = s_h / (M B^2 S^2) sum_D S_D^T c_out S_D,   c_out = s_h n_L sum_D S_D xx S_D^T    (pooled: means over sites)
    C_{l-1} = f n_l / (q n_{l-1} k) sum_D S_D^T [C g + E s' H s' H] S_D
    mu_{l-1} = f n_l / (q n_{l-1} k) sum_D S_D^T E[d(s' H) / dz] S_D
    A_l = mean_p { Y + E (m + w)^2 - E m^2 + sum_rs K(p, r) K(p, s) C(r, s) g(r, s) }
    Y <- f / (q k) sum_D S_D { q (Y - E m^2) + E s'^2 (m + w)^2 + sum_rs K K C E[s'(p)^2 s'(r) s'(s)] }
    R <- f / (q k) sum_D S_D E[ s'(p) (m + w)(p) s(p') ] S_D^T

Drives: what the outputs drive along the features is averages over the few points of one channel that meet there.
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
at the point OWN, at another point SIBLING of its sample, or summed over all its sites (SUM). Sites are independent
given x; a product of sums is one over all ways in which its indices coincide, and where they do a site has the moment
of all factors that meet there.

What a batch's labels and its loss leave at the outputs, and what the outputs then add, follows from the same outputs.
Under cross-entropy they pass a softmax. That of independent Gaussian logits has

    E p_t^2 = E e^{2 z_t} / (sum_s e^{z_s})^2 = int_0^inf u E[e^{2z} e^{-u e^z}] phi(u)^{C-1} du,  phi(u) = E e^{-u e^z}

by 1/x^2 = int u e^{-ux} du, so that the C logits come apart and one average over z and one over u remain.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from itertools import product
from math import prod
from operator import mul
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from meanfield.common.machine import progress
from meanfield.common.validation import Array, require_array, require_count, takes
from meanfield.nets.activations import Activation
from meanfield.nets.inputs import Batch
from meanfield.nets.layered import INPUT_LAYOUT, Sequential
from meanfield.theory.mean_field.label_term import (
    LayerAverages,
    LayerKernel,
    all_alike,
    batch_points,
    correlated_term,
    driven_terms,
    errors_below,
    factor_below,
    forward_layers,
    label_term_refusal,
    output_covariance,
)
from meanfield.theory.mean_field.layers import input_variance
from meanfield.theory.two_points import AllPairs, Exchangeable, Points


@takes(Sequential)
def output_term(net: Sequential, inputs: ArrayLike | None = None) -> Array:
    """A_1 .. A_L of a plain net at learning rate 1, the means over sites of `output_profiles`: (L,)."""
    return output_profiles(net, inputs).mean(axis=1)


@takes(Sequential)
def output_profiles(
    net: Sequential, inputs: ArrayLike | None = None, correlation: float = 0.0, loss: str = "squared"
) -> Array:
    """The output term of layers 1 .. L at every site, the mean over samples, at learning rate 1: (L, S).

    Relative corrections are of the order L^2 / n at any number of outputs. Inputs that are drawn have this
    ``correlation`` between samples. Under the ``loss`` "cross_entropy", of one softmax, errors are C (p - 1/C) for z:
    of mean square C^2 E p_t^2 - 1 for E z^2, and along z by the mean slope C E[p_t (1 - p_t)].

    Raises:
        ValueError: a net or an input whose averages do not close, saying why.
        MemoryError: more pairs of points at so many layers than the machine can hold.

    Source: docs/theory.md section 18.
    """
    if why := output_term_refusal(net, inputs, correlation, loss):
        raise ValueError(why)
    points, product = batch_points(net, inputs, correlation)
    upward = progress(forward_layers(net, points, product), net.depth, "layer")
    drive, layers = drive_of(net, points), list(upward)
    outputs = output_covariance(net, points, layers[-1].averages)
    slope = 1.0
    if loss == "cross_entropy":
        square = mean_square_probability(net.outputs, float(outputs.flat[0]))
        slope = 1 - net.outputs * square
        outputs = np.full_like(outputs, net.outputs**2 * square - 1)
    along = _along(net, drive, layers, slope)
    both = progress(zip(layers, along, strict=True), len(layers), "layer")
    driven = [drive.square(layer.averages, each) for layer, each in both]
    fresh = driven_terms(net, points, layers, errors_below(net, points, outputs), driven)
    coherent = _coherent_terms(net, points, drive, layers, along)
    summands = progress(zip(fresh, coherent, strict=True), net.depth, "layer")
    terms = [points.by_site(first + second) for first, second in summands]
    return np.broadcast_to(terms, (net.depth, net.sites))


@takes(Sequential)
def output_term_refusal(
    net: Sequential, inputs: ArrayLike | None = None, correlation: float = 0.0, loss: str = "squared"
) -> str:
    """Why `output_term` does not serve this net with this input, and what to take; empty if it does."""
    given = f"this is a {type(net).__name__} of activation {net.activation!r}"
    if not net.follows_one_rule:
        return "the output term is predicted where all layers follow one rule; these differ: draw it with `simulate`"
    if net.has_skips:
        return f"the output term is predicted for plain nets; {given}, whose gates remember: draw it with `simulate`"
    if net.sigma.triple is None:
        return f"the output term is predicted for 'relu' and 'linear'; {given}: draw it with `simulate`"
    if loss == "cross_entropy" and net.inputs * net.output_units > net.outputs:
        return (
            "under cross-entropy the output term is predicted for one softmax, as several are correlated; "
            f"{given} with {net.inputs} sample(s): draw it with `simulate`"
        )
    if net.is_pooled and net.activation != "linear" and not all_alike(net, inputs, correlation):
        return (
            "under a pooled readout a gate meets the features of all sites, and averages over four sites close only "
            "in linear nets or where all sites are alike (circular padding, independent samples of the net's law); "
            f"{given}, padding {net.padding!r}: take readout='convolution', or draw it with `simulate`"
        )
    return ""


def drive_of(net: Sequential, points: Points) -> Drive:
    if not net.is_pooled:
        return ConvolutionDrive(net, points)
    if isinstance(points, Exchangeable) and net.activation != "linear":
        return PooledDrive(net, points)
    return LinearPooledDrive(net, points)


def _along(net: Sequential, drive: Drive, layers: Sequence[LayerKernel], slope: float) -> list[Array]:
    """mu of layers 1 .. L, for errors that rise with the outputs by ``slope``."""
    along = [slope * drive.top()]
    for place in range(len(layers) - 1, 0, -1):
        along.append(factor_below(net, place) * drive.below(layers[place].averages, along[-1]))
    return along[::-1]


def _coherent_terms(
    net: Sequential, points: Points, drive: Drive, layers: Sequence[LayerKernel], along: Sequence[Array]
) -> Iterator[Array]:
    """What m + w adds to the output term of every layer by point, with R carried up beside its part of Y."""
    energy, with_z, gain = points.constant(0.0), np.zeros_like(layers[0].kernel), net.sigma.gain
    for place, ((averages, kernel), drives) in enumerate(zip(layers, along, strict=True), start=1):
        change = drive.change(averages, drives, kernel, with_z)
        yield energy + change.energy
        if place < len(layers):
            factor = net.layers[place].variance_factor / gain
            energy = factor * points.moved(gain * energy + change.gated_energy)
            with_z = factor * points.diagonal(change.gated_with_features)


@takes(Sequential)
def label_covariance(net: Sequential, inputs: ArrayLike | None, batch: Batch) -> Array:
    """E y_i y_j at one output coordinate, over samples and sites: (B, B, S or 1), or of two alike samples."""
    alike = inputs is None and net.padding == "circular"
    identity = np.eye(min(net.inputs, 2) if alike else net.inputs)[..., None]
    if batch.labels == "independent":
        covariance = identity
    elif inputs is None:
        rho = batch.input_correlation
        covariance = input_variance(net) * ((1 - rho) * identity + rho)
    else:
        given = require_array("inputs", inputs, net.input_shape, INPUT_LAYOUT)
        flat = given.reshape(net.inputs, -1, prod(net.output_grid))
        covariance = np.einsum("ics,jcs->ijs", flat, flat) / flat.shape[1]
    return np.asarray(covariance + batch.label_mean**2)


def output_error(net: Sequential, inputs: ArrayLike | None, batch: Batch, loss: str) -> Array:
    """E |z_out - y|^2, or of one softmax E |p - y|^2 = 1 - 1/C + C (E p^2 - 1/C^2), for Gaussian outputs."""
    outputs, classes = _output_variances(net, inputs, batch.input_correlation), net.outputs
    if loss == "cross_entropy":
        return np.asarray(1 - 2 / classes + classes * mean_square_probability(classes, float(outputs.flat[0])))
    labels = np.einsum("iis->is", label_covariance(net, inputs, batch))
    return np.asarray(classes * (outputs.mean() + labels.mean()))


def batch_output_term(
    net: Sequential, inputs: ArrayLike | None, label: Array, correlation: float, loss: str
) -> Array | None:
    """A_1 .. A_L under a batch's inputs and a loss: (L,); None where it is not predicted.

    With smooth gates there is one site's alone, at leading order in M L / n, where outputs act as labels of their
    covariance; ``label`` is the plain label term, which a single sample's is proportional to.
    """
    if not output_term_refusal(net, inputs, correlation, loss):
        try:
            return output_profiles(net, inputs, correlation, loss).mean(axis=1)
        except MemoryError:
            return None
    if net.sites > 1 or net.sigma.triple is not None:
        return None
    own = float(_output_variances(net, inputs, correlation).flat[0])
    if loss == "cross_entropy":
        square = net.outputs**2 * mean_square_probability(net.outputs, own)
        return label * (square - 1) if net.inputs == 1 else None
    if net.inputs == 1:
        return label * own
    if label_term_refusal(net, inputs, correlation):
        return None
    points, product = batch_points(net, inputs, correlation)
    *_, top = forward_layers(net, points, product)
    own, _, other, _ = output_covariance(net, points, top.averages)
    return correlated_term(net, inputs, correlation, np.array([[own, other], [other, own]])[..., None])


def _output_variances(net: Sequential, inputs: ArrayLike | None, correlation: float) -> Array:
    """E z^2 of an output at every point."""
    points, product = batch_points(net, inputs, correlation)
    *_, top = forward_layers(net, points, product)
    return points.variances(output_covariance(net, points, top.averages))[0]


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
    """A convolutional or a flattening readout: mu by point, s_h / B at the top of the latter."""

    net: Sequential
    points: Points

    def top(self) -> Array:
        net, points = self.net, self.points
        if net.readout == "flatten":
            return points.constant(net.head_variance / net.inputs)
        scale = net.head_variance * net.taps / (net.sites * net.inputs)
        return scale * points.moved_back(points.constant(1.0))

    def square(self, layer: LayerAverages, along: Array) -> Array:
        return along * self.points.second(along) * layer.product

    def below(self, layer: LayerAverages, along: Array) -> Array:
        return self.net.sigma.gain * self.points.moved_back(along)

    def change(self, layer: LayerAverages, along: Array, kernel: Array, with_z: Array) -> DrivenChange:
        return weighted_change(self.net.sigma, self.points, layer, kernel * self.points.second(along), with_z)


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
        return weighted_change(self.net.sigma, self.points, layer, weight, with_z)


def pooled_top(net: Sequential, points: Points) -> Array:
    """mu_L of a pooled readout, s_h / (B S^2) between points of one sample."""
    return net.head_variance / (net.inputs * net.sites**2) * points.within_samples()


def weighted_change(
    sigma: Activation, points: Points | AllPairs, layer: LayerAverages, weight: Array, with_z: Array
) -> DrivenChange:
    """What m + w does where w(p) = sum_r weight(p, r) s(z_r)."""
    alone, shared = sigma.triple or (0.0, 0.0)
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
        2 * sigma.gain * points.contracted(with_z, weight) + points.contracted(carried, weight),
        points.contracted(weight, 2 * turned + three),
        turned + three,
    )


# What a factor is, and the point of a sample at which it stands.
FEATURE, GATE, Z = "feature", "gate", "z"
OWN, SIBLING, SUM = "own", "sibling", "sum"
Factor = tuple[str, str]
SitePolynomial = tuple[tuple[float, tuple[Factor, ...]], ...]
# What meets at a site: whether a gate or feature is among it, and the power of z.
Meeting = tuple[bool, int]


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
    return (along[0] - along[1], ((FEATURE, point),)), (along[1], ((GATE, point), (FEATURE, SUM)))


def _from_other_samples(along: Array, kernel: Array, mean: Array) -> SitePolynomial:
    """What a sample adds to m + w at a point of another: sums over its sites."""
    return (
        (mean[2], ((Z, SUM),)),
        (kernel[2] * (along[0] - along[1]), ((FEATURE, SUM),)),
        (kernel[2] * along[1], ((GATE, SUM), (FEATURE, SUM))),
    )


def _own_change(along: Array, kernel: Array, mean: Array) -> SitePolynomial:
    """What a point's own sample adds to m + w there."""
    driven = tuple(((kernel[0] - kernel[1]) * scale, factors) for scale, factors in _driven(along, OWN))
    return (
        (mean[0] - mean[1], ((Z, OWN),)),
        (mean[1], ((Z, SUM),)),
        (kernel[1] * (along[0] - along[1]), ((FEATURE, SUM),)),
        (kernel[1] * along[1], ((GATE, SUM), (FEATURE, SUM))),
        *driven,
    )


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
    return any(kind != Z for kind in kinds), sum(kind != GATE for kind in kinds)


# Beyond, an average over N(0, 1) is below rounding; the step resolves exp(sqrt(v) x) and exp(-u e^z) for v up to 25.
LOGIT_REACH = 9.0
LOGIT_STEP = 0.02
LARGEST_LOGIT_VARIANCE = 25.0


def mean_square_probability(classes: int, variance: float) -> float:
    """E p_1^2 of softmax over ``classes`` logits z ~ N(0, variance): 1 / classes^2 at variance 0.

    E |p - y|^2 = 1 - 1/C + C (E p_1^2 - 1/C^2) for a label y drawn uniformly, of which the paper has the first two
    terms.

    Raises:
        ValueError: a variance that is negative or above `LARGEST_LOGIT_VARIANCE`.

    Source: Zhang et al. 2026, section G.
    """
    require_count("classes", classes)
    if not 0 <= variance <= LARGEST_LOGIT_VARIANCE:
        raise ValueError(f"variance of the logits is {variance:g}; it must be from 0 to {LARGEST_LOGIT_VARIANCE:g}")
    logits = np.arange(-LOGIT_REACH, LOGIT_REACH + LOGIT_STEP / 2, LOGIT_STEP)
    weights = np.exp(-logits * logits / 2) * (LOGIT_STEP / np.sqrt(2 * np.pi))
    logits = np.sqrt(variance) * logits
    # u runs over what an e^z can be the inverse of, and further down, as the integrand falls like u^2 only.
    spread = np.sqrt(variance) * LOGIT_REACH
    log_u = np.arange(-spread - 20.0 - np.log(classes), spread + 6.0, LOGIT_STEP)
    decay = np.exp(-np.exp(log_u[:, None] + logits))
    squared = decay @ (weights * np.exp(2 * logits))
    integrand = np.exp(2 * log_u) * squared * (decay @ weights) ** (classes - 1)
    return float(integrand.sum() * LOGIT_STEP)
