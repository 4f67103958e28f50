"""Convolutional nets at a ladder of depths: what is drawn, and what theory says of each."""

import argparse
import json
from typing import Any

import xarray as xr

from meanfield.common import MOST_LAYERS, require_count, require_counts
from meanfield.execution import provenance
from meanfield.nets import ConvNet
from meanfield.quantities import predicted_dataset
from meanfield.simulation import Energies
from meanfield.verification import finite_width_allowance
from sims.common.command import chosen_arrays
from sims.common.datasets import attributes, predictions, seeded_run
from sims.common.images import images_from_file, photo_crops
from sims.common.results import Results


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The nets of the ladder and their inputs; sizes are refused before any file is read."""
    require_count("--depth", options.depth, maximum=MOST_LAYERS)
    require_counts("--grid", options.grid)
    if len(options.grid) > 2:
        raise ValueError(f"--grid {options.grid} has {len(options.grid)} axes; give 1 or 2")
    for name, value in (("--samples", options.samples), ("--input-channels", options.input_channels)):
        if value is not None:
            require_count(name, value)
    inputs = _inputs(options)
    nets = [_net(options, depth, inputs) for depth in depth_ladder(options.depth)]
    seeded_run(options, nets[-1], Energies(**chosen_arrays(options)), "").require_memory(options.workers.here)
    return {"nets": nets, "inputs": inputs}


def depth_ladder(depth: int) -> list[int]:
    """Depths at which the learning-rate scale is measured: L, L/2, L/4, ... down to 2 (or 1 for shallow nets)."""
    least = 2 if depth >= 4 else 1
    ladder = [depth]
    while ladder[0] // 2 >= least and len(ladder) < 4:
        ladder.insert(0, ladder[0] // 2)
    return ladder


def _inputs(options: argparse.Namespace) -> Any:
    """The fixed batch that the user asked for, or None for fresh noise in every draw."""
    if options.input == "gaussian":
        return None
    grid = tuple(options.grid)
    if options.input == "photo":
        channels = 3 if options.input_channels is None else options.input_channels
        return photo_crops(grid, channels, 1 if options.samples is None else options.samples, options.seed)
    return images_from_file(options.input, grid, options.samples, options.input_channels)


def _net(options: argparse.Namespace, depth: int, inputs: Any) -> ConvNet:
    names = ("channels", "grid", "padding", "activation", "outputs", "head", "readout")
    return ConvNet(
        depth=depth,
        kernel=options.kernel * len(options.grid) if len(options.kernel) == 1 else options.kernel,
        input_channels=options.input_channels if inputs is None else inputs.shape[1],
        inputs=(1 if options.samples is None else options.samples) if inputs is None else len(inputs),
        **{name: getattr(options, name) for name in names},
    )


def measure(options: argparse.Namespace, results: Results, nets: list[ConvNet], inputs: Any) -> xr.Dataset:
    """Every rung of the ladder with its predictions beside: one dataset with a leading dim ``depth``."""
    theory = [_predictions(net, inputs) for net in nets]
    energies = Energies(inputs=inputs, **chosen_arrays(options))
    runs = [seeded_run(options, net, energies, f"depth {net.depth}") for net in nets]
    measured = zip(results.draw(runs), theory, strict=True)
    rungs = [xr.merge([drawn, *predictions], combine_attrs="override") for drawn, predictions in measured]
    dataset = xr.concat(rungs, dim="depth", join="outer", combine_attrs="override")
    dataset.attrs |= attributes(options) | {
        "architecture": json.dumps(nets[-1].describe()),
        "inputs": options.input,
        "provenance": provenance(seeds=[str(run.seed) for run in runs], draws=options.draws),
    }
    return dataset.assign_coords(depth=[net.depth for net in nets])


def _predictions(net: ConvNet, inputs: Any) -> list[xr.Dataset]:
    """Every level's prediction, its variables renamed NAME_level, and the allowance for finite width."""
    allowance = predicted_dataset(net, {"finite_width_allowance": finite_width_allowance(net, inputs)}, {})
    return [allowance, *predictions(net, ("mean_field", "law"), inputs)]
