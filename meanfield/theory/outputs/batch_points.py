"""A batch as points of Gaussian processes: covariances and tangent kernels at every layer, and at the outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.common.machine import NUMBER_BYTES, require_bytes
from meanfield.nets.families.layered import Sequential
from meanfield.theory.mean_field.inputs import input_products
from meanfield.theory.outputs.drives import LayerAverages
from meanfield.theory.outputs.exchangeable import Exchangeable
from meanfield.theory.outputs.points import EveryPair, Points

# Square arrays over pairs of points that are held at once, beside these for every layer.
WORKING_ARRAYS, ARRAYS_PER_LAYER = 24, 5


class Forward(NamedTuple):
    """One layer's averages and its tangent kernel K within a channel, over pairs of points."""

    averages: LayerAverages
    kernel: Array


def batch_points(net: Sequential, inputs: ArrayLike | None, correlation: float = 0.0) -> tuple[Points, Array]:
    """The leanest representation of the batch's points, and E[s(x) s(x')] of the input over pairs of them.

    Inputs that are drawn have this ``correlation`` between samples.
    """
    _, product = input_products(net, inputs, correlation)
    if inputs is None and net.padding == "circular":
        return Exchangeable(net.inputs, net.sites), _four(product)
    count = net.inputs * net.sites
    needed = (net.depth * ARRAYS_PER_LAYER + WORKING_ARRAYS) * NUMBER_BYTES * count**2
    require_bytes(needed, "label and output term over all pairs of sites", "grid, samples or depth")
    odd = all(taps % 2 for taps in net.kernel)
    return EveryPair(net, inputs is None and odd), product.reshape(count, count)


def _four(product: Array) -> Array:
    """Those of `Exchangeable` from numbers by displacement; where a batch has no such pairs, those of other ones."""
    samples, sites = product.shape
    if samples == 1:
        other = product[0, -1] if sites > 1 else 0.0
        return np.array([product[0, 0], other, other, other])
    other_site = product[:, -1] if sites > 1 else product[[1, 1], 0]
    return np.array([product[0, 0], other_site[0], product[1, 0], other_site[1]])


def forward_layers(net: Sequential, points: Points, product: Array) -> Iterator[Forward]:
    """Layers 1 .. L of a plain net, from the input's ``product``."""
    kernel = np.zeros_like(product)
    for place, layer in enumerate(net.layers):
        carried, factor = points.diagonal(product), layer.variance_factor / net.sigma.gain
        averages = LayerAverages.at(net, points, factor * carried)
        kernel = factor * points.diagonal(kernel) + net.channels_by_layer[place] * net.taps * carried
        yield Forward(averages, kernel)
        product, kernel = averages.product, averages.gate * kernel


def output_covariance(net: Sequential, points: Points, top: LayerAverages) -> Array:
    """E z z' of an output channel over pairs of points; pooled outputs are those of the points' samples."""
    scale = net.head_variance * net.channels_by_layer[-1]
    if not net.is_pooled:
        return scale * net.taps * points.diagonal(top.product)
    mean = points.within_samples() / net.sites
    return scale * points.product(points.product(mean, top.product), mean)


def errors_below(net: Sequential, points: Points, covariance: Array) -> Array:
    """C_L of errors e / (M B places) of this covariance at the outputs, as `output_covariance` has it.

    s_h / (M B^2 S^2) times sum_D S_D^T E[e e'] S_D under a convolutional readout, times E[e e'] under a pooled one.
    """
    scale = net.head_variance / (net.outputs * (net.sites * net.inputs) ** 2)
    return scale * (covariance if net.is_pooled else net.taps * points.pulled_back(covariance))
