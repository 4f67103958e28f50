"""The tangent kernel Theta of every value, and the overlap energy F = |Theta|_F^2 / n^2 from it.

Between two values, u and v, it is held as columns at u: (D, C_u, n_v B, S_u), a column for every unit of v by channel,
sample and site, as the passes take columns. Kernels are symmetric: between v and u it is the same, turned.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from meanfield.common.arrays import Array
from meanfield.nets.maps import Bias, Gain
from meanfield.simulation.maps import operation_of
from meanfield.simulation.passes import Forward, Passage
from meanfield.simulation.weights.moves import site_gram

# Channels and sites of a value.
Shape = tuple[int, int]


def tangent_kernels(state: Forward) -> Iterator[Any]:
    """Yield Theta^(1) .. Theta^(L) of the values, (D, n_u, n_u), units ordered (channel, sample, site).

    n_u = channels x samples x sites of value u; a kernel takes O(n_u^2) memory. Up to a map with weights
    Theta <- J Theta J^T, J the linear part of the maps; then the weights' own (X^T X) x identity over channels is
    added. Where a unit adds its branch b to a value s, as s + a b, the kernel is
    Theta_ss + a (Theta_bs + Theta_sb) + a^2 Theta_bb.

    Raises:
        ValueError: a weight is used in several places, so that the kernel is no sum over them.
    """
    for columns in _by_columns(state):
        by_sample = state.setting.by_sample(columns)
        units = by_sample.shape[2]
        yield state.arrays.xp.moveaxis(by_sample, 2, 4).reshape(len(columns), units, units)


def _by_columns(state: Forward) -> Iterator[Any]:
    if state.net.is_tied:
        raise ValueError("a weight is used in several places of this net; its tangent kernel is no sum over layers")
    units = state.net.units
    last_use = {unit.skip: number for number, unit in enumerate(units) if unit.skip}
    own: Any = None  # Theta of the current value
    crossed: dict[int, Any] = {}  # between it and the values that a skip still asks for
    between: dict[tuple[int, int], Any] = {}  # between those, the later one first
    shapes: dict[int, Shape] = {}  # of those
    for number, (unit, passage) in enumerate(zip(units, state.passages, strict=True)):
        if number in last_use:
            crossed[number], shapes[number] = own, _shape(own)
            between |= {(number, other): kernel for other, kernel in crossed.items()}
        own, crossed = _along(range(len(unit.branch)), passage, own, crossed, state)
        own *= unit.multiplier**2
        if unit.skip:
            cross = crossed[unit.skip]
            own += between[unit.skip, unit.skip] + unit.multiplier * (cross + _turned(cross, _shape(own), state))
        crossed = {other: unit.multiplier * kernel for other, kernel in crossed.items() if last_use[other] > number}
        if unit.skip:
            for other in crossed:
                earlier, later = sorted((unit.skip, other))
                known = between[later, earlier]
                crossed[other] += known if other == earlier else _turned(known, shapes[earlier], state)
        if unit.after:
            own, crossed = _along(range(len(unit.branch), len(unit.maps)), passage, own, crossed, state)
        yield own


def _shape(columns: Any) -> Shape:
    return columns.shape[1], columns.shape[3]


def _turned(columns: Any, other: Shape, state: Forward) -> Any:
    """Columns at u, one for every unit of a value v of this shape, as columns at v."""
    draws, channels, _, sites = columns.shape
    pairs = columns.reshape(draws, channels, other[0], -1, other[1], state.setting.samples, sites)
    return pairs.transpose(0, 2, 1, 5, 6, 3, 4).reshape(draws, other[0], -1, other[1])


def _along(
    places: Sequence[int], passage: Passage, own: Any, crossed: dict[int, Any], state: Forward
) -> tuple[Any, dict[int, Any]]:
    """Kernels through maps: that of the value on both sides, those between it and others on its side."""
    start = 0
    for end, place in enumerate(places, start=1):
        holds = bool(passage.unit.maps[place].weights)
        if not holds and end < len(places):
            continue
        run = places[start:end]
        start = end
        if own is not None:
            below = _shape(own)
            own = _carried(run, passage, _turned(_carried(run, passage, own, state), below, state), state)
        if holds:
            kernel = _own_kernel(place, passage, state)
            if own is not None:
                kernel += own
            own = kernel
        crossed = {source: _carried(run, passage, kernel, state) for source, kernel in crossed.items()}
    return own, crossed


def _own_kernel(place: int, passage: Passage, state: Forward) -> Any:
    """What a map's own weights give: X^T X x identity over channels, X what a channel's group sees.

    Of a gain, x x^T over all channels and places.
    """
    spec: Any = passage.unit.maps[place]
    features = passage.input_of(place, state.setting)
    draws, channels, samples, sites = features.shape
    pairs = samples * sites
    if isinstance(spec, Gain):
        flat = features.reshape(draws, channels, pairs)
        kernel = flat[:, :, None, None] * flat[:, None, :, :, None]
    else:
        channels = sum(weight.shape[0] for weight in spec.weights)
        kernel = state.arrays.xp.zeros((draws, channels, channels, pairs, pairs), dtype=state.arrays.precision)
        first = 0
        for weight in spec.weights:
            rows, size = weight.group_rows, features.shape[1] // weight.groups
            for group in range(weight.groups):
                group_features = features[:, group * size : (group + 1) * size]
                gram = 1.0 if isinstance(spec, Bias) else site_gram(spec, group_features, state.setting)
                for channel in range(first, first + rows):
                    kernel[:, channel, channel] = gram
                first += rows
    return kernel.reshape(draws, channels, -1, sites)


def _carried(run: Sequence[int], passage: Passage, columns: Any, state: Forward) -> Any:
    """Every column through maps."""
    for place in run:
        spec, operation = passage.unit.maps[place], operation_of(passage.unit.maps[place])
        values = passage.input_of(place, state.setting) if operation.reads else None
        columns = operation.tangent(spec, values, passage.kept[place], columns, state.setting)
    return columns


def dense_overlap_energy(state: Forward) -> Array:
    """F_1 .. F_D of every draw, exactly: (D, values)."""
    squares = []
    for columns in _by_columns(state):
        flat = columns.reshape(len(columns), -1)
        squares.append(state.arrays.squared_norms(flat) / flat.shape[1])
    return state.arrays.xp.stack(squares, axis=1)
