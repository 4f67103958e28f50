"""Overlaps of pairs in residual nets: everything redrawn, nets fixed up to a unit, narrower nets; laws beside."""

import argparse
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import require_choice
from meanfield.execution import Run
from meanfield.nets import Pair, ResidualMLP, pair_name, unit_shares
from meanfield.simulation import PairOverlaps
from meanfield.theory import FOLLOWED, growth_bound, growth_since_birth, mean_overlap
from sims.common.datasets import over, suffixed
from sims.common.pairs import chosen_pairs, open_seed
from sims.common.results import Results

# Parts of the width at which epsilon is measured too.
WIDTH_PARTS = (8, 4, 2)
# Depth units up to which nets are fixed in the conditional runs: so many at most.
MOST_FIXED = 3


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The net, the pairs, and the units up to which it is fixed in the conditional runs."""
    require_choice("--activation, of a net whose mean overlaps have a law,", options.activation, FOLLOWED)
    names = ("depth", "width", "block_depth", "scaling", "activation", "stem", "tail")
    net = ResidualMLP(**{name: getattr(options, name) for name in names})
    pairs = chosen_pairs(net, options.pair)
    return {"net": net, "pairs": pairs, "fixed": _fixed_units(net, pairs)}


def _fixed_units(net: ResidualMLP, pairs: tuple[Pair, ...]) -> list[int]:
    """Units of the conditional runs: from where all pairs have begun to the last that has one above, evenly spread."""
    first, last = max(layer for pair in pairs for layer, _ in pair), len(net.unit_ends) - 1
    if first > last:
        raise ValueError(f"a direction begins at the top depth unit, {first}; leave a unit above it to follow")
    steps = min(MOST_FIXED, last - first + 1)
    return sorted({first + (last - first) * step // max(1, steps - 1) for step in range(steps)})


def measure(
    options: argparse.Namespace, results: Results, net: ResidualMLP, pairs: tuple[Pair, ...], fixed: list[int]
) -> xr.Dataset:
    """Everything redrawn, NAME; nets fixed up to a unit, NAME_below and, one above, NAME_given; NAME_by_width."""
    largest = max(unit for pair in pairs for _, unit in pair)
    narrower = [replace(net, width=options.width // part) for part in WIDTH_PARTS if options.width // part >= largest]
    runs = [Run(each, PairOverlaps(pairs=pairs), options.draws, options.seed) for each in (net, *narrower)]
    for unit in fixed:
        conditional = PairOverlaps(pairs=pairs, fixed_layers=unit)
        runs.append(Run(net, conditional, options.draws, open_seed(net, pairs, unit, options.seed)))
    free, *further = results.draw(runs)
    by_width, given = further[: len(narrower)], further[len(narrower) :]
    parts = [free, _by_width([*narrower, net], [*by_width, free]), _given(net, given, fixed), _laws(net, pairs)]
    merged = xr.merge(parts, combine_attrs="override", join="outer")
    return merged.assign_attrs(gain=net.sigma.gain, width=net.width)


def _by_width(nets: list[ResidualMLP], measured: list[xr.Dataset]) -> xr.Dataset:
    """The gate deviation at the top unit, by width."""
    top = [drawn[["gate_deviation", "gate_deviation_stderr"]].isel(layer=-1, drop=True) for drawn in measured]
    joined = xr.concat(top, dim="width", join="outer").assign_coords(width=[net.width for net in nets])
    return suffixed(joined, "by_width")


def _given(net: ResidualMLP, measured: list[xr.Dataset], fixed: list[int]) -> xr.Dataset:
    """Of nets that are fixed up to a unit: what that unit says of the next, and the mean there."""
    parts = []
    for drawn, unit in zip(measured, fixed, strict=True):
        own, above = drawn.isel(layer=unit - 1, drop=True), drawn.isel(layer=unit, drop=True)
        kept, carried = unit_shares(net)[unit]
        values = {"overlap_below": own["overlap"], "gated_overlap_below": own["gated_overlap"]}
        values["ungated_below"] = (kept + carried / net.sigma.gain) * own["overlap"]
        values |= {"overlap_given": above["overlap"], "overlap_stderr_given": above["overlap_stderr"]}
        parts.append(xr.Dataset(values))
    return xr.concat(parts, dim="fixed", join="outer").assign_coords(fixed=fixed)


def _laws(net: ResidualMLP, pairs: tuple[Pair, ...]) -> xr.Dataset:
    """Growth since birth and its bound, leading-order means, and what kind each pair is."""
    axes, rows = {"pair": [pair_name(pair) for pair in pairs]}, []
    for pair in pairs:
        law, (first, second) = mean_overlap(net, pair), pair
        rows.append(
            {
                "growth": growth_since_birth(net, pair),
                "growth_ungated": growth_since_birth(net, pair, 1 / net.sigma.gain),
                "growth_bound": growth_bound(net, pair),
                "overlap_law": law.mean,
                "overlap_scale": law.scale,
                "gate_deviation_law": law.deviation,
                "on_one_unit": int(law.on_one_unit),
                "across": int(first[0] != second[0]),
            }
        )
    return over(axes, rows, "layer").assign_coords(layer=np.arange(1, len(net.unit_ends) + 1))
