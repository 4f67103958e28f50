"""Nets of blocks under the hyperparameter tables of Zheng et al. 2026, over ladders in width and in depth."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import MOST_LAYERS, require_count
from meanfield.execution import Run
from meanfield.nets import Net
from meanfield.optimizers import require_optimizer
from meanfield.parameterizations import OPTIMIZER_NAMES
from meanfield.simulation import TrainedStreams
from sims.common.blocks.base_values import Values, block_net, hyperparameters
from sims.common.command import Option, ladder
from sims.common.results import Results

# Tables for blocks of k >= 2 layers (condition 3.1), of one layer (condition B.1), and none: nothing scales.
TABLES = {"many": "k >= 2 table", "one": "k = 1 table", "standard": "standard"}
DIRECTIONS = ("width", "depth")

# The least ladders on which a slope has a correction, and those at which conditions are judged: beside either end sizes
# where a fit of log y = a + s log x + c / x learns most about s for its cost, in the lower half. Twice the draws of a
# ladder of doublings would say as much. Depths are even, as streams are looked at after half of the blocks.
SMOKE: dict[str, Any] = {"widths": [16, 32, 64], "depths": [2, 4, 8], "width": 32, "depth": 4, "draws": 12}
DEFAULT: dict[str, Any] = {"widths": [64, 96, 128, 192, 512], "depths": [2, 4, 10, 12, 32], "width": 128, "depth": 4}
PAPER = DEFAULT | {"widths": [64, 128, 256, 512, 1024], "depths": [2, 4, 8, 16, 32, 64], "optimizers": ["all"]}

# Options of batches, and of nets that need not be linear.
BATCH = ("samples", "outputs")
NETS = (*BATCH, "activation")
# Options that count something.
COUNTS = ("samples", "outputs", "tokens", "steps")

# Of both ladders, and of who trains on them.
LADDER_OPTIONS = (
    Option(
        "optimizers",
        "default: see the preset; all for all nine; a hybrid such as muon-adamw has hidden matrices stepped by the "
        "first, all else by the second",
        metavar="NAME",
        many="+",
        group="nets",
    ),
    Option("widths", "widths of the ladder in width, three or more", int, metavar="N", many="+", group="nets"),
    Option(
        "depths", "numbers of blocks of the ladder in depth, three or more", int, metavar="L", many="+", group="nets"
    ),
    Option("width", "width of the ladder in depth (default: see the preset)", int, group="nets"),
    Option("depth", "blocks of the ladder in width (default: see the preset)", int, group="nets"),
)
# The same of simulations whose blocks have linear or ReLU layers, as many as one likes.
BLOCK_OPTIONS = (
    *LADDER_OPTIONS,
    Option("block_depth", "transformations of a block", int, 2, metavar="K", group="nets"),
    Option("rate", "base learning rate (default: one that moves the base model by about a tenth)", float, group="nets"),
)
# Of simulations whose nets need not be the linear ones of the paper's derivations.
ACTIVATION = Option(
    "activation",
    "linear (default) or relu behind every matrix (Zheng et al. 2026, eq. 28)",
    default="linear",
    group="nets and batches",
)
# Of simulations that train.
PRECISION = Option(
    "precision",
    "of weights and passes: float32 (default; SSO in float64), as in practice, or float64",
    default="float32",
    choices=("float32", "float64"),
    group="training",
)


def batch_options(samples: int = 8, outputs: int = 4) -> tuple[Option, ...]:
    """Options of batches, whose gradients are of a rank above one by default."""
    words, group = "outputs, for as many classes; one: for labels +-1", "nets and batches"
    return (
        Option("samples", "samples of the batch", int, samples, metavar="B", group=group),
        Option("outputs", words, int, outputs, metavar="M", group=group),
    )


def training_precision(options: argparse.Namespace, optimizer: str) -> str:
    """That of --precision, if there is such an option; double for SSO, alone or in a hybrid.

    Its steps have all singular values of the momentum alike, down to those that single precision does not tell from
    rounding, so that it would train other nets.
    """
    return "float64" if _has_sso(optimizer) else getattr(options, "precision", "float64")


def trained_in(attributes: Mapping[str, Any]) -> str:
    """The precision of a dataset's training, as reports name it."""
    optimizers, precision = attributes["optimizers"].split(), attributes["precision"]
    double = list(filter(_has_sso, optimizers))
    if double == optimizers:
        return "float64"
    return f"{precision} ({', '.join(double)}: float64)" if double and precision != "float64" else precision


def _has_sso(optimizer: str) -> bool:
    return "sso" in optimizer.split("-")


def planned_ladders(options: argparse.Namespace, *own: str) -> dict[str, Any]:
    """What all numbers of a run on nets of blocks depend on: `checked_ladders`, the block depth and the rate."""
    require_count("--block-depth", options.block_depth)
    if options.rate is not None and not 0 < options.rate < float("inf"):
        raise ValueError(f"--rate {options.rate} must be positive and finite: it is a learning rate")
    return checked_ladders(options, "block_depth", *own) | {"rate": options.rate or "by optimizer"}


def checked_ladders(options: argparse.Namespace, *own: str) -> dict[str, Any]:
    """The optimizers and the ladders, checked, in order and expanded, and the options named.

    Refuses ladders too short for a slope with a correction, and names that no table has.
    """
    for name, most in (("widths", None), ("depths", MOST_LAYERS)):
        sizes = ladder(f"--{name}", getattr(options, name), 3, "a slope with its correction", maximum=most)
        setattr(options, name, sizes)
    for name in ("width", "depth", *(name for name in COUNTS if name in own)):
        require_count(f"--{name.replace('_', '-')}", getattr(options, name))
    if options.optimizers == ["all"]:
        options.optimizers = list(OPTIMIZER_NAMES)
    # A name given twice is one line of the tables, as a size given twice is one rung.
    options.optimizers = list(dict.fromkeys(options.optimizers))
    for optimizer in options.optimizers:
        require_optimizer("--optimizers", optimizer)
    names = ("optimizers", "widths", "depths", "width", "depth", *own)
    return {name: getattr(options, name) for name in names}


def rungs(options: argparse.Namespace, direction: str) -> list[tuple[int, int]]:
    """(width, depth) of every net of one ladder."""
    if direction == "width":
        return [(width, options.depth) for width in options.widths]
    return [(options.width, depth) for depth in options.depths]


def worded(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same, as a file can hold them: lists as words."""
    return {name: " ".join(map(str, value)) if isinstance(value, list) else value for name, value in values.items()}


def run_under(
    options: argparse.Namespace,
    measure: Callable[..., Any],
    optimizer: str,
    given: Values,
    width: int,
    depth: int,
    **training: Any,
) -> Run:
    """A net that an optimizer trains under these hyperparameters."""
    own = {name: getattr(options, name) for name in NETS if hasattr(options, name)}
    own["biases"] = "hidden_bias" in given
    net = block_net(given, width, depth, block_depth=options.block_depth, **own)
    training["precision"] = training_precision(options, optimizer)
    whole_measure = measure(optimizer=optimizer, hyperparameters=given, **training)
    return Run(net, whole_measure, options.draws, options.seed)


def require_rate(options: argparse.Namespace) -> None:
    """Refuse a --rate under which the smallest nets leave the range of floats within two steps."""
    if options.rate is None:
        return
    table = "one" if options.block_depth == 1 else "many"
    for optimizer, along in product(options.optimizers, DIRECTIONS):
        width, depth = rungs(options, along)[0]
        given = hyperparameters(optimizer, table, width, depth, rate=options.rate)
        net = block_net(given, width, depth, block_depth=options.block_depth)
        how: dict[str, Any] = {"momentum": False, "steps": 2, "precision": training_precision(options, optimizer)}
        measure = TrainedStreams(optimizer=optimizer, hyperparameters=given, **how)
        moved = measure.draw(net, options.seed, range(1))["feature_norm"]
        if not np.isfinite(moved).all():
            raise ValueError(
                f"--rate {options.rate:g}: with {optimizer} a net of width {width} and depth {depth} leaves the range "
                "of floats within two steps; leave --rate out for one that moves the base model by a tenth"
            )


def measure_ladders(
    options: argparse.Namespace,
    results: Results,
    run_of: Callable[..., Run],
    axes_of: Callable[[str], Mapping[str, Sequence[str]]],
    read: Callable[[xr.Dataset, Any], xr.Dataset],
) -> xr.Dataset:
    """NAME_by_width and NAME_by_depth of all that ``read`` takes from the runs, over the axes and the sizes.

    Args:
        run_of: (name on each axis, width, depth) -> the run.
        axes_of: direction of a ladder -> the names on each axis.
        read: (what a run has measured, its net) -> the variables that are kept, which are the same for all runs.
    """
    axes = {along: axes_of(along) for along in DIRECTIONS}
    runs = {
        along: [run_of(*at, *size) for at in product(*axes[along].values()) for size in rungs(options, along)]
        for along in DIRECTIONS
    }
    measured = iter(results.draw([run for along in DIRECTIONS for run in runs[along]]))
    parts: dict[str, xr.Variable] = {}
    coords: dict[str, Any] = {}
    for along in DIRECTIONS:
        sizes = getattr(options, f"{along}s")
        kept = [read(next(measured), run.net) for run in runs[along]]
        shape = (*(len(names) for names in axes[along].values()), len(sizes))
        for name in kept[0].data_vars:
            first = kept[0].variables[name]
            values = np.stack([part.variables[name].values for part in kept]).reshape(*shape, *first.shape)
            parts[f"{name!s}_by_{along}"] = xr.Variable((*axes[along], along, *first.dims), values, first.attrs)
        own = {str(name): values.values for name, values in kept[0].coords.items()}
        coords |= {**axes[along], along: sizes, **own}
    return xr.Dataset(parts, coords)


def at_places(measured: xr.Dataset, net: Net) -> xr.Dataset:
    """The stream below all blocks, after half of them and after all, and the roles by name."""
    above = len(net.units) - 1
    places = {"input": 0, "middle": (above + 1) // 2, "last": above}
    streams = {}
    for name in measured.data_vars:
        at = measured.variables[name].isel(block=list(places.values()), missing_dims="ignore")
        streams[name] = xr.Variable(["place" if dim == "block" else dim for dim in at.dims], at.values, at.attrs)
    coords = {name: values.variable for name, values in measured.coords.items() if "block" not in values.dims}
    coords["place"] = list(places)
    if "role" in measured.dims:
        coords["role"] = list(dict.fromkeys(map(net.role_of, net.weights)))
    return xr.Dataset(streams, coords)
