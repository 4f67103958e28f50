"""Overlap energies and label terms in mean field, plain labels and the squared loss, of nets with skips or without."""

from __future__ import annotations

from itertools import islice
from math import inf, log

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.common.machine import progress
from meanfield.common.validation import takes
from meanfield.nets.families.layered import Sequential
from meanfield.theory.mean_field.inputs import input_products
from meanfield.theory.mean_field.layers import plain_terms
from meanfield.theory.mean_field.streams import stream_terms


@takes(Sequential)
def mean_field_profiles(
    net: Sequential, inputs: ArrayLike | None = None, *, correlation: float = 0.0, last: int | None = None
) -> tuple[Array, Array]:
    """F_l of depth units l = 1 .. ``last`` (or all), and the label term at every site: (last,) and (last, S).

    The mean over sites of the latter is B_l = n_l mean(F w) / M^2, for independent labels of variance 1 at all output
    sites of a convolutional readout. Inputs that are drawn have this ``correlation`` between samples.

    Source: docs/theory.md sections 6, 8.
    """
    transport, product = input_products(net, inputs, correlation)
    terms = (stream_terms if net.has_skips else plain_terms)(net, transport, product)
    walked = progress(islice(terms, last), net.depth if last is None else last, "layer")
    by_unit = [(transport.mean(pairs.overlap), transport.by_site(pairs.label)) for pairs in walked]
    overlap, label = map(np.array, zip(*by_unit, strict=True))
    channels = np.array(net.channels_by_layer)[[*net.unit_ends[:last]]]
    places, outputs = net.inputs * net.sites, net.output_units * net.inputs
    return overlap, (channels * places)[:, None] * label / outputs**2


def log_profiles(net: Sequential, inputs: Array | None) -> tuple[Array, Array]:
    """ln of F_l, (L,), and of the label term at every site, (L, S).

    Where activations are homogeneous, weights of f times the fan-in rule's variance change both by powers of f alone
    (`powers_of_variance`), so that these are finite at any depth.

    Raises:
        OverflowError: other terms that leave the range of floats.
    """
    by_powers = net.sigma.homogeneous and net.weight_variance is not None
    with np.errstate(over="ignore", invalid="ignore"):  # seen below
        overlap, profile = mean_field_profiles(net.replace(weight_variance=None) if by_powers else net, inputs)
    require_floats(net, overlap, profile.mean(axis=1))
    with np.errstate(divide="ignore"):  # at sites that nothing reaches
        overlap, profile = np.log(overlap), np.log(profile)
    if by_powers:
        of_overlap, of_label = powers_of_variance(net, inputs)
        overlap += of_overlap * log(net.variance_factor)
        profile += of_label[:, None] * log(net.variance_factor)
    return overlap, profile


def powers_of_variance(net: Sequential, inputs: Array | None) -> tuple[Array, Array]:
    """The powers of f in F_l and in the label term of a plain net with homogeneous activations: (L,) each.

    A kernel is quadratic in the features below, which go as f^(l - 1), and F_l is its square; labels come through the
    L - l matrices above and, if it follows the variance, the readout. Inputs that give z^(1) variance 1 go as 1/f.
    """
    layer = np.arange(1, net.depth + 1, dtype=np.float64)
    overlap = 2.0 * (layer - 1 - (inputs is None and net.input_law == "normalised"))
    return overlap, overlap + net.depth - layer + (net.head == "he")


def require_floats(net: Sequential, *energies: Array) -> None:
    """Raise OverflowError unless all energies are positive and finite: others have left the range of floats."""
    if not all(np.all((energy > 0) & (energy < inf)) for energy in energies):
        raise OverflowError(
            f"the mean field of this {type(net).__name__} of depth {net.depth} is outside what a float holds, as it "
            "grows or decays exponentially with depth: lower the depth, or scale branches or weights"
        )
