"""Coordinate check: how far nets move in a few steps, against width and depth, for every hyperparameter table.

Nets of L blocks of k matrices are trained, with one optimizer at a time or a hybrid of two, momentum, weight decay and
epsilon included. Every role has the table of the optimizer that steps it.
All sizes are root mean squares over units and samples: of the stream h_0, h_(L/2), h_L and its change since before the
first step, of the change of the outputs f, and of what input, hidden and output weights change alone. Three tables
start from one base model: those of Zheng et al. 2026 for blocks of k >= 2 layers (condition 3.1: many) and of k = 1
(condition B.1: one), and the standard parameterization.
"""

import argparse
from typing import Any

import xarray as xr

from meanfield.execution import Run
from meanfield.simulation import TrainedStreams
from sims.common.blocks.base_values import (
    BIAS_OF,
    SOAP_EPSILON_OPTION,
    Values,
    base_option,
    block_net,
    given_soap_epsilon,
    hyperparameters,
    own_values,
)
from sims.common.blocks.ladders import (
    ACTIVATION,
    BLOCK_OPTIONS,
    DEFAULT,
    NETS,
    PAPER,
    PRECISION,
    SMOKE,
    TABLES,
    at_places,
    batch_options,
    measure_ladders,
    planned_ladders,
    require_rate,
    run_under,
    worded,
)
from sims.common.command import Option, Preset, chosen_of
from sims.common.results import Results
from sims.common.study import Study
from sims.coordinate_check.claims import CLAIMS, NAME
from sims.coordinate_check.report import text

OPTIONS = (
    *BLOCK_OPTIONS,
    *batch_options(),
    ACTIVATION,
    Option("steps", "steps of training (default: 10; smoke: 2)", int, group="training"),
    Option(
        "tables",
        f"of {', '.join(TABLES)} (default: all)",
        default=list(TABLES),
        metavar="NAME",
        many="+",
        check=chosen_of(TABLES),
        group="training",
    ),
    Option("biases", "biases beside input and hidden matrices, which start at 0", flag=True, group="training"),
    base_option("hidden.learning_rate=0.02"),
    SOAP_EPSILON_OPTION,
    PRECISION,
    Option("plain", "no weight decay and negligible epsilons (default: such as matter)", flag=True, group="training"),
)
# All tables of all optimizers are judged on these.
SMALL: dict[str, Any] = {"widths": [32, 48, 64, 96, 256], "width": 64, "depth": 2}
PRESETS = {
    "smoke": Preset("5 s", **SMOKE | {"optimizers": ["sgd", "adamw", "muon"], "draws": 6, "steps": 2}),
    "default": Preset("20 s", **DEFAULT | SMALL, draws=20, steps=10, optimizers=["muon_kimi"]),
    "paper": Preset("20 min", **PAPER, draws=32, steps=10),
}


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The ladders, tables, steps and batches; values that make no net are refused."""
    described = planned_ladders(options, "steps", "tables", "base", *NETS)
    described |= given_soap_epsilon(options.soap_epsilon, options.optimizers)
    for optimizer in options.optimizers:
        values = values_of(options, optimizer, "standard", options.width, options.depth)
        block_net(values, options.width, options.depth, biases=options.biases)
    return {"described": described | {"plain": int(options.plain), "biases": int(options.biases)}}


def values_of(options: argparse.Namespace, optimizer: str, table: str, width: int, depth: int) -> Values:
    """By a table, with base values of roles as given, and biases that start at 0 (Zheng et al. 2026, appendix E)."""
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
        given = values_of(options, optimizer, table, width, depth)
        training = {"momentum": True, "steps": options.steps}
        return run_under(options, TrainedStreams, optimizer, given, width, depth, **training)

    axes = {"optimizer": options.optimizers, "table": options.tables}
    dataset = measure_ladders(options, results, run_of, lambda _: axes, at_places)
    return dataset.assign_coords(step=range(options.steps + 1)).assign_attrs(worded(described))


STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    planned=planned,
    measure=measure,
    report=text,
    claims=CLAIMS,
)
