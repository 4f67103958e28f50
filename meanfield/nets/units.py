"""A net as a list of depth units: where a unit skips from, its multiplier, its branch, and what follows the join.

    value_0 = input,   value_u = after([value_skip +] multiplier * branch(value_{u-1})),   u = 1 .. D

The readout, if any, is one more unit, on the value of the last.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from meanfield.nets.maps import Map, Weight


@dataclass(frozen=True)
class Unit:
    """One depth unit.

    Attributes:
        branch: the maps that its input goes through, at least one.
        skip: number of the value that is added to the branch (0 is the input), or None.
        multiplier: factor on the branch.
        after: maps behind the join, such as the normalisation of post-norm nets.
    """

    branch: tuple[Map, ...]
    skip: int | None = None
    multiplier: float = 1.0
    after: tuple[Map, ...] = ()

    @cached_property
    def maps(self) -> tuple[Map, ...]:
        return (*self.branch, *self.after)


def channels_by_value(units: Sequence[Unit], input_channels: int) -> tuple[int, ...]:
    """Channels of value_0 .. value_D.

    Raises:
        ValueError: a unit whose maps do not fit each other, whose skip does not lie below it or has other channels, or
            without a branch; a name that stands for two different weights.
    """
    channels = [input_channels]
    for number, unit in enumerate(units, start=1):
        try:
            channels.append(_channels_above(unit, number, channels))
        except ValueError as error:
            raise ValueError(f"unit {number}: {error}") from error
    named_weights(units)
    return tuple(channels)


def named_weights(units: Sequence[Unit]) -> dict[str, Weight]:
    """All weights by name, in the order of their first use."""
    weights: dict[str, Weight] = {}
    stacks: dict[str, tuple[Weight, ...]] = {}
    for stack in (holder.weights for unit in units for holder in unit.maps):
        for weight in stack:
            if weights.setdefault(weight.name, weight) != weight or stacks.setdefault(weight.name, stack) != stack:
                raise ValueError(
                    f"the name {weight.name!r} stands for two weights, {weights[weight.name]} and {weight}, or in two "
                    "stacks; what is tied is one weight, alone or in one stack"
                )
    return weights


def uses(units: Sequence[Unit]) -> Iterator[tuple[int, int, Map]]:
    """(unit, place among its maps, map) of every map with weights, units counted from 0."""
    for number, unit in enumerate(units):
        for place, holder in enumerate(unit.maps):
            if holder.weights:
                yield number, place, holder


def joined(stack: Sequence[Weight]) -> list[tuple[Weight, ...]]:
    """The weights side by side in one map, those of one law that see all channels together: one Gaussian matrix."""
    first = stack[0]
    alike = all(weight.variance == first.variance and weight.groups == 1 for weight in stack)
    return [tuple(stack)] if alike else [(weight,) for weight in stack]


def channels_by_map(unit: Unit, below: int) -> Iterator[tuple[Map, int]]:
    """Every map of a unit, with the channels of its input."""
    for part in unit.maps:
        yield part, below
        below = part.channels_above(below)


def _channels_above(unit: Unit, number: int, below: Sequence[int]) -> int:
    if not unit.branch:
        raise ValueError("its branch is empty; give it a map")
    channels = below[-1]
    for part in unit.branch:
        channels = part.channels_above(channels)
    if unit.skip is not None:
        if not 0 <= unit.skip < number:
            raise ValueError(f"it skips from value {unit.skip}; values 0 .. {number - 1} lie below it")
        if below[unit.skip] != channels:
            raise ValueError(f"its branch has {channels} channels, value {unit.skip} has {below[unit.skip]}")
    for part in unit.after:
        channels = part.channels_above(channels)
    return channels
