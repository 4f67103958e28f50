"""A derived recursion carried from layer to layer of one net, in logarithms."""

from __future__ import annotations

import numpy as np

from meanfield.common.arrays import Array
from meanfield.theory.exact.recursion import Recursion
from meanfield.theory.kernels.iteration import iterate


def log_moments(recursion: Recursion, start: Array, widths: Array, variances: Array, rows: int | None = None) -> Array:
    """Logs of the first ``rows`` moments (or all) at the start and after every layer: (layers + 1, rows).

    ``widths`` and ``variances`` are those of the layers above the start, and of their weights.

    Layers that share width and variance share one matrix, so that a deep net costs one step a layer.
    """
    layers = widths + 1j * variances
    changes = np.flatnonzero(np.diff(layers, prepend=np.nan))
    distinct, kind = np.unique(layers[changes], return_inverse=True)
    which = np.repeat(kind, np.diff(changes, append=len(layers))).astype(np.int64)
    size = len(recursion.moments)
    matrices = np.array([recursion.matrix(layer.real, layer.imag) for layer in distinct]).reshape(-1, size, size)
    return np.asarray(iterate(matrices, which, start, np.arange(size if rows is None else rows)))
