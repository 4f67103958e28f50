"""Nets of blocks under a whole table, and with one of its cells as in the standard parameterization."""

import argparse
from typing import Any

import xarray as xr

from meanfield.execution import Run
from meanfield.nets import Net
from meanfield.simulation import TrainedStreams
from meanfield.verification import coordinate_checks, table_cells
from sims.common.blocks.base_values import Cell, hyperparameters
from sims.common.blocks.ladders import (
    DIRECTIONS,
    NETS,
    at_places,
    measure_ladders,
    planned_ladders,
    require_rate,
    run_under,
    worded,
)
from sims.common.results import Results


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The ladders, steps and batches; some cell has to scale."""
    described = planned_ladders(options, "steps", *NETS)
    if not any(cell for along in DIRECTIONS for _, cell in _cells(options, along)):
        names, of = " ".join(options.optimizers), "biases" if options.biases else "weights"
        raise ValueError(f"no cell of {of} scales in the tables for {names} at these blocks; give sgd or adamw")
    return {"described": described | {"biases": int(options.biases)}}


def measure(options: argparse.Namespace, results: Results, described: dict[str, Any]) -> xr.Dataset:
    """What coordinate checks watch, by cell, size, draw and step, over the ladder along which the cell scales."""
    require_rate(options)
    table = "one" if options.block_depth == 1 else "many"

    by_name = {along: {table_cells.named(*at): at for at in _cells(options, along)} for along in DIRECTIONS}
    cells = by_name["width"] | by_name["depth"]

    def run_of(name: str, width: int, depth: int) -> Run:
        optimizer, cell = cells[name]
        how: dict[str, Any] = {"rate": options.rate, "acting": True, "biases": options.biases}
        given = hyperparameters(optimizer, table, width, depth, **how, standard_cell=cell)
        training = {"momentum": True, "steps": options.steps}
        return run_under(options, TrainedStreams, optimizer, given, width, depth, **training)

    def read(measured: xr.Dataset, net: Net) -> xr.Dataset:
        return at_places(measured, net)[list(coordinate_checks.WATCHED)]

    dataset = measure_ladders(options, results, run_of, lambda along: {f"{along}_cell": list(by_name[along])}, read)
    return dataset.assign_coords(step=range(options.steps + 1)).assign_attrs(worded(described))


def _cells(options: argparse.Namespace, along: str) -> list[tuple[str, Cell | None]]:
    """Every optimizer's table as a whole, and its cells that scale along a ladder."""
    own = {name: table_cells.cells(name, options.block_depth, along, options.biases) for name in options.optimizers}
    return [(name, cell) for name in options.optimizers for cell in (None, *own[name])]
