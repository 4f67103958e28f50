"""Nets of blocks under the hyperparameter tables of Zheng et al. 2026, over ladders in width and in depth."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr

    from meanfield.execution import Run
    from meanfield.nets import BlockNet
    from sims.common.results import Results

# Tables for blocks of k >= 2 layers (condition 3.1), of one layer (condition B.1), and none: nothing scales.
TABLES = {"many": "k >= 2 table", "one": "k = 1 table", "standard": "standard"}
DIRECTIONS = ("width", "depth")

# The least ladders on which a slope has a correction, and those at which conditions are judged.
SMOKE: dict[str, Any] = {"widths": [16, 32, 64], "depths": [2, 4, 8], "width": 32, "depth": 4, "draws": 12}
DEFAULT: dict[str, Any] = {"widths": [64, 128, 256, 512], "depths": [2, 4, 8, 16, 32], "width": 128, "depth": 4}
PAPER = DEFAULT | {"widths": [64, 128, 256, 512, 1024], "depths": [2, 4, 8, 16, 32, 64], "optimizers": ["all"]}

BASE_WIDTH, BASE_DEPTH = 64, 2
INPUT_WIDTH = 16

# Base learning rates at which the first update moves the stream of the base model by about a tenth of itself.
RATES = {
    "sgd": 0.2,
    "adamw": 0.002,
    "lion": 0.002,
    "sophia": 0.002,
    "muon": 0.06,
    "muon_kimi": 0.04,
    "shampoo": 0.6,
    "soap": 0.03,
    "sso": 0.06,
}
# Base learning rates without momentum, at which ten steps move the stream by about itself. At lower ones the first
# step's overlaps of independent vectors, which fall with the width, still outweigh what further steps add to terms of
# higher order; at higher ones changes grow among each other, as (1 + c / L)^L, whose approach to its limit over L looks
# like a slope. Without momentum AdamW and Lion take one step, the sign, as Sophia does unless curvature is large; and
# Muon, Shampoo and SOAP take another.
PLAIN_RATES = {"sgd": 0.4, "adamw": 0.001, "muon": 0.06, "muon_kimi": 0.04, "sso": 0.06}
PLAIN_RATES |= dict.fromkeys(("lion", "sophia"), 0.001) | dict.fromkeys(("shampoo", "soap"), 0.06)

# SOAP needs an epsilon, of which the paper gives no row: a turned basis has slots where the momentum is not small and
# no squared gradient has come in yet. It stands beside singular values of gradients, Shampoo's beside their squares.
SOAP_EPSILON = 0.002
# Of a typical element (AdamW) or squared singular value (Shampoo) of the base model's gradients, a millionth or less.
EPSILONS = {"adamw": {"adamw_epsilon": 1e-10}, "shampoo": {"shampoo_epsilon": 1e-12}}
# What makes every cell of a table act in the base model: epsilons as large as those elements and squared singular
# values are with eight samples and four outputs; decay that takes this share of a weight in a step; and an output
# learning rate that is so many times the others', as output weights are eight times as large as hidden ones.
ACTING_EPSILON, ACTING_DECAY, ACTING_OUTPUT = 0.006, 0.02, 32.0

# Options of `add_batch_options`.
BATCH = ("samples", "outputs", "activation")

# Role -> hyperparameter -> number, and (role, hyperparameter).
Values = dict[str, dict[str, float]]
Cell = tuple[str, str]


def hyperparameters(
    optimizer: str,
    table: str,
    width: int,
    depth: int,
    *,
    rate: float | None = None,
    biases: bool = False,
    acting: bool = False,
    standard_cell: Cell | None = None,
) -> Values:
    """role -> hyperparameters by a table. The base model is of width 64 and depth 2, its streams and outputs O(1).

    Args:
        acting: whether weights decay, epsilons are as large as gradients of the base model, and output weights alone
            move the outputs; otherwise there is no decay, epsilons are negligible, and all weights have one rate.
        standard_cell: one that stays at its value in the base model, as in the standard parameterization.
    """
    base = _base_values(optimizer, rate, biases, acting)
    resolved = _resolved(optimizer, table, width, depth, base)
    if standard_cell is not None:
        role, name = standard_cell
        resolved[role][name] = _resolved(optimizer, "standard", width, depth, base)[role][name]
    return resolved


def _base_values(optimizer: str, rate: float | None, biases: bool, acting: bool) -> dict[str, Any]:
    """Hyperparameters of the base model, multipliers and variances by role."""
    multiplier = {"input": 1.0, "hidden": 1.0 / BASE_DEPTH, "output": 1.0 / BASE_WIDTH}
    variance = {"input": 1.0 / INPUT_WIDTH, "hidden": 1.0 / BASE_WIDTH, "output": 1.0}
    if biases:
        multiplier |= {"input_bias": multiplier["input"], "hidden_bias": multiplier["hidden"]}
        variance |= {"input_bias": 1.0, "hidden_bias": 1.0}
    rates = dict.fromkeys(multiplier, RATES[optimizer] if rate is None else rate)
    epsilons = EPSILONS.get(optimizer, {})
    base: dict[str, Any] = {"block_multiplier": multiplier, "initial_variance": variance, "learning_rate": rates}
    if not acting:
        return base | epsilons
    rates["output"] *= ACTING_OUTPUT
    decays = {role: ACTING_DECAY / rate for role, rate in rates.items()}
    return base | {"weight_decay": decays} | dict.fromkeys(epsilons, ACTING_EPSILON)


def _resolved(optimizer: str, table: str, width: int, depth: int, base: Mapping[str, Any]) -> Values:
    """By a table of the paper, or as in the base model."""
    from meanfield.parameterizations import transfer_hyperparameters

    roles = list(base["block_multiplier"])
    shared: dict[str, Any] = {"width": width, "depth": depth, "base_width": BASE_WIDTH, "base_depth": BASE_DEPTH}
    shared |= {"block_depth": 1 if table == "one" else 2, "roles": roles}
    shared |= {"parameterization": "standard" if table == "standard" else "spectral"}
    resolved = transfer_hyperparameters(optimizer, base_values=base, **shared)
    if optimizer == "soap":
        squares = transfer_hyperparameters("shampoo", base_values={"shampoo_epsilon": SOAP_EPSILON**2}, **shared)
        for role in roles:
            resolved[role]["soap_epsilon"] = squares[role]["shampoo_epsilon"] ** 0.5
    return resolved


def block_net(by_role: Mapping[str, Mapping[str, float]], width: int, depth: int, **options: Any) -> BlockNet:
    """The net whose multipliers and variances these hyperparameters give."""
    from meanfield.nets import ROLES, BlockNet

    multipliers, variances = (
        tuple(by_role[role][name] for role in ROLES) for name in ("block_multiplier", "initial_variance")
    )
    if options.get("biases"):
        options = options | {"bias_variance": by_role["hidden_bias"]["initial_variance"]}
    shared: dict[str, Any] = {"input_width": INPUT_WIDTH, "multipliers": multipliers, "variances": variances}
    return BlockNet(width=width, depth=depth, **(shared | options))


def add_ladder_options(parser: argparse.ArgumentParser) -> None:
    """Options of every simulation that follows nets of blocks over both ladders."""
    add = parser.add_argument_group("nets").add_argument
    add("--optimizers", nargs="+", metavar="NAME", help="optimizers (default: see the preset); all for all nine")
    add("--widths", type=int, nargs="+", metavar="N", help="widths of the ladder in width, three or more")
    add("--depths", type=int, nargs="+", metavar="L", help="numbers of blocks of the ladder in depth, three or more")
    add("--width", type=int, help="width of the ladder in depth (default: 128; smoke: 32)")
    add("--depth", type=int, help="blocks of the ladder in width (default: 4)")
    add("--block-depth", type=int, default=2, metavar="K", help="transformations of a block (default: 2)")
    add("--rate", type=float, help="base learning rate (default: one that moves the base model by about a tenth)")


def add_batch_options(parser: argparse.ArgumentParser) -> None:
    """Options of simulations whose nets and batches need not be those of the paper's derivations."""
    add = parser.add_argument_group("nets and batches").add_argument
    add("--samples", type=int, default=8, metavar="B", help="samples of the batch (default: 8)")
    add("--outputs", type=int, default=4, metavar="M", help="outputs, for as many classes (default: 4)")
    relu = "linear (default) or relu behind every matrix (Zheng et al. 2026, eq. 28)"
    add("--activation", default="linear", help=relu)


def planned_ladders(options: argparse.Namespace, *own: str) -> dict[str, Any]:
    """What all numbers of a run depend on: the ladders, checked, in order and expanded, and the options named.

    Refuses ladders too short for a slope with a correction, and names that no table has.
    """
    from meanfield.common import MOST_LAYERS, require_choice, require_count
    from meanfield.parameterizations import OPTIMIZERS
    from sims.common.datasets import ladder

    for name, most in (("widths", None), ("depths", MOST_LAYERS)):
        sizes = ladder(f"--{name}", getattr(options, name), 3, "a slope with its correction", maximum=most)
        setattr(options, name, sizes)
    for name in ("width", "depth", "block_depth", *(name for name in ("samples", "outputs") if name in own)):
        require_count(f"--{name.replace('_', '-')}", getattr(options, name))
    if options.optimizers == ["all"]:
        options.optimizers = list(OPTIMIZERS)
    # A name given twice is one line of the tables, as a size given twice is one rung.
    options.optimizers = list(dict.fromkeys(options.optimizers))
    for optimizer in options.optimizers:
        require_choice("--optimizers", optimizer, OPTIMIZERS)
    if options.rate is not None and not 0 < options.rate < float("inf"):
        raise ValueError(f"--rate {options.rate} must be positive and finite: it is a learning rate")
    names = ("optimizers", "widths", "depths", "width", "depth", "block_depth", *own)
    return {name: getattr(options, name) for name in names} | {"rate": options.rate or "by optimizer"}


def rungs(options: argparse.Namespace, direction: str) -> list[tuple[int, int]]:
    """(width, depth) of every net of one ladder."""
    if direction == "width":
        return [(width, options.depth) for width in options.widths]
    return [(options.width, depth) for depth in options.depths]


def worded(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same, as a file can hold them: lists as words."""
    return {name: " ".join(map(str, value)) if isinstance(value, list) else value for name, value in values.items()}


def training_run(
    options: argparse.Namespace,
    measure: Callable[..., Any],
    of: tuple[str, str],
    width: int,
    depth: int,
    **training: Any,
) -> Run:
    """A net that one (optimizer, table) trains, with what the measure takes besides them."""
    optimizer, table = of
    given = hyperparameters(optimizer, table, width, depth, rate=options.rate)
    return run_under(options, measure, optimizer, given, width, depth, **training)


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
    from meanfield.execution import Run

    own = {name: getattr(options, name) for name in BATCH if hasattr(options, name)}
    net = block_net(given, width, depth, block_depth=options.block_depth, **own)
    whole_measure = measure(optimizer=optimizer, hyperparameters=given, **training)
    return Run(net, whole_measure, options.draws, options.seed)


def require_rate(options: argparse.Namespace) -> None:
    """Refuse a --rate under which the smallest nets leave the range of floats within two steps."""
    import numpy as np

    from meanfield.simulation import TrainedStreams

    if options.rate is None:
        return
    table = "one" if options.block_depth == 1 else "many"
    for optimizer, along in product(options.optimizers, DIRECTIONS):
        width, depth = rungs(options, along)[0]
        given = hyperparameters(optimizer, table, width, depth, rate=options.rate)
        net = block_net(given, width, depth, block_depth=options.block_depth)
        measure = TrainedStreams(optimizer=optimizer, hyperparameters=given, momentum=False, steps=2)
        moved = measure.draw(net, options.seed, range(1))["feature_norm"]
        if not np.isfinite(moved).all():
            raise ValueError(
                f"--rate {options.rate:g}: with {optimizer} a net of width {width} and depth {depth} leaves the range "
                f"of floats within two steps; the default moves it by a tenth, {RATES[optimizer]:g}"
            )


def measure_ladders(
    options: argparse.Namespace,
    results: Results,
    run_of: Callable[..., Run],
    axes: Mapping[str, Sequence[str]],
    read: Callable[[xr.Dataset, BlockNet], xr.Dataset],
) -> xr.Dataset:
    """NAME_by_width and NAME_by_depth of all that ``read`` takes from the runs, over the axes and the sizes.

    Args:
        run_of: (name on each axis, width, depth) -> the run.
        read: (what a run has measured, its net) -> the variables that are kept, which are the same for all runs.
    """
    import numpy as np
    import xarray as xr

    require_rate(options)
    places = list(product(*axes.values()))
    runs = {along: [run_of(*at, *size) for at in places for size in rungs(options, along)] for along in DIRECTIONS}
    measured = iter(results.draw([run for along in DIRECTIONS for run in runs[along]]))
    parts, coords = {}, {name: list(values) for name, values in axes.items()}
    for along in DIRECTIONS:
        sizes = getattr(options, f"{along}s")
        kept = [read(next(measured), run.net) for run in runs[along]]
        shape = (*(len(values) for values in axes.values()), len(sizes))
        for name, first in kept[0].items():
            values = np.stack([part[name].values for part in kept]).reshape(*shape, *first.shape)
            parts[f"{name!s}_by_{along}"] = xr.DataArray(values, dims=(*axes, along, *first.dims), attrs=first.attrs)
        coords |= {along: sizes, **{str(name): values.values for name, values in kept[0].coords.items()}}
    return xr.Dataset(parts, coords)


def at_places(measured: xr.Dataset, net: BlockNet) -> xr.Dataset:
    """The stream below all blocks, after half of them and after all, and the roles by name."""
    places = {"input": 0, "middle": (net.depth + 1) // 2, "last": net.depth}
    streams = measured.isel(block=list(places.values())).rename(block="place")
    return streams.assign_coords(place=list(places), role=list(dict.fromkeys(net.roles)))
