"""Dense Gaussian weights: what a draw of a network is."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from meanfield.architectures import Sequential
from meanfield.simulation.kernels.normals import fill_normal

Array = NDArray[np.float64]


def draw_weights(architecture: Sequential, generators: list[Generator]) -> list[Array]:
    """W^(1) .. W^(L) and the readout as matrices (D, C', C k), one draw per generator, i.i.d. N(0, s) by layer."""
    weights = []
    for shape, variance in zip(architecture.weight_shapes, architecture.weight_variances, strict=True):
        matrix = np.empty((len(generators), shape[0], prod(shape[1:])))
        for generator, row in zip(generators, matrix, strict=True):
            fill_normal(generator, row.reshape(-1), np.sqrt(variance))
        weights.append(matrix)
    return weights
