"""Features of GPT-like nets in their first steps, by normalisation, optimizer and table, over both ladders."""

import argparse
from functools import partial
from typing import Any

import xarray as xr

from meanfield.execution import Run
from meanfield.simulation import TrainedFeatures
from sims.common.blocks.base_values import given_soap_epsilon
from sims.common.blocks.ladders import (
    DIRECTIONS,
    at_places,
    checked_ladders,
    checked_tables,
    measure_ladders,
    rungs,
    training_precision,
    worded,
)
from sims.common.data.labelled import TEXT
from sims.common.data.training_data import training_data
from sims.common.results import Results
from sims.transformer_coordinate_check.nets import HEAD_SIZE, net_under, text_net, values_of

# Windows of text, from which every draw takes its batch.
WINDOWS = 64
# What all numbers of a run depend on besides the ladders.
OWN = ("tokens", "samples", "steps", "tables", "normalisations", "curvature")


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The ladders, tables, normalisations and batches; every net is made once, so that none is refused later."""
    checked_tables(options)
    options.normalisations = list(dict.fromkeys(options.normalisations))
    described = checked_ladders(options, *OWN) | given_soap_epsilon(options.soap_epsilon, options.optimizers)
    for size in {size for along in DIRECTIONS for size in rungs(options, along)}:
        if size[0] % HEAD_SIZE:
            raise ValueError(f"width {size[0]} is no multiple of {HEAD_SIZE}, the channels of a head: give such widths")
        for normalisation in options.normalisations:
            text_net(*size, normalisation, **_batch(options))
    return {"described": described}


def _batch(options: argparse.Namespace) -> dict[str, int]:
    return {"tokens": options.tokens, "inputs": options.samples}


def measure(options: argparse.Namespace, results: Results, described: dict[str, Any]) -> xr.Dataset:
    """The stream, its change and the outputs' change, by size, draw and step."""
    sizes = _batch(options)
    net = text_net(options.width, options.depth, options.normalisations[0], **sizes)
    inputs, targets = training_data(TEXT, net, samples=WINDOWS * options.samples, seed=options.seed)
    how = {"steps": options.steps, "sampled_curvature": options.curvature == "sampled"}
    training = partial(TrainedFeatures, momentum=True, inputs=inputs, targets=targets, **how)

    soap_epsilon = given_soap_epsilon(options.soap_epsilon, options.optimizers)

    def run_of(normalisation: str, optimizer: str, table: str, width: int, depth: int) -> Run:
        given = values_of(optimizer, table, width, depth, **soap_epsilon)
        net = net_under(given, width, depth, normalisation, **sizes)
        precision = training_precision(options, optimizer)
        measure = training(optimizer=optimizer, hyperparameters=given, precision=precision)
        return Run(net, measure, options.draws, options.seed)

    axes = {name: getattr(options, f"{name}s") for name in ("normalisation", "optimizer", "table")}
    dataset = measure_ladders(options, results, run_of, lambda _: axes, at_places)
    return dataset.assign_coords(step=range(options.steps + 1)).assign_attrs(worded(described))
