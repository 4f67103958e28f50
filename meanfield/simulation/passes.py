"""The three passes over any net: forward, backward, tangent.

A net is a list of units (`meanfield.nets.units`); `meanfield.simulation.maps` has what its maps do. With D draws, B
samples, r error columns and S sites, values are (D, C, B, S), errors and tangents (D, C, r B, S).

    forward    value_u = after([value_skip +] a branch(value_{u-1}))
    backward   the same chain from the top down, by the maps' adjoints; the error of a value is the sum over all that
               read it: the unit above and every unit that skips from it
    tangent    T_u = after'([T_skip +] a branch'(T_{u-1})), where every map with weights adds what their own move does,
               Delta W X (`meanfield.simulation.weights.moves`); a tied weight moves at each of its uses

so that one step of rate eta changes value_u by -eta T_u, exactly to first order in eta. All arrays are of one library
and precision (`meanfield.simulation.arrays.Arrays`).

Source: docs/theory.md section 2; Zhang et al. 2026, eqs. 2, 3, 7.
"""

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from meanfield.nets.maps import Map
from meanfield.nets.net import Net
from meanfield.nets.units import Unit
from meanfield.simulation.arrays.arrays import NUMPY, Arrays
from meanfield.simulation.maps import operation_of
from meanfield.simulation.maps.base import Setting
from meanfield.simulation.weights.matrices import Weights

# A map's place in a net: its unit, counted from 0, and its place among the unit's maps.
Place = tuple[int, int]
# Errors at the outputs of maps with weights.
Errors = MutableMapping[Place, Any]


@dataclass
class Passage:
    """What the forward pass through one unit keeps: the inputs of its maps, None where remade, and the maps' own."""

    unit: Unit
    inputs: list[Any]
    kept: list[Any]

    def input_of(self, place: int, setting: Setting) -> Any:
        """The input of a map, computed again by the map before it if it was not kept."""
        if self.inputs[place] is None:
            before = self.unit.maps[place - 1]
            return operation_of(before).forward(before, self.input_of(place - 1, setting), setting)[0]
        return self.inputs[place]


@dataclass
class Forward:
    """Values 0 .. D of a net, the passages of its units, its readout's passage and outputs (D, outputs, B, sites)."""

    net: Net
    setting: Setting
    values: list[Any]
    passages: list[Passage] = field(default_factory=list)
    readout: Passage | None = None
    output: Any = None

    @property
    def arrays(self) -> Arrays:
        return self.setting.arrays

    @property
    def all_passages(self) -> list[Passage]:
        """Those of the units, numbered as places are, and of the readout, if there is one."""
        return [*self.passages, *([] if self.readout is None else [self.readout])]

    def let_go(self, number: int) -> None:
        """Drop what the tangent has left behind with unit ``number``: its passage, and weights of no later use."""
        release(self.net, number, self.setting.weights)
        self.passages[number - 1] = Passage(self.net.units[number - 1], [], [])
        self.values[number - 1] = None

    def read(self) -> list[Any]:
        """The arrays that the net keeps of the forward pass, in order: inputs of maps, and the last value."""
        kept = [array for passage in self.passages for array in passage.inputs if array is not None]
        return list({id(array): array for array in [*kept, self.values[-1]]}.values())


class Moves(Protocol):
    """What every map's own weights do to its output when they move."""

    def of(self, place: Place) -> Any:
        """Delta W X (D, C', r B, S) at this place, a fresh array, or None where they do not."""


def forward(net: Net, weights: Weights, inputs: Any, arrays: Arrays = NUMPY, masks: Any = None) -> Forward:
    """Send inputs (D, C_0, B, S) through all units and the readout; with ``masks``, values are dropped."""
    state = Forward(net, Setting(net.grid, inputs.shape[2], weights, arrays, masks), [inputs])
    for unit in net.units:
        value, passage = through(unit, state.values, state.setting)
        state.values.append(value)
        state.passages.append(passage)
    state.output = state.values[-1]
    if net.readout_unit is not None:
        state.output, state.readout = through(net.readout_unit, state.values, state.setting)
    return state


def through(unit: Unit, values: Sequence[Any], setting: Setting) -> tuple[Any, Passage]:
    """One unit's value from those below it."""
    passage = Passage(unit, [], [])
    branch = _along(unit.branch, values[-1], passage, setting)
    if operation_of(unit.branch[-1]).lends:
        branch = branch.copy()
    value = _along(unit.after, joined(unit, branch, values), passage, setting)
    return value, passage


def joined(unit: Unit, branch: Any, below: Any) -> Any:
    """a branch [+ what is skipped from], in place; a source that is None is 0."""
    if unit.multiplier != 1.0:
        branch *= unit.multiplier
    source = None if unit.skip is None else below[unit.skip]
    if source is not None:
        branch += source
    return branch


def _along(maps: Sequence[Map], values: Any, passage: Passage, setting: Setting) -> Any:
    remade = False
    for spec in maps:
        operation = operation_of(spec)
        passage.inputs.append(None if remade else values)
        values, kept = operation.forward(spec, values, setting)
        passage.kept.append(kept)
        remade = operation.remade
    return values


def through_readout(state: Forward, output_error: Any, into: Errors | None = None) -> tuple[Any, Errors]:
    """Errors of value_D and of the readout's maps with weights, from errors (D, outputs, r B, sites) at the outputs."""
    errors: Errors = {} if into is None else into
    if state.readout is None:
        return output_error, errors
    unit = state.readout.unit
    arriving = output_error if unit.multiplier == 1.0 else unit.multiplier * output_error
    below = _back_along(
        state.readout, range(len(unit.branch)), arriving, len(state.net.units), errors, state.setting, True
    )
    return below, errors


def backward(state: Forward, error: Any, last: int, into: Errors | None = None) -> Errors:
    """Errors at the outputs of all maps with weights up to unit ``last``, from the error of its value alone.

    They are put ``into`` the given mapping from the top down, each before the next is made.
    """
    errors: Errors = {} if into is None else into
    arriving = {last: error}
    for number in range(last, 0, -1):
        passage, unit = state.passages[number - 1], state.net.units[number - 1]
        branch, after = range(len(unit.branch)), range(len(unit.branch), len(unit.maps))
        at_join = _back_along(passage, after, arriving.pop(number), number - 1, errors, state.setting, True)
        if unit.skip:
            arriving[unit.skip] = at_join if unit.skip not in arriving else arriving[unit.skip] + at_join
        if unit.multiplier != 1.0:
            at_join = unit.multiplier * at_join
        below = _back_along(passage, branch, at_join, number - 1, errors, state.setting, number > 1)
        if number > 1:
            waits = number - 1 in arriving
            arriving[number - 1] = _added(below, arriving[number - 1], at_join) if waits else below
    return errors


def _added(below: Any, term: Any, above: Any) -> Any:
    """The sum, in place where ``below`` is no array that something above still holds."""
    if below is above:
        return below + term
    below += term
    return below


def _back_along(
    passage: Passage, places: range, error: Any, number: int, errors: Errors, setting: Setting, to_input: bool
) -> Any:
    """Errors through maps from the top down, kept at those with weights, to the input or to the lowest weight only."""
    maps, owned = passage.unit.maps, False  # whether nothing else holds the current array
    for place in reversed(places):
        spec, operation = maps[place], operation_of(maps[place])
        holds = bool(spec.weights)
        if holds:
            errors[number, place] = error
        if not to_input and not any(lower.weights for lower in maps[places.start : place]):
            return None
        values = passage.input_of(place, setting) if operation.reads else None
        below = operation.backward(spec, values, passage.kept[place], error, setting, owned)
        owned = owned and not holds if below is error else True
        error = below
    return error


def tangent(state: Forward, moves: Moves, last: int, columns: int, start: Any = None) -> Iterator[Any]:
    """Yield T_1 .. T_last, each (D, C, r B, S), for moves of so many ``columns`` r; T_0 is ``start``, or 0.

    Once T_u is yielded, unit u is not looked at again, and the caller may drop what it holds.
    """
    units = state.net.units[:last]
    sources = {unit.skip for unit in units}
    moved: list[Any] = [start]  # T_0, and those that a skip may still ask for
    for number, unit in enumerate(units):
        passage = state.passages[number]
        change = _tangent_along(unit.branch, 0, moved[-1], number, passage, moves, state.setting)
        if number not in sources:
            moved[-1] = None
        if change is not None:
            change = joined(unit, change, moved)
        elif unit.skip is not None and moved[unit.skip] is not None:
            change = moved[unit.skip].copy()
        change = _tangent_along(unit.after, len(unit.branch), change, number, passage, moves, state.setting)
        moved.append(change)
        yield _nothing(state.values[number + 1], columns, state.arrays) if change is None else change


def carried(state: Forward, number: int, change: Any) -> Any:
    """Columns (D, C, r B, S) at the value below unit ``number``, counted from 1, at the value above, weights at rest.

    Of a unit that skips, if at all, from the value below it.
    """
    passage = state.passages[number - 1]
    unit = passage.unit
    moved = _tangent_along(unit.branch, 0, change, number - 1, passage, None, state.setting)
    moved = joined(unit, moved, {number - 1: change})
    return _tangent_along(unit.after, len(unit.branch), moved, number - 1, passage, None, state.setting)


def _tangent_along(
    maps: Sequence[Map], first: int, change: Any, number: int, passage: Passage, moves: Moves | None, setting: Setting
) -> Any:
    """A change through maps, plus what moves of their own weights do; None is no change."""
    for place, spec in enumerate(maps, start=first):
        if change is not None:
            operation = operation_of(spec)
            values = passage.input_of(place, setting) if operation.reads else None
            change = operation.tangent(spec, values, passage.kept[place], change, setting)
        own = moves.of((number, place)) if moves and spec.weights else None
        if own is not None and change is not None:
            own += change
        change = change if own is None else own
    return change


def release(net: Net, number: int, weights: Weights) -> None:
    """Drop the weights that unit ``number``, counted from 1, is the last to use."""
    for weight in (weight for spec in net.units[number - 1].maps for weight in spec.weights):
        if net.last_uses[weight.name] == number:
            weights.pop(weight.name, None)


def _nothing(value: Any, columns: int, arrays: Arrays) -> Any:
    draws, channels, samples, sites = value.shape
    return arrays.xp.zeros((draws, channels, columns * samples, sites), dtype=value.dtype)
