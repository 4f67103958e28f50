"""Norms of weights, first updates and their products in nets of blocks, over both ladders."""

import argparse
from typing import Any

import xarray as xr

from meanfield.common import require_count
from meanfield.execution import Run
from meanfield.parameterizations import OPTIMIZER_NAMES, hyperparameter_table
from meanfield.simulation import FirstUpdates
from meanfield.verification import products_of
from sims.common.blocks.base_values import PLAIN_RATES, RATES, block_net, hyperparameters
from sims.common.blocks.ladders import NETS, measure_ladders, planned_ladders, require_rate, worded
from sims.common.results import Results


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The ladders; with biases, all optimizers are those whose tables have biases."""
    if options.biases and options.optimizers == ["all"]:
        options.optimizers = [name for name in OPTIMIZER_NAMES if "hidden_bias" in hyperparameter_table(name, 2).roles]
    require_count("--steps", options.steps)
    return {"described": planned_ladders(options, "steps", *NETS) | {"biases": int(options.biases)}}


def measure(options: argparse.Namespace, results: Results, described: dict[str, Any]) -> xr.Dataset:
    """Products and alignments of every draw over both ladders."""
    require_rate(options)
    table = "one" if options.block_depth == 1 else "many"

    def run_of(width: int, depth: int) -> Run:
        rates = RATES if options.steps == 1 else PLAIN_RATES
        given = {
            name: hyperparameters(name, table, width, depth, rate=options.rate, rates=rates, biases=options.biases)
            for name in options.optimizers
        }
        shape = {name: getattr(options, name) for name in ("block_depth", "biases", *NETS)}
        net = block_net(given[options.optimizers[0]], width, depth, **shape)
        return Run(net, FirstUpdates(hyperparameters=given, steps=options.steps), options.draws, options.seed)

    dataset = measure_ladders(options, results, run_of, lambda _: {}, products_of)
    return dataset.assign_coords(optimizer=options.optimizers).assign_attrs(worded(described))
