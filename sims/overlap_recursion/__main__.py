"""Overlaps of pairs of parameter directions, followed from the layer where they begin to the top.

A direction is one unit's weights, moved along that unit's incoming features; T_h is the mean over units of the
product of the two tangents of z^(h). Over redraws of the net: the mean of T_h, which P0 Lemma 1 says is conserved; the
growth of its square against the exact recursion; the variance that each new layer adds (P0 Lemma 5: at most C0/C). Over
redraws of the layers above a fixed one: the mean of T_h given z^(l), as Lemma 1 is written. Choose pairs with --pair.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from sims.common.command import add_run_options, command_parser, fill_from_preset, run_command
from sims.common.pairs import add_pair_option, chosen_pairs, open_seed
from sims.common.results import Results, run_key

if TYPE_CHECKING:
    import xarray as xr

    from meanfield.nets import MLP, Pair

NAME = "overlap_recursion"

PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {"depth": 5, "width": 32, "draws": 2048},
    "default": {"depth": 12, "width": 128, "draws": 32768},
    "paper": {"depth": 24, "width": 256, "draws": 131_072},
}
# Widths of the layer above the fixed ones, over which the added variance should fall as 1/C.
WIDTH_FACTORS = (0.5, 1, 2, 4)


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(NAME, __doc__, presets=PRESETS)
    add = parser.add_argument_group("network").add_argument
    add("--depth", type=int, metavar="L", help="hidden layers")
    add("--width", type=int, metavar="N", help="units of every layer")
    add("--activation", default="relu", help="relu (default) or linear")
    add_pair_option(add)
    add("--fixed", type=int, metavar="L", help="layer up to which the net is fixed (default: the pairs' own)")
    add_run_options(parser)
    options = parser.parse_args(argv)
    fill_from_preset(options, PRESETS[options.preset])
    return options


def run(options: argparse.Namespace) -> int:
    """Measure (or read what an equal run has measured), print, and write."""
    from figures import overlap_recursion as figure
    from meanfield.common import require_choice
    from meanfield.nets import MLP
    from meanfield.theory import GATES
    from sims.overlap_recursion import report

    require_choice("--activation, of a net whose overlaps are known exactly,", options.activation, GATES)
    net = MLP(depth=options.depth, width=options.width, activation=options.activation)
    pairs = chosen_pairs(net, options.pair)
    fixed = _fixed_layers(options.fixed, net, pairs)
    run_of = {"net": net, "pairs": pairs, "fixed": fixed, "draws": options.draws, "seed": options.seed}
    results = Results(NAME, run_key(**run_of), options)
    return results.deliver(lambda: _measure(options, net, pairs, fixed, results), report.text, figure.draw)


def _fixed_layers(wanted: int | None, net: MLP, pairs: tuple[Pair, ...]) -> int:
    """The layer of the conditional run: at least that of every direction, and below the top."""
    upper = max(layer for pair in pairs for layer, _ in pair)
    fixed = upper if wanted is None else wanted
    if not upper <= fixed < net.depth:
        allowed = f"{upper} .. {net.depth - 1}" if upper < net.depth else "none: a direction begins at the top layer"
        raise ValueError(f"--fixed is {fixed}; all pairs must have begun and a layer be left above; allowed: {allowed}")
    return fixed


def _measure(
    options: argparse.Namespace, net: MLP, pairs: tuple[Pair, ...], fixed: int, results: Results
) -> xr.Dataset:
    """Everything redrawn, NAME; only what stands above the fixed layers, NAME_given; and that layer's width varied.

    Exact expectations beside the first as NAME_exact.
    """
    from dataclasses import replace

    import xarray as xr

    import meanfield as mf
    from meanfield.execution import Run, simulate_all
    from meanfield.simulation import PairOverlaps

    below = net.channels_by_layer[1 : fixed + 1]
    widths = [max(1, round(options.width * factor)) for factor in WIDTH_FACTORS]
    varied = [replace(net, depth=fixed + 1, width=(*below, width)) for width in widths]
    # Dense and lazily revealed weights of a seed are different nets: one kind for all widths above the same layers.
    kind = PairOverlaps(pairs=pairs).settled(varied[0]).weights
    beyond = open_seed(varied[-1], pairs, fixed, options.seed, kind)
    # With all below fixed, overlaps spread far less: a quarter of the draws tells their means and variances.
    fewer = max(2, options.draws // 4)
    conditional = PairOverlaps(pairs=pairs, weights=kind, fixed_layers=fixed)
    runs = [
        Run(net, PairOverlaps(pairs=pairs), options.draws, options.seed),
        *(Run(each, conditional, fewer, beyond) for each in (net, *varied)),
    ]
    free, given, *by_width = simulate_all(runs, workers=options.workers, store=results.pieces)
    exact = mf.predict(net, level="exact", pairs=pairs)[["overlap", "squared_overlap", "overlap_variance"]]
    added = xr.concat([one.isel(layer=fixed, drop=True) for one in by_width], dim="width_above", join="outer")
    added = added[["overlap_variance", "overlap_variance_stderr"]].assign_coords(width_above=widths)
    parts = [
        free,
        exact.rename({name: f"{name}_exact" for name in exact.data_vars}),
        given.rename({name: f"{name}_given" for name in given.data_vars}),
        added.rename({name: f"{name}_by_width" for name in added.data_vars}),
    ]
    merged = xr.merge(parts, combine_attrs="override")
    merged.attrs |= {"fixed_layers": fixed, "draws_given": fewer}
    return merged


def main(argv: list[str] | None = None) -> int:
    return run_command(run, parse(argv))


if __name__ == "__main__":
    sys.exit(main())
