"""Covariance and tangent kernel of a net's last value, drawn and predicted."""

from __future__ import annotations

import numpy as np

from meanfield.common.seeds import streams_of_draws
from meanfield.simulation.measures.tangent_kernel import tangent_kernels
from meanfield.simulation.passes import forward
from meanfield.simulation.weights.matrices import draw_weights
from meanfield.theory.maps.value_kernels import value_kernels

# Few, so that kernels of all of them stay in the caches.
TOGETHER = 5
# Pairs of points (sample, site) that are compared: the same and another site, the same and another sample.
PAIRS = ([0, 0, 0, 0, -1], [0, 1, -1, -2, -1])


def drawn(net, inputs, draws, seed):
    """(draws, 2, pairs): means over channels of the products of values, and of Theta within a channel."""
    columns = inputs.reshape(*inputs.shape[:2], -1).swapaxes(0, 1)[None]
    pairs_by_chunk = []
    for start in range(0, draws, TOGETHER):
        streams = streams_of_draws(seed, "weights", range(start, start + TOGETHER))
        state = forward(net, draw_weights(net, streams, "dense"), np.repeat(columns, TOGETHER, axis=0))
        *_, kernel = tangent_kernels(state)
        values = state.values[-1].reshape(*state.values[-1].shape[:2], -1)
        _, channels, points = values.shape
        own = np.einsum("dipir->dpr", kernel.reshape(-1, channels, points, channels, points))
        both = np.stack([values.swapaxes(1, 2) @ values, own], axis=1) / channels
        pairs_by_chunk.append(both[:, :, *PAIRS])
    return np.concatenate(pairs_by_chunk)


def predicted(net, inputs=None):
    """(2, pairs), as `drawn`, and how large they are: (2, pairs)."""
    top = list(value_kernels(net, inputs))[len(net.units) - 1]
    points = top.kernel.shape[0] * top.kernel.shape[1]
    both = np.stack([top.covariance, top.kernel]).reshape(2, points, points)
    sizes = np.sqrt(np.einsum("qpp->qp", both))
    scale = sizes[:, :, None] * sizes[:, None, :]
    return both[:, *PAIRS], scale[:, *PAIRS]
