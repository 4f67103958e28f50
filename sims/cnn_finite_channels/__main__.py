"""What finite channels do to convolutional nets, and what stencils, grids and dimensions do to their depth law.

The label term over its mean field, less 1, for channels C and depths L at several L/C: is it O(1/C) at every depth, as
the papers say, or a function of L/C? The mean of an overlap given the layers below, and the variance that a layer of C
channels adds to it (P0 Lemmas 1, 5). And slope and prefactor of the label term's eta*(L) for 1D and 2D grids and
stencils of many shapes, odd and even, beside the mean field and the papers' one exponent and one prefactor.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from typing import TYPE_CHECKING, Any

from sims.common.command import add_run_options, command_parser, fill_from_preset, run_command
from sims.common.results import Results, run_key

if TYPE_CHECKING:
    import xarray as xr

    from meanfield.execution import Run
    from meanfield.nets import ConvNet

NAME = "cnn_finite_channels"

PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {"channels": [32, 64], "draws": 256, "depths": [2, 4, 8], "slope_channels": 128, "slope_draws": 16},
    "default": {
        "channels": [48, 96, 192],
        "draws": 3072,
        "depths": [4, 8, 16],
        "slope_channels": 384,
        "slope_draws": 64,
    },
    "paper": {
        "channels": [64, 128, 256],
        "draws": 16_384,
        "depths": [4, 8, 16, 32],
        "slope_channels": 1024,
        "slope_draws": 256,
    },
}
# Depth over channels. The least of them is one layer at so many channels, of which all counts must be multiples.
SHARES = (1 / 16, 1 / 8, 1 / 4)
STEP = 16
GRID, KERNEL = (4,), (3,)
# Grids and stencils of which slopes are taken; the first is the one that prefactors are compared with.
STENCILS = (
    ((16,), (3,)),
    ((16,), (2,)),
    ((16,), (4,)),
    ((16,), (5,)),
    ((8,), (3,)),
    ((4,), (3,)),
    ((4, 4), (3, 3)),
    ((4, 4), (2, 2)),
    ((4, 4), (1, 3)),
    ((2, 2), (2, 2)),
)
# Draws of an added variance for one of a correction: they cost less.
VARIANCE_DRAWS = 2
# Layers below the one whose added variance is measured, their channels, and its own.
FIXED, FIXED_CHANNELS, CHANNELS_ABOVE = 2, 64, (32, 64, 128, 256)


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(NAME, __doc__, presets=PRESETS)
    add = parser.add_argument_group("network").add_argument
    add("--channels", type=int, nargs="+", metavar="C", help=f"channels of the correction, multiples of {STEP}")
    add("--slope-channels", type=int, metavar="C", help="channels of the nets whose slopes are taken")
    add("--depths", type=int, nargs="+", metavar="L", help="depths of the slopes, two or more")
    add("--slope-draws", type=int, help="independent networks drawn for each depth and stencil of the slopes")
    add_run_options(parser)
    options = parser.parse_args(argv)
    fill_from_preset(options, PRESETS[options.preset])
    return options


def run(options: argparse.Namespace) -> int:
    """Measure (or read what an equal run has measured), print, and write."""
    from figures import cnn_finite_channels as figure
    from sims.cnn_finite_channels import report

    chosen = _checked(options)
    run_of = {**chosen, "draws": options.draws, "seed": options.seed}
    results = Results(NAME, run_key(**run_of), options)
    return results.deliver(lambda: _measure(options, chosen, results), report.text, figure.draw)


def _checked(options: argparse.Namespace) -> dict[str, Any]:
    """Channels and depths in order, or one error before any work."""
    from meanfield.common import MOST_DRAWS, MOST_LAYERS, require_count, require_counts, require_draws

    why = "channels of the correction, which nets of up to as many layers show"
    channels = sorted(set(require_counts("--channels", options.channels, maximum=MOST_LAYERS, why=why)))
    depths = sorted(set(require_counts("--depths", options.depths, maximum=MOST_LAYERS, why="depths of the slopes")))
    for name, values in (("--channels", channels), ("--depths", depths)):
        if len(values) < 2:
            raise ValueError(f"{name} {values} is one number; what changes with it needs two or more")
    if odd := [count for count in channels if count % STEP]:
        raise ValueError(f"--channels has {odd}; depths are 1/{STEP} of them and more: give multiples of {STEP}")
    why = f"the added variance takes {VARIANCE_DRAWS} times as many"
    require_count("--draws", require_draws("--draws", options.draws), maximum=MOST_DRAWS // VARIANCE_DRAWS, why=why)
    slope = require_count("--slope-channels", options.slope_channels, why="channels of the nets whose slopes are taken")
    draws = require_draws("--slope-draws", options.slope_draws)
    return {"channels": channels, "depths": depths, "slope_channels": slope, "slope_draws": draws}


def _net(depth: int, channels: int, grid: tuple[int, ...], kernel: tuple[int, ...]) -> ConvNet:
    from meanfield.nets import ConvNet

    return ConvNet(depth=depth, channels=channels, grid=grid, kernel=kernel, readout="convolution")


def _measure(options: argparse.Namespace, chosen: dict[str, Any], results: Results) -> xr.Dataset:
    """All three parts, drawn on one set of workers, in one dataset."""
    import xarray as xr

    from meanfield.common import derived_seed
    from meanfield.execution import Run, provenance, simulate_all
    from meanfield.simulation import Energies
    from sims.cnn_finite_channels import parts

    def run_of(net: ConvNet, draws: int) -> Run:
        return Run(net, Energies(), draws, derived_seed(options.seed, str(net.describe())))

    corrections = [_net(round(c * share), c, GRID, KERNEL) for c, share in product(chosen["channels"], SHARES)]
    slopes = [_net(depth, chosen["slope_channels"], *stencil) for stencil, depth in product(STENCILS, chosen["depths"])]
    below = _net(FIXED, FIXED_CHANNELS, GRID, KERNEL)
    added = parts.added_variance_runs(below, CHANNELS_ABOVE, VARIANCE_DRAWS * options.draws, options.seed)
    runs: list[Run] = [
        *(run_of(net, options.draws) for net in corrections),
        *(run_of(net, chosen["slope_draws"]) for net in slopes),
        *added,
    ]
    found = simulate_all(runs, workers=options.workers, store=results.pieces)
    first, second = len(corrections), len(corrections) + len(slopes)
    dataset = xr.merge(
        [
            parts.corrections(found[:first], corrections, SHARES),
            parts.slopes(found[first:second], slopes, len(chosen["depths"])),
            parts.added_variance(found[second:], CHANNELS_ABOVE),
            parts.given(found[-1]),
        ],
        combine_attrs="drop",
    )
    dataset.attrs = {
        "draws": options.draws,
        "draws_slope": chosen["slope_draws"],
        "draws_given": VARIANCE_DRAWS * options.draws,
        "slope_channels": chosen["slope_channels"],
        "fixed_layers": FIXED,
        "sites": below.sites,
        "taps": below.taps,
        "provenance": provenance(),
    }
    return dataset


def main(argv: list[str] | None = None) -> int:
    return run_command(run, parse(argv))


if __name__ == "__main__":
    sys.exit(main())
