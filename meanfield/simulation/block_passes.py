"""Forward and backward pass of a `BlockNet`, and the gradient of every matrix by its factors."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from meanfield.nets.block_net import BlockNet
from meanfield.optimizers.base import Gradient
from meanfield.optimizers.factored import Factored
from meanfield.seeds import stream

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Parameters:
    """Matrices W_0, W_1^(1) .. W_L^(k), W_{L+1}, and as columns the biases b_0, b_1^(1) .. b_L^(k), if any."""

    matrices: list[Array]
    biases: list[Array]

    def copy(self) -> Parameters:
        return Parameters([one.copy() for one in self.matrices], [one.copy() for one in self.biases])


@dataclass(frozen=True)
class Batch:
    """Inputs (d_0, B) and labels +-1 (B,)."""

    inputs: Array
    labels: Array


@dataclass(frozen=True)
class Pass:
    """Streams h_0 .. h_L, (n, B) each, what every matrix read, phi' behind every matrix but the last, and f, (B,)."""

    streams: list[Array]
    inputs: list[Array]
    gates: list[Array]
    output: Array


def draw_parameters(net: BlockNet, seed: int, draw: int) -> Parameters:
    """Gaussian weights and biases of one draw."""
    weights, biases = stream(seed, "weights", draw), stream(seed, "biases", draw)
    matrices = []
    for shape, role in zip(net.shapes, net.roles, strict=True):
        matrix = weights.standard_normal(shape)
        matrix *= np.sqrt(net.of_role("variances", role))
        matrices.append(matrix)
    columns = [np.sqrt(net.bias_variance) * biases.standard_normal((shape[0], 1)) for shape in net.shapes[:-1]]
    return Parameters(matrices, columns if net.biases else [])


def draw_batch(net: BlockNet, seed: int, draw: int) -> Batch:
    """Inputs of one draw, uniform on the sphere |x|^2 = d_0, and their labels."""
    source = stream(seed, "batch", draw)
    inputs = source.standard_normal((net.input_width, net.samples))
    inputs *= np.sqrt(net.input_width) / np.linalg.norm(inputs, axis=0)
    return Batch(inputs, source.choice([-1.0, 1.0], net.samples))


def forward(net: BlockNet, given: Parameters, inputs: Array) -> Pass:
    """Streams and output of a batch."""
    state = Pass([], [], [], np.zeros(0))
    stream_now = net.multipliers[0] * _through(net, given, state, 0, inputs)
    state.streams.append(stream_now)
    for start in range(1, 1 + net.depth * net.block_depth, net.block_depth):
        inside = stream_now
        for place in range(start, start + net.block_depth):
            inside = _through(net, given, state, place, inside)
        stream_now = stream_now + net.multipliers[1] * inside
        state.streams.append(stream_now)
    state.inputs.append(stream_now)
    return replace(state, output=net.multipliers[2] * (given.matrices[-1] @ stream_now)[0])


def loss(output: Array, labels: Array) -> float:
    """Mean over the batch of log(1 + exp(-y f))."""
    return float(np.logaddexp(0.0, -labels * output).mean())


def gradients(net: BlockNet, given: Parameters, batch: Batch, made: Pass) -> tuple[list[Gradient], list[Gradient]]:
    """Gradients of all matrices, and of all biases, in the order of `Parameters`."""
    pull = expit(-batch.labels * made.output)
    weights = -batch.labels * pull / net.samples, pull * (1 - pull) / net.samples
    slopes = output_slopes(net, given, made)
    matrices = [_gradient(slope, seen, *weights) for slope, seen in zip(slopes, made.inputs, strict=True)]
    if not given.biases:
        return matrices, []
    ones = np.ones((1, net.samples))
    return matrices, [_gradient(slope, ones, *weights) for slope in slopes[:-1]]


def output_slopes(net: BlockNet, given: Parameters, made: Pass) -> list[Array]:
    """df/d(what every matrix gives), (n_out, B), sample by sample."""
    slopes = [np.full((1, net.samples), net.multipliers[2])]
    on_stream = given.matrices[-1].T @ slopes[0]
    for end in range(net.depth * net.block_depth, 0, -net.block_depth):
        behind = net.multipliers[1] * on_stream
        for place in range(end, end - net.block_depth, -1):
            slopes.append(behind * made.gates[place] if made.gates else behind)
            behind = given.matrices[place].T @ slopes[-1]
        on_stream = on_stream + behind
    first = net.multipliers[0] * on_stream
    slopes.append(first * made.gates[0] if made.gates else first)
    return slopes[::-1]


def _through(net: BlockNet, given: Parameters, state: Pass, place: int, seen: Array) -> Array:
    """phi(W x + b) at one place, noting what the way back needs."""
    state.inputs.append(seen)
    found = given.matrices[place] @ seen
    if given.biases:
        found = found + given.biases[place]
    if net.activation == "linear":
        return found
    state.gates.append((found > 0).astype(float))
    return np.maximum(found, 0.0)


def _gradient(slope: Array, seen: Array, error: Array, curvature: Array) -> Gradient:
    return Gradient(Factored(slope * error, seen), Factored(slope**2 * curvature, seen**2))
