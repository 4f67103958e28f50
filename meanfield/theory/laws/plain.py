"""Closed forms: the papers' depth law, and what the recursions give in the limit of many channels."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.common.validation import require_choice


def sum_of_minima(weights: ArrayLike) -> Array:
    """sum_{h1, h2 <= l} min(h1, h2) = l (l + 1)(2 l + 1) / 6 for l = 1 .. L, the papers' depth law for the label term.

    It is the running sum of squares 1^2 + 2^2 + ... + l^2. Layers of unequal weights w_j count as
    sum_{h <= l} (w_1 + ... + w_h)^2: a layer's weight is its number of input channels relative to the others', so that
    a thin input (an RGB image under many channels) makes layer 1 count for little, as it has few parameters.

    Args:
        weights: w_1 .. w_L, all 1 for equal layers.

    Source: Zhang et al. 2026, eqs. 22, 23. Exact, with prefactor n, for linear nets of one site.
    """
    return np.asarray(np.cumsum(np.cumsum(np.asarray(weights, dtype=float)) ** 2))


def single_site_overlap(layers: ArrayLike, activation: str) -> Array:
    """F_l / n of fully-connected nets with one input and equal layers, at n -> infinity.

    l (2 l^2 + 1)/12 for ReLU, l (l + 1)(2 l + 1)/6 for linear nets.

    Raises:
        ValueError: another activation.

    Source: docs/theory.md section 6.
    """
    require_choice("activation", activation, ("relu", "linear"))
    layer = np.asarray(layers, dtype=float)
    if activation == "linear":
        return np.asarray(layer * (layer + 1) * (2 * layer + 1) / 6)
    return np.asarray(layer * (2 * layer**2 + 1) / 12)
