"""Ladders of nets of blocks, in width at a fixed depth and in depth at a fixed width: options, sizes, measuring."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from sims.common.block_nets import RATES, block_net, hyperparameters

if TYPE_CHECKING:
    import xarray as xr

    from meanfield.execution import Run
    from meanfield.nets import BlockNet
    from sims.common.results import Results

DIRECTIONS = ("width", "depth")

# The least ladders on which a slope has a correction, and those at which conditions are judged.
SMOKE: dict[str, Any] = {"widths": [16, 32, 64], "depths": [2, 4, 8], "width": 32, "depth": 4, "draws": 12}
WIDE: dict[str, Any] = {"width": 128, "depth": 4}


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


def check_ladders(options: argparse.Namespace) -> None:
    """Refuse ladders too short for a slope with a correction, and names that no table has; sort and expand."""
    from meanfield.common import MOST_LAYERS, require_choice, require_count, require_counts
    from meanfield.parameterizations import OPTIMIZERS

    for name, most in (("widths", None), ("depths", MOST_LAYERS)):
        given = require_counts(f"--{name}", getattr(options, name), maximum=most, why="sizes of a ladder")
        sizes = sorted(set(given))
        if len(sizes) < 3:
            raise ValueError(f"--{name} {sizes}: a slope with its correction needs three or more sizes")
        setattr(options, name, sizes)
    for name in ("width", "depth", "block_depth"):
        require_count(f"--{name.replace('_', '-')}", getattr(options, name))
    if options.optimizers == ["all"]:
        options.optimizers = list(OPTIMIZERS)
    # A name given twice is one line of the tables, as a size given twice is one rung.
    options.optimizers = list(dict.fromkeys(options.optimizers))
    for optimizer in options.optimizers:
        require_choice("--optimizers", optimizer, OPTIMIZERS)
    if options.rate is not None and not 0 < options.rate < float("inf"):
        raise ValueError(f"--rate {options.rate} must be positive and finite: it is a learning rate")


def ladder(options: argparse.Namespace, direction: str) -> list[tuple[int, int]]:
    """(width, depth) of every net of one ladder."""
    if direction == "width":
        return [(width, options.depth) for width in options.widths]
    return [(options.width, depth) for depth in options.depths]


def ladder_options(options: argparse.Namespace) -> dict[str, Any]:
    """What all numbers of a run depend on."""
    names = ("optimizers", "widths", "depths", "width", "depth", "block_depth", "draws", "seed")
    return {name: getattr(options, name) for name in names} | {"rate": options.rate or "by optimizer"}


def attributes(values: dict[str, Any]) -> dict[str, Any]:
    """The same, as a file can hold them."""
    return {name: " ".join(map(str, one)) if isinstance(one, list) else one for name, one in values.items()}


def training_run(
    options: argparse.Namespace,
    measure: Callable[..., Any],
    of: tuple[str, str],
    width: int,
    depth: int,
    **training: Any,
) -> Run:
    """A net that one (optimizer, table) trains, with what the measure takes besides them."""
    from meanfield.execution import Run

    optimizer, table = of
    given = hyperparameters(optimizer, table, width, depth, rate=options.rate)
    shape = {"block_depth": options.block_depth, "activation": getattr(options, "activation", "linear")}
    net = block_net(given, width, depth, **shape)
    whole = measure(optimizer=optimizer, hyperparameters=given, **training)
    return Run(net, whole, options.draws, options.seed)


def require_rate(options: argparse.Namespace) -> None:
    """Refuse a --rate under which the smallest nets leave the range of floats within two steps."""
    import numpy as np

    from meanfield.simulation import TrainedStreams

    if options.rate is None:
        return
    table = "one" if options.block_depth == 1 else "many"
    for optimizer, along in product(options.optimizers, DIRECTIONS):
        width, depth = ladder(options, along)[0]
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

    from meanfield.execution import provenance, simulate_all

    require_rate(options)
    places = list(product(*axes.values()))
    runs = {along: [run_of(*at, *size) for at in places for size in ladder(options, along)] for along in DIRECTIONS}
    wanted = [run for along in DIRECTIONS for run in runs[along]]
    measured = iter(simulate_all(wanted, workers=options.workers, store=results.pieces))
    parts, coords = {}, {name: list(values) for name, values in axes.items()}
    for along in DIRECTIONS:
        sizes = getattr(options, f"{along}s")
        found = [read(next(measured), run.net) for run in runs[along]]
        shape = (*(len(values) for values in axes.values()), len(sizes))
        for name, first in found[0].items():
            values = np.stack([one[name].values for one in found]).reshape(*shape, *first.shape)
            parts[f"{name!s}_by_{along}"] = xr.DataArray(values, dims=(*axes, along, *first.dims), attrs=first.attrs)
        coords |= {along: sizes, **{str(name): values.values for name, values in found[0].coords.items()}}
    return xr.Dataset(parts, coords, {"provenance": provenance()})
