"""How far nets of blocks move in a few steps, by optimizer and table, over both ladders."""

import argparse
from typing import Any

import xarray as xr

from meanfield.execution import Run
from meanfield.simulation import TrainedStreams
from sims.common.blocks.base_values import BIAS_OF, Values, block_net, given_soap_epsilon, hyperparameters, own_values
from sims.common.blocks.ladders import (
    NETS,
    at_places,
    checked_tables,
    measure_ladders,
    planned_ladders,
    require_rate,
    run_under,
    worded,
)
from sims.common.results import Results


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The ladders, tables, steps and batches."""
    checked_tables(options)
    described = planned_ladders(options, "steps", "tables", "base", *NETS)
    described |= given_soap_epsilon(options.soap_epsilon, options.optimizers)
    for optimizer in options.optimizers:
        values = _values(options, optimizer, "standard", options.width, options.depth)
        block_net(values, options.width, options.depth, biases=options.biases)
    return {"described": described | {"plain": int(options.plain), "biases": int(options.biases)}}


def _values(options: argparse.Namespace, optimizer: str, table: str, width: int, depth: int) -> Values:
    """Base values of roles as given, and biases that start at 0 (Zheng et al. 2026, appendix E)."""
    own = own_values(options.base)
    if options.biases:
        own = {(role, "initial_variance"): 0.0 for role in BIAS_OF} | own
    how: dict[str, Any] = {"rate": options.rate, "acting": not options.plain, "biases": options.biases, "own": own}
    soap_epsilon = given_soap_epsilon(options.soap_epsilon, options.optimizers)
    return hyperparameters(optimizer, table, width, depth, **how, **soap_epsilon)


def measure(options: argparse.Namespace, results: Results, described: dict[str, Any]) -> xr.Dataset:
    """Streams, outputs and who changes them, by optimizer, table, size, draw and step, over both ladders."""
    require_rate(options)

    def run_of(optimizer: str, table: str, width: int, depth: int) -> Run:
        given = _values(options, optimizer, table, width, depth)
        training = {"momentum": True, "steps": options.steps}
        return run_under(options, TrainedStreams, optimizer, given, width, depth, **training)

    axes = {"optimizer": options.optimizers, "table": options.tables}
    dataset = measure_ladders(options, results, run_of, lambda _: axes, at_places)
    return dataset.assign_coords(step=range(options.steps + 1)).assign_attrs(worded(described))
