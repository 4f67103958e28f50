"""P1's spectral conditions, measured: products of RMS operator norms against width and depth, for every optimizer.

Nets of L blocks of k matrices are drawn and updated once by every optimizer, without momentum or epsilon, under P1's
hyperparameter tables. Slopes of the products that conditions 3.1, B.1 and B.2 constrain stand beside what these ask,
and so do the alignments of claims F.1 and F.2, by which norms are to say what features do.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from sims.common.block_ladders import (
    SMOKE,
    WIDE,
    add_ladder_options,
    attributes,
    check_ladders,
    ladder_options,
    measure_ladders,
)
from sims.common.block_nets import block_net, hyperparameters
from sims.common.command import add_run_options, command_parser, fill_from_preset, run_command
from sims.common.results import Results, run_key

if TYPE_CHECKING:
    import xarray as xr

    from meanfield.execution import Run

NAME = "spectral_condition"

PRESETS: dict[str, dict[str, Any]] = {
    "smoke": SMOKE | {"optimizers": ["sgd", "adamw", "muon"]},
    "default": WIDE | {"widths": [64, 128, 256, 512], "depths": [2, 4, 8, 16, 32], "draws": 48, "optimizers": ["all"]},
    "paper": WIDE
    | {
        "widths": [64, 128, 256, 512, 1024],
        "depths": [2, 4, 8, 16, 32, 64],
        "draws": 64,
        "optimizers": ["all"],
    },
}


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(NAME, __doc__, presets=PRESETS)
    add_ladder_options(parser)
    parser.add_argument("--biases", action="store_true", help="nets with biases (P1 B.3), optimizers of elements only")
    add_run_options(parser)
    options = parser.parse_args(argv)
    fill_from_preset(options, PRESETS[options.preset])
    return options


def run(options: argparse.Namespace) -> int:
    """Measure (or read what an equal run has measured), print, and write."""
    from figures import spectral_condition as figure
    from meanfield.optimizers import ELEMENTWISE
    from sims.spectral_condition import report

    if options.biases and options.optimizers == ["all"]:
        options.optimizers = list(ELEMENTWISE)
    check_ladders(options)
    results = Results(NAME, run_key(**_described(options)), options)
    return results.deliver(lambda: _measure(options, results), report.text, figure.draw)


def _described(options: argparse.Namespace) -> dict[str, Any]:
    return ladder_options(options) | {"biases": int(options.biases)}


def _run_of(options: argparse.Namespace, width: int, depth: int) -> Run:
    from meanfield.execution import Run
    from meanfield.simulation import FirstUpdates

    table = "one" if options.block_depth == 1 else "many"
    shared = {"rate": options.rate, "biases": options.biases}
    given = {name: hyperparameters(name, table, width, depth, **shared) for name in options.optimizers}
    shape = {"block_depth": options.block_depth, "biases": options.biases}
    net = block_net(given[options.optimizers[0]], width, depth, **shape)
    return Run(net, FirstUpdates(hyperparameters=given), options.draws, options.seed)


def _measure(options: argparse.Namespace, results: Results) -> xr.Dataset:
    """Products and alignments of every draw over both ladders."""
    from meanfield.verification import products_of

    found = measure_ladders(options, results, lambda *size: _run_of(options, *size), {}, products_of)
    return found.assign_coords(optimizer=options.optimizers).assign_attrs(attributes(_described(options)))


def main(argv: list[str] | None = None) -> int:
    return run_command(run, parse(argv))


if __name__ == "__main__":
    sys.exit(main())
