"""Pairs of parameter directions: on the command line, in nets in which they can be followed, and in reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import xarray as xr

import meanfield as mf
from meanfield.nets import DirectionPair, Sequential, checked_pairs
from sims.common.command import Option
from sims.common.tables import measured, table

MOST_SEEDS = 1000


PAIR = Option(
    "pair",
    "layer and unit of two directions, counted from 1, such as 1,1:2,1; may be repeated (default: the same unit; two "
    "units of a layer; the same unit, and two units, of different layers)",
    metavar="L,A:L,A",
    repeated=True,
)


def chosen_pairs(net: Sequential, given: list[str] | None) -> tuple[DirectionPair, ...]:
    """The pairs that were asked for, or one of every kind; all inside the net."""
    return checked_pairs(net, map(_read, given) if given else _default_pairs(net))


def _default_pairs(net: Sequential) -> list[Any]:
    """One pair of every kind, all begun by layer 2; nets of a single layer or unit have fewer kinds."""
    kinds = [((1, 1), (1, 1)), ((1, 1), (1, 2)), ((1, 1), (2, 1)), ((1, 1), (2, 2))]
    narrowest = min(net.channels_by_layer)
    return [pair for pair in kinds if pair[1][0] <= len(net.unit_ends) and pair[1][1] <= narrowest]


def _read(text: str) -> tuple[tuple[int, int], ...]:
    """A pair from the command line."""
    try:
        first, second = (tuple(int(number) for number in part.split(",")) for part in text.split(":"))
        (first_layer, first_unit), (second_layer, second_unit) = first, second
    except ValueError:
        raise ValueError(f"--pair {text!r} does not read as LAYER,UNIT:LAYER,UNIT, such as 1,1:2,1") from None
    return (first_layer, first_unit), (second_layer, second_unit)


def open_seed(net: Sequential, pairs: tuple[DirectionPair, ...], fixed: int, seed: int, weights: str = "auto") -> int:
    """The first seed after the given one whose fixed layers let every direction through to the layers above.

    Behind a closed ReLU gate a direction's overlaps are 0 for ever, and nothing is left to follow. Dense ``weights``
    and lazily revealed ones of a seed are different nets.
    """
    for candidate in range(seed + 1, seed + 1 + MOST_SEEDS):
        overlaps = mf.simulate(
            net, measure=mf.PairOverlaps(pairs=pairs, weights=weights, fixed_layers=fixed), draws=2, seed=candidate
        )
        if (overlaps["overlap_variance"].isel(layer=fixed) > 0).all():
            return candidate
    raise ValueError(f"no net in {MOST_SEEDS} lets every pair through layer {fixed}; give fewer pairs or wider layers")


def added_variance(measured: Sequence[xr.Dataset], units: Sequence[int], fixed: int) -> xr.Dataset:
    """Var(T | layers below) of the layer above the fixed ones by pair and its units, a dataset each: NAME_by_width."""
    names = ["overlap_variance", "overlap_variance_stderr"]
    above = [dataset[names].isel(layer=fixed, drop=True) for dataset in measured]
    joined = xr.concat(above, dim="width_above", join="outer").assign_coords(width_above=list(units))
    return joined.rename({name: f"{name}_by_width" for name in names})


def added_variance_table(dataset: xr.Dataset) -> str:
    """The printed form of it: constant in a line where the variance is of order 1/C."""
    units, lines = dataset["width_above"].values, []
    for pair in dataset["pair"].values:
        columns = (dataset.sel(pair=pair)[f"overlap_variance{end}_by_width"].values for end in ("", "_stderr"))
        lines.append([str(pair), *(measured(c * v, c * e) for c, v, e in zip(units, *columns, strict=True))])
    title = f"C Var(T | below) of layer {int(dataset.attrs['fixed_layers']) + 1} at C units, all below fixed"
    return table(["pair", *(f"C = {count}" for count in units)], lines, title)
