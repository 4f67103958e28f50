"""Sums over shifts of arrays on grids, axis by axis: what a stencil of taps does to functions and pairs of sites.

A rectangular stencil is a product over the axes, so the sum over its k_1 k_2 offsets is a sum over k_1 along one axis
and then over k_2 along the other. Each shift is one addition of slices in place; nothing is padded or gathered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from meanfield.common.arrays import Array
from meanfield.nets.lattice import axis_offsets


def sum_over_stencil(
    pairs: Array, sides: Sequence[int], grid: Sequence[int], kernel: Sequence[int], padding: str, dilation: int = 1
) -> Array:
    """sum_Delta of pairs of sites (.., S, B, S) whose ``sides`` step: (0, 1) both together, (0,) or (1,) one alone.

    Both together make sum_Delta S_Delta A S_Delta^T. A new array, unless the grid is empty.
    """
    values = pairs.reshape(*pairs.shape[:-3], *grid, pairs.shape[-2], *grid)
    for axis, taps in enumerate(kernel, start=-len(grid)):
        places = (axis - len(grid) - 1, axis)
        values = sum_over_shifts(values, [places[side] for side in sides], taps, padding, dilation)
    return values.reshape(pairs.shape)


def sum_over_shifts(values: Array, axes: Sequence[int], taps: int, padding: str, dilation: int = 1) -> Array:
    """sum_Delta values(.. p + Delta ..), where all of ``axes`` (of equal length) step together by each Delta.

    Outside the grid there is nothing ("zero"), or the far side ("circular"); Delta is ``dilation`` times a tap's place.
    """
    total = values.copy()  # the offset 0, which every stencil has
    for step in axis_offsets(taps):
        if step:
            for here, there in _overlaps(values.shape[axes[0]], dilation * step, padding, len(axes)):
                target = _along(total, axes, here)
                target += _along(values, axes, there)
    return total


def _overlaps(length: int, step: int, padding: str, axes: int) -> Iterator[tuple[list[slice], list[slice]]]:
    """Targets p of each axis, and p + step, in runs that do not cross the edge; for several axes, all combinations."""
    wrapped = step % length
    runs = [(slice(0, length - wrapped), slice(wrapped, length)), (slice(length - wrapped, length), slice(0, wrapped))]
    if padding == "zero":
        inside = max(length - abs(step), 0)
        start = max(-step, 0)
        runs = [(slice(start, start + inside), slice(start + step, start + step + inside))] if inside else []
    for axis_runs in product(runs, repeat=axes):
        yield [here for here, _ in axis_runs], [there for _, there in axis_runs]


def _along(values: Array, axes: Sequence[int], slices: Sequence[slice]) -> Array:
    index = [slice(None)] * values.ndim
    for axis, part in zip(axes, slices, strict=True):
        index[axis] = part
    return values[tuple(index)]
