"""Slow obvious twins: loops over every sample, site, channel and tap, written from the definitions alone."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np


@np.vectorize
def _normal_below(z):
    return 0.5 * math.erfc(-z / math.sqrt(2))


@np.vectorize
def _normal_density(z):
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def _logistic(z):
    """1 / (1 + e^-z), where e^-z is beyond any number, too."""
    return np.exp(-np.logaddexp(0, -z))


SIGMA = {
    "relu": lambda z: np.maximum(z, 0.0),
    "linear": lambda z: z,
    "gelu": lambda z: z * _normal_below(z),
    "tanh": lambda z: 2 / (1 + np.exp(-2 * z)) - 1,
    "silu": lambda z: z * _logistic(z),
    "erf": lambda z: 2 * _normal_below(np.sqrt(2) * z) - 1,
}
GATE = {
    "relu": lambda z: (z > 0).astype(float),
    "linear": np.ones_like,
    "gelu": lambda z: _normal_below(z) + z * _normal_density(z),
    "tanh": lambda z: 1 / np.cosh(z) ** 2,
    "silu": lambda z: _logistic(z) * (1 + z * _logistic(-z)),
    "erf": lambda z: 2 * np.sqrt(2) * _normal_density(np.sqrt(2) * z),
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
        for tap, site, source in visits(net.grid, net.kernel, net.padding):
            for below in range(features.shape[1]):
                out[(sample, channel, *site)] += weight[(channel, below, *tap)] * features[(sample, below, *source)]
    return out


@cache
def visits(grid, kernel, padding, dilation=1, stride=()):
    """Every tap, the site where it is applied, of the coarser grid of a stride, and the site it reads, site by site."""
    found = []
    stride = stride or (1,) * len(grid)
    for site in np.ndindex(*coarser(grid, stride)):
        stands = [step * place for step, place in zip(stride, site, strict=True)]
        for tap, step in taps_and_steps(kernel):
            source = reached(stands, [dilation * length for length in step], grid, padding)
            if source is not None:
                found.append((tap, site, source))
    return found


def coarser(grid, stride):
    """Lengths of the grid of the sites 0, s, 2 s, ... along every axis."""
    return tuple(len(range(0, length, step)) for length, step in zip(grid, stride or (1,) * len(grid), strict=True))


def stencil(weight, values, padding, dilation, stride=()):
    """W patches(X) of one sample: (C', C, *kernel), (C, *grid) -> (C', *grid')."""
    out = np.zeros((len(weight), *coarser(values.shape[1:], stride)))
    for tap, site, source in visits(values.shape[1:], weight.shape[2:], padding, dilation, stride):
        out[:, *site] += weight[:, :, *tap] @ values[:, *source]
    return out


def stencil_transpose(weight, errors, grid, padding, dilation, stride=()):
    """patches^T(W^T U) of one sample: (C', C, *kernel), (C', *grid') -> (C, *grid)."""
    out = np.zeros((weight.shape[1], *grid))
    for tap, site, source in visits(grid, weight.shape[2:], padding, dilation, stride):
        out[:, *source] += weight[:, :, *tap].T @ errors[:, *site]
    return out


def stencil_gradient(errors, values, kernel, padding, dilation, stride=()):
    """U patches(X)^T of one sample: (C', *grid'), (C, *grid) -> (C', C, *kernel)."""
    out = np.zeros((len(errors), len(values), *kernel))
    for tap, site, source in visits(values.shape[1:], kernel, padding, dilation, stride):
        out[:, :, *tap] += np.outer(errors[:, *site], values[:, *source])
    return out


def windowed(values, window):
    """Means over windows: (C, *grid) -> (C, *grid')."""
    grid = [length // size for length, size in zip(values.shape[1:], window, strict=True)]
    out = np.zeros((len(values), *grid))
    for site in np.ndindex(*grid):
        at = [range(size * place, size * (place + 1)) for size, place in zip(window, site, strict=True)]
        out[:, *site] = np.mean([values[:, *source] for source in itertools.product(*at)], axis=0)
    return out


def pooled(features):
    """Mean over the grid: (B, C)."""
    return features.reshape(*features.shape[:2], -1).mean(axis=2)


def flattened(features):
    """All sites of all channels, one channel after the other: (B, C S)."""
    return np.array([[number for channel in sample for number in channel.ravel()] for sample in features])


def units(net, weights):
    """Depth units as (their weights, the factor of their branch on a skip connection, or None if they are plain)."""
    if not hasattr(net, "stem"):
        return [([weight], None) for weight in weights]
    named = {"multiplier_sqrt": 0.5, "multiplier_linear": 1.0, "init": 0.0, "none": 0.0}
    factor = 1 / net.depth ** named.get(net.scaling, net.scaling)
    rest = list(weights)
    sizes = [(1, None)] * net.stem + [(net.block_depth, factor)] * net.depth + [(1, None)] * net.tail
    return [([rest.pop(0) for _ in range(size)], skip) for size, skip in sizes]


def outputs_and_hidden(net, weights, inputs):
    """z at the end of every depth unit, and the outputs."""
    hidden, below = [], inputs
    for unit, factor in units(net, weights[:-1]):
        branch = below
        for weight in unit:
            branch = convolve(net, weight, sigma(net.activation, branch))
        below = branch if factor is None else below + factor * branch
        hidden.append(below)
    features = sigma(net.activation, below)
    if net.is_pooled:
        return hidden, pooled(features) @ weights[-1].T
    if net.readout == "flatten":
        return hidden, flattened(features) @ weights[-1].T
    return hidden, convolve(net, weights[-1], features)


def loss(net, weights, inputs, target):
    """Mean over samples of |z_out - y|^2 / (2 M)."""
    _, out = outputs_and_hidden(net, weights, inputs)
    return np.square(out - target).sum() / (2 * net.output_units * net.inputs)


def directional(net, weights, inputs, step):
    """d z and d z_out along a direction in weight space, by the product rule, depth unit by depth unit."""
    moved, below, change = [], inputs, np.zeros_like(inputs)
    for (unit, factor), (deltas, _) in zip(units(net, weights[:-1]), units(net, step[:-1]), strict=True):
        branch, along = below, change
        for weight, delta in zip(unit, deltas, strict=True):
            carried = convolve(net, weight, gate(net.activation, branch) * along)
            along = carried + convolve(net, delta, sigma(net.activation, branch))
            branch = convolve(net, weight, sigma(net.activation, branch))
        below = branch if factor is None else below + factor * branch
        change = along if factor is None else change + factor * along
        moved.append(change)
    features, tangent = sigma(net.activation, below), gate(net.activation, below) * change
    if net.is_pooled:
        return moved, pooled(features) @ step[-1].T + pooled(tangent) @ weights[-1].T
    if net.readout == "flatten":
        return moved, flattened(features) @ step[-1].T + flattened(tangent) @ weights[-1].T
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
    change = itertools.repeat(0.0)
    for hidden, out in parameter_jacobians(net, weights, inputs):
        slope = (out * output_error).sum() / (net.output_units * net.inputs)
        change = [total - slope * z for total, z in zip(change, hidden, strict=False)]
    return change


def loop_streams(loop, matrices, start):
    """h_0 .. h_L of a loop, unit by unit."""
    streams = [start]
    for matrix in matrices:
        features = sigma(loop.activation, streams[-1])
        moved = [
            streams[-1][i] + loop.depth**-loop.alpha * sum(matrix[i, j] * features[j] for j in range(loop.width))
            for i in range(loop.width)
        ]
        streams.append(np.array(moved))
    return streams


def tangent_kernels(net, weights, inputs):
    """Theta^(1) .. Theta^(L), units ordered (channel, sample, site)."""
    kernels = itertools.repeat(0.0)
    for hidden, _ in parameter_jacobians(net, weights, inputs):
        rows = [z.reshape(*z.shape[:2], -1).swapaxes(0, 1).ravel() for z in hidden]
        kernels = [kernel + np.outer(row, row) for kernel, row in zip(kernels, rows, strict=False)]
    return kernels


def block_streams(net, weights, inputs):
    """h_0 .. h_L, the outputs, and what every matrix reads, of a net of blocks as Zheng et al. 2026 write it.

    Weights are given by name, inputs (d_0, B).
    """
    (first, inner, last), read = net.multipliers, {}

    def layer(name, x):
        read[f"W{name}"] = x
        z = weights[f"W{name}"] @ x + (weights[f"b{name}"] if net.biases else 0.0)
        return sigma(net.activation, z)

    streams = [first * layer("0", inputs)]
    for block in range(1, net.depth + 1):
        x = streams[-1]
        for place in range(1, net.block_depth + 1):
            x = layer(f"{block}.{place}", x)
        streams.append(streams[-1] + inner * x)
    read["readout"] = streams[-1]
    return streams, last * weights["readout"] @ streams[-1], read


def label_loss(output, labels):
    """Mean over samples of log(1 + exp(-y f)), or of -log p of the class where there are several outputs."""
    if len(output) == 1:
        return float(np.mean([np.logaddexp(0.0, -y * f) for y, f in zip(labels, output[0], strict=True)]))
    shares = np.exp(output) / np.exp(output).sum(axis=0)
    return float(-np.mean([np.log(shares[label, sample]) for sample, label in enumerate(labels)]))
