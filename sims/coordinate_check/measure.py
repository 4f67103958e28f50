"""How far nets of blocks move in a few steps, by optimizer and table, over both ladders."""

import argparse
from typing import Any

import xarray as xr

from meanfield.common import require_choice, require_count
from meanfield.execution import Run
from meanfield.simulation import TrainedStreams
from sims.common.blocks import TABLES, measure_ladders, planned_ladders, training_run, worded
from sims.common.results import Results


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The ladders, tables and steps."""
    require_count("--steps", options.steps)
    options.tables = list(dict.fromkeys(options.tables))
    for table in options.tables:
        require_choice("--tables", table, TABLES)
    return {"described": planned_ladders(options, "steps", "activation", "tables")}


def measure(options: argparse.Namespace, results: Results, described: dict[str, Any]) -> xr.Dataset:
    """|h_L| and |Delta h_L| by optimizer, table, size, draw and step, over both ladders."""

    def run_of(optimizer: str, table: str, width: int, depth: int) -> Run:
        training = {"momentum": True, "steps": options.steps}
        return training_run(options, TrainedStreams, (optimizer, table), width, depth, **training)

    axes = {"optimizer": options.optimizers, "table": options.tables}
    dataset = measure_ladders(options, results, run_of, axes, lambda measured, net: measured.isel(block=-1))
    return dataset.assign_coords(step=range(options.steps + 1)).assign_attrs(worded(described))
