"""Norms of weights, gradients and first directions of nets of blocks, and the values that a table gave them."""

import argparse
from typing import Any

import numpy as np
import xarray as xr

from meanfield.execution import Run
from meanfield.parameterizations import HYPERPARAMETERS
from meanfield.simulation import FirstDirections
from meanfield.verification import scales_of, table_cells
from sims.common.blocks.base_values import Values, block_net, hyperparameters
from sims.common.blocks.ladders import (
    DIRECTIONS,
    NETS,
    measure_ladders,
    planned_ladders,
    require_rate,
    rungs,
    worded,
)
from sims.common.results import Results


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The ladders and batches; some table has to have cells."""
    described = planned_ladders(options, *NETS)
    for optimizer in options.optimizers:
        table_cells.cells(optimizer, options.block_depth, options.biases)
    return {"described": described | {"biases": int(options.biases)}}


def measure(options: argparse.Namespace, results: Results, described: dict[str, Any]) -> xr.Dataset:
    """Norms by optimizer, size, draw and role over both ladders; and the values that were given, without a draw."""
    require_rate(options)

    def run_of(optimizer: str, width: int, depth: int) -> Run:
        given = _values(options, optimizer, width, depth)
        shape = {name: getattr(options, name) for name in ("block_depth", "biases", *NETS)}
        net = block_net(given, width, depth, **shape)
        return Run(net, FirstDirections(optimizer=optimizer, hyperparameters=given), options.draws, options.seed)

    dataset = measure_ladders(options, results, run_of, lambda _: {"optimizer": options.optimizers}, scales_of)
    dataset = dataset.assign_coords(hyperparameter=list(HYPERPARAMETERS))
    for along in DIRECTIONS:
        given = [[_values(options, name, *size) for size in rungs(options, along)] for name in options.optimizers]
        values = np.array([[_by_cell(dataset, at) for at in of_sizes] for of_sizes in given])
        dataset[f"value_by_{along}"] = (("optimizer", along, "role", "hyperparameter"), values)
    return dataset.assign_attrs(worded(described))


def _values(options: argparse.Namespace, optimizer: str, width: int, depth: int) -> Values:
    """By the table of the net's own block depth."""
    table = "one" if options.block_depth == 1 else "many"
    return hyperparameters(optimizer, table, width, depth, rate=options.rate, acting=True, biases=options.biases)


def _by_cell(dataset: xr.Dataset, given: Values) -> list[list[float]]:
    """(roles, hyperparameters), nan where a role has none."""
    return [[given[str(role)].get(name, np.nan) for name in HYPERPARAMETERS] for role in dataset["role"].values]
