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


def single_site_terms(depth: int, outputs_over_width: float, output_energy: float, gain: float) -> tuple[Array, Array]:
    """A_l and B_l of fully-connected nets with one input and equal layers, at n -> infinity with M/n fixed: two (L,).

    With x = M/n, v = E z_out^2, q the gain and labels of variance 1

        A_l = v^2 ([l (l-1)/2]^2 + q l^2 (l-1) + q^2 l^2 g_l + q sum_{h<l} h^2 g_{h+1}),  g_l = 1/x + (L - l + 1)/q
        B_l = (v/x) (q^2 l^2 + q sum_{h<l} h^2)

    The first part of A_l, l^4/4, is the change along z itself, which all outputs drive together: with outputs of the
    order of the width it makes eta* fall as L^-2. The others are its interference with the error, the error itself, and
    what lower layers pass on.

    Args:
        depth: L.
        outputs_over_width: x, positive.
        output_energy: v; 1 under a "he" head, q under "fan_in", q/n under "mup".
        gain: q of a homogeneous activation.

    Source: docs/theory.md section 9.
    """
    x, v, q = outputs_over_width, output_energy, gain
    layer = np.arange(1.0, depth + 1)
    error = 1 / x + (depth - layer + 1) / q
    below = np.append(0.0, np.cumsum(layer[:-1] ** 2))
    passed_on = np.append(0.0, np.cumsum(layer[:-1] ** 2 * error[1:]))
    along = (layer * (layer - 1) / 2) ** 2 + q * layer**2 * (layer - 1)
    output = v**2 * (along + q**2 * layer**2 * error + q * passed_on)
    return output, v / x * (q**2 * layer**2 + q * below)
