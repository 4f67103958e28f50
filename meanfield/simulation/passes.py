"""The three passes over any net: forward, backward, tangent; how weights move; and the walk along a residual stream.

A net is a list of units (`meanfield.nets.net`); `meanfield.simulation.maps` has what its maps do. With D draws, B
samples, r error columns and S sites, values are (D, C, B, S), errors and tangents (D, C, r B, S). Sites are those of
a value's own grid; every map acts in the setting of what comes in.

    forward    value_u = after([shortcut(value_skip) +] a branch(value_{u-1})), or the channels of both side by side
    backward   the same chain from the top down, by the maps' adjoints; the error of a value is the sum over all that
               read it: the unit above and every unit that skips from it
    tangent    T_u = after'([shortcut'(T_skip) +] a branch'(T_{u-1})), where every map with weights adds what their own
               move does, Delta W X; a tied weight moves at each of its uses

so that one step of rate eta changes value_u by -eta T_u, exactly to first order in eta. Weights move by the gradient's
own step (`GradientMoves`), or by any matrices (`MatrixMoves`). All arrays are of one library
and precision (`meanfield.simulation.arrays.Arrays`).

A residual stream is a net whose units all add to the value just below,

    h_u = h_{u-1} + a_u r_u,   r_u = branch_u(h_{u-1}).

The walk is its forward pass, one unit at a time and far beyond the range of floats. Units below the first that adds,
such as an embedding, make h_0 of the inputs; a readout is not looked at. Streams may grow beyond the range of floats
(|h|^2 ~ 2^u and more where a = 1). They are carried as h = 2^k g; every draw has its own k, which is raised when g
has grown large. Multiplication by powers of two is exact, so nothing else changes.

Source: docs/theory.md section 2; Zhang et al. 2026, eqs. 2, 3, 7.
"""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from meanfield.nets.maps import Map, Weight
from meanfield.nets.net import Net, Unit, uses
from meanfield.simulation.arrays import NUMPY, Arrays
from meanfield.simulation.maps.base import Setting, operation_of, weighted_operation_of
from meanfield.simulation.maps.weighted import by_use, side_by_side
from meanfield.simulation.weights import Weights

# A map's place in a net: its unit, counted from 0, and its place among the unit's maps.
MapPlace = tuple[int, int]
# Errors at the outputs of maps with weights.
ErrorsByPlace = MutableMapping[MapPlace, Any]


@dataclass
class Passage:
    """What the forward pass through one unit keeps: the inputs of its maps, None where remade, and the maps' own.

    ``settings`` are those in which its maps act.
    """

    unit: Unit
    inputs: list[Any] = field(default_factory=list)
    kept: list[Any] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)

    def input_of(self, place: int) -> Any:
        """The input of a map, computed again by the map before it if it was not kept."""
        if self.inputs[place] is None:
            before = self.unit.maps[place - 1]
            return operation_of(before).forward(before, self.input_of(place - 1), self.settings[place - 1])[0]
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
        """The passages of the units, numbered as places are, and that of the readout, if there is one."""
        return [*self.passages, *([] if self.readout is None else [self.readout])]

    def let_go(self, number: int) -> None:
        """Drop what the tangent has left behind with unit ``number``: its passage, and weights of no later use."""
        release(self.net, number, self.setting.weights)
        self.passages[number - 1] = Passage(self.net.units[number - 1])
        self.values[number - 1] = None

    def read(self) -> list[Any]:
        """The arrays that the net keeps of the forward pass, in order: inputs of maps, and the last value."""
        kept = [array for passage in self.passages for array in passage.inputs if array is not None]
        return list({id(array): array for array in [*kept, self.values[-1]]}.values())


class Moves(Protocol):
    """What every map's own weights do to its output when they move."""

    def of(self, place: MapPlace) -> Any:
        """Delta W X (D, C', r B, S) at this place, a fresh array, or None where they do not."""


def forward(net: Net, weights: Weights, inputs: Any, arrays: Arrays = NUMPY, masks: Any = None) -> Forward:
    """Send inputs (D, C_0, B, S) through all units and the readout; with ``masks``, values are dropped."""
    state = Forward(net, Setting(net.grid, inputs.shape[2], weights, arrays, masks), [inputs])
    settings = [state.setting]
    for unit in net.units:
        value, passage, setting = through(unit, state.values, settings)
        state.values.append(value)
        state.passages.append(passage)
        settings.append(setting)
    state.output = state.values[-1]
    if net.readout_unit is not None:
        state.output, state.readout, _ = through(net.readout_unit, state.values, settings)
    return state


def through(unit: Unit, values: Sequence[Any], settings: Sequence[Setting]) -> tuple[Any, Passage, Setting]:
    """One unit's value from those below it, and the setting of that value from theirs."""
    passage = Passage(unit)
    branch, setting = _values_along(unit.branch, values[-1], passage, settings[-1])
    if operation_of(unit.branch[-1]).lends:
        branch = branch.copy()
    source = None
    if unit.skip is not None:
        source, _ = _values_along(unit.shortcut, values[unit.skip], passage, settings[unit.skip])
    value, setting = _values_along(unit.after, joined(unit, branch, source, setting.arrays), passage, setting)
    return value, passage, setting


def joined(unit: Unit, branch: Any, source: Any, arrays: Arrays) -> Any:
    """a branch [+ the source that is skipped from], in place, or beside it; a source that is None is left out."""
    if unit.multiplier != 1.0:
        branch *= unit.multiplier
    if source is None:
        return branch
    if unit.concatenates:
        if len(source) < len(branch):  # draws may share what comes in
            source = arrays.xp.broadcast_to(source, (len(branch), *source.shape[1:]))
        return arrays.xp.concatenate([source, branch], axis=1)
    branch += source
    return branch


def _values_along(maps: Sequence[Map], values: Any, passage: Passage, setting: Setting) -> tuple[Any, Setting]:
    remade = False
    for spec in maps:
        operation = operation_of(spec)
        passage.inputs.append(None if remade else values)
        values, kept = operation.forward(spec, values, setting)
        passage.kept.append(kept)
        passage.settings.append(setting)
        setting, remade = setting.above(spec), operation.remade
    return values, setting


def through_readout(state: Forward, output_error: Any, into: ErrorsByPlace | None = None) -> tuple[Any, ErrorsByPlace]:
    """Errors of value_D and of the readout's maps with weights, from errors (D, outputs, r B, sites) at the outputs."""
    errors: ErrorsByPlace = {} if into is None else into
    if state.readout is None:
        return output_error, errors
    unit = state.readout.unit
    arriving = output_error if unit.multiplier == 1.0 else unit.multiplier * output_error
    return _back_along(state.readout, unit.places[0], arriving, len(state.net.units), errors, True), errors


def backward(state: Forward, error: Any, last: int, into: ErrorsByPlace | None = None) -> ErrorsByPlace:
    """Errors at the outputs of all maps with weights up to unit ``last``, from the error of its value alone.

    They are put ``into`` the given mapping from the top down, each before the next is made.
    """
    errors: ErrorsByPlace = {} if into is None else into
    arriving = {last: error}
    for number in range(last, 0, -1):
        passage, unit = state.passages[number - 1], state.net.units[number - 1]
        branch, shortcut, after = unit.places
        at_join = _back_along(passage, after, arriving.pop(number), number - 1, errors, True)
        if unit.skip is not None:
            skipped = at_join
            if unit.concatenates:
                size = state.net.value_channels[unit.skip]
                skipped, at_join = at_join[:, :size], at_join[:, size:].copy(order=state.arrays.order)
            skipped = _back_along(passage, shortcut, skipped, number - 1, errors, unit.skip > 0)
            if unit.skip:
                arriving[unit.skip] = skipped if unit.skip not in arriving else arriving[unit.skip] + skipped
        if unit.multiplier != 1.0:
            at_join = unit.multiplier * at_join
        below = _back_along(passage, branch, at_join, number - 1, errors, number > 1)
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


def _back_along(passage: Passage, places: range, error: Any, number: int, errors: ErrorsByPlace, to_input: bool) -> Any:
    """Errors through maps from the top down, kept at those with weights, to the input or to the lowest weight only."""
    maps, owned = passage.unit.maps, False  # whether nothing else holds the current array
    for place in reversed(places):
        spec, operation = maps[place], operation_of(maps[place])
        holds = bool(spec.weights)
        if holds:
            errors[number, place] = error
        if not to_input and not any(lower.weights for lower in maps[places.start : place]):
            return None
        values = passage.input_of(place) if operation.reads else None
        below = operation.backward(spec, values, passage.kept[place], error, passage.settings[place], owned)
        owned = owned and not holds if below is error else True
        error = below
    return error


def tangent(state: Forward, moves: Moves, last: int, columns: int, start: Any = None) -> Iterator[Any]:
    """Yield T_1 .. T_last, each (D, C, r B, S), for moves of so many ``columns`` r; T_0 is ``start``, or 0.

    Once T_u is yielded, unit u is not looked at again, and the caller may drop what it holds.
    """
    units = state.net.units[:last]
    last_use = {unit.skip: number for number, unit in enumerate(units)}
    moved: list[Any] = [start]  # T_0, and those that a skip may still ask for
    for number, unit in enumerate(units):
        passage, (branch, shortcut, after) = state.passages[number], unit.places
        change = _tangent_along(branch, moved[-1], number, passage, moves)
        if number not in last_use:
            moved[-1] = None
        source = None if unit.skip is None else _tangent_along(shortcut, moved[unit.skip], number, passage, moves)
        if change is None:
            change = source  # None, too, unless a shortcut's own weights are the first to move
        else:
            if unit.skip is not None and unit.concatenates and source is None:
                source = _unmoved(state, number + 1, state.net.value_channels[unit.skip], columns)
            change = joined(unit, change, source, state.arrays)
        change = _tangent_along(after, change, number, passage, moves)
        moved.append(change)
        if unit.skip is not None and last_use[unit.skip] == number:
            moved[unit.skip] = None
        yield _unmoved(state, number + 1, state.net.value_channels[number + 1], columns) if change is None else change


def _unmoved(state: Forward, value: int, channels: int, columns: int) -> Any:
    """The change 0 of so many channels at the places of a value."""
    draws, _, samples, sites = state.values[value].shape
    return state.arrays.xp.zeros((draws, channels, columns * samples, sites), dtype=state.values[value].dtype)


def tangent_through(state: Forward, number: int, change: Any) -> Any:
    """Columns (D, C, r B, S) at the value below unit ``number``, counted from 1, at the value above, weights at rest.

    Of a unit that skips, if at all, from the value below it.
    """
    passage = state.passages[number - 1]
    unit = passage.unit
    branch, shortcut, after = unit.places
    moved = _tangent_along(branch, change, number - 1, passage)
    skipped = None if unit.skip is None else _tangent_along(shortcut, change, number - 1, passage)
    return _tangent_along(after, joined(unit, moved, skipped, state.arrays), number - 1, passage)


def _tangent_along(places: range, change: Any, number: int, passage: Passage, moves: Moves | None = None) -> Any:
    """A change through maps, plus what moves of their own weights do; None is no change."""
    for place in places:
        spec = passage.unit.maps[place]
        if change is not None:
            operation = operation_of(spec)
            values = passage.input_of(place) if operation.reads else None
            change = operation.tangent(spec, values, passage.kept[place], change, passage.settings[place])
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


class WeightMoves(ABC):
    """The changes that moved weights make at their places; a weight is moved at all its uses when first asked for."""

    def __init__(self, state: Forward, places: Iterable[MapPlace]) -> None:
        self._state = state
        self._uses: dict[tuple[Weight, ...], list[MapPlace]] = defaultdict(list)
        for place in places:
            self._uses[state.net.units[place[0]].maps[place[1]].weights].append(place)
        self._made: dict[MapPlace, Any] = {}

    def of(self, place: MapPlace) -> Any:
        if place not in self._made:
            places = self._uses[self._state.net.units[place[0]].maps[place[1]].weights]
            passages = [(self._state.passages[number], at) for number, at in places]
            maps = [passage.unit.maps[at] for passage, at in passages]
            seen = (
                weighted_operation_of(spec).seen(spec, passage.input_of(at), passage.settings[at])
                for spec, (passage, at) in zip(maps, passages, strict=True)
            )
            first, at = passages[0]
            self._made |= dict(zip(places, self._moved(places, maps, seen, first.settings[at]), strict=True))
        return self._made.pop(place)

    @abstractmethod
    def _moved(self, places: list[MapPlace], maps: list[Any], seen: Iterable[Any], setting: Setting) -> list[Any]:
        """Delta W X at all uses of one weight, or of one stack of them, from the maps and what they see there."""


class GradientMoves(WeightMoves):
    """Weights moved by +1 times the gradient of every error column: W by sum over its uses of U X^T.

    At a use the output moves by sum_uses U (X^T X_here), by Gram matrices of the features or by the gradient itself,
    whichever is less work. The ``errors`` are used up: each is let go once its weight has moved.
    """

    def __init__(self, state: Forward, errors: MutableMapping[MapPlace, Any]) -> None:
        super().__init__(state, sorted(errors))
        self._errors = errors

    def _moved(self, places: list[MapPlace], maps: list[Any], seen: Iterable[Any], setting: Setting) -> list[Any]:
        errors = [self._errors.pop(place) for place in places]
        return weighted_operation_of(maps[0]).moves(maps, errors, seen, setting)


def gradient_changes(state: Forward, output_error: Any) -> Iterator[Any]:
    """T_1 .. T_D, (D, C, r B, S), under plain gradients of every column r of errors (D, outputs, r B, sites)."""
    top, _ = through_readout(state, output_error)
    units = len(state.net.units)
    moves = GradientMoves(state, backward(state, top, units))
    return tangent(state, moves, units, top.shape[2] // state.setting.samples)


# Delta W X (D, rows, places B S) for the weights of these places, stacked as they are, given X of all places.
MatrixProduct = Callable[[list[MapPlace], Any], Any]


class MatrixMoves(WeightMoves):
    """Weights moved by matrices: Delta W X at every use, all uses of a weight in one product.

    ``product`` is called once for every weight, or stack of them, with its places and their patches side by side,
    (D, columns, places B S); a bias has a row of ones.
    """

    def __init__(self, state: Forward, product: MatrixProduct) -> None:
        places = [(number, place, holder) for number, place, holder in uses(state.net.units)]
        for *_, holder in places:
            if why := weighted_operation_of(holder).no_matrix:
                raise ValueError(why)
        super().__init__(state, [(number, place) for number, place, _ in places])
        self._product = product

    def _moved(self, places: list[MapPlace], maps: list[Any], seen: Iterable[Any], setting: Setting) -> list[Any]:
        patches = [weighted_operation_of(spec).patches(spec, x, setting) for spec, x in zip(maps, seen, strict=True)]
        moved = self._product(places, side_by_side(patches, setting))
        rows_and_sites = (setting.samples, patches[0].shape[2] // setting.samples)
        return by_use(moved.reshape(*moved.shape[:2], 1, len(places), -1), rows_and_sites, setting)


# Elements of g are brought back to about 1 when the largest exceeds 2^100: squares and sums stay far inside floats.
LARGEST_EXPONENT = 100


class WalkedUnit(NamedTuple):
    """One unit's share of the walk, (D, C, B, S) in units of 2^exponent, with one exponent per draw.

    Attributes:
        before: h_{u-1}.
        features: what the branch's last map is given, (D, C', B, S).
        increment: r_u.
        total: h_u - h_0, summed from all a r so far.
        stream: h_u.
        exponent: k, (D,).
    """

    before: Any
    features: Any
    increment: Any
    total: Any
    stream: Any
    exponent: Any


def units_below(net: Net) -> int:
    """How many units stand below the first that adds to an earlier value: they make h_0."""
    return next((number for number, unit in enumerate(net.units) if unit.adds), len(net.units))


def require_residual_stream(net: Net, *, maps_behind: bool = False) -> None:
    """Raise ValueError for a net that is no residual stream; ``maps_behind`` admits post-norm streams, too."""
    first = units_below(net)
    if first == len(net.units):
        raise ValueError(
            f"no unit of this {type(net).__name__} adds its branch to the value below it, as those of a residual "
            "stream do; give a loop, a residual net or a pre-norm Transformer"
        )
    for number, unit in enumerate(net.units[first:], start=first):
        if unit.shortcut:
            raise ValueError(
                f"unit {number + 1} skips from value {unit.skip} through {len(unit.shortcut)} map(s) of a shortcut; a "
                "residual stream is a value that all units add to: give a residual net of one stage"
            )
        if unit.skip != number or not unit.adds or (unit.after and not maps_behind):
            raise ValueError(
                f"unit {number + 1} skips from {unit.skip} (join {unit.join!r}) and has {len(unit.after)} map(s) "
                f"behind its join; every unit of a residual stream adds its branch to the value below it, {number}, "
                "and nothing follows"
            )


def require_stream_alone(net: Net) -> None:
    """Raise ValueError for a net that is no residual stream from its input to its output."""
    require_residual_stream(net)
    parts = [*(["units below its stream"] if units_below(net) else []), *(["a readout"] if net.readout_unit else [])]
    if parts:
        raise ValueError(
            f"this net has {' and '.join(parts)}; a step of the stream alone moves no other weights, under a loss of "
            "its last value: leave these out, as in a meanfield.Chain of the units that add to the stream"
        )


def stream_start(net: Net, weights: Weights, inputs: Any, arrays: Arrays = NUMPY) -> Any:
    """h_0 of inputs (D, C, B, S), by the units below the stream; weights of no later use are popped."""
    settings, values = [Setting(net.grid, inputs.shape[2], weights, arrays)], [inputs]
    for number, unit in enumerate(net.units[: units_below(net)], start=1):
        value, _, setting = through(unit, values, settings)
        values.append(value)
        settings.append(setting)
        release(net, number, weights)
    return values[-1]


def walk(net: Net, weights: Weights, start: Any, arrays: Arrays = NUMPY) -> Iterator[WalkedUnit]:
    """The units of the stream from h_0 = ``start`` (`stream_start`); weights of no later use are popped.

    Raises:
        ValueError: a net that is no residual stream.
    """
    require_residual_stream(net)
    setting = Setting(net.value_grids[units_below(net)], start.shape[2], weights, arrays)
    stream, total, carried = start, arrays.xp.zeros_like(start), None
    exponent = arrays.xp.zeros(len(start), dtype="int64")
    first = units_below(net)
    for number, unit in enumerate(net.units[first:], start=first):
        shift = _excess(stream, arrays)
        if shift is not None:
            stream, total = _scaled(stream, -shift, arrays), _scaled(total, -shift, arrays)
            carried = exponent = exponent + shift
        features, increment = _scaled_along(unit, stream, carried, setting)
        added = increment if unit.multiplier == 1.0 else unit.multiplier * increment
        total = total + added
        before, stream = stream, stream + added
        yield WalkedUnit(before, features, increment, total, stream, exponent)
        release(net, number + 1, weights)


def _scaled_along(unit: Unit, values: Any, carried: Any, setting: Setting) -> tuple[Any, Any]:
    """Features and increment, in the units 2^carried of the values; None means units of 1."""
    power, features = carried, (values, carried)
    for spec in unit.branch:
        operation, features = operation_of(spec), (values, power)
        if power is not None:
            degree = operation.degree(spec)
            if degree is None:
                values = _scaled(values, power, setting.arrays)
            power = degree * power if degree else None
        values = operation.forward(spec, values, setting)[0]
    if carried is None:
        return features[0], values
    first, second = (
        _scaled(array, -carried if of is None else of - carried, setting.arrays)
        for array, of in (features, (values, power))
    )
    return first, second


def _excess(stream: Any, arrays: Arrays) -> Any:
    """How many powers of two each draw's stream must shrink by; None if no stream must, as usual."""
    if max(stream.max(), -stream.min()) < 2.0**LARGEST_EXPONENT:
        return None
    xp = arrays.xp
    _, exponent = xp.frexp(xp.abs(stream).reshape(len(stream), -1).max(axis=1))
    shift = xp.where(exponent > LARGEST_EXPONENT, exponent, 0).astype("int64")
    return shift if shift.any() else None


def _scaled(values: Any, exponent: Any, arrays: Arrays) -> Any:
    """2^exponent times the values, each draw with its own."""
    return arrays.xp.ldexp(values, exponent[:, None, None, None]) if exponent.any() else values
