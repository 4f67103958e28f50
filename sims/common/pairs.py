"""Pairs of parameter directions: on the command line, in nets in which they can be followed, in verdicts and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.nets import DirectionPair, Sequential, checked_pairs
from meanfield.verification import (
    Contest,
    Deviation,
    Judge,
    Judges,
    Series,
    between,
    effective_draws,
    shown_laws,
    slope_contest,
)
from sims.common.command import Option
from sims.common.datasets import Variable
from sims.common.tables import Column, Grid, Table, drawn

MOST_SEEDS = 1000
# Of a number, below which a difference is rounding: the overlap is the same in every draw.
ROUNDING = 1e-12

PAIR = Option(
    "pair",
    "layer and unit of two directions, counted from 1, such as 1,1:2,1; may be repeated (default: the same unit; two "
    "units of a layer; the same unit, and two units, of different layers)",
    metavar="L,A:L,A",
    repeated=True,
)
# Of what stands above fixed layers.
OF_FIXED_NETS = (
    Variable("overlap_given", "overlap, the layers up to a fixed one given", "up to the fixed layer: its given value"),
    Variable("gated_overlap_given", "gated overlap, the layers up to a fixed one given"),
    Variable(
        "overlap_variance_by_width", "variance of the overlap that a layer adds, all below it given, by its units"
    ),
    Variable("width_above", "units C of the layer above the fixed ones"),
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


def added_variance_table(dataset: xr.Dataset) -> Grid:
    """Variances that a layer adds: constant in a line where they are of order 1/C."""
    by_width = dataset.rename(overlap_variance_by_width="added", overlap_variance_stderr_by_width="added_stderr")
    title = f"C Var(T | below) of layer {int(dataset.attrs['fixed_layers']) + 1} at C units, all below fixed"
    columns = [_units_column(units) for units in dataset["width_above"].values]
    return Table("added variance table", title, ["pair"], "pair", columns)(by_width)


def _units_column(units: int) -> Column:
    return Column(f"C = {units}", lambda at: drawn(at.sel(width_above=units), "added", float(units)))


def effective_overlap_draws(dataset: xr.Dataset) -> float:
    """Kish's count for the worst squared overlap: few, where rare draws make it."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return effective_draws(dataset, "squared_overlap")


def deviation(
    dataset: xr.Dataset, name: str, expected: xr.DataArray, end: str = "", allowance: xr.DataArray | None = None
) -> Deviation:
    """Measured minus expected where both exist; identical draws have no error beyond rounding."""
    series = Series.of(dataset, name, end)
    measured = series.value
    given = series.error, expected, xr.zeros_like(measured) if allowance is None else allowance
    stderr, value, granted = (array.broadcast_like(measured).transpose(*measured.dims).values for array in given)
    finite = np.isfinite(measured.values) & np.isfinite(value)
    rounding = ROUNDING + ROUNDING * np.abs(value[finite])
    return Deviation((measured.values - value)[finite], stderr[finite], granted[finite] + rounding)


def conditional_mean_judge(judges: Judges) -> Judge[[xr.Dataset]]:
    """The judge, declared among these, of mean overlaps above fixed layers."""

    @judges.decide(
        claim="Mean overlap above layer {at}, given z^({at}), is the overlap at layer {at}",
        rival="the gated overlap at layer {at}, over q",
        source="eq. 14",
        measured="E[T_h | z^(l)], where z^(l) fixes the gates of layer l too",
    )
    def judge_conditional_mean(dataset: xr.Dataset) -> Contest:
        at = int(dataset.attrs["fixed_layers"])
        above, own = dataset.sel(layer=slice(at + 1, None)), dataset.sel(layer=at)
        claim, rival = (
            deviation(above, "overlap", own[f"{name}_given"], "given") for name in ("overlap", "gated_overlap")
        )
        return between(claim, rival, words={"at": at})

    return judge_conditional_mean


def added_variance_judge(judges: Judges) -> Judge[[xr.Dataset]]:
    """The judge, declared among these, of the variance that a layer adds to overlaps, all below it fixed."""

    @judges.decide(
        claim="Given the layers below, a layer of C units adds a variance of C0/C",
        rival="C^(-1/2)",
        source="lemma 5, eq. 27",
        measured="the slope in C of every pair whose overlap varies",
    )
    def judge_added_variance(dataset: xr.Dataset) -> Contest:
        by_width = Series.of(dataset, "overlap_variance", "by_width")
        pairs = (by_width.sel(pair=pair) for pair in dataset["pair"].values)
        laws = [at.law("width_above") for at in pairs if np.all(at.value.values > ROUNDING)]
        words, draws = f"slopes in C by pair: {shown_laws(*laws)}", dataset.attrs["draws_given"]
        return slope_contest(*laws, claimed=-1.0, rival=-0.5, draws=draws, effective=draws, shown=words)

    return judge_added_variance
