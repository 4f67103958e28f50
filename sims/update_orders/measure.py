"""The change of the stream by orders of a block's own updates, by optimizer and table, over both ladders."""

import argparse
from typing import Any

import xarray as xr

from meanfield.common import require_count
from meanfield.execution import Run
from meanfield.simulation import UpdateOrders
from sims.common.blocks import measure_ladders, planned_ladders, training_run, worded
from sims.common.results import Results

TABLES = ("many", "one")


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The ladders and steps."""
    require_count("--steps", options.steps, minimum=2, why="one step is split in any case")
    return {"described": planned_ladders(options, "steps")}


def measure(options: argparse.Namespace, results: Results, described: dict[str, Any]) -> xr.Dataset:
    """|epsilon_j(L)| by optimizer, table, size, draw, step and order, over both ladders."""
    steps = [1, options.steps]

    def run_of(optimizer: str, table: str, width: int, depth: int) -> Run:
        training = {"momentum": False, "steps": steps}
        return training_run(options, UpdateOrders, (optimizer, table), width, depth, **training)

    axes = {"optimizer": options.optimizers, "table": list(TABLES)}
    dataset = measure_ladders(options, results, run_of, axes, lambda measured, net: measured)
    return dataset.assign_coords(step=steps, order=range(options.block_depth + 1)).assign_attrs(worded(described))
