"""The three passes over one layer map: forward, backward, tangent.

Notation (THEORY section 2; P0 eqs. 2, 3, 7), with D draws, B samples, r error columns and S sites:

    forward    z_l = [z_j +] a_l W_l X_l,  X_l = patches(sigma(z_{l-1}))
    backward   U_{l-1} = sigma'(z_{l-1}) patches^T(W_l^T a_l U_l) [+ U_m of the layer m that skips from l - 1]
    tangent    T_l = [T_j +] a_l (W_l patches(sigma'(z_{l-1}) T_{l-1}) + a_l U_l (X_l^T X_l))

with U_l = dL/dz_l and in brackets what a skip connection from layer j adds, so that one gradient step of rate eta
changes z^(l) by -eta T_l, exactly to first order in eta. In plain nets there are no skips and a_l = 1.

Arrays: pre-activations (D, C, B, S); errors and tangents (D, C, r B, S), columns outermost; weights as matrices
(D, C', C k) behind the interface of `meanfield.simulation.weights`, the readout last. All are of one library and
precision, those of `meanfield.simulation.arrays.Arrays`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meanfield.nets.lattice import neighbours, reversed_neighbours
from meanfield.nets.layered import Sequential
from meanfield.nets.layers import Layer, joins
from meanfield.simulation.arrays.arrays import NUMPY, Arrays
from meanfield.simulation.weights import WeightMatrix

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Forward:
    """Pre-activations z^(0) .. z^(N), each (D, C_l, B, S), and the outputs (D, outputs, B, output sites)."""

    hidden: list[Array]
    output: Array
    arrays: Arrays = NUMPY


def forward(architecture: Sequential, weights: list[WeightMatrix], inputs: Array, arrays: Arrays = NUMPY) -> Forward:
    """Send inputs (D, C_0, B, S) through W^(1) .. W^(N) and the readout."""
    hidden = [inputs]
    for weight, layer in zip(weights, architecture.layers, strict=False):
        branch = apply_layer(architecture, weight, features_of(architecture, hidden[-1], arrays), arrays)
        hidden.append(joined(layer, branch, hidden))
    features = features_of(architecture, hidden[-1], arrays)
    if architecture.is_pooled:
        output = weights[-1].times(features.mean(axis=3))[..., None]
    else:
        output = apply_layer(architecture, weights[-1], features, arrays)
    return Forward(hidden, output, arrays)


def joined(layer: Layer, branch: Array, earlier: Sequence[Array | None] | Mapping[int, Array]) -> Array:
    """z_skip + a branch, in place; what is skipped from is the ``earlier`` value of that layer, None if it is 0."""
    if layer.multiplier != 1.0:
        branch *= layer.multiplier
    skipped = None if layer.skip is None else earlier[layer.skip]
    if skipped is not None:
        branch += skipped
    return branch


def through_readout(
    architecture: Sequential, weights: list[WeightMatrix], state: Forward, output_gradient: Array
) -> Array:
    """dL/dz^(L) = U_L from loss gradients (D, outputs, r B, output sites) at the outputs."""
    if architecture.is_pooled:
        shared = weights[-1].transpose_times(output_gradient[..., 0]) / architecture.sites
        arriving = state.arrays.xp.repeat(shared[..., None], architecture.sites, axis=3)
    else:
        arriving = _apply_transpose(architecture, weights[-1], output_gradient, state.arrays)
    return gated(architecture, state.hidden[-1], arriving, state.arrays)


def backward(
    architecture: Sequential, weights: list[WeightMatrix], state: Forward, error: Array, layer: int
) -> list[Array]:
    """Errors U_1 .. U_layer from the error (D, C, r B, S) at that layer, whose loss sees no layer above."""
    errors = {layer: error}
    joined_by = joins(architecture.layers[:layer])
    for below in range(layer - 1, 0, -1):
        arriving = _apply_transpose(architecture, weights[below], errors[below + 1], state.arrays)
        errors[below] = gated(architecture, state.hidden[below], arriving, state.arrays, out=arriving)
        if (multiplier := architecture.layers[below].multiplier) != 1.0:
            errors[below] *= multiplier
        if below in joined_by:
            errors[below] += errors[joined_by[below]]
    return [errors[place] for place in range(1, layer + 1)]


def tangent(
    architecture: Sequential, weights: list[WeightMatrix], state: Forward, errors: list[Array]
) -> Iterator[Array]:
    """Yield T_1, T_2, ... as far as there are errors, one at a time, so that who only sums need not hold them all.

    Once T_l is out, W_l, U_l and z^(l-1) are not looked at again, so the caller may drop them from the lists.
    """
    arrays, sources = state.arrays, {layer.skip for layer in architecture.layers}
    moved: list[Array | None] = [None]  # T_0, and those that a skip may still ask for
    for weight, layer, error, below in zip(weights, architecture.layers, errors, state.hidden, strict=False):
        change = _own_update(architecture, error, features_of(architecture, below, arrays), arrays)
        if layer.multiplier != 1.0:
            change *= layer.multiplier
        carried = moved[-1]
        if carried is not None:
            change += apply_layer(architecture, weight, gated(architecture, below, carried, arrays), arrays)
        if len(moved) - 1 not in sources:
            moved[-1] = None
        change = joined(layer, change, moved)
        moved.append(change)
        yield change


def at_unit_ends(architecture: Sequential, by_layer: Iterable[Array]) -> Iterator[Array]:
    """Of values by layer 1, 2, ..., those at the ends of the depth units."""
    return (value for layer, value in enumerate(by_layer, start=1) if layer in architecture.unit_ends)


def features_of(architecture: Sequential, pre_activation: Array, arrays: Arrays = NUMPY) -> Array:
    """sigma(z)."""
    return architecture.sigma.function(pre_activation, arrays.pointwise)


def apply_layer(architecture: Sequential, weight: WeightMatrix, values: Array, arrays: Arrays = NUMPY) -> Array:
    """W patches(values): (D, C, R, S) -> (D, C', R, S), linear in the values."""
    draws, _, rows, sites = values.shape
    return weight.times(_patches(architecture, values, arrays)).reshape(draws, -1, rows, sites)


def gated(
    architecture: Sequential, pre_activation: Array, columns: Array, arrays: Arrays = NUMPY, out: Array | None = None
) -> Array:
    """sigma'(z) times every column: z (D, C, B, S), columns (D, C, r B, S); written to ``out``, if given."""
    draws, channels, samples, sites = pre_activation.shape
    by_sample = (draws, channels, -1, samples, sites)
    gate = architecture.sigma.gate(pre_activation, arrays.pointwise)[:, :, None]
    target = None if out is None else out.reshape(by_sample)
    return arrays.xp.multiply(gate, columns.reshape(by_sample), out=target).reshape(columns.shape)


def site_gram(architecture: Sequential, features: Array, arrays: Arrays = NUMPY) -> Array:
    """X^T X over all site pairs of the batch, (D, B S, B S), without forming X = patches(features)."""
    draws, channels, samples, sites = features.shape
    flat = features.reshape(draws, channels, samples * sites)
    # Of a matrix and its own transpose NumPy makes one half, and mirrors it in up to four times the product's time.
    gram = flat.swapaxes(1, 2) @ flat.copy()
    if architecture.taps == 1:
        return gram
    table = neighbours(architecture.grid, architecture.kernel, architecture.padding)
    return arrays.sum_over_shifts(gram, table, samples)


def _own_update(architecture: Sequential, error: Array, features: Array, arrays: Arrays = NUMPY) -> Array:
    """U (X^T X), the change by the layer's own weights: as U times the Gram matrix or as (U X^T) X, the cheaper."""
    places = architecture.inputs * architecture.sites
    if places == 1:  # the Gram matrix is a number, and errors may lie in memory as they like
        return error * site_gram(architecture, features, arrays)[..., None]
    rows_of_error = error.reshape(len(error), -1, places)
    gram, explicit = own_update_operations(architecture, features.shape[1], rows_of_error.shape[1])
    if gram <= explicit:
        update = rows_of_error @ site_gram(architecture, features, arrays)
    else:
        patches = _patches(architecture, features, arrays)
        update = (rows_of_error @ patches.swapaxes(1, 2)) @ patches
    return update.reshape(error.shape)


def own_update_operations(architecture: Sequential, channels: int, rows: int) -> tuple[int, int]:
    """Operation counts of U (X^T X) and of (U X^T) X, for U with ``rows`` rows and X from ``channels`` channels."""
    places = architecture.inputs * architecture.sites
    gram = (2 * channels + architecture.taps + 2 * rows) * places**2
    explicit = 4 * rows * channels * architecture.taps * places
    return gram, explicit


def _patches(architecture: Sequential, values: Array, arrays: Arrays = NUMPY) -> Array:
    """(D, C, R, S) -> (D, C k, R S)."""
    if architecture.taps == 1:
        return values.reshape(*values.shape[:2], -1)
    return arrays.gather(values, neighbours(architecture.grid, architecture.kernel, architecture.padding))


def _apply_transpose(architecture: Sequential, weight: WeightMatrix, errors: Array, arrays: Arrays = NUMPY) -> Array:
    """patches^T(W^T errors): (D, C', R, S) -> (D, C, R, S), the adjoint of `apply_layer`."""
    draws, channels, rows, sites = errors.shape
    pulled = weight.transpose_times(errors.reshape(draws, channels, rows * sites))
    if architecture.taps == 1:
        return pulled.reshape(draws, -1, rows, sites)
    table = reversed_neighbours(architecture.grid, architecture.kernel, architecture.padding)
    return arrays.gather_transpose(pulled, table, rows)
