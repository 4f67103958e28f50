"""The spectral condition of a branch: which products of norms it constrains, and which of them imply the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import TypeVar

Number = TypeVar("Number", float, Fraction)
Layers = tuple[int, ...]


def branch_products(
    multiplier: Number, weight_norms: Sequence[Number], update_norms: Sequence[Number]
) -> dict[Layers, Number]:
    """alpha prod_{i in S} |Delta W_i| prod_{i not in S} |W_i| for every set S of the branch's layers.

    The condition (Zheng et al. 2026, conditions 3.1, B.2) asks 1/L of each: of S = () initially, of one layer to first
    order, of j layers to order j. Norms are RMS operator norms.

    Args:
        multiplier: alpha.
        weight_norms, update_norms: |W_i| and |Delta W_i|, from the layer that reads the stream upwards.

    Returns:
        S -> product, S a rising tuple of layers counted from 0, in the order of their number.

    Raises:
        ValueError: unequal numbers of norms.
    """
    if len(weight_norms) != len(update_norms):
        raise ValueError(f"{len(weight_norms)} weight norms and {len(update_norms)} update norms; give one per layer")
    layers = range(len(weight_norms))
    return {
        updated: multiplier * math.prod((update_norms if i in updated else weight_norms)[i] for i in layers)
        for order in range(len(layers) + 1)
        for updated in combinations(layers, order)
    }
