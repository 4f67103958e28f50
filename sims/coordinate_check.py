"""Coordinate check: how far nets move in a few steps, against width and depth, for every hyperparameter table.

Nets of L blocks of k matrices, with one optimizer at a time, momentum and epsilon included. |h_L| and |Delta h_L|, the
change since before the first step, are root mean squares over units and samples. P1's table for blocks of k >= 2 layers
(condition 3.1), its table for k = 1 (condition B.1) and the standard parameterization start from one base model.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from typing import TYPE_CHECKING, Any

from sims._block_ladders import (
    DIRECTIONS,
    SMOKE,
    WIDE,
    add_ladder_options,
    attributes,
    check_ladders,
    ladder,
    ladder_options,
)
from sims._block_nets import TABLES, block_net, hyperparameters
from sims._command import Results, add_run_options, command_parser, fill_from_preset, run_command

if TYPE_CHECKING:
    import xarray as xr

    from meanfield.execution.block_runs import BlockRun

NAME = "coordinate_check"

PRESETS: dict[str, dict[str, Any]] = {
    "smoke": SMOKE | {"optimizers": ["sgd", "adamw", "muon"]},
    "default": WIDE
    | {
        "widths": [64, 128, 256, 512, 1024],
        "depths": [2, 4, 8, 16, 32, 64],
        "draws": 24,
        "optimizers": ["muon_kimi"],
    },
    "paper": WIDE
    | {
        "widths": [64, 128, 256, 512, 1024],
        "depths": [2, 4, 8, 16, 32, 64],
        "draws": 32,
        "optimizers": ["all"],
    },
}


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(NAME, __doc__, presets=PRESETS)
    add_ladder_options(parser)
    add = parser.add_argument_group("training").add_argument
    add("--steps", type=int, default=10, help="steps of training (default: 10)")
    add("--activation", default="linear", help="linear (default) or relu behind every matrix (P1 eq. 28)")
    add_run_options(parser)
    options = parser.parse_args(argv)
    fill_from_preset(options, PRESETS[options.preset])
    return options


def run(options: argparse.Namespace) -> int:
    """Measure (or read what an equal run has measured), print, and write."""
    from figures import coordinate_check as figure
    from meanfield.execution.provenance import code_digest, digest
    from meanfield.validation import require_count
    from sims import _coordinate_report as report

    check_ladders(options)
    require_count("--steps", options.steps)
    run_key = digest(**_described(options), code=code_digest())[:8]
    results = Results(NAME, run_key, options)
    return results.deliver(lambda: _measure(options, results), report.text, figure.draw)


def _described(options: argparse.Namespace) -> dict[str, Any]:
    return ladder_options(options) | {"steps": options.steps, "activation": options.activation}


def _run_of(options: argparse.Namespace, optimizer: str, table: str, width: int, depth: int) -> BlockRun:
    from meanfield.execution.block_runs import BlockRun

    given = hyperparameters(optimizer, table, width, depth, rate=options.rate)
    net = block_net(given, width, depth, block_depth=options.block_depth, activation=options.activation)
    training = {"optimizer": optimizer, "hyperparameters": given, "momentum": True, "steps": options.steps}
    return BlockRun(net, options.draws, options.seed, "trained streams", training)


def _measure(options: argparse.Namespace, results: Results) -> xr.Dataset:
    """|h_L| and |Delta h_L| by optimizer, table, size, draw and step, over both ladders."""
    import numpy as np
    import xarray as xr

    from meanfield.execution.provenance import provenance
    from meanfield.execution.runs import simulate_all
    from meanfield.quantities import QUANTITIES

    rungs = {direction: ladder(options, direction) for direction in DIRECTIONS}
    wanted = [
        _run_of(options, optimizer, table, *size)
        for direction in DIRECTIONS
        for optimizer, table, size in product(options.optimizers, TABLES, rungs[direction])
    ]
    measured = iter(simulate_all(wanted, workers=options.workers, store=results.pieces))
    parts = {}
    for direction in DIRECTIONS:
        shape = (len(options.optimizers), len(TABLES), len(rungs[direction]))
        top = [next(measured).isel(block=-1) for _ in range(int(np.prod(shape)))]
        dims = ("optimizer", "table", direction, "draw", "step")
        for name in ("feature_norm", "feature_update_norm"):
            values = np.stack([one[name].values for one in top]).reshape(*shape, *top[0][name].shape)
            attrs = {"long_name": QUANTITIES[name].long_name, "symbol": QUANTITIES[name].symbol, "units": "1"}
            parts[f"{name}_by_{direction}"] = xr.DataArray(values, dims=dims, attrs=attrs)
    sizes = {direction: getattr(options, f"{direction}s") for direction in DIRECTIONS}
    coords = {"optimizer": options.optimizers, "table": list(TABLES), "step": range(options.steps + 1), **sizes}
    attrs = attributes(_described(options))
    attrs["provenance"] = provenance()
    return xr.Dataset(parts, coords, attrs)


def main(argv: list[str] | None = None) -> int:
    return run_command(run, parse(argv))


if __name__ == "__main__":
    sys.exit(main())
