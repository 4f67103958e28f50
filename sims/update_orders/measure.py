"""The change of the stream by orders of a block's own updates, by optimizer and table, over both ladders."""

import argparse
from typing import Any

import xarray as xr

from meanfield.common import require_choice, require_count
from meanfield.execution import Run
from meanfield.simulation import UpdateOrders
from sims.common.blocks.base_values import PLAIN_RATES, hyperparameters
from sims.common.blocks.ladders import BATCH, measure_ladders, planned_ladders, require_rate, run_under, worded
from sims.common.results import Results

TABLES = ("many", "one")


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The ladders, tables and steps."""
    require_count("--steps", options.steps, minimum=2, why="one step is split in any case")
    options.tables = list(dict.fromkeys(options.tables))
    for table in options.tables:
        require_choice("--tables", table, TABLES)
    return {"described": planned_ladders(options, "steps", "tables", *BATCH)}


def measure(options: argparse.Namespace, results: Results, described: dict[str, Any]) -> xr.Dataset:
    """|epsilon_j(L)| by optimizer, table, size, draw, step and order, over both ladders."""
    require_rate(options)
    steps = [1, options.steps]

    def run_of(optimizer: str, table: str, width: int, depth: int) -> Run:
        # k layers move a block k times as far.
        rates = {name: rate * 2 / options.block_depth for name, rate in PLAIN_RATES.items()}
        given = hyperparameters(optimizer, table, width, depth, rate=options.rate, rates=rates)
        return run_under(options, UpdateOrders, optimizer, given, width, depth, momentum=False, steps=steps)

    axes = {"optimizer": options.optimizers, "table": options.tables}
    dataset = measure_ladders(options, results, run_of, lambda _: axes, lambda measured, net: measured)
    return dataset.assign_coords(step=steps, order=range(options.block_depth + 1)).assign_attrs(worded(described))
