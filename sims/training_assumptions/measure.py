"""The ratios that Zheng et al. 2026 bound, over training, against width, depth and batch size."""

import argparse
from typing import Any

import xarray as xr

from meanfield.common import MOST_LAYERS, Array, require_choice, require_count, require_positive
from meanfield.execution import Run
from meanfield.parameterizations import OPTIMIZER_NAMES, WEIGHTS, transfer_hyperparameters
from meanfield.simulation import TrainingAssumptions
from meanfield.verification import places_of
from sims.common.blocks.base_values import RATES, Values, block_net, given_soap_epsilon
from sims.common.blocks.base_values import hyperparameters as table_hyperparameters
from sims.common.blocks.ladders import worded
from sims.common.command import ladder
from sims.common.results import Results
from sims.training_assumptions.labelled_images import DIGITS, two_classes

# Every ladder, and the option that gives its sizes.
LADDERS = {"width": "widths", "depth": "depths", "batch": "batches"}

# The paper's base rate on images of 3072 numbers; ten times as much on digits of 64. Other optimizers take a tenth of
# that at which one step moves the stream of the base model by a tenth: two hundred steps learn the images with it.
PAPER_RATE, DIGITS_RATE, SHARE = 0.001, 0.01, 0.1


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """Ladders in order, batches that can be halved, and (images, labels)."""
    for name, option in LADDERS.items():
        most = MOST_LAYERS if name == "depth" else None
        purpose = "a slope with its correction"
        setattr(options, option, ladder(f"--{option}", getattr(options, option), 3, purpose, maximum=most))
    for name in (*LADDERS, "steps"):
        require_count(f"--{name}", getattr(options, name))
    batches = (*options.batches, options.batch)
    if odd := [size for size in batches if size % 2]:
        raise ValueError(f"a batch of {odd[0]} images cannot be half of either class; give even numbers")
    require_choice("--optimizer", options.optimizer, OPTIMIZER_NAMES)
    if options.rate is None:
        options.rate = _own_rate(options.optimizer, options.input)
    require_positive("--rate", options.rate, why="it is a learning rate")
    grid = None if options.grid is None else tuple(options.grid)
    each = max(batches) // 2
    images = two_classes(options.input, options.labels, grid, tuple(options.classes), each, options.seed)
    names = (*LADDERS, *LADDERS.values(), "steps", "rate", "input", "classes", "optimizer", "precision")
    described = {name: getattr(options, name) for name in names}
    return {"described": described | given_soap_epsilon(options.soap_epsilon, [options.optimizer]), "images": images}


def measure(
    options: argparse.Namespace, results: Results, described: dict[str, Any], images: tuple[Array, Array]
) -> xr.Dataset:
    """Every ratio by ladder, place in the net, step and draw; by batch size under gradient descent alone."""
    ladders = LADDERS if options.optimizer == "sgd" else ("width", "depth")
    rungs = {name: getattr(options, LADDERS[name]) for name in ladders}
    own = {name: getattr(options, name) for name in LADDERS}
    runs = [_run_of(options, images, own | {name: size}) for name, sizes in rungs.items() for size in sizes]
    measured = iter(results.draw(runs))
    parts: dict[str, xr.DataArray] = {}
    for name, sizes in rungs.items():
        joined = xr.concat([places_of(next(measured)) for _ in sizes], dim=name).assign_coords({name: sizes})
        parts |= {f"{variable!s}_by_{name}": values for variable, values in joined.items()}
    return xr.Dataset(parts, {"step": looks(options.steps)}, worded(described) | {"numbers": len(images[0])})


def _run_of(options: argparse.Namespace, images: tuple[Array, Array], size: dict[str, int]) -> Run:
    inputs, labels = (values[..., : size["batch"]].copy() for values in images)
    soap_epsilon = given_soap_epsilon(options.soap_epsilon, [options.optimizer])
    given = hyperparameters(size["width"], size["depth"], len(inputs), options.rate, options.optimizer, **soap_epsilon)
    shape = {"input_width": len(inputs), "samples": size["batch"], "activation": "relu"}
    net = block_net(given, size["width"], size["depth"], **shape)
    how = {"optimizer": options.optimizer, "precision": options.precision, "steps": looks(options.steps)}
    training = TrainingAssumptions(hyperparameters=given, inputs=inputs, labels=labels, **how)
    return Run(net, training, options.draws, options.seed)


def looks(steps: int) -> list[int]:
    """The steps that the paper looks at: the first, the one half-way and the last."""
    return sorted({1, max(1, steps // 2), steps})


def _own_rate(optimizer: str, source: str) -> float:
    if optimizer == "sgd":
        return DIGITS_RATE if source == DIGITS else PAPER_RATE
    return SHARE * RATES[optimizer]


def hyperparameters(
    width: int, depth: int, numbers: int, rate: float, optimizer: str = "sgd", **soap_epsilon: Any
) -> Values:
    """Multipliers 1, 1/L, 1/n, variances 2/d_0, 2/n, 2 and learning rates by the table for k >= 2.

    Those of gradient descent are eta n, eta L, eta n, as appendix G.2 prints them. Those of the others are ``rate`` in
    the base model, of width 64 and depth 2.
    """
    if optimizer == "sgd":
        base = {"block_multiplier": 1.0, "initial_variance": 2.0, "learning_rate": rate}
        shared: dict[str, Any] = {"base_values": base, "base_width": 1, "base_depth": 1, "block_depth": 2}
        return transfer_hyperparameters(
            "sgd", width=width, depth=depth, input_dimension=numbers, roles=WEIGHTS, **shared
        )
    given = table_hyperparameters(optimizer, "many", width, depth, rate=rate, **soap_epsilon)
    variances = {"input": 2 / numbers, "hidden": 2 / width, "output": 2.0}
    return {role: given[role] | {"initial_variance": variance} for role, variance in variances.items()}
