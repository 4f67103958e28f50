"""Measure the depth law of convolutional nets: label term, output term, update energy, overlap energy by layer.

Draws networks at initialisation, computes for every draw the exact one-step change of every pre-activation, and
holds the result against the mean field and the papers' sum-of-minima law, with a verdict for each.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from sims.common.beside import predictions
from sims.common.command import (
    add_array_options,
    add_run_options,
    chosen_arrays,
    command_parser,
    fill_from_preset,
    run_command,
)
from sims.common.results import Results, run_key

if TYPE_CHECKING:
    import xarray as xr

    from meanfield.nets import ConvNet

NAME = "cnn_overlap"

INPUT_LAYOUTS = """An image file holds (grid), (channels, grid) or (samples, channels, grid), channels first or last;
  with --samples n or --input-channels 1, an array (n, grid) is n grey samples. Images are standardised."""

PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {"depth": 4, "channels": 32, "grid": [8], "kernel": [3], "draws": 64},
    "default": {"depth": 12, "channels": 128, "grid": [8, 8], "kernel": [3], "draws": 512},
    "paper": {"depth": 16, "channels": 256, "grid": [16, 16], "kernel": [3], "draws": 2048},
}


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(NAME, __doc__, presets=PRESETS)
    _add_network_options(parser)
    _add_input_options(parser)
    add_array_options(parser)
    add_run_options(parser)
    options = parser.parse_args(argv)
    fill_from_preset(options, PRESETS[options.preset])
    return options


def _add_network_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("network")
    add = group.add_argument
    add("--depth", type=int, metavar="L", help="hidden layers")
    add("--channels", type=int, metavar="C", help="channels of every hidden layer")
    add("--grid", type=int, nargs="+", metavar="N", help="sites along the one or two axes")
    add("--kernel", type=int, nargs="+", metavar="K", help="taps along each axis, odd or even; one number for all axes")
    add("--padding", default="circular", help="circular (default) or zero")
    add("--activation", default="relu", help="relu (default), linear, gelu or tanh")
    readout = "convolution (default; theory predicts its label term) or pooled, the papers' head"
    add("--readout", default="convolution", help=readout)
    head = "variance of the readout's weights: he (default) 1/(q fan_in), fan_in 1/fan_in, mup 1/fan_in^2"
    add("--head", default="he", help=head)
    add("--outputs", type=int, default=10, metavar="M", help="output channels (default: 10)")


def _add_input_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("input", INPUT_LAYOUTS)
    add = group.add_argument
    source = "gaussian (default: fresh white noise), photo (crops of a photograph), or FILE[::ARRAY] (.npy, .npz, .nc)"
    add("--input", default="gaussian", metavar="SOURCE", help=source)
    channels = "channels of the input (gaussian: as the hidden layers; photo: 3 for RGB, 1 for grey; a file: its own)"
    add("--input-channels", type=int, metavar="C", help=channels)
    add("--samples", type=int, metavar="B", help="samples in the batch (default: 1; a file: its own)")


def run(options: argparse.Namespace) -> int:
    """Check everything, then measure (or read what an equal run has measured), print, and write."""
    from figures import cnn_overlap as figure
    from sims.cnn_overlap import report

    _check_numbers(options)
    inputs = _inputs(options)
    nets = [_architecture(options, depth, inputs) for depth in depth_ladder(options.depth)]
    results = _results(options, nets, inputs)
    return results.deliver(
        lambda: _measure(options, nets, inputs, results), lambda dataset: report.text(dataset, nets[-1]), figure.draw
    )


def _check_numbers(options: argparse.Namespace) -> None:
    """Refuse what no network or run can have, before any file is read. (The rest is the spec's to refuse.)"""
    from meanfield.common import MOST_LAYERS, require_count, require_counts

    require_count("--depth", options.depth, maximum=MOST_LAYERS)
    require_counts("--grid", options.grid)
    if len(options.grid) > 2:
        raise ValueError(f"--grid {options.grid} has {len(options.grid)} axes; give 1 or 2")
    for name, value in (("--samples", options.samples), ("--input-channels", options.input_channels)):
        if value is not None:
            require_count(name, value)


def depth_ladder(depth: int) -> list[int]:
    """Depths at which the learning-rate scale is measured: L, L/2, L/4, ... down to 2 (or 1 for shallow nets)."""
    least = 2 if depth >= 4 else 1
    ladder = [depth]
    while ladder[0] // 2 >= least and len(ladder) < 4:
        ladder.insert(0, ladder[0] // 2)
    return ladder


def _measure(options: argparse.Namespace, nets: list[ConvNet], inputs: Any, results: Results) -> xr.Dataset:
    """Simulate every rung of the ladder and predict beside it: one dataset with a leading dim ``depth``."""
    import xarray as xr

    from meanfield.common import derived_seed
    from meanfield.execution import Run, provenance, simulate_all
    from meanfield.simulation import Energies

    beside = [_predictions(net, inputs) for net in nets]
    seeds = [derived_seed(options.seed, f"depth {net.depth}") for net in nets]
    runs = [
        Run(net, Energies(inputs=inputs, **chosen_arrays(options)), options.draws, seed)
        for net, seed in zip(nets, seeds, strict=True)
    ]
    measured = simulate_all(runs, workers=options.workers, store=results.pieces)
    rungs = [
        xr.merge([found, *predicted], combine_attrs="override")
        for found, predicted in zip(measured, beside, strict=True)
    ]
    dataset = xr.concat(rungs, dim="depth", join="outer", combine_attrs="override")
    dataset.attrs |= {
        "architecture": json.dumps(nets[-1].describe()),
        "inputs": options.input,
        **chosen_arrays(options),
        "provenance": provenance(seeds=[str(seed) for seed in seeds], draws=options.draws),
    }
    return dataset.assign_coords(depth=[net.depth for net in nets])


def _predictions(net: ConvNet, inputs: Any) -> list[xr.Dataset]:
    """Every level's prediction, its variables renamed NAME_level, and the allowance for finite width."""
    from meanfield.quantities import predicted_dataset
    from meanfield.verification import finite_width_allowance

    allowance = predicted_dataset(net, {"finite_width_allowance": finite_width_allowance(net, inputs)}, {})
    return [allowance, *predictions(net, ("mean_field", "law"), inputs)]


def _inputs(options: argparse.Namespace) -> Any:
    """The fixed batch that the user asked for, or None for fresh noise in every draw."""
    from sims.common.images import images_from_file, photo_crops

    if options.input == "gaussian":
        return None
    grid = tuple(options.grid)
    if options.input == "photo":
        channels = 3 if options.input_channels is None else options.input_channels
        return photo_crops(grid, channels, 1 if options.samples is None else options.samples, options.seed)
    return images_from_file(options.input, grid, options.samples, options.input_channels)


def _architecture(options: argparse.Namespace, depth: int, inputs: Any) -> ConvNet:
    from meanfield.nets import ConvNet

    kernel = options.kernel * len(options.grid) if len(options.kernel) == 1 else options.kernel
    return ConvNet(
        depth=depth,
        channels=options.channels,
        grid=options.grid,
        kernel=kernel,
        padding=options.padding,
        activation=options.activation,
        outputs=options.outputs,
        head=options.head,
        readout=options.readout,
        input_channels=options.input_channels if inputs is None else inputs.shape[1],
        inputs=(1 if options.samples is None else options.samples) if inputs is None else len(inputs),
    )


def _results(options: argparse.Namespace, nets: list[ConvNet], inputs: Any) -> Results:
    """Where this run writes; its key names everything that its numbers depend on."""
    from meanfield.execution import Run
    from meanfield.simulation import Energies

    run_of = {"draws": options.draws, "seed": options.seed, **chosen_arrays(options)}
    results = Results(NAME, run_key(nets=nets, inputs=inputs, **run_of), options)
    Run(nets[-1], Energies(**chosen_arrays(options)), options.draws, options.seed).require_memory(options.workers.here)
    return results


def main(argv: list[str] | None = None) -> int:
    return run_command(run, parse(argv))


if __name__ == "__main__":
    sys.exit(main())
