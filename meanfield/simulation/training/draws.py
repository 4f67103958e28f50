"""Draws of nets to train: Gaussian weights, and batches of inputs on the sphere with random labels."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator

from meanfield.common.seeds import streams_of_draws
from meanfield.nets.net import Net
from meanfield.simulation.arrays.arrays import NUMPY, Arrays
from meanfield.simulation.kernels.normals import NormalSource
from meanfield.simulation.training.data import Data
from meanfield.simulation.training.losses import CrossEntropy, Logistic, Loss
from meanfield.simulation.weights.matrices import draw_dense


def drawn_weights(net: Net, seed: int, draws: range, arrays: Arrays = NUMPY) -> dict[str, Any]:
    """All weights by name, (draws, out, in taps), biases (draws, out, 1) from a stream of their own."""
    matrices, biases = (NormalSource(streams_of_draws(seed, purpose, draws)) for purpose in ("weights", "biases"))
    drawn = {}
    for name, weight in net.weights.items():
        sources = biases if len(weight.shape) == 1 else matrices
        drawn[name] = arrays.moved(draw_dense(replace(weight, groups=1), sources).matrix)
    return drawn


def drawn_batch(net: Net, seed: int, draws: range, arrays: Arrays = NUMPY) -> Data:
    """Inputs of every draw, uniform on the sphere |x|^2 = channels, and their labels.

    Labels are classes, one for a sample, or +-1 of nets with one output; `own_loss` goes with them.
    """
    made = [_batch(net, source) for source in streams_of_draws(seed, "batch", draws).generators()]
    inputs, labels = (np.stack(values) for values in zip(*made, strict=True))
    targets = [own_loss(net).targets(given, arrays) for given in labels]
    return Data(arrays.moved(inputs[..., None]), arrays.xp.concatenate(targets))


def own_loss(net: Net) -> Loss:
    """Cross-entropy over the outputs, or its form for one output and labels +-1."""
    return Logistic() if net.output_shape[1] == 1 else CrossEntropy()


def _batch(net: Net, source: Generator) -> tuple[Any, Any]:
    if net.input_law != "sphere" or net.sites != 1:
        raise ValueError(f"inputs on the sphere are drawn for nets of vectors; this one takes {net.input_law!r} inputs")
    inputs = source.standard_normal((net.first_channels, net.inputs))
    inputs *= np.sqrt(net.first_channels) / np.linalg.norm(inputs, axis=0)
    outputs = net.output_shape[1]
    return inputs, source.choice([-1.0, 1.0], net.inputs) if outputs == 1 else source.integers(outputs, size=net.inputs)
