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
from meanfield.architectures import Sequential
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
    """Yield xx = E[sigma sigma'] below layers 1 .. L, from the input's per pair of sites."""
    sigma = architecture.sigma
    product = input_product
    for _ in range(architecture.depth):
        yield product
        covariance = transport.diagonal(product) / sigma.gain
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
            gate, gate_square, both_on = _gate_averages(sigma, transport, state.covariance)
            kernel += transport.diagonal(gate * state.kernel) / sigma.gain
            fluctuation = gate_square * state.kernel**2 / (sigma.gain**2 * channels)
            cross = transport.independent(both_on * state.cross_channel + fluctuation)
        state = LayerMoments(carried / sigma.gain, kernel, cross)
        yield state


def gate_energies(architecture: Sequential, transport: Transport, input_product: Array) -> list[Array]:
    """E[sigma'(z)^2] / q of layers 1 .. L at every site, at that layer's own variance; broadcastable to (B, S).

    Taken as 1 for homogeneous activations, as it is wherever anything arrives.
    """
    sigma = architecture.sigma
    if sigma.homogeneous:
        return [np.ones(())] * architecture.depth
    found = []
    for product in forward_products(architecture, transport, input_product):
        _, variance = transport.variances(transport.diagonal(product) / sigma.gain)
        found.append(sigma.gate_product(variance, variance, variance) / sigma.gain)
    return found


def label_weights(architecture: Sequential, gates: list[Array]) -> list[Array]:
    """Per layer 1 .. L, the diagonal over sites of E[J^T J], J the Jacobian from that layer to the outputs: (..., S).

    Only for a convolutional readout, where labels at different sites are independent and the matrix stays
    diagonal: w_l <- g_l (n_{l+1} / n_l) Pk^T w_{l+1} / k with ``gates`` g_1 .. g_L from `gate_energies`. On evenly
    covered grids and for homogeneous activations n_l w_l is the same constant at every layer and site: the top-layer
    reduction (P0 Lemma 1).
    """
    taps, channels = architecture.taps, architecture.channels_by_layer[1:]
    table = reversed_neighbours(architecture.grid, architecture.kernel, architecture.padding)
    gamma = architecture.head_variance * architecture.head_fan_in * architecture.sigma.gain
    conserved = np.full(architecture.sites, gamma * architecture.outputs)
    weights = []
    for width, gate in zip(reversed(channels), reversed(gates), strict=True):
        arriving = np.where(table == OUTSIDE, 0.0, conserved[..., table]).sum(axis=-2) / taps
        conserved = gate * arriving
        weights.append(conserved / width)
    return weights[::-1]


def white_input(architecture: Sequential) -> tuple[Transport, Array]:
    """Covariance over pairs of sites of the default input: independent Gaussians over samples and sites."""
    variance = _input_variance(architecture)
    if architecture.padding == "circular":
        covariance = np.zeros((2, architecture.sites))
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


def _gate_averages(sigma: Activation, transport: Transport, covariance: Array) -> tuple[Array, Array, Array]:
    """g, h and w per pair of sites; w is 1 for homogeneous activations, except where pre-activations vanish."""
    here, there = transport.variances(covariance)
    gate = sigma.gate_product(here, there, covariance)
    gate_square = sigma.gate_square_product(here, there, covariance)
    both_on = sigma.gate_product(here, here, here) * sigma.gate_product(there, there, there)
    return gate, gate_square, both_on / sigma.gain**2
