"""Mean field: second moments of the tangent kernel at leading order in 1/channels, for any sites and padding.

Notation (THEORY section 4): per pair of sites, c is the covariance of the pre-activations, K the tangent kernel
within one channel, V its second moment between different channels; n the channels below, k the taps, q the gain.
With Gaussian averages xx, g, h of sigma sigma, sigma' sigma', sigma'^2 sigma'^2 at covariance c:

    V <- Pk [ V w + h K K / (q^2 n) ] Pk^T / k^2,    w = E[sigma'^2] E[sigma'^2] / q^2
    K <- Tr(g K) / (q k) + n Tr(xx)
    c <- Tr(xx) / (q k)
    F = mean over pairs of K K / n' + V              (overlap energy of a layer of n' channels)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from meanfield.activations import Activation
from meanfield.architectures import Layer, Sequential
from meanfield.gaussian_averages import LARGEST_VARIANCE, mean_square
from meanfield.lattice import OUTSIDE, reversed_neighbours
from meanfield.theory.transport import Displacements, SitePairs, Transport

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LayerMoments:
    """c, K and V of one layer, per pair of sites in the representation of the transport that made them."""

    covariance: Array
    kernel: Array
    cross_channel: Array

    def overlap(self, channels: int) -> Array:
        """Second moment of the tangent kernel per pair of sites, averaged over pairs of channels."""
        return self.kernel**2 / channels + self.cross_channel


def forward_products(architecture: Sequential, transport: Transport, input_product: Array) -> Iterator[Array]:
    """Yield xx = E[sigma sigma'] below layers 1 .. N, from the input's per pair of sites."""
    return (product for product, _ in forward_moments(architecture, transport, input_product))


def forward_moments(
    architecture: Sequential, transport: Transport, input_product: Array
) -> Iterator[tuple[Array, Array]]:
    """Yield xx below and c of layers 1 .. N; a branch, having its own weights, adds to the covariance of its stream."""
    sigma, product = architecture.sigma, input_product
    sources = {layer.skip for layer in architecture.layers}
    streams = {0: white_input(architecture)[1]} if 0 in sources else {}
    for place, layer in enumerate(architecture.layers, start=1):
        covariance = layer.variance_factor * transport.diagonal(product) / sigma.gain
        if layer.skip is not None:
            covariance = streams.pop(layer.skip) + layer.multiplier**2 * covariance
        if place in sources:
            streams[place] = covariance
        yield product, covariance
        product = sigma.product(*transport.variances(covariance), covariance)


def layer_moments(architecture: Sequential, transport: Transport, input_product: Array) -> Iterator[LayerMoments]:
    """Yield c, K, V of layers 1 .. L from the input's E[sigma(x) sigma(x')] per pair of sites."""
    sigma = architecture.sigma
    state: LayerMoments | None = None
    products = forward_products(architecture, transport, input_product)
    for channels, product in zip(architecture.channels_by_layer[:-1], products, strict=True):
        carried = transport.diagonal(product)
        kernel = channels * architecture.taps * carried
        cross = np.zeros_like(product)
        if state is not None:
            gate, gate_square, both_on = gate_averages(sigma, transport, state.covariance)
            kernel += transport.diagonal(gate * state.kernel) / sigma.gain
            fluctuation = gate_square * state.kernel**2 / (sigma.gain**2 * channels)
            cross = transport.independent(both_on * state.cross_channel + fluctuation)
        state = LayerMoments(carried / sigma.gain, kernel, cross)
        yield state


def gate_energies(architecture: Sequential, transport: Transport, input_product: Array) -> list[Array]:
    """E[sigma'(z)^2] / q of layers 1 .. N at every site, at that layer's own variance; broadcastable to (B, S).

    Taken as 1 for homogeneous activations, as it is wherever anything arrives.
    """
    sigma = architecture.sigma
    if sigma.homogeneous:
        return [np.ones(())] * len(architecture.layers)
    found = []
    for _, covariance in forward_moments(architecture, transport, input_product):
        _, variance = transport.variances(covariance)
        found.append(sigma.gate_product(variance, variance, variance) / sigma.gain)
    return found


def label_weights(architecture: Sequential, gates: list[Array]) -> list[Array]:
    """Per layer 1 .. N, the diagonal over sites of E[J^T J], J the Jacobian from that layer to the outputs: (..., S).

    Only for a convolutional readout, where labels at different sites are independent and the matrix stays
    diagonal: w_l <- g_l (n_{l+1} / n_l) Pk^T w_{l+1} / k with ``gates`` g_1 .. g_N from `gate_energies`, and plus w_m
    where layer m skips from layer l. On evenly covered grids, in plain nets and for homogeneous activations n_l w_l is
    the same constant at every layer and site: the top-layer reduction (P0 Lemma 1).
    """
    joins = {layer.skip: place for place, layer in enumerate(architecture.layers, start=1)}
    conserved: dict[int, Array] = {}
    for place in range(len(architecture.layers), 0, -1):
        conserved[place] = gates[place - 1] * label_weight_above(architecture, place, conserved.get(place + 1))
        if place in joins:
            conserved[place] = conserved[place] + conserved[joins[place]]
    widths = architecture.channels_by_layer
    return [conserved[place] / widths[place] for place in range(1, len(widths))]


def label_weight_above(architecture: Sequential, place: int, above: Array | None) -> Array:
    """n_l w_l that arrives at layer ``place`` through the one weight matrix above it, before the layer's own gates.

    ``above`` is n w of the next layer, None where that is the readout.
    """
    table = reversed_neighbours(architecture.grid, architecture.kernel, architecture.padding)
    layer = Layer()
    if above is None:
        gamma = architecture.head_variance * architecture.head_fan_in * architecture.sigma.gain
        above = np.full(architecture.sites, gamma * architecture.outputs)
    else:
        layer = architecture.layers[place]
    arriving = np.where(table == OUTSIDE, 0.0, above[..., table]).sum(axis=-2) / architecture.taps
    return np.asarray(layer.variance_factor * layer.multiplier**2 * arriving)


def white_input(architecture: Sequential) -> tuple[Transport, Array]:
    """Covariance over pairs of sites of the default input: independent Gaussians over samples and sites."""
    variance = _input_variance(architecture)
    if architecture.padding == "circular":
        covariance = np.zeros((min(architecture.inputs, 2), architecture.sites))
        covariance[0, 0] = variance
        return Displacements(architecture), covariance
    count = architecture.inputs * architecture.sites
    return SitePairs(architecture), variance * np.eye(count).reshape((architecture.inputs, architecture.sites) * 2)


def _input_variance(architecture: Sequential) -> float:
    """Variance of the default input's Gaussians: 1, or at which E[sigma(x)^2] = q if inputs are normalised so."""
    sigma = architecture.sigma
    if sigma.homogeneous or not architecture.normalised_inputs:
        return 1.0

    def lack(variance: float) -> float:
        return mean_square(sigma.function, variance) - sigma.gain

    return float(brentq(lack, 0.0, LARGEST_VARIANCE, xtol=1e-14))


def white_product(architecture: Sequential) -> tuple[Transport, Array]:
    """E[sigma(x) sigma(x')] over pairs of sites of the default input."""
    transport, covariance = white_input(architecture)
    return transport, architecture.sigma.product(*transport.variances(covariance), covariance)


def given_product(architecture: Sequential, inputs: Array) -> tuple[Transport, Array]:
    """Pairs of sites for a given batch (B, C_0, *grid): the average over its channels of sigma(x) sigma(x')."""
    samples, channels = inputs.shape[:2]
    values = architecture.sigma.function(inputs).reshape(samples, channels, architecture.sites)
    return SitePairs(architecture), np.einsum("bip,cir->bpcr", values, values, optimize=True) / channels


def gate_averages(sigma: Activation, transport: Transport, covariance: Array) -> tuple[Array, Array, Array]:
    """g, h and w per pair of sites; w is 1 for homogeneous activations, except where pre-activations vanish."""
    here, there = transport.variances(covariance)
    gate = sigma.gate_product(here, there, covariance)
    same = sigma.gate_square_product is sigma.gate_product  # gates that are 0 or 1
    gate_square = gate if same else sigma.gate_square_product(here, there, covariance)
    both_on = sigma.gate_product(here, here, here) * sigma.gate_product(there, there, there)
    return gate, gate_square, both_on / sigma.gain**2
