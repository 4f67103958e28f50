"""Overlaps of pairs of parameter directions in residual nets, followed from block to block (P0 appendix C.1).

A direction is one unit's weights at the end of a block (or in a stem or tail layer), moved along that unit's incoming
features; T_l is the mean over units of the product of two tangents of the stream, T~_l the same behind the gates.
Measured: the mean over one block given all below it (P0 eq. 31); the mean over redraws against (1 + cq/K)^blocks and
its bound e^(cq) (eq. 35); at several widths epsilon = E T~ - q E T, by which gates depend on tangents (eq. 34). Depth
units are counted from 1: stem layers, blocks, tail layers. Choose pairs with --pair.
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

    from meanfield.nets import Pair, ResidualMLP

NAME = "residual_overlap"

PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {"depth": 4, "width": 32, "draws": 2048},
    "default": {"depth": 8, "width": 64, "draws": 16384},
    "paper": {"depth": 24, "width": 128, "draws": 262_144},
}
# Parts of the width at which epsilon is measured too.
WIDTH_PARTS = (8, 4, 2)
# Depth units up to which nets are fixed in the conditional runs: so many at most.
MOST_FIXED = 3


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(NAME, __doc__, presets=PRESETS)
    add = parser.add_argument_group("network").add_argument
    add("--depth", type=int, metavar="K", help="residual blocks")
    add("--width", type=int, metavar="N", help="units of every layer")
    add("--block-depth", type=int, default=1, metavar="k", help="layers of a branch (default: 1)")
    add("--scaling", default="init", help="init (default), multiplier_sqrt, multiplier_linear or none")
    add("--activation", default="relu", help="relu (default) or linear")
    add("--stem", type=int, default=1, metavar="M", help="plain layers below the blocks (default: 1)")
    add("--tail", type=int, default=0, metavar="M", help="plain layers above the blocks (default: 0)")
    add_pair_option(add)
    add_run_options(parser)
    options = parser.parse_args(argv)
    fill_from_preset(options, PRESETS[options.preset])
    return options


def run(options: argparse.Namespace) -> int:
    """Measure (or read what an equal run has measured), print, and write."""
    from figures import residual_overlap as figure
    from meanfield.common import require_choice
    from meanfield.nets import ResidualMLP
    from meanfield.theory import FOLLOWED
    from sims.residual_overlap import report

    require_choice("--activation, of a net whose mean overlaps have a law,", options.activation, FOLLOWED)
    spec = {name: getattr(options, name) for name in ("depth", "width", "block_depth", "scaling", "activation")}
    net = ResidualMLP(**spec, stem=options.stem, tail=options.tail)
    pairs = chosen_pairs(net, options.pair)
    fixed = _fixed_units(net, pairs)
    run_of = {"net": net, "pairs": pairs, "draws": options.draws, "seed": options.seed}
    results = Results(NAME, run_key(**run_of), options)
    return results.deliver(lambda: _measure(options, net, pairs, fixed, results), report.text, figure.draw)


def _fixed_units(net: ResidualMLP, pairs: tuple[Pair, ...]) -> list[int]:
    """Units of the conditional runs: from where all pairs have begun to the last that has one above, evenly spread."""
    first, last = max(layer for pair in pairs for layer, _ in pair), len(net.unit_ends) - 1
    if first > last:
        raise ValueError(f"a direction begins at the top depth unit, {first}; leave a unit above it to follow")
    steps = min(MOST_FIXED, last - first + 1)
    return sorted({first + (last - first) * step // max(1, steps - 1) for step in range(steps)})


def _measure(
    options: argparse.Namespace, net: ResidualMLP, pairs: tuple[Pair, ...], fixed: list[int], results: Results
) -> xr.Dataset:
    """Everything redrawn, NAME; nets fixed up to a unit, NAME_below and, one above, NAME_given; NAME_by_width."""
    from dataclasses import replace

    import xarray as xr

    from meanfield.execution import Run, simulate_all
    from meanfield.simulation import PairOverlaps

    largest = max(unit for pair in pairs for _, unit in pair)
    narrower = [replace(net, width=options.width // part) for part in WIDTH_PARTS if options.width // part >= largest]
    runs = [Run(each, PairOverlaps(pairs=pairs), options.draws, options.seed) for each in (net, *narrower)]
    runs += [
        Run(
            net,
            PairOverlaps(pairs=pairs, fixed_layers=unit),
            options.draws,
            open_seed(net, pairs, unit, options.seed),
        )
        for unit in fixed
    ]
    free, *others = simulate_all(runs, workers=options.workers, store=results.pieces)
    by_width, given = others[: len(narrower)], others[len(narrower) :]
    parts = [free, _by_width([*narrower, net], [*by_width, free]), _given(net, given, fixed), _laws(net, pairs)]
    merged = xr.merge(parts, combine_attrs="override", join="outer")
    merged.attrs |= {"gain": net.sigma.gain, "width": net.width}
    return merged


def _by_width(nets: list[ResidualMLP], found: list[xr.Dataset]) -> xr.Dataset:
    """The gate deviation at the top unit, by width."""
    import xarray as xr

    chosen = [one[["gate_deviation", "gate_deviation_stderr"]].isel(layer=-1, drop=True) for one in found]
    joined = xr.concat(chosen, dim="width", join="outer").assign_coords(width=[net.width for net in nets])
    return joined.rename({name: f"{name}_by_width" for name in joined.data_vars})


def _given(net: ResidualMLP, found: list[xr.Dataset], fixed: list[int]) -> xr.Dataset:
    """Of nets that are fixed up to a unit: what that unit says of the next, and the mean there."""
    import xarray as xr

    from meanfield.nets import unit_shares

    parts = []
    for one, unit in zip(found, fixed, strict=True):
        own, above = one.isel(layer=unit - 1, drop=True), one.isel(layer=unit, drop=True)
        kept, carried = unit_shares(net)[unit]
        values = {"overlap_below": own["overlap"], "gated_overlap_below": own["gated_overlap"]}
        values["ungated_below"] = (kept + carried / net.sigma.gain) * own["overlap"]
        values |= {"overlap_given": above["overlap"], "overlap_stderr_given": above["overlap_stderr"]}
        parts.append(xr.Dataset(values))
    return xr.concat(parts, dim="fixed", join="outer").assign_coords(fixed=fixed)


def _laws(net: ResidualMLP, pairs: tuple[Pair, ...]) -> xr.Dataset:
    """Growth since birth and its bound, leading-order means, and what kind each pair is."""
    import numpy as np
    import xarray as xr

    from meanfield.nets import pair_name
    from meanfield.theory import growth_bound, growth_since_birth, mean_overlap

    laws = [mean_overlap(net, pair) for pair in pairs]
    columns = {
        "growth": [growth_since_birth(net, pair) for pair in pairs],
        "growth_ungated": [growth_since_birth(net, pair, 1 / net.sigma.gain) for pair in pairs],
        "growth_bound": [growth_bound(net, pair) for pair in pairs],
        "overlap_law": [law.mean for law in laws],
        "overlap_scale": [law.scale for law in laws],
        "gate_deviation_law": [law.deviation for law in laws],
    }
    kinds = {"on_one_unit": [int(law.on_one_unit) for law in laws], "across": [int(a[0] != b[0]) for a, b in pairs]}
    values: dict[str, Any] = {name: (("pair", "layer"), np.array(rows)) for name, rows in columns.items()}
    values |= {name: ("pair", flags) for name, flags in kinds.items()}
    coords = {"pair": [pair_name(pair) for pair in pairs], "layer": range(1, len(net.unit_ends) + 1)}
    return xr.Dataset(values, coords)


def main(argv: list[str] | None = None) -> int:
    return run_command(run, parse(argv))


if __name__ == "__main__":
    sys.exit(main())
