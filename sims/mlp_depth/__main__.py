"""Fully-connected nets by layer: drawn against the exact expectation at finite width, and what it says of depth.

Draws with lazily revealed weights where these are cheaper and compares every layer's label, output and update energy
with the exact expectation (no allowance is needed). The exact spread of one draw says beforehand how many draws a layer
takes: where depth is of the order of the width (--preset square) no run has enough, and the report says so instead of
comparing. From the recursion alone: energies to depth 100000, the finite-width correction as a function of l/n, and the
output term over the label term against head, outputs and depth, with the slope of eta*(L).
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from sims.common.beside import predictions
from sims.common.command import (
    add_array_options,
    add_run_options,
    chosen_arrays,
    command_parser,
    fill_from_preset,
    run_command,
)
from sims.common.results import Results, run_key

if TYPE_CHECKING:
    import xarray as xr

    from meanfield.execution import Run
    from meanfield.nets import MLP

NAME = "mlp_depth"

PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {"depth": 6, "width": 64, "draws": 256},
    "default": {"depth": 32, "width": 512, "draws": 4096},
    "square": {"depth": 64, "width": 64, "draws": 4096},
    "paper": {"depth": 128, "width": 1024, "draws": 4096},
}

# Depths of the exact energies; widths, depths over width and layers of the finite-width correction.
DEPTHS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
WIDTHS = (256, 1024, 4096, 16_384)
SHARES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0)
LAYERS = (8, 64, 512)

# Heads, outputs and depths of the output term's share; the width is so large that depth over width stays small.
SHARE_WIDTH = 10**6
SHARE_DEPTHS = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(NAME, __doc__, presets=PRESETS)
    add = parser.add_argument_group("network").add_argument
    add("--depth", type=int, metavar="L", help="hidden layers")
    add("--width", type=int, metavar="N", help="units of every layer")
    add("--outputs", type=int, default=10, metavar="M", help="outputs (default: 10)")
    add("--activation", default="relu", help="relu (default) or linear: those with an exact expectation")
    add("--head", default="he", help="he (default), fan_in or mup")
    add_array_options(parser)
    add_run_options(parser)
    options = parser.parse_args(argv)
    fill_from_preset(options, PRESETS[options.preset])
    return options


def run(options: argparse.Namespace) -> int:
    """Measure (or read what an equal run has measured), print, and write."""
    from figures import mlp_depth as figure
    from meanfield.execution import Run
    from meanfield.nets import MLP
    from meanfield.simulation import Energies
    from sims.mlp_depth import report

    net = MLP(
        depth=options.depth,
        width=options.width,
        outputs=options.outputs,
        activation=options.activation,
        head=options.head,
    )
    run_of = {"draws": options.draws, "seed": options.seed, **chosen_arrays(options)}
    results = Results(NAME, run_key(net=net, **run_of), options)
    whole = Run(net, Energies(**chosen_arrays(options)), options.draws, options.seed)
    whole.require_memory(options.workers.here)
    return results.deliver(lambda: _measure(options, net, whole, results), report.text, figure.draw)


def _measure(options: argparse.Namespace, net: MLP, whole: Run, results: Results) -> xr.Dataset:
    """Draws with their exact expectation (NAME_exact) and mean field (NAME_mean_field), and all that is exact alone."""
    import xarray as xr

    from meanfield.execution import provenance, simulate_all
    from meanfield.theory import label_spread, relative_spread
    from meanfield.verification import LABEL_SPREAD, OVERLAP_SPREAD
    from sims.mlp_depth import head_sweep as sweep
    from sims.mlp_depth.report import plan

    arrays = chosen_arrays(options)
    spreads = {LABEL_SPREAD: ("layer", label_spread(net)), OVERLAP_SPREAD: ("layer", relative_spread(net))}
    beside = [*predictions(net, ("exact", "mean_field")), xr.Dataset(spreads)]
    print(plan(beside[-1], options.draws), file=sys.stderr)
    swept = sweep.sweep_runs(net, options.draws, options.seed, arrays)
    measured, *rows = simulate_all([whole, *swept], workers=options.workers, store=results.pieces)
    parts = [measured, *beside, *_exact_only(net), sweep.sweep_dataset(swept, rows)]
    attrs = {
        **arrays,
        "width": net.width,
        "sweep_width": sweep.WIDTH,
        "provenance": provenance(draws=options.draws),
    }
    return xr.merge(parts, combine_attrs="override").assign_attrs(attrs)


def _exact_only(net: MLP) -> list[xr.Dataset]:
    """What needs no draws: energies by depth, the finite-width correction, the output term's share."""
    from dataclasses import replace

    from meanfield.nets import HEADS
    from meanfield.theory import energies_by_depth, finite_width_excess, output_share

    wide = replace(net, depth=1, width=SHARE_WIDTH)
    return [
        energies_by_depth(net, DEPTHS),
        finite_width_excess(net, WIDTHS, SHARES, LAYERS),
        output_share(wide, HEADS, (1, 10, SHARE_WIDTH), SHARE_DEPTHS),
    ]


def main(argv: list[str] | None = None) -> int:
    return run_command(run, parse(argv))


if __name__ == "__main__":
    sys.exit(main())
