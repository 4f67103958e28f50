"""The label term for errors of any covariance between samples, under either readout, at leading order in 1/channels.

A batch is points of Gaussian processes, with covariances and tangent kernels at every layer and at the outputs.
Errors at the outputs that are independent of the features, labels and the fresh part of outputs, come down through
them.

Per channel, between two points r and s (samples and sites) of the batch, errors have the covariance C(r, s). With c
and K of docs/theory.md section 6, g = E[s' s'] and f, q, n, k, S_D variance factor, gain, channels, taps and shifts

    C_{l-1} = f n_l / (q n_{l-1} k) sum_D S_D^T [g C_l + ...] S_D        (... what outputs drive coherently)
    B_l(p) = Y_l(p) + sum_rs K(p, r) K(p, s) C_l(r, s) g(r, s)
    Y <- f / (q k) sum_D S_D { E[s'(p)^2] Y + sum_rs K(p, r) K(p, s) C(r, s) t(p, r, s) },  Y_1 = 0

t = E[s'(p)^2 s'(r) s'(s)]. Y is what different channels add, n_l sum C_l V with V(p; r, s) the second moment of the
kernel between them. As C comes down by the adjoint of what carries V up, V itself, N^3 numbers, is never formed.

With smooth gates t is known where all points are alike. Exchangeable Gaussians are independent given one number x
that they share, z_p = c_1^(1/2) x + (c_0 - c_1)^(1/2) e_p, so that t is an integral over x of products of moments of
s' given x. It depends on which of the points are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.gaussian_averages import gaussian_nodes
from meanfield.common.machine import NUMBER_BYTES, progress, require_bytes
from meanfield.common.validation import Array, takes
from meanfield.nets.activations import Activation
from meanfield.nets.layered import Sequential
from meanfield.theory.mean_field.layers import input_products
from meanfield.theory.two_points import EveryPair, Exchangeable, Points


@takes(Sequential)
def correlated_term(net: Sequential, inputs: ArrayLike | None, correlation: float, errors: Array) -> Array:
    """B_1 .. B_L, the means over sites of `label_profiles`: (L,)."""
    return label_profiles(net, inputs, errors, correlation).mean(axis=1)


def label_profiles(
    net: Sequential, inputs: ArrayLike | None = None, errors: Array | None = None, correlation: float = 0.0
) -> Array:
    """The label term of layers 1 .. L at every site, the mean over samples, at learning rate 1: (L, S).

    Args:
        net: a plain net, under either readout. Under a pooled one a label reaches all sites of its sample alike.
        inputs: a given batch; the net's own input law, with this ``correlation`` between samples, if not given.
        errors: E y_i y_j at one output coordinate (`label_covariance`), of samples (B, B, S or 1), or of two alike ones
            where inputs are drawn on a circular grid; labels that are independent and of variance 1 if not given.

    Raises:
        ValueError: a net or an input whose averages do not close, saying why.
        MemoryError: more pairs of points at so many layers than the machine can hold.

    Source: docs/theory.md sections 9, 10.
    """
    if why := label_term_refusal(net, inputs, correlation):
        raise ValueError(why)
    points, product = batch_points(net, inputs, correlation)
    layers = list(progress(forward_layers(net, points, product), net.depth, "layer"))
    covariance = points.labels(np.eye(net.inputs)[:, :, None] if errors is None else errors, not net.output_grid)
    terms = driven_terms(net, points, layers, errors_below(net, points, covariance))
    walked = progress(terms, net.depth, "layer")
    return np.broadcast_to([points.by_site(term) for term in walked], (net.depth, net.sites))


def label_term_refusal(net: Sequential, inputs: ArrayLike | None = None, correlation: float = 0.0) -> str:
    """Why `label_profiles` does not serve this net with this input, and what to take; empty if it does."""
    given = f"this is a {type(net).__name__} of activation {net.activation!r}"
    take = "take readout='convolution' and independent labels, or draw it with `simulate`"
    if net.has_skips:
        return (
            "pooled or correlated labels join what several sites or samples did, which is predicted for plain nets; "
            f"{given}, whose gates remember: {take}"
        )
    if net.sigma.triple is None and not all_alike(net, inputs, correlation):
        return (
            "pooled or correlated labels take averages over three gates, which are known for 'relu' and 'linear', and "
            "for other activations where all sites are alike (circular padding, the net's own inputs, independent "
            f"samples); {given}: {take}"
        )
    return ""


def all_alike(net: Sequential, inputs: ArrayLike | None, correlation: float) -> bool:
    """Whether all points of the batch are alike, and those of two samples independent."""
    return inputs is None and net.padding == "circular" and not correlation


# Square arrays over pairs of points that are held at once, beside these for every layer.
WORKING_ARRAYS, ARRAYS_PER_LAYER = 24, 5


@dataclass(frozen=True)
class LayerAverages:
    """One layer's covariance c, g = E[s' s'] and xx = E[s s], over pairs of points."""

    covariance: Array
    gate: Array
    product: Array

    @classmethod
    def at(cls, net: Sequential, points: Points, covariance: Array) -> LayerAverages:
        sigma, ends = net.sigma, points.variances(covariance)
        return cls(covariance, sigma.gate_product(*ends, covariance), sigma.product(*ends, covariance))


class LayerKernel(NamedTuple):
    """One layer's averages and its tangent kernel K within a channel, over pairs of points."""

    averages: LayerAverages
    kernel: Array


def batch_points(net: Sequential, inputs: ArrayLike | None, correlation: float = 0.0) -> tuple[Points, Array]:
    """The leanest representation of the batch's points, and E[s(x) s(x')] of the input over pairs of them.

    Inputs that are drawn have this ``correlation`` between samples.
    """
    points, product = input_products(net, inputs, correlation)
    if not isinstance(points, EveryPair):
        return Exchangeable(net.inputs, net.sites), _four_numbers(product)
    needed = (net.depth * ARRAYS_PER_LAYER + WORKING_ARRAYS) * NUMBER_BYTES * product.size
    require_bytes(needed, "label and output term over all pairs of sites", "grid, samples or depth")
    return points, product


def _four_numbers(product: Array) -> Array:
    """The four numbers of `Exchangeable` from numbers by displacement; where a batch has no such pairs, those of other
    ones."""
    samples, sites = product.shape
    if samples == 1:
        other = product[0, -1] if sites > 1 else 0.0
        return np.array([product[0, 0], other, other, other])
    other_site = product[:, -1] if sites > 1 else product[[1, 1], 0]
    return np.array([product[0, 0], other_site[0], product[1, 0], other_site[1]])


def forward_layers(net: Sequential, points: Points, product: Array) -> Iterator[LayerKernel]:
    """Layers 1 .. L of a plain net, from the input's ``product``."""
    kernel = np.zeros_like(product)
    for place, layer in enumerate(net.layers):
        carried, factor = points.diagonal(product), layer.variance_factor / net.sigma.gain
        averages = LayerAverages.at(net, points, factor * carried)
        kernel = factor * points.diagonal(kernel) + net.channels_by_layer[place] * net.taps * carried
        yield LayerKernel(averages, kernel)
        product, kernel = averages.product, averages.gate * kernel


def output_covariance(net: Sequential, points: Points, top: LayerAverages) -> Array:
    """E z z' of an output channel over pairs of points; outputs of one site are those of the points' samples."""
    scale = net.head_variance * net.channels_by_layer[-1]
    if net.readout == "convolution":
        return scale * net.taps * points.diagonal(top.product)
    mean, product = points.within_samples() / net.sites, top.product
    if net.readout == "flatten":
        scale, product = scale * net.sites**2, points.same_sites() * product
    return scale * points.product(points.product(mean, product), mean)


def errors_below(net: Sequential, points: Points, covariance: Array) -> Array:
    """C_L of errors e / (M B places) of this covariance at the outputs, as `output_covariance` has it.

    s_h / (M B^2 S^2) times sum_D S_D^T E[e e'] S_D under a convolutional readout, times E[e e'] under a pooled one;
    s_h / (M B^2) times E[e e'] at equal sites, and 0 at others, where all sites have weights of their own.
    """
    scale = net.head_variance / (net.outputs * (net.sites * net.inputs) ** 2)
    if net.readout == "flatten":
        return scale * net.sites**2 * points.same_sites() * covariance
    return scale * (covariance if net.is_pooled else net.taps * points.pulled_back(covariance))


def driven_terms(
    net: Sequential, points: Points, layers: Sequence[LayerKernel], top: Array, driven: Sequence[Array] = ()
) -> Iterator[Array]:
    """B_1 .. B_L by point, for errors of covariance ``top`` that arrive at layer L.

    ``driven`` has E[s' H s' H] of layers 1 .. L, what the outputs' mean adds to g C (docs/theory.md section 18).
    """
    errors = _errors(net, layers, points, top, driven)
    energy = points.constant(0.0)
    for place, (layer, arriving) in enumerate(zip(layers, reversed(errors), strict=True), start=1):
        fresh, gated = quadratic(net, points, layer, arriving)
        yield energy + fresh
        if place < len(layers):
            own, _ = points.variances(layer.averages.gate)
            energy = net.layers[place].variance_factor / net.sigma.gain * points.moved(own * energy + gated)


def _errors(
    net: Sequential, layers: Sequence[LayerKernel], points: Points, top: Array, driven: Sequence[Array]
) -> list[Array]:
    """C of layers L .. 1."""
    errors = [top]
    for place in range(len(layers) - 1, 0, -1):
        gated = layers[place].averages.gate * errors[-1] + (driven[place] if driven else 0.0)
        errors.append(factor_below(net, place) * points.pulled_back(gated))
    return errors


def factor_below(net: Sequential, place: int) -> float:
    """f n_l / (q n_{l-1}) of what comes down through the matrix of layer l, number ``place`` from 0."""
    above, below = net.channels_by_layer[place + 1], net.channels_by_layer[place]
    return net.layers[place].variance_factor * above / (net.sigma.gain * below)


def quadratic(net: Sequential, points: Points, layer: LayerKernel, errors: Array) -> tuple[Array, Array]:
    """sum_rs K(p, r) K(p, s) C(r, s) g(r, s), and the same with t(p, r, s) for g."""
    (averages, kernel), triple = layer, net.sigma.triple
    fresh = points.contracted(points.product(kernel, errors * averages.gate), kernel)
    both = points.product(kernel, errors)
    if triple is None:
        assert isinstance(points, Exchangeable)
        return fresh, AlikeGates.at(net.sigma, averages.covariance).quadratic(points, kernel, errors, both)
    alone, shared = triple
    gated = alone * points.contracted(both, kernel) + shared * fresh
    return fresh, np.asarray(gated + 2 * shared * points.contracted(both, averages.gate * kernel))


@dataclass(frozen=True)
class AlikeGates:
    """t where all points are the same, where p is r or s alone, where r is s alone, and where all differ."""

    same: float
    one_below: float
    two_below: float
    different: float

    @classmethod
    def at(cls, sigma: Activation, covariance: Array) -> AlikeGates:
        """The gates at the covariance of a point with itself and with any other one, the second number."""
        own, other = covariance[:2]
        nodes, weights = gaussian_nodes(float(own))
        z = np.sqrt(other) * nodes[:, None] + np.sqrt(max(own - other, 0.0)) * nodes
        gate = sigma.gate(z)
        once, twice, thrice = (gate**power @ weights for power in (1, 2, 3))
        same = sigma.gate(np.sqrt(own) * nodes) ** 4 @ weights
        products = thrice * once, twice**2, twice * once**2
        return cls(float(same), *(float(weights @ at_x) for at_x in products))

    def quadratic(self, points: Exchangeable, kernel: Array, errors: Array, both: Array) -> Array:
        """sum_rs K(p, r) K(p, s) C(r, s) t(p, r, s) by point, from ``both`` K C."""
        own = kernel[0] ** 2 * errors[0]
        once_same = 2 * (kernel[0] * points.contracted(kernel, errors)[0] - own)
        twice = errors[0] * points.contracted(kernel, kernel)[0] - own
        rest = points.contracted(both, kernel)[0] - own - once_same - twice
        parts = own * self.same, once_same * self.one_below, twice * self.two_below, rest * self.different
        return np.array([sum(parts)])
