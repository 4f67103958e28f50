"""Mean field: second moments of the tangent kernel at leading order in 1/channels, for any sites and padding.

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
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from meanfield.common.arrays import Array
from meanfield.common.gaussian_averages import LARGEST_VARIANCE, mean_square
from meanfield.common.machine_memory import NUMBER_BYTES, require_bytes
from meanfield.common.validation import require_array
from meanfield.nets.activations import Activation
from meanfield.nets.families.layered import INPUT_LAYOUT, Sequential
from meanfield.nets.lattice import OUTSIDE, reversed_neighbours
from meanfield.nets.layers import Layer, joins
from meanfield.theory.mean_field.transport import Displacements, SitePairs, Transport

# Square arrays over pairs of sites that the recursion holds at once.
SITE_PAIR_ARRAYS = 12


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
    fan_ins = zip(architecture.layers, architecture.channels_by_layer, strict=False)
    for (layer, channels), product in zip(fan_ins, products, strict=True):
        factor = layer.variance_factor
        carried = transport.diagonal(product)
        kernel = channels * architecture.taps * carried
        cross = np.zeros_like(product)
        if state is not None:
            gate, gate_square, both_on = gate_averages(sigma, transport, state.covariance)
            kernel += factor * transport.diagonal(gate * state.kernel) / sigma.gain
            fluctuation = gate_square * state.kernel**2 / (sigma.gain**2 * channels)
            cross = factor**2 * transport.independent(both_on * state.cross_channel + fluctuation)
        state = LayerMoments(factor * carried / sigma.gain, kernel, cross)
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
        _, there = transport.variances(covariance)
        variance = there.reshape(there.shape[-2:])
        found.append(sigma.gate_product(variance, variance, variance) / sigma.gain)
    return found


def label_weights(architecture: Sequential, gates: list[Array], errors: Array | float = 1.0) -> list[Array]:
    """Per layer 1 .. N, the diagonal over sites of E[J^T J], J the Jacobian from that layer to the outputs: (..., S).

    Only for a convolutional readout, where labels at different sites are independent and the matrix stays
    diagonal: w_l <- g_l (n_{l+1} / n_l) Pk^T w_{l+1} / k with ``gates`` g_1 .. g_N from `gate_energies`, and plus w_m
    where layer m skips from layer l. On evenly covered grids, in plain nets and for homogeneous activations n_l w_l is
    the same constant at every layer and site: the top-layer reduction (P0 Lemma 1). With ``errors``, the second moment
    of what stands at every output site, it is that of J^T times them.
    """
    joined_by = joins(architecture.layers)
    conserved: dict[int, Array] = {}
    for place in range(len(architecture.layers), 0, -1):
        conserved[place] = gates[place - 1] * label_weight_above(architecture, place, conserved.get(place + 1), errors)
        if place in joined_by:
            conserved[place] = conserved[place] + conserved[joined_by[place]]
    widths = architecture.channels_by_layer
    return [conserved[place] / widths[place] for place in range(1, len(widths))]


def label_weight_above(architecture: Sequential, place: int, above: Array | None, errors: Array | float = 1.0) -> Array:
    """n_l w_l that arrives at layer ``place`` through the one weight matrix above it, before the layer's own gates.

    ``above`` is n w of the next layer, None where that is the readout, with errors of this second moment.
    """
    table = reversed_neighbours(architecture.grid, architecture.kernel, architecture.padding)
    layer = Layer()
    if above is None:
        gamma = architecture.head_variance * architecture.head_fan_in * architecture.sigma.gain
        above = np.full(architecture.sites, gamma * architecture.outputs) * errors
    else:
        layer = architecture.layers[place]
    arriving = np.where(table == OUTSIDE, 0.0, above[..., table]).sum(axis=-2) / architecture.taps
    return np.asarray(layer.variance_factor * layer.multiplier**2 * arriving)


def white_input(architecture: Sequential, correlation: float = 0.0) -> tuple[Transport, Array]:
    """Covariance over pairs of sites of the default input: white over sites, samples of this correlation."""
    variance = input_variance(architecture)
    if architecture.padding == "circular":
        covariance = np.zeros((min(architecture.inputs, 2), architecture.sites))
        covariance[:, 0] = np.array([1.0, correlation])[: len(covariance)] * variance
        return Displacements(architecture), covariance
    samples = (1 - correlation) * np.eye(architecture.inputs) + correlation
    shape = (architecture.inputs, architecture.sites) * 2
    pairs = np.kron(samples, np.eye(architecture.sites)).reshape(shape)
    return SitePairs(architecture), np.asarray(variance * pairs, dtype=float)


def input_variance(architecture: Sequential) -> float:
    """Variance of the default input's Gaussians: 1, or what gives z^(1) variance 1 if inputs are normalised so."""
    sigma = architecture.sigma
    if architecture.input_law != "normalised":
        return 1.0
    if sigma.homogeneous:
        return 1.0 / architecture.variance_factor

    def lack(variance: float) -> float:
        return mean_square(sigma.function, variance) - architecture.input_energy

    return float(brentq(lack, 0.0, LARGEST_VARIANCE, xtol=1e-14))


def white_product(architecture: Sequential, correlation: float = 0.0) -> tuple[Transport, Array]:
    """E[sigma(x) sigma(x')] over pairs of sites of the default input."""
    transport, covariance = white_input(architecture, correlation)
    return transport, architecture.sigma.product(*transport.variances(covariance), covariance)


def given_product(architecture: Sequential, inputs: Array) -> tuple[Transport, Array]:
    """Pairs of sites for a given batch (B, C_0, *grid): the average over its channels of sigma(x) sigma(x')."""
    samples, channels = inputs.shape[:2]
    values = architecture.sigma.function(inputs).reshape(samples, channels, architecture.sites)
    return SitePairs(architecture), np.einsum("bip,cir->bpcr", values, values, optimize=True) / channels


def input_products(
    architecture: Sequential, inputs: ArrayLike | None, correlation: float = 0.0
) -> tuple[Transport, Array]:
    """E[sigma(x) sigma(x')] over pairs of sites of the input, in the leanest representation that serves it.

    Samples have this ``correlation``, if inputs are not given.
    """
    if inputs is not None or architecture.padding != "circular":
        pairs = (architecture.inputs * architecture.sites) ** 2
        needed = SITE_PAIR_ARRAYS * NUMBER_BYTES * pairs
        require_bytes(needed, "the mean field over all pairs of sites", "grid or samples")
    if inputs is None:
        return white_product(architecture, correlation)
    batch = require_array("inputs", inputs, architecture.input_shape, INPUT_LAYOUT)
    if any(layer.skip == 0 for layer in architecture.layers):
        raise ValueError("a stream that starts from given values is not Gaussian; put a layer before it: stem=1")
    return given_product(architecture, batch)


def gate_averages(sigma: Activation, transport: Transport, covariance: Array) -> tuple[Array, Array, Array]:
    """g, h and w per pair of sites; w is 1 for homogeneous activations, except where pre-activations vanish."""
    here, there = transport.variances(covariance)
    gate = sigma.gate_product(here, there, covariance)
    same = sigma.gate_square_product is sigma.gate_product  # gates that are 0 or 1
    gate_square = gate if same else sigma.gate_square_product(here, there, covariance)
    both_on = sigma.gate_product(here, here, here) * sigma.gate_product(there, there, there)
    return gate, gate_square, both_on / sigma.gain**2


def overlap_and_label_terms(
    architecture: Sequential, inputs: ArrayLike | None, last: int, correlation: float = 0.0
) -> tuple[Array, Array]:
    """F_l and, for independent labels of variance 1 at all output sites, B_l = n_l mean(F w) / M^2; l = 1 .. last."""
    overlap, profiles = overlap_and_label_profiles(architecture, inputs, last, correlation)
    return overlap, profiles.mean(axis=1)


def overlap_and_label_profiles(
    architecture: Sequential, inputs: ArrayLike | None, last: int, correlation: float = 0.0
) -> tuple[Array, Array]:
    """F_l, and the label term at every site, whose mean over sites is B_l: (last,) and (last, S)."""
    transport, product = input_products(architecture, inputs, correlation)
    places = architecture.inputs * architecture.sites
    outputs = architecture.output_units * architecture.inputs
    overlap, label = [], []
    layers = layer_moments(architecture, transport, product)
    gates = gate_energies(architecture, transport, product)
    weights = label_weights(architecture, gates)
    for channels, weight, moments in zip(
        architecture.channels_by_layer[1 : last + 1], weights[:last], islice(layers, last), strict=True
    ):
        pairs = moments.overlap(channels)
        overlap.append(transport.mean(pairs))
        label.append(channels * places * transport.by_site(pairs, weight) / outputs**2)
    return np.array(overlap), np.array(label)
