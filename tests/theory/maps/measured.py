"""Covariance and tangent kernel of a net's last value, drawn and predicted."""

from __future__ import annotations

import numpy as np

from meanfield.common.seeds import streams_of_draws
from meanfield.simulation.passes import GradientMoves, backward, forward, tangent
from meanfield.simulation.weights import draw_weights
from meanfield.theory.tangent_kernels import value_kernels

# Few, so that what all of them keep stays in the caches.
TOGETHER = 25
# Columns of signs that stand for all channels; means scatter a tenth more than those of whole kernels (softmax: a
# fifth).
PROBES = 8
# Pairs of points (sample, site) that are compared: the same and another site, the same and another sample.
PAIRS = ([0, 0, 0, 0, -1], [0, 1, -1, -2, -1])


def drawn(net, inputs, draws, seed):
    """(draws, 2, pairs): means over channels of the products of values, and of Theta within a channel."""
    columns = np.repeat(inputs.reshape(*inputs.shape[:2], -1).swapaxes(0, 1)[None], TOGETHER, axis=0)
    rng = np.random.default_rng(seed)
    pairs_by_chunk = []
    for start in range(0, draws, TOGETHER):
        streams = streams_of_draws(seed, "weights", range(start, start + TOGETHER))
        state = forward(net, draw_weights(net, streams, "dense"), columns)
        values = state.values[-1].reshape(*state.values[-1].shape[:2], -1)
        both = np.stack([values.swapaxes(1, 2) @ values / values.shape[1], _kernel(state, rng)], axis=1)
        pairs_by_chunk.append(both[:, :, *PAIRS])
    return np.concatenate(pairs_by_chunk)


def _kernel(state, rng):
    """The mean over channels of Theta within one, between the first and the last point and all: (D, points, points).

    Random signs v say it in expectation: v^T Theta v / channels.
    """
    draws, channels, *points = state.values[-1].shape
    probes, ends = rng.choice([-1.0, 1.0], (draws, channels, PROBES)), [0, -1]
    errors = np.zeros((draws, channels, len(ends), PROBES, np.prod(points)))
    for place, end in enumerate(ends):
        errors[:, :, place, :, end] = probes
    top = errors.reshape(draws, channels, -1, points[-1])
    units = len(state.net.units)
    *_, moved = tangent(state, GradientMoves(state, backward(state, top, units)), units, len(ends) * PROBES)
    kernel = np.zeros((draws, errors.shape[-1], errors.shape[-1]))
    kernel[:, ends] = np.einsum("dcv,dcevp->dep", probes, moved.reshape(errors.shape)) / (channels * PROBES)
    return kernel


def predicted(net, inputs=None):
    """(2, pairs), as `drawn`, and how large they are: (2, pairs)."""
    top = list(value_kernels(net, inputs))[len(net.units) - 1]
    points = top.kernel.shape[0] * top.kernel.shape[1]
    both = np.stack([top.covariance, top.kernel]).reshape(2, points, points)
    sizes = np.sqrt(np.einsum("qpp->qp", both))
    scale = sizes[:, :, None] * sizes[:, None, :]
    return both[:, *PAIRS], scale[:, *PAIRS]
