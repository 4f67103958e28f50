"""Where the mean field starts: averages over pairs of sites of the input, drawn by a net's own law or given."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.common.gaussian_averages import LARGEST_VARIANCE, mean_square
from meanfield.common.machine import NUMBER_BYTES, require_bytes, seconds_refusal
from meanfield.common.validation import require_array
from meanfield.nets.families.layered import INPUT_LAYOUT, Sequential
from meanfield.theory.mean_field.transport import Displacements, SitePairs, Transport

# Square arrays over pairs of sites that the recursion holds at once.
SITE_PAIR_ARRAYS = 12
# Of a processor, for a pair of sites at a layer.
PAIR_SECONDS = 1.2e-6


def input_products(net: Sequential, inputs: ArrayLike | None, correlation: float = 0.0) -> tuple[Transport, Array]:
    """E[sigma(x) sigma(x')] over pairs of sites of the input, in the leanest representation that serves it.

    Inputs that are drawn have this ``correlation`` between samples.
    """
    if inputs is not None or net.padding != "circular":
        pairs = (net.inputs * net.sites) ** 2
        needed = SITE_PAIR_ARRAYS * NUMBER_BYTES * pairs
        require_bytes(needed, "the mean field over all pairs of sites", "grid or samples")
        remedy = "lower grid, samples or depth, or take circular padding and the net's own inputs, which need no pairs"
        what = f"the mean field over {pairs:,} pairs of sites at {net.depth:,} layers"
        if why := seconds_refusal(PAIR_SECONDS * pairs * net.depth, what, remedy):
            raise ValueError(why)
    else:
        kinds = min(net.inputs, 2)
        numbers = (kinds * (SITE_PAIR_ARRAYS + net.taps) + 2 * net.taps) * net.sites
        require_bytes(NUMBER_BYTES * numbers, "the mean field over all displacements", "grid")
    if inputs is None:
        return white_product(net, correlation)
    batch = require_array("inputs", inputs, net.input_shape, INPUT_LAYOUT)
    if any(layer.skip == 0 for layer in net.layers):
        raise ValueError("a stream that starts from given values is not Gaussian; put a layer before it: stem=1")
    return given_product(net, batch)


def given_product(net: Sequential, inputs: Array) -> tuple[Transport, Array]:
    """The average of sigma(x) sigma(x') over the channels of a given batch (B, C_0, *grid)."""
    samples, channels = inputs.shape[:2]
    values = net.sigma.function(inputs).reshape(samples, channels, net.sites)
    return SitePairs(net), np.einsum("bip,cir->bpcr", values, values, optimize=True) / channels


def white_product(net: Sequential, correlation: float = 0.0) -> tuple[Transport, Array]:
    """E[sigma(x) sigma(x')] of the default input."""
    transport, covariance = white_input(net, correlation)
    return transport, net.sigma.product(*transport.variances(covariance), covariance)


def white_input(net: Sequential, correlation: float = 0.0) -> tuple[Transport, Array]:
    """Covariance of the default input: white over sites, with this correlation between samples."""
    variance = input_variance(net)
    if net.padding == "circular":
        covariance = np.zeros((min(net.inputs, 2), net.sites))
        covariance[:, 0] = np.array([1.0, correlation])[: len(covariance)] * variance
        return Displacements(net), covariance
    samples = (1 - correlation) * np.eye(net.inputs) + correlation
    pairs = np.kron(samples, np.eye(net.sites)).reshape((net.inputs, net.sites) * 2)
    return SitePairs(net), np.asarray(variance * pairs, dtype=float)


def input_variance(net: Sequential) -> float:
    """Variance of the default input's Gaussians: 1, or what gives z^(1) variance 1 if inputs are normalised so."""
    sigma = net.sigma
    if net.input_law != "normalised":
        return 1.0
    if sigma.homogeneous:
        return 1.0 / net.variance_factor
    from scipy.optimize import brentq  # a tenth of a second of import, for smooth gates alone

    def lack(variance: float) -> float:
        return mean_square(sigma.function, variance) - net.input_energy

    return float(brentq(lack, 0.0, LARGEST_VARIANCE, xtol=1e-14))
