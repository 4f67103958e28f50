"""Inputs of a draw: the architecture's own law, or a batch that the user gives."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from meanfield.architectures import MLP, Sequential

Array = NDArray[np.float64]


def draw_inputs(architecture: Sequential, generators: list[Generator]) -> Array:
    """Fresh inputs (D, C_0, B, S): white Gaussian; for fully-connected nets scaled to |sigma(x)|^2 = q n."""
    shape = (architecture.channels_by_layer[0], architecture.inputs, architecture.sites)
    inputs = np.stack([generator.standard_normal(shape) for generator in generators])
    if isinstance(architecture, MLP):
        inputs = _normalised(architecture, inputs)
    return inputs


def _normalised(architecture: Sequential, inputs: Array) -> Array:
    """Rescaled to |sigma(x)|^2 = q n; an input that sigma annihilates (possible at tiny widths) is turned round."""

    def energy(values: Array) -> Array:
        return np.asarray(np.square(architecture.sigma.function(values)).sum(axis=1, keepdims=True))

    inputs = np.where(energy(inputs) > 0, inputs, -inputs)
    return np.asarray(inputs * np.sqrt(architecture.sigma.gain * inputs.shape[1] / energy(inputs)))


def repeated_inputs(architecture: Sequential, batch: Array, draws: int) -> Array:
    """A given batch (B, C_0, *grid) in the passes' layout, the same for every draw."""
    flat = batch.reshape(architecture.inputs, -1, architecture.sites).swapaxes(0, 1)
    return np.ascontiguousarray(np.broadcast_to(flat, (draws, *flat.shape)))
