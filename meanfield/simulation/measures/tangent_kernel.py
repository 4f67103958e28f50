"""The tangent kernel Theta of every value, and the overlap energy F = |Theta|_F^2 / n^2 from it."""

from collections.abc import Iterator, Sequence
from typing import Any

from meanfield.common.arrays import Array
from meanfield.nets.maps import Bias, Gain
from meanfield.simulation.maps import operation_of
from meanfield.simulation.passes import Forward, Passage
from meanfield.simulation.weights.moves import site_gram


def tangent_kernels(state: Forward) -> Iterator[Any]:
    """Yield Theta^(1) .. Theta^(L) of the values, (D, n_u, n_u), units ordered (channel, sample, site).

    n_u = channels x samples x sites of value u; a kernel takes O(n_u^2) memory. Up to a map with weights
    Theta <- J Theta J^T, J the linear part of the maps; then the weights' own (X^T X) x identity over channels is
    added. Where a unit adds its branch b to a value s, as s + a b, the kernel is
    Theta_ss + a (Theta_bs + Theta_sb) + a^2 Theta_bb.

    Raises:
        ValueError: a weight is used in several places, so that the kernel is no sum over them.
    """
    if state.net.is_tied:
        raise ValueError("a weight is used in several places of this net; its tangent kernel is no sum over layers")
    units = state.net.units
    last_use = {unit.skip: number for number, unit in enumerate(units) if unit.skip}
    own: Any = None  # Theta of the current value
    crossed: dict[int, Any] = {}  # between it and the values that a skip still asks for
    between: dict[tuple[int, int], Any] = {}  # between those
    for number, (unit, passage) in enumerate(zip(units, state.passages, strict=True)):
        if number in last_use:
            crossed[number] = own
            between |= {(number, other): kernel for other, kernel in crossed.items()}
        own, crossed = _along(range(len(unit.branch)), passage, own, crossed, state)
        own *= unit.multiplier**2
        if unit.skip:
            cross = crossed[unit.skip]
            own += between[unit.skip, unit.skip] + unit.multiplier * (cross + cross.swapaxes(1, 2))
        crossed = {
            other: unit.multiplier * kernel + (_between(between, unit.skip, other) if unit.skip else 0.0)
            for other, kernel in crossed.items()
            if last_use[other] > number
        }
        if unit.after:
            own, crossed = _along(range(len(unit.branch), len(unit.maps)), passage, own, crossed, state)
        yield own


def _between(kernels: dict[tuple[int, int], Any], rows: int, columns: int) -> Any:
    """Theta between two values, (n_one, n_other)."""
    return kernels[rows, columns] if rows >= columns else kernels[columns, rows].swapaxes(1, 2)


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
            own = _carried(run, passage, _carried(run, passage, own, state).swapaxes(1, 2), state)
        if holds:
            kernel = _own_kernel(place, passage, state)
            if own is not None:
                kernel += own
            own = kernel
        crossed = {source: _carried(run, passage, kernel, state) for source, kernel in crossed.items()}
    return own, crossed


def _own_kernel(place: int, passage: Passage, state: Forward) -> Any:
    """What a map's own weights give, (D, n, n): X^T X x identity over channels, X what a channel's group sees.

    Of a gain, x x^T over all channels and places.
    """
    spec: Any = passage.unit.maps[place]
    xp = state.arrays.xp
    features = passage.input_of(place, state.setting)
    draws, channels = len(features), sum(weight.shape[0] for weight in spec.weights)
    pairs = features.shape[2] * features.shape[3]
    if isinstance(spec, Gain):
        flat = features.reshape(draws, -1)
        return flat[:, :, None] * flat[:, None]
    kernel = xp.zeros((draws, channels, pairs, channels, pairs), dtype=state.arrays.precision)
    first = 0
    for weight in spec.weights:
        rows, size = weight.group_rows, features.shape[1] // weight.groups
        for group in range(weight.groups):
            group_features = features[:, group * size : (group + 1) * size]
            gram = 1.0 if isinstance(spec, Bias) else site_gram(spec, group_features, state.setting)
            for channel in range(first, first + rows):
                kernel[:, channel, :, channel] = gram
            first += rows
    return kernel.reshape(draws, channels * pairs, channels * pairs)


def _carried(run: Sequence[int], passage: Passage, kernel: Any, state: Forward) -> Any:
    """Every column of a kernel through maps: (D, n below, m) -> (D, n above, m)."""
    moveaxis, setting = state.arrays.xp.moveaxis, state.setting
    draws, channels, samples, sites = passage.input_of(run[0], setting).shape
    columns = moveaxis(kernel.reshape(draws, channels, samples, sites, -1), 4, 2).reshape(draws, channels, -1, sites)
    for place in run:
        spec, operation = passage.unit.maps[place], operation_of(passage.unit.maps[place])
        values = passage.input_of(place, setting) if operation.reads else None
        columns = operation.tangent(spec, values, passage.kept[place], columns, setting)
    above, sites = columns.shape[1], columns.shape[3]  # pooled ones are fewer
    carried = moveaxis(columns.reshape(draws, above, -1, samples, sites), 2, 4)
    return carried.reshape(draws, above * samples * sites, -1)


def dense_overlap_energy(state: Forward) -> Array:
    """F_1 .. F_D of every draw, exactly: (D, values)."""
    arrays, kernels = state.arrays, tangent_kernels(state)
    squares = [arrays.squared_norms(kernel.reshape(len(kernel), -1)) / kernel.shape[1] ** 2 for kernel in kernels]
    return arrays.xp.stack(squares, axis=1)
