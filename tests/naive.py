"""Slow obvious twins: loops over every sample, site, channel and tap, written from the definitions alone."""

from __future__ import annotations

import itertools
import math

import numpy as np


@np.vectorize
def _normal_below(z):
    return 0.5 * math.erfc(-z / math.sqrt(2))


@np.vectorize
def _normal_density(z):
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


SIGMA = {
    "relu": lambda z: np.maximum(z, 0.0),
    "linear": lambda z: z,
    "gelu": lambda z: z * _normal_below(z),
    "tanh": lambda z: 2 / (1 + np.exp(-2 * z)) - 1,
}
GATE = {
    "relu": lambda z: (z > 0).astype(float),
    "linear": np.ones_like,
    "gelu": lambda z: _normal_below(z) + z * _normal_density(z),
    "tanh": lambda z: 1 / np.cosh(z) ** 2,
}


def sigma(name: str, z):
    return SIGMA[name](z)


def gate(name: str, z):
    return GATE[name](z)


def reached(site, step, grid, padding):
    """Site + step, wrapped, or None outside a zero-padded grid."""
    target = [p + d for p, d in zip(site, step, strict=True)]
    if padding == "circular":
        return tuple(t % length for t, length in zip(target, grid, strict=True))
    return tuple(target) if all(0 <= t < length for t, length in zip(target, grid, strict=True)) else None


def taps_and_steps(kernel):
    """Index of every tap with its offset."""
    return [(tap, [t - (k - 1) // 2 for t, k in zip(tap, kernel, strict=True)]) for tap in np.ndindex(*kernel)]


def convolve(net, weight, features):
    """sum over channels and taps, one sample at a time: (B, C, *grid) -> (B, C', *grid)."""
    out = np.zeros((features.shape[0], weight.shape[0], *net.grid))
    for sample, channel in itertools.product(range(features.shape[0]), range(weight.shape[0])):
        for site in np.ndindex(*net.grid):
            for tap, step in taps_and_steps(net.kernel):
                source = reached(site, step, net.grid, net.padding)
                if source is not None:
                    for below in range(features.shape[1]):
                        out[(sample, channel, *site)] += (
                            weight[(channel, below, *tap)] * features[(sample, below, *source)]
                        )
    return out


def pooled(features):
    """Mean over the grid: (B, C)."""
    return features.reshape(*features.shape[:2], -1).mean(axis=2)


def outputs_and_hidden(net, weights, inputs):
    """z^(1) .. z^(L) and the outputs."""
    hidden, below = [], inputs
    for weight in weights[:-1]:
        below = convolve(net, weight, sigma(net.activation, below))
        hidden.append(below)
    features = sigma(net.activation, below)
    if net.is_pooled:
        return hidden, pooled(features) @ weights[-1].T
    return hidden, convolve(net, weights[-1], features)


def loss(net, weights, inputs, target):
    """Mean over samples of |z_out - y|^2 / (2 M)."""
    _, out = outputs_and_hidden(net, weights, inputs)
    return np.square(out - target).sum() / (2 * net.output_units * net.inputs)


def directional(net, weights, inputs, step):
    """d z^(l) and d z_out along a direction in weight space, by the product rule, layer by layer."""
    hidden, _ = outputs_and_hidden(net, weights, inputs)
    moved, below, change = [], inputs, np.zeros_like(inputs)
    for weight, delta, z in zip(weights[:-1], step[:-1], hidden, strict=True):
        carried = convolve(net, weight, gate(net.activation, below) * change)
        change = carried + convolve(net, delta, sigma(net.activation, below))
        below = z
        moved.append(change)
    features, tangent = sigma(net.activation, below), gate(net.activation, below) * change
    if net.is_pooled:
        return moved, pooled(features) @ step[-1].T + pooled(tangent) @ weights[-1].T
    return moved, convolve(net, weights[-1], tangent) + convolve(net, step[-1], features)


def parameter_jacobians(net, weights, inputs):
    """For every hidden weight, the derivatives of z^(1) .. z^(L) and of the outputs: one loop per parameter."""
    for layer, weight in enumerate(weights[:-1]):
        for index in np.ndindex(*weight.shape):
            step = [np.zeros_like(w) for w in weights]
            step[layer][index] = 1.0
            yield directional(net, weights, inputs, step)


def one_step(net, weights, inputs, output_error):
    """Delta z^(l) = - sum over parameters of dz^(l)/dw dL/dw."""
    change = [0.0] * net.depth
    for hidden, out in parameter_jacobians(net, weights, inputs):
        slope = (out * output_error).sum() / (net.output_units * net.inputs)
        change = [total - slope * z for total, z in zip(change, hidden, strict=True)]
    return change


def tangent_kernels(net, weights, inputs):
    """Theta^(1) .. Theta^(L), units ordered (channel, sample, site)."""
    kernels = [0.0] * net.depth
    for hidden, _ in parameter_jacobians(net, weights, inputs):
        rows = [z.reshape(*z.shape[:2], -1).swapaxes(0, 1).ravel() for z in hidden]
        kernels = [kernel + np.outer(row, row) for kernel, row in zip(kernels, rows, strict=True)]
    return kernels
