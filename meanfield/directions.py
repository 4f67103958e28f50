"""Parameter directions: which single-unit motions of the weights a tangent belongs to.

The direction (layer l, unit a) moves the weights into unit a of layer l along that unit's own incoming features x at a
reference site, dW = e_a x' / |x|, so that it changes z_a^(l) by |x| there. In a net of one site all other directions
of those weights leave z unchanged, so the overlap energy is the sum of squared overlaps over pairs of these directions,
one for each unit, and need not be summed over all pairs of weights.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from meanfield.architectures import Sequential
from meanfield.validation import require_count

Direction = tuple[int, int]
Pair = tuple[Direction, Direction]


def checked_pairs(architecture: Sequential, pairs: Iterable[Any]) -> tuple[Pair, ...]:
    """Pairs ((layer, unit), (layer, unit)), counted from 1, all of them inside the net.

    Raises:
        TypeError, ValueError: no pair, one that does not read so, or a layer or unit that the net does not have.
    """
    found = tuple(_checked_pair(architecture, pair) for pair in pairs)
    if not found:
        raise ValueError(
            "pairs is empty; name at least one, such as ((1, 1), (1, 2)): layer and unit of two directions"
        )
    return found


def pair_name(pair: Pair) -> str:
    """A pair as one word, "LAYER,UNIT:LAYER,UNIT"."""
    return ":".join(f"{layer},{unit}" for layer, unit in pair)


def _checked_pair(architecture: Sequential, pair: Any) -> Pair:
    try:
        (first_layer, first_unit), (second_layer, second_unit) = pair
    except (TypeError, ValueError):
        raise ValueError(f"pair {pair!r} does not read as ((layer, unit), (layer, unit))") from None
    first = _checked_direction(architecture, first_layer, first_unit)
    return first, _checked_direction(architecture, second_layer, second_unit)


def _checked_direction(architecture: Sequential, layer: Any, unit: Any) -> Direction:
    layer = require_count("layer of a parameter direction", layer, why="layers are counted from 1")
    if layer > architecture.depth:
        raise ValueError(f"direction ({layer}, {unit}) is outside the net: it has layers 1 .. {architecture.depth}")
    width = architecture.channels_by_layer[layer]
    unit = require_count("unit of a parameter direction", unit, why="units are counted from 1")
    if unit > width:
        raise ValueError(f"direction ({layer}, {unit}) is outside the net: layer {layer} has units 1 .. {width}")
    return layer, unit
