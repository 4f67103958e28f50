"""The ratios that Zheng et al. 2026 bound, over training, against width, depth and batch size."""

import argparse
from typing import Any

import xarray as xr

from meanfield.common import MOST_LAYERS, Array, require_count, require_positive
from meanfield.execution import Run
from meanfield.parameterizations import WEIGHTS, transfer_hyperparameters
from meanfield.simulation import TrainingAssumptions
from meanfield.verification import places_of
from sims.common.blocks.base_values import block_net
from sims.common.blocks.ladders import worded
from sims.common.datasets import ladder
from sims.common.results import Results
from sims.training_assumptions.labelled_images import two_classes

# Every ladder, and the option that gives its sizes.
LADDERS = {"width": "widths", "depth": "depths", "batch": "batches"}


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
    require_positive("--rate", options.rate, why="it is a learning rate")
    grid = None if options.grid is None else tuple(options.grid)
    each = max(batches) // 2
    images = two_classes(options.input, options.labels, grid, tuple(options.classes), each, options.seed)
    names = (*LADDERS, *LADDERS.values(), "steps", "rate", "input", "classes")
    return {"described": {name: getattr(options, name) for name in names}, "images": images}


def measure(
    options: argparse.Namespace, results: Results, described: dict[str, Any], images: tuple[Array, Array]
) -> xr.Dataset:
    """Every ratio by ladder, place in the net, step and draw."""
    rungs = {name: getattr(options, option) for name, option in LADDERS.items()}
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
    given = hyperparameters(size["width"], size["depth"], len(inputs), options.rate)
    shape = {"input_width": len(inputs), "samples": size["batch"], "activation": "relu"}
    net = block_net(given, size["width"], size["depth"], **shape)
    training = TrainingAssumptions(hyperparameters=given, steps=looks(options.steps), inputs=inputs, labels=labels)
    return Run(net, training, options.draws, options.seed)


def looks(steps: int) -> list[int]:
    """The steps that are looked at: 1, 3, 10, 30, .. and the last."""
    round_numbers = [factor * 10**power for power in range(len(str(steps))) for factor in (1, 3)]
    return sorted({step for step in round_numbers if step <= steps} | {steps})


def hyperparameters(width: int, depth: int, numbers: int, rate: float) -> dict[str, dict[str, float]]:
    """Appendix G.2: multipliers 1, 1/L, 1/n, variances 2/d_0, 2/n, 2 and learning rates eta n, eta L, eta n."""
    base = {"block_multiplier": 1.0, "initial_variance": 2.0, "learning_rate": rate}
    shared: dict[str, Any] = {"base_values": base, "base_width": 1, "base_depth": 1, "block_depth": 2}
    return transfer_hyperparameters("sgd", width=width, depth=depth, input_dimension=numbers, roles=WEIGHTS, **shared)
