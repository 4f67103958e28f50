"""The papers' closed forms."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def sum_of_minima(layer: ArrayLike) -> Array:
    """sum_{h1, h2 <= l} min(h1, h2) = l (l + 1)(2 l + 1) / 6, the papers' depth law for the label term.

    Source: P0 eqs. 22, 23. Exact, with prefactor n, for linear nets of one site.
    """
    depth = np.asarray(layer, dtype=float)
    return np.asarray(depth * (depth + 1) * (2 * depth + 1) / 6)


def weighted_sum_of_minima(weights: ArrayLike) -> Array:
    """The same law when layers carry unequal weights w_j: sum_{h <= l} (w_1 + ... + w_h)^2 for l = 1 .. L.

    Equal weights give `sum_of_minima`. A layer's weight is its number of input channels relative to the others':
    a thin input (an RGB image under many channels) makes layer 1 count for little, as it has few parameters.
    """
    return np.asarray(np.cumsum(np.cumsum(np.asarray(weights, dtype=float)) ** 2))
