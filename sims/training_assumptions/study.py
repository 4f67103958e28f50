"""What Zheng et al. 2026 assume of training, measured: assumptions G.1 - G.3 and alignments F.1, F.2 on real images.

The paper's ReLU nets (eq. 28) of L blocks of two matrices, under its table for k >= 2, learn to tell two classes of
images by binary cross-entropy on the full batch (appendix G.2). Every draw has new weights and the same images. As in
the paper, the ratios are taken at the first step, half-way and at the last of 200, in the input layer and in both
layers of the last block; besides, as means over all blocks. The paper varies the depth alone, 4 .. 256 blocks, at width
256, on 200 images of 3072 numbers (CIFAR-10), by gradient descent of rate 0.001. --preset paper has these sizes, on
MNIST's images of 784 numbers; CIFAR-10 is not installed with any extra and goes in by --input FILE. The default is
smaller, so that many draws take minutes: up to 64 blocks, width 64, 20 digits of 64 numbers, ten times the rate.

G.1, G.2 and F.1 are said of every optimizer. G.3 is of updates that are sums over samples, and F.2 of gradients: of
--optimizer they are measured under sgd alone.
"""

import argparse
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import MOST_LAYERS, Array, require_positive
from meanfield.execution import Run
from meanfield.parameterizations import OPTIMIZER_NAMES, WEIGHTS, transfer_hyperparameters
from meanfield.simulation import TrainingAssumptions
from sims.common.blocks.base_values import RATES, SOAP_EPSILON_OPTION, Values, block_net, given_soap_epsilon
from sims.common.blocks.base_values import hyperparameters as table_hyperparameters
from sims.common.blocks.ladders import worded
from sims.common.command import Option, Preset, chosen_of, counted, ladder_of
from sims.common.data import labelled
from sims.common.datasets import Variable
from sims.common.results import Results
from sims.common.study import Study
from sims.training_assumptions.claims import CLAIMS, FIRST, LAST, NAME, PLACES, RATIOS, places_for
from sims.training_assumptions.report import REPORT

# What is asked for.


def _batches(written: str, given: list[int]) -> list[int]:
    """Images of the ladder in batch size, each of which can be half of either class."""
    batches = ladder_of(3, SLOPE)(written, given)
    for size in batches:
        _require_even(size)
    return batches


def _even(written: str, given: int) -> int:
    _require_even(counted()(written, given))
    return given


def _require_even(size: int) -> None:
    if size % 2:
        raise ValueError(f"a batch of {size} images cannot be half of either class; give even numbers")


SLOPE = "a slope with its correction"
OPTIONS = (
    Option(
        "widths",
        "widths of the ladder in width, three or more",
        int,
        metavar="N",
        many="+",
        check=ladder_of(3, SLOPE),
        group="nets",
    ),
    Option(
        "depths",
        "numbers of blocks of the ladder in depth, three or more",
        int,
        metavar="L",
        many="+",
        check=ladder_of(3, SLOPE, maximum=MOST_LAYERS),
        group="nets",
    ),
    Option(
        "batches",
        "images of the ladder in batch size, even, three or more",
        int,
        metavar="B",
        many="+",
        check=_batches,
        group="nets",
    ),
    Option("width", "width of the other ladders (see the preset)", int, check=counted(), group="nets"),
    Option("depth", "blocks of the other ladders", int, check=counted(), group="nets"),
    Option("batch", "images of the other ladders, half of them of either class", int, check=_even, group="nets"),
    Option("steps", "steps of training (default: 200)", int, check=counted(), group="training"),
    Option(
        "optimizer",
        "sgd, without momentum (default), or any of the others",
        default="sgd",
        metavar="NAME",
        check=chosen_of(OPTIMIZER_NAMES),
        group="training",
    ),
    Option(
        "rate",
        "base learning rate (default: sgd 0.001, on digits 0.01; others by the base model)",
        float,
        group="training",
    ),
    SOAP_EPSILON_OPTION,
    Option("precision", "of weights and passes (see the preset)", choices=("float64", "float32"), group="training"),
    Option(
        "input",
        "digits, mnist (see the preset; they need the extra data) or a .npy, .npz, .nc FILE of images",
        group="training",
    ),
    Option(
        "labels",
        "with --input FILE: the class of every image, FILE::ARRAY of several arrays",
        metavar="FILE",
        group="training",
    ),
    Option("grid", "with --input FILE: size of an image, as 32 32", int, many="+", group="training"),
    Option("classes", "the two to tell apart (default: 3 8)", int, [3, 8], metavar="C", many=2, group="training"),
)
PRESETS = {
    "smoke": Preset(
        "5 s",
        **{"widths": [16, 32, 64], "depths": [1, 2, 4], "batches": [4, 8, 16], "draws": 18, "steps": 10},
        **{"width": 32, "depth": 2, "batch": 16, "input": "digits", "precision": "float64"},
    ),
    "default": Preset(
        "30 s",
        **{"widths": [16, 24, 32, 48, 256], "depths": [1, 2, 4, 8, 12, 64], "batches": [10, 20, 40, 80]},
        **{"width": 64, "depth": 4, "batch": 20, "steps": 200, "draws": 12, "input": "digits", "precision": "float32"},
    ),
    "paper": Preset(
        "30 min",
        **{"widths": [64, 128, 256, 512], "depths": [4, 8, 16, 32, 64, 128, 256], "batches": [26, 50, 100, 200]},
        **{"width": 256, "depth": 4, "batch": 200, "steps": 200, "draws": 8, "input": "mnist", "precision": "float32"},
    ),
}

# What is measured.

VARIABLES = (Variable("batch", "images of the batch B"),)
# Every ladder, and the option that gives its sizes.
LADDERS = {"width": "widths", "depth": "depths", "batch": "batches"}
# The paper's base rate on images of 3072 numbers; ten times as much on digits of 64. Other optimizers take a tenth of
# that at which one step moves the stream of the base model by a tenth: two hundred steps learn the images with it.
PAPER_RATE, DIGITS_RATE, SHARE = 0.001, 0.01, 0.1


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The ladders, and (images, labels) of as many images as the largest batch has."""
    if options.rate is None:
        options.rate = _own_rate(options.optimizer, options.input)
    require_positive("--rate", options.rate, why="it is a learning rate")
    grid = None if options.grid is None else tuple(options.grid)
    each = max(*options.batches, options.batch) // 2
    classes = tuple(options.classes)
    images = labelled.two_classes(options.input, options.labels, grid, classes, each, options.seed)
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
        return DIGITS_RATE if source == "digits" else PAPER_RATE
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


def places_of(measured: xr.Dataset) -> xr.Dataset:
    """The ratios at ``PLACES``, nan where they are not defined, and the loss.

    The input layer and both layers of the last block are those of the paper's figures 10 - 13. The output matrix is
    left out: it gives one number, of which a ratio between two can be as large as it likes.

    Source: Zheng et al. 2026, appendix G.2, "Verification of Assumptions".
    """
    places = {"training_loss": measured["training_loss"]}
    for name in RATIOS:
        if name not in measured:
            continue
        values = measured[name]
        within = str(values.dims[-1])
        inside = values.isel({within: slice(1, -1 if within == "matrix" else None)})
        at = {"input": values.isel({within: 0}), LAST: inside.isel({within: -1}), "all blocks": inside.mean(within)}
        at[FIRST] = np.nan * at[LAST] if FIRST not in places_for(name) else inside.isel({within: -2})
        places[name] = xr.concat([at[place] for place in PLACES], dim="place").assign_attrs(values.attrs)
    return xr.Dataset(places, {"place": list(PLACES)})


STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=REPORT,
    claims=CLAIMS,
    require_installed=lambda: labelled.require_installed("digits"),
)
