"""Parameter directions: which single-unit motions of the weights a tangent belongs to.

The direction (layer l, unit a) moves the weights into unit a of layer l along that unit's own incoming features x at
a reference site, dW = e_a x' / |x|, so that it changes z_a^(l) by |x| there. In a net of one site all other
directions of those weights leave z unchanged, so the overlap energy is the sum of squared overlaps over pairs of
these directions, one for each unit, and need not be summed over all pairs of weights.

In nets with skip connections layers are depth units (stem layers, blocks, tail layers), and the weights moved are the
last of a block, so that z_a^(l) changes by a |x| there, a the block's multiplier.
"""

from collections.abc import Iterable
from itertools import pairwise
from math import nan, prod
from typing import Any, NamedTuple

from meanfield.common.validation import require_count, takes
from meanfield.nets.layered import Sequential

ParameterDirection = tuple[int, int]
DirectionPair = tuple[ParameterDirection, ParameterDirection]


@takes(Sequential)
def checked_pairs(net: Sequential, pairs: Iterable[Any]) -> tuple[DirectionPair, ...]:
    """Pairs ((layer, unit), (layer, unit)), counted from 1, all of them inside the net.

    Raises:
        TypeError, ValueError: no pair, one of another form, or a layer or unit that the net does not have.
    """
    if net.weight_variance is not None:
        raise ValueError(
            f"weight_variance is {net.weight_variance:g}; overlaps of pairs are followed under the fan-in "
            "rule 1/q, which conserves them: leave it out"
        )
    if not isinstance(pairs, Iterable):
        raise TypeError(f"pairs is {pairs!r}; give a list of pairs ((layer, unit), (layer, unit)) of directions")
    checked = tuple(_checked_pair(net, pair) for pair in pairs)
    if not checked:
        raise ValueError(
            "pairs is empty; name at least one, such as ((1, 1), (1, 2)): layer and unit of two directions"
        )
    return checked


class UnitShares(NamedTuple):
    """What a depth unit passes on of an overlap T, in mean over its weights: kept T + carried T~ / q.

    T~ is the overlap of the gated tangents below the unit. Where gates average to q, T grows by kept + carried.
    """

    kept: float
    carried: float


@takes(Sequential)
def unit_shares(net: Sequential) -> tuple[UnitShares, ...]:
    """The shares of every depth unit: 0 and 1 in plain layers, 1 and a^2 f^k in blocks.

    Notation: a the block's multiplier, f the variance factor of the k tensors of its branch. With k > 1 gates inside
    the branch are averaged too; where they depend on more than signs, what is carried has no such form and is NaN.

    Source: Zhang et al. 2026, eq. 31, with c/K = a^2 f / q.
    """
    shares = []
    for start, end in pairwise((0, *net.unit_ends)):
        *_, joint = layers = net.layers[start:end]
        factor = joint.multiplier**2 * prod(layer.variance_factor for layer in layers)
        is_closed = len(layers) == 1 or net.sigma.homogeneous
        shares.append(UnitShares(float(joint.skip is not None), factor if is_closed else nan))
    return tuple(shares)


def pair_name(pair: DirectionPair) -> str:
    """A pair as one word, "LAYER,UNIT:LAYER,UNIT"."""
    return ":".join(f"{layer},{unit}" for layer, unit in pair)


def _checked_pair(net: Sequential, pair: Any) -> DirectionPair:
    try:
        (first_layer, first_unit), (second_layer, second_unit) = pair
    except (TypeError, ValueError):
        raise ValueError(f"pair {pair!r} does not read as ((layer, unit), (layer, unit))") from None
    first = _checked_direction(net, first_layer, first_unit)
    return first, _checked_direction(net, second_layer, second_unit)


def _checked_direction(net: Sequential, layer: Any, unit: Any) -> ParameterDirection:
    layer = require_count("layer of a parameter direction", layer, why="layers are counted from 1")
    ends, part = net.unit_ends, "depth unit" if net.has_skips else "layer"
    if layer > len(ends):
        raise ValueError(f"direction ({layer}, {unit}) is outside the net: it has {part}s 1 .. {len(ends)}")
    width = net.channels_by_layer[ends[layer - 1]]
    unit = require_count("unit of a parameter direction", unit, why="units are counted from 1")
    if unit > width:
        raise ValueError(f"direction ({layer}, {unit}) is outside the net: {part} {layer} has units 1 .. {width}")
    return layer, unit
