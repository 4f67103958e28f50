"""The mean field of plain nets: second moments of the tangent kernel at leading order in 1/channels, by layer.

Notation (docs/theory.md section 6): per pair of sites, c is the covariance of the pre-activations, K the tangent kernel
within one channel, V its second moment between different channels; n the channels below, k the taps, q the gain.
With Gaussian averages xx, g, h of sigma sigma, sigma' sigma', sigma'^2 sigma'^2 at covariance c:

    V <- Pk [ V w + h K K / (q^2 n) ] Pk^T / k^2,    w = E[sigma'^2] E[sigma'^2] / q^2
    K <- Tr(g K) / (q k) + n Tr(xx)
    c <- Tr(xx) / (q k)
    F = mean over pairs of K K / n' + V              (overlap energy of a layer of n' channels)

Weights whose variance is f times the fan-in rule's carry f times as much: c, what K carries and, squared, V.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from meanfield.common.arrays import Array
from meanfield.common.machine import progress
from meanfield.nets.families.layered import Sequential
from meanfield.nets.lattice import OUTSIDE, reversed_neighbours
from meanfield.nets.layers import Layer, joins
from meanfield.theory.mean_field.inputs import white_input
from meanfield.theory.mean_field.transport import Transport


@dataclass(frozen=True)
class LayerMoments:
    """c, K and V of one layer, per pair of sites in the representation of the transport that made them."""

    covariance: Array
    kernel: Array
    cross_channel: Array

    def overlap(self, channels: int) -> Array:
        """Second moment of the tangent kernel per pair of sites, averaged over pairs of channels."""
        return self.kernel**2 / channels + self.cross_channel


class Terms(NamedTuple):
    """Per pair of sites, of one depth unit: F, and the label term's summand for labels of variance 1."""

    overlap: Array
    label: Array


def forward_moments(net: Sequential, transport: Transport, input_product: Array) -> Iterator[tuple[Array, Array]]:
    """Yield Tr(xx) / k and c of layers 1 .. N; a branch, having its own weights, adds to its stream's covariance."""
    sigma, product = net.sigma, input_product
    sources = {layer.skip for layer in net.layers}
    streams = {0: white_input(net)[1]} if 0 in sources else {}
    for place, layer in enumerate(net.layers, start=1):
        carried = transport.diagonal(product)
        covariance = layer.variance_factor * carried / sigma.gain
        if layer.skip is not None:
            covariance = streams.pop(layer.skip) + layer.multiplier**2 * covariance
        if place in sources:
            streams[place] = covariance
        yield carried, covariance
        product = sigma.product(*transport.variances(covariance), covariance)


def layer_moments(net: Sequential, transport: Transport, input_product: Array) -> Iterator[LayerMoments]:
    """Yield c, K, V of layers 1 .. L of a plain net from the input's E[sigma(x) sigma(x')] per pair of sites."""
    average = net.sigma.gate_product
    below: LayerMoments | None = None
    for place, (features, covariance) in enumerate(forward_moments(net, transport, input_product)):
        through_gates = None
        if below is not None:
            here, there = transport.variances(below.covariance)
            both_on = average(here, here, here) * average(there, there, there) / net.sigma.gain**2
            through_gates = both_on * below.cross_channel
        below = LayerMoments(covariance, *through_weights(net, transport, place, features, below, through_gates))
        yield below


def through_weights(
    net: Sequential,
    transport: Transport,
    place: int,
    features: Array,
    below: LayerMoments | None,
    through_gates: Array | None,
) -> tuple[Array, Array]:
    """K and V above one weight matrix, from ``features`` Tr(xx) / k and the moments below; layer 1 has none below.

    ``through_gates`` is what the gates leave of V: w V, 1 V for homogeneous activations except where
    pre-activations vanish.
    """
    layer, channels, sigma = net.layers[place], net.channels_by_layer[place], net.sigma
    own = channels * net.taps * features
    if below is None or through_gates is None:
        return own, np.zeros_like(own)
    pair = *transport.variances(below.covariance), below.covariance
    gate = sigma.gate_product(*pair)
    same = sigma.gate_square_product is sigma.gate_product  # gates that are 0 or 1
    gate_square = gate if same else sigma.gate_square_product(*pair)
    moved = through_gates + gate_square * below.kernel**2 / (sigma.gain**2 * channels)
    carried = layer.variance_factor * transport.diagonal(gate * below.kernel) / sigma.gain
    return own + carried, layer.variance_factor**2 * transport.independent(moved)


def plain_terms(net: Sequential, transport: Transport, input_product: Array) -> Iterator[Terms]:
    """Yield the terms of every layer of a plain net."""
    weights = label_weights(net, gate_energies(net, transport, input_product))
    layers = layer_moments(net, transport, input_product)
    for channels, weight, moments in zip(net.channels_by_layer[1:], weights, layers, strict=True):
        pairs = moments.overlap(channels)
        yield Terms(pairs, weight * pairs)


def gate_energies(net: Sequential, transport: Transport, input_product: Array) -> list[Array]:
    """E[sigma'(z)^2] / q of layers 1 .. N at every site, at that layer's own variance; broadcastable to (B, S).

    Taken as 1 for homogeneous activations, as it is wherever anything arrives.
    """
    sigma = net.sigma
    if sigma.homogeneous:
        return [np.ones(())] * len(net.layers)
    energies = []
    moments = forward_moments(net, transport, input_product)
    for _, covariance in progress(moments, len(net.layers), "layer"):
        _, there = transport.variances(covariance)
        variance = there.reshape(there.shape[-2:])
        energies.append(sigma.gate_product(variance, variance, variance) / sigma.gain)
    return energies


def label_weights(net: Sequential, gates: list[Array], errors: Array | float = 1.0) -> list[Array]:
    """Per layer 1 .. N, the diagonal over sites of E[J^T J], J the Jacobian from that layer to the outputs: (..., S).

    Only for a convolutional readout, where labels at different sites are independent and the matrix stays
    diagonal: w_l <- g_l (n_{l+1} / n_l) Pk^T w_{l+1} / k with ``gates`` g_1 .. g_N from `gate_energies`, and plus w_m
    where layer m skips from layer l. On evenly covered grids, in plain nets and for homogeneous activations n_l w_l is
    the same constant at every layer and site: the top-layer reduction (Zhang et al. 2026, Lemma 1). With ``errors``,
    the second moment of what stands at every output site, it is that of J^T times them.
    """
    joined_by = joins(net.layers)
    conserved: dict[int, Array] = {}
    for place in progress(range(len(net.layers), 0, -1), len(net.layers), "layer"):
        conserved[place] = gates[place - 1] * label_weight_above(net, place, conserved.get(place + 1), errors)
        if place in joined_by:
            conserved[place] = conserved[place] + conserved[joined_by[place]]
    widths = net.channels_by_layer
    return [conserved[place] / widths[place] for place in range(1, len(widths))]


def label_weight_above(net: Sequential, place: int, above: Array | None, errors: Array | float = 1.0) -> Array:
    """n_l w_l that arrives at layer ``place`` through the one weight matrix above it, before the layer's own gates.

    ``above`` is n w of the next layer, None where that is the readout, with errors of this second moment.
    """
    layer = Layer() if above is None else net.layers[place]
    if above is None:
        gamma = net.head_variance * net.head_fan_in * net.sigma.gain
        above = np.full(net.sites, gamma * net.outputs) * errors
    table = reversed_neighbours(net.grid, net.kernel, net.padding)
    arriving = np.where(table == OUTSIDE, 0.0, above[..., table]).sum(axis=-2) / net.taps
    return np.asarray(layer.variance_factor * layer.multiplier**2 * arriving)
