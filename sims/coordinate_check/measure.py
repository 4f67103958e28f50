"""How far nets of blocks move in a few steps, by optimizer and table, over both ladders."""

import argparse
from typing import Any

import xarray as xr

from meanfield.common import require_choice, require_count
from meanfield.execution import Run
from meanfield.simulation import TrainedStreams
from sims.common.blocks import (
    BATCH,
    TABLES,
    at_places,
    hyperparameters,
    measure_ladders,
    planned_ladders,
    run_under,
    worded,
)
from sims.common.results import Results


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The ladders, tables, steps and batches."""
    require_count("--steps", options.steps)
    options.tables = list(dict.fromkeys(options.tables))
    for table in options.tables:
        require_choice("--tables", table, TABLES)
    described = planned_ladders(options, "steps", "tables", *BATCH)
    return {"described": described | {"plain": int(options.plain)}}


def measure(options: argparse.Namespace, results: Results, described: dict[str, Any]) -> xr.Dataset:
    """Streams, outputs and who changes them, by optimizer, table, size, draw and step, over both ladders."""

    def run_of(optimizer: str, table: str, width: int, depth: int) -> Run:
        given = hyperparameters(optimizer, table, width, depth, rate=options.rate, acting=not options.plain)
        training = {"momentum": True, "steps": options.steps}
        return run_under(options, TrainedStreams, optimizer, given, width, depth, **training)

    axes = {"optimizer": options.optimizers, "table": options.tables}
    dataset = measure_ladders(options, results, run_of, axes, at_places)
    return dataset.assign_coords(step=range(options.steps + 1)).assign_attrs(worded(described))
