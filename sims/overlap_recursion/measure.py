"""Overlaps of pairs of directions: everything redrawn, what stands above fixed layers, the layer above of any width."""

import argparse
from dataclasses import replace
from typing import Any

import xarray as xr

import meanfield as mf
from meanfield.common import require_choice
from meanfield.execution import Run
from meanfield.nets import MLP, DirectionPair
from meanfield.simulation import PairOverlaps
from meanfield.theory import GATES
from sims.common.datasets import suffixed
from sims.common.pairs import added_variance, chosen_pairs, open_seed
from sims.common.results import Results

# Widths of the layer above the fixed ones, over which the added variance should fall as 1/C.
WIDTH_FACTORS = (0.5, 1, 2, 4)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The net, the pairs, and the layer up to which the net is fixed in the conditional run."""
    require_choice("--activation, of a net whose overlaps are known exactly,", options.activation, GATES)
    net = MLP(depth=options.depth, width=options.width, activation=options.activation)
    pairs = chosen_pairs(net, options.pair)
    upper = max(layer for pair in pairs for layer, _ in pair)
    fixed = upper if options.fixed is None else options.fixed
    if not upper <= fixed < net.depth:
        allowed = f"{upper} .. {net.depth - 1}" if upper < net.depth else "none: a direction begins at the top layer"
        raise ValueError(f"--fixed is {fixed}; all pairs must have begun and a layer be left above; allowed: {allowed}")
    return {"net": net, "pairs": pairs, "fixed": fixed}


def measure(
    options: argparse.Namespace, results: Results, net: MLP, pairs: tuple[DirectionPair, ...], fixed: int
) -> xr.Dataset:
    """Everything redrawn, NAME, with NAME_exact; only what stands above the fixed layers, NAME_given; NAME_by_width."""
    below = net.channels_by_layer[1 : fixed + 1]
    widths = [max(1, round(options.width * factor)) for factor in WIDTH_FACTORS]
    varied = [replace(net, depth=fixed + 1, width=(*below, width)) for width in widths]
    # Dense and lazily revealed weights of a seed are different nets: one kind for all widths above the same layers.
    kind = PairOverlaps(pairs=pairs).settled(varied[0]).weights
    beyond = open_seed(varied[-1], pairs, fixed, options.seed, kind)
    # With all below fixed, overlaps spread far less: a quarter of the draws tells their means and variances.
    fewer = max(2, options.draws // 4)
    conditional = PairOverlaps(pairs=pairs, weights=kind, fixed_layers=fixed)
    runs = [Run(net, PairOverlaps(pairs=pairs), options.draws, options.seed)]
    runs += [Run(each, conditional, fewer, beyond) for each in (net, *varied)]
    free, given, *by_width = results.draw(runs)
    exact = mf.predict(net, level="exact", pairs=pairs)
    parts = [
        free,
        suffixed(exact, "exact", ["overlap", "squared_overlap", "overlap_variance"]),
        suffixed(given, "given"),
        added_variance(by_width, widths, fixed),
    ]
    return xr.merge(parts, combine_attrs="override").assign_attrs(fixed_layers=fixed, draws_given=fewer)
