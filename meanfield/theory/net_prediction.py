"""What `predict` says of a net at leading order in 1/channels, with plain labels and the squared loss."""

from __future__ import annotations

from dataclasses import replace
from math import inf, log

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.nets.families.layered import Sequential
from meanfield.theory.mean_field import label_term as mean_field
from meanfield.theory.mean_field import streams as stream_mean_field


def log_terms(architecture: Sequential, inputs: Array | None) -> tuple[Array, Array]:
    """ln of F_l, (L,), and of the label term at every site, (L, S).

    Where activations are homogeneous, weights of f times the fan-in rule's variance change both by powers of f alone
    (`powers_of_variance`), so that these are finite at any depth.

    Raises:
        OverflowError: other terms that leave the range of floats.
    """
    if not architecture.sigma.homogeneous or architecture.weight_variance is None:
        return _log_terms(architecture, inputs)
    rule = replace(architecture, weight_variance=None)  # type: ignore[type-var]
    overlap, profile = _log_terms(rule, inputs)
    powers, log_factor = powers_of_variance(architecture, inputs), log(architecture.variance_factor)
    overlap += powers[0] * log_factor
    profile += powers[1][:, None] * log_factor
    return overlap, profile


def powers_of_variance(architecture: Sequential, inputs: Array | None) -> tuple[Array, Array]:
    """The powers of f in F_l and in the label term of a plain net with homogeneous activations: (L,) each.

    A kernel is quadratic in the features below, which go as f^(l - 1), and F_l is its square; labels come through the
    L - l matrices above and, if it follows the variance, the readout. Inputs that give z^(1) variance 1 go as 1/f.
    """
    layer = np.arange(1, architecture.depth + 1, dtype=np.float64)
    overlap = 2.0 * (layer - 1 - (inputs is None and architecture.input_law == "normalised"))
    return overlap, overlap + architecture.depth - layer + (architecture.head == "he")


def require_floats(architecture: Sequential, *energies: Array) -> None:
    """Raise OverflowError unless all energies are positive and finite: others have left the range of floats."""
    if not all(np.all((one > 0) & (one < inf)) for one in energies):
        raise OverflowError(
            f"the mean field of this {type(architecture).__name__} of depth {architecture.depth} is outside what a "
            "float holds, as it grows or decays exponentially with depth: lower the depth, or scale branches or weights"
        )


def mean_field_profiles(architecture: Sequential, inputs: ArrayLike | None = None) -> tuple[Array, Array]:
    """F_l of every depth unit, and the label term at every site under a convolutional readout: (L,) and (L, S)."""
    if architecture.has_skips:
        return _stream_terms(architecture, inputs)
    return mean_field.overlap_and_label_profiles(architecture, inputs, len(architecture.layers))


def _log_terms(architecture: Sequential, inputs: Array | None) -> tuple[Array, Array]:
    with np.errstate(over="ignore", invalid="ignore"):  # seen below
        overlap, profile = mean_field_profiles(architecture, inputs)
    require_floats(architecture, overlap, profile.mean(axis=1))
    with np.errstate(divide="ignore"):  # at sites that nothing reaches
        return np.asarray(np.log(overlap)), np.asarray(np.log(profile))


def _stream_terms(architecture: Sequential, inputs: ArrayLike | None) -> tuple[Array, Array]:
    """F_l and the label term by site for every depth unit of a net with skips; labels stand at a pair's second site."""
    transport, product = mean_field.input_products(architecture, inputs)
    units = (
        architecture.inputs * architecture.sites * np.array(architecture.channels_by_layer)[[*architecture.unit_ends]]
    )
    outputs = architecture.output_units * architecture.inputs
    terms = stream_mean_field.terms(architecture, transport, product)
    found = [(transport.mean(pairs.overlap), transport.by_site(pairs.label)) for pairs in terms]
    overlap, label = map(np.array, zip(*found, strict=True))
    return overlap, units[:, None] * label / outputs**2
