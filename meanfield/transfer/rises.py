"""Rates that rise with depth, and the layers below the blocks that would stop the rise."""

from __future__ import annotations

from math import exp
from typing import Any

from meanfield.common.validation import OutsideFloats
from meanfield.nets.families.layered import Sequential
from meanfield.nets.families.token_stream import TokenStream
from meanfield.theory.laws.branches import ROUNDING
from meanfield.theory.laws.learning_rate import learning_rate_exponent, log_scale
from meanfield.transfer.rules import Net

STEM_PREMISE = (
    "nothing but the blocks learns at this rate: the share that a stem or an embedding below them has in a step does "
    "not fall with the number of blocks, and stops every rise"
)


def starts_with_block(net: Net) -> bool:
    """Whether the first unit adds to the input itself, so that no layer stands below the blocks."""
    if isinstance(net, Sequential):
        return net.layers[net.unit_ends[0] - 1].skip == 0
    return net.replace(depth=1).units[0].skip == 0


def rises_with_depth(start: Net, end: Net) -> bool:
    """Whether eta* of this family rises without end.

    Of nets of layers and of loops it is a positive power of the depth. Of Transformers eta* rises where a^2 L falls, a
    the factor on the branches: sums of L moves of size a, each of which carries labels as a, shrink.
    """
    if not isinstance(start, TokenStream):
        return learning_rate_exponent(start) > 0
    nets = [start.replace(depth=depth) for depth in sorted((start.depth, end.depth))]
    shallow, deep = (max(unit.multiplier**2 for unit in net.block) * net.depth for net in nets)
    return deep < (1 - ROUNDING) * shallow


def rise_warning(start: Net, end: Net, log_change: float) -> str:
    """That a stem would stop the rise of this carried rate; empty where it does not rise or where a stem stands.

    Args:
        start, end: the nets.
        log_change: ln of the factor on the rate.
    """
    if start.depth == end.depth or not starts_with_block(start) or not rises_with_depth(start, end):
        return ""
    sentence = (
        f"the rate changes by a factor of {exp(log_change):.3g} because blocks move the net less the more they are, "
        "and these nets have nothing else that learns: a stem or an embedding below the blocks does not, and stops the "
        "rise, as eta* then tends to a constant"
    )
    if not isinstance(start, Sequential):
        return f"{sentence}; give what stands below the blocks a rate of its own"
    return f"{sentence}{_with_stem(start, end)}; if your net has a stem, describe it: stem=1, {start.INPUT}=..."


def _with_stem(start: Sequential, end: Net) -> str:
    """The factor of the same blocks on a stem that reads as many channels as the stream has, by the mean field."""
    nets: list[Any] = [net.replace(stem=1) for net in (start, end)]
    try:
        factor = exp(log_scale(nets[1]) - log_scale(nets[0]))
    except (OutsideFloats, OverflowError):
        return ""
    return f" (on a stem of {start.channels_by_layer[0]} channels the factor is {factor:.3g})"
