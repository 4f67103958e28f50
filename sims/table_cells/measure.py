"""Nets of blocks under a whole table, and with one of its cells as in the standard parameterization."""

import argparse
from collections.abc import Sequence
from typing import Any

import xarray as xr

from meanfield.execution import Run
from meanfield.simulation import TrainedStreams
from meanfield.verification import coordinate_checks, table_cells
from sims.common.blocks.base_values import Cell, hyperparameters
from sims.common.blocks.ladders import (
    DIRECTIONS,
    NETS,
    at_places,
    planned_ladders,
    require_rate,
    run_under,
    rungs,
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

    def run_of(optimizer: str, cell: Cell | None, width: int, depth: int) -> Run:
        how: dict[str, Any] = {"rate": options.rate, "acting": True, "biases": options.biases}
        given = hyperparameters(optimizer, table, width, depth, **how, standard_cell=cell)
        training = {"momentum": True, "steps": options.steps}
        return run_under(options, TrainedStreams, optimizer, given, width, depth, **training)

    cells = {along: _cells(options, along) for along in DIRECTIONS}
    runs = {
        along: [run_of(*at, *size) for at in cells[along] for size in rungs(options, along)] for along in DIRECTIONS
    }
    measured = iter(results.draw([run for along in DIRECTIONS for run in runs[along]]))
    ladders = []
    for along in DIRECTIONS:
        parts = [at_places(next(measured), run.net) for run in runs[along]]
        ladders.append(_by_cell(parts, along, getattr(options, f"{along}s"), cells[along]))
    steps = {"step": range(options.steps + 1)}
    return xr.merge(ladders, combine_attrs="drop").assign_coords(steps).assign_attrs(worded(described))


def _cells(options: argparse.Namespace, along: str) -> list[tuple[str, Cell | None]]:
    """Every optimizer's table as a whole, and its cells that scale along a ladder."""
    own = {name: table_cells.cells(name, options.block_depth, along, options.biases) for name in options.optimizers}
    return [(name, cell) for name in options.optimizers for cell in (None, *own[name])]


def _by_cell(
    parts: Sequence[xr.Dataset], along: str, sizes: Sequence[int], cells: Sequence[tuple[str, Cell | None]]
) -> xr.Dataset:
    """NAME_by_width over (width_cell, width, ..), and so for the depth."""
    ladders = [xr.concat(parts[first : first + len(sizes)], along) for first in range(0, len(parts), len(sizes))]
    whole = xr.concat(ladders, f"{along}_cell")[list(coordinate_checks.WATCHED)]
    named = whole.assign_coords({along: sizes, f"{along}_cell": [table_cells.named(*cell) for cell in cells]})
    return named.rename({name: f"{name}_by_{along}" for name in named.data_vars})
