"""Coordinate check: how far nets move in a few steps, against width and depth, for every hyperparameter table.

Nets of L blocks of k matrices, with one optimizer at a time, momentum and epsilon included. |h_L| and |Delta h_L|, the
change since before the first step, are root mean squares over units and samples. P1's table for blocks of k >= 2 layers
(condition 3.1: many), its table for k = 1 (condition B.1: one) and the standard parameterization start from one base
model.
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
    training_run,
)
from sims.common.block_nets import TABLES
from sims.common.command import add_run_options, command_parser, fill_from_preset, run_command
from sims.common.results import Results, run_key

if TYPE_CHECKING:
    import xarray as xr

    from meanfield.execution import Run

NAME = "coordinate_check"

PRESETS: dict[str, dict[str, Any]] = {
    "smoke": SMOKE | {"optimizers": ["sgd", "adamw", "muon"], "draws": 6, "steps": 2},
    "default": WIDE
    | {
        "widths": [64, 128, 256, 512],
        "depths": [2, 4, 8, 16, 32],
        "draws": 32,
        "steps": 10,
        "optimizers": ["muon_kimi"],
    },
    "paper": WIDE
    | {
        "widths": [64, 128, 256, 512, 1024],
        "depths": [2, 4, 8, 16, 32, 64],
        "draws": 32,
        "steps": 10,
        "optimizers": ["all"],
    },
}


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(NAME, __doc__, presets=PRESETS)
    add_ladder_options(parser)
    add = parser.add_argument_group("training").add_argument
    add("--steps", type=int, help="steps of training (default: 10; smoke: 2)")
    add("--tables", nargs="+", default=list(TABLES), metavar="NAME", help=f"of {', '.join(TABLES)} (default: all)")
    add("--activation", default="linear", help="linear (default) or relu behind every matrix (P1 eq. 28)")
    add_run_options(parser)
    options = parser.parse_args(argv)
    fill_from_preset(options, PRESETS[options.preset])
    return options


def run(options: argparse.Namespace) -> int:
    """Measure (or read what an equal run has measured), print, and write."""
    from figures import coordinate_check as figure
    from meanfield.common import require_choice, require_count
    from sims.coordinate_check import report

    check_ladders(options)
    require_count("--steps", options.steps)
    options.tables = list(dict.fromkeys(options.tables))
    for table in options.tables:
        require_choice("--tables", table, TABLES)
    results = Results(NAME, run_key(**_described(options)), options)
    return results.deliver(lambda: _measure(options, results), report.text, figure.draw)


def _described(options: argparse.Namespace) -> dict[str, Any]:
    own = ("steps", "activation", "tables")
    return ladder_options(options) | {name: getattr(options, name) for name in own}


def _measure(options: argparse.Namespace, results: Results) -> xr.Dataset:
    """|h_L| and |Delta h_L| by optimizer, table, size, draw and step, over both ladders."""

    from meanfield.simulation import TrainedStreams

    def run_of(optimizer: str, table: str, width: int, depth: int) -> Run:
        training = {"momentum": True, "steps": options.steps}
        return training_run(options, TrainedStreams, (optimizer, table), width, depth, **training)

    axes = {"optimizer": options.optimizers, "table": options.tables}
    found = measure_ladders(options, results, run_of, axes, lambda one, net: one.isel(block=-1))
    return found.assign_coords(step=range(options.steps + 1)).assign_attrs(attributes(_described(options)))


def main(argv: list[str] | None = None) -> int:
    return run_command(run, parse(argv))


if __name__ == "__main__":
    sys.exit(main())
