"""The change of the stream by the order of a block's own updates in it: where k >= 2 would differ from k = 1.

P1 derives alpha = 1/L for blocks of k >= 2 matrices from terms with two and more updates of one block, which are to be
of order one (C2.3). Here Delta h_L is split exactly, after one step and after many, for each table: by condition 3.1
(k >= 2) and by condition B.1 (k = 1), on blocks of one, two and three matrices.
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
from sims.common.command import add_run_options, command_parser, fill_from_preset, run_command
from sims.common.results import Results, run_key

if TYPE_CHECKING:
    import xarray as xr

    from meanfield.execution import Run

NAME = "update_orders"
TABLES = ("many", "one")

PRESETS: dict[str, dict[str, Any]] = {
    "smoke": SMOKE | {"optimizers": ["muon"]},
    "default": WIDE
    | {
        "widths": [64, 128, 256, 512],
        "depths": [2, 4, 8, 16, 32],
        "draws": 32,
        "optimizers": ["sgd", "adamw", "muon"],
    },
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
    parser.add_argument(
        "--steps", type=int, default=10, help="steps after which the change is split again (default 10)"
    )
    add_run_options(parser)
    options = parser.parse_args(argv)
    fill_from_preset(options, PRESETS[options.preset])
    return options


def run(options: argparse.Namespace) -> int:
    """Measure (or read what an equal run has measured), print, and write."""
    from figures import update_orders as figure
    from meanfield.common import require_count
    from sims.update_orders import report

    check_ladders(options)
    require_count("--steps", options.steps, minimum=2, why="one step is split in any case")
    results = Results(NAME, run_key(**ladder_options(options), steps=options.steps), options)
    return results.deliver(lambda: _measure(options, results), report.text, figure.draw)


def _measure(options: argparse.Namespace, results: Results) -> xr.Dataset:
    """|epsilon_j(L)| by optimizer, table, size, draw, step and order, over both ladders."""
    steps = [1, options.steps]

    from meanfield.simulation import UpdateOrders

    def run_of(optimizer: str, table: str, width: int, depth: int) -> Run:
        training = {"momentum": False, "steps": steps}
        return training_run(options, UpdateOrders, (optimizer, table), width, depth, **training)

    axes = {"optimizer": options.optimizers, "table": list(TABLES)}
    found = measure_ladders(options, results, run_of, axes, lambda one, net: one)
    found = found.assign_coords(step=steps, order=range(options.block_depth + 1))
    return found.assign_attrs(attributes(ladder_options(options)), steps=options.steps)


def main(argv: list[str] | None = None) -> int:
    return run_command(run, parse(argv))


if __name__ == "__main__":
    sys.exit(main())
