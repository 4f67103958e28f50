"""The overlap energy F_l = |Theta^(l)|_F^2 / n_l^2: exactly from the tangent kernel, or in mean from one column.

n_l = channels x samples x sites. The exact road costs O(n_l^2) memory. The top-layer reduction costs one error
column: let a white error stand at z^(L); the layers above l turn it into an error at z^(l) that is white in mean
(ReLU gates are fair coins up to the sign of a weight row, and every site is visited equally often) and n_L / n_l
times as strong, so the mean square of the change it causes is F_l n_L. It needs evenly covered grids and gates that
know only the sign, those of homogeneous activations.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meanfield.nets.layered import Sequential
from meanfield.simulation.arrays.arrays import Arrays
from meanfield.simulation.old_passes import Forward, apply_layer, at_unit_ends, features_of, gated, site_gram
from meanfield.simulation.weights import WeightMatrix

Array = NDArray[np.float64]


def tangent_kernels(architecture: Sequential, weights: list[WeightMatrix], state: Forward):  # type: ignore[no-untyped-def]
    """Yield Theta^(1) .. Theta^(L) as (D, n_l, n_l), units ordered (channel, sample, site).

    Theta <- M Theta M^T + (X^T X) x identity over channels, M = W patches(sigma' .) the layer's linear part. Where a
    layer joins a stream z_j by z_j + a z, the kernel is Theta_jj + a (Theta_jb + Theta_bj) + a^2 Theta_bb, b standing
    for the branch.
    """
    kernels: list[Any] = [None]
    sources = {layer.skip for layer in architecture.layers}
    carry = partial(_carry_columns, architecture, state.arrays)
    cross: Array | None = None  # Theta_bj between the branch and the stream that it left
    for place, (weight, layer) in enumerate(zip(weights, architecture.layers, strict=False)):
        below, kernel = state.hidden[place], kernels[place]
        gram = site_gram(architecture, features_of(architecture, below, state.arrays), state.arrays)
        own = _identity_over_channels(gram, architecture.channels_by_layer[place + 1], state.arrays)
        if place in sources:
            cross = kernel
        if kernel is not None:
            half = carry(weight, below, kernel)
            own += carry(weight, below, half.swapaxes(1, 2))
        if cross is not None:
            cross = carry(weight, below, cross)
        own *= layer.multiplier**2
        if layer.skip is not None and cross is not None:
            own += kernels[layer.skip] + layer.multiplier * (cross + cross.swapaxes(1, 2))
            cross = None
        kernels.append(own)
        yield own


def dense_overlap_energy(architecture: Sequential, weights: list[WeightMatrix], state: Forward) -> Array:
    """F_1 .. F_L of every draw, exactly: (D, L)."""
    kernels = at_unit_ends(architecture, tangent_kernels(architecture, weights, state))
    arrays = state.arrays
    squares = (arrays.squared_norms(kernel.reshape(len(kernel), -1)) / kernel.shape[1] ** 2 for kernel in kernels)
    return arrays.xp.stack(list(squares), axis=1)


def unit_counts(architecture: Sequential) -> list[int]:
    """n_1 .. n_L at the ends of the depth units: channels x samples x sites."""
    channels = architecture.channels_by_layer
    return [channels[end] * architecture.inputs * architecture.sites for end in architecture.unit_ends]


def _identity_over_channels(gram: Array, channels: int, arrays: Arrays) -> Array:
    draws, pairs, _ = gram.shape
    kernel = arrays.xp.zeros((draws, channels, pairs, channels, pairs), dtype=arrays.precision)
    for channel in range(channels):
        kernel[:, channel, :, channel] = gram
    return kernel.reshape(draws, channels * pairs, channels * pairs)


def _carry_columns(
    architecture: Sequential, arrays: Arrays, weight: WeightMatrix, below: Array, kernel: Array
) -> Array:
    """M applied to every column of a kernel: (D, n_l, m) -> (D, n_{l+1}, m)."""
    draws, channels, samples, sites = below.shape
    columns = kernel.reshape(draws, channels, samples, sites, -1)
    columns = arrays.xp.moveaxis(columns, 4, 2).reshape(draws, channels, -1, sites)
    carried = apply_layer(architecture, weight, gated(architecture, below, columns, arrays), arrays)
    above = carried.shape[1]
    carried = arrays.xp.moveaxis(carried.reshape(draws, above, -1, samples, sites), 2, 4)
    return carried.reshape(draws, above * samples * sites, -1)
