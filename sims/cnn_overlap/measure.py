"""Convolutional nets at a ladder of depths: what is drawn, and what theory says of each."""

import argparse
import json
import warnings
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.common import MOST_LAYERS, require_count, require_counts
from meanfield.execution import Run, provenance
from meanfield.nets import ConvNet
from meanfield.simulation import Energies, controls_refusal
from meanfield.verification import (
    Rung,
    at_finite_channels,
    at_infinite_channels,
    exponents,
    finite_width_allowance,
    has_channel_factor,
)
from sims.common.command import chosen_arrays
from sims.common.data.images import images_from_file, photo_crops
from sims.common.datasets import attributes, labels_in_mean_field, seeded_run, suffixed
from sims.common.results import Results

# Channels that stand for infinitely many, where theory asks for a number.
LIMIT = 10**12
# What the judges must know of the draws with half the channels: how far single draws scatter.
FEW = ("label_term", "label_term_stderr", "overlap_energy", "overlap_energy_stderr")


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The nets of the ladder and their inputs; sizes are refused before any file is read."""
    require_count("--depth", options.depth, maximum=MOST_LAYERS)
    require_counts("--grid", options.grid)
    if len(options.grid) > 2:
        raise ValueError(f"--grid {options.grid} has {len(options.grid)} axes; give 1 or 2")
    require_count("--channels", options.channels, minimum=2, why="a second run has half of them")
    for name, value in (("--samples", options.samples), ("--input-channels", options.input_channels)):
        if value is not None:
            require_count(name, value)
    inputs = _inputs(options)
    nets = [_net(options, depth, inputs) for depth in depth_ladder(options.depth)]
    _run(options, nets[-1], inputs).require_memory(options.workers.here)
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
    """Every rung of the ladder with its predictions beside: one dataset with a leading dim ``depth``.

    Where theory does not know a net's terms at finite channels, it is drawn with half of them, too.
    """
    drawn_nets = [_drawn_nets(net, inputs) for net in nets]
    drawn = iter(results.draw([_run(options, net, inputs) for rung in drawn_nets for net in rung]))
    rungs = [with_theory([(net, next(drawn)) for net in rung], inputs) for rung in drawn_nets]
    dataset = xr.concat(rungs, dim="depth", join="outer", combine_attrs="override")
    dataset = dataset.assign(exponents.deep_exponents(nets[-1]))
    dataset.attrs |= attributes(options) | {
        "architecture": json.dumps(nets[-1].describe()),
        "few_channels": drawn_nets[-1][-1].channels if len(drawn_nets[-1]) > 1 else 0,
        "inputs": options.input,
        "provenance": provenance(seeds=[str(_run(options, net, inputs).seed) for net in nets], draws=options.draws),
    }
    return dataset.assign_coords(depth=[net.depth for net in nets])


def _drawn_nets(net: ConvNet, inputs: Any) -> list[ConvNet]:
    return [net] if has_channel_factor(net, inputs) else [net, net.replace(channels=net.channels_by_layer[-1] // 2)]


def _run(options: argparse.Namespace, net: ConvNet, inputs: Any) -> Run:
    """The draws of one net, with controls wherever their means are known."""
    energies = Energies(inputs=inputs, controls=not controls_refusal(net, inputs), **chosen_arrays(options))
    return seeded_run(options, net, energies, f"depth {net.depth}, channels {net.channels}")


def with_theory(drawn: list[tuple[Any, xr.Dataset]], inputs: Any = None) -> xr.Dataset:
    """One depth: what was drawn, every level's predictions as NAME_level, and what is left at infinitely many."""
    with warnings.catch_warnings():
        # Of what the factor corrects, or the report says.
        for premise in ("inputs are drawn with", "the mean field of the"):
            warnings.filterwarnings("ignore", premise, mf.PremiseWarning)
        many, *few = [Rung(net, of, labels_in_mean_field(net, inputs=inputs), inputs) for net, of in drawn]
    unlimited = (
        finite_width_allowance(many.net.replace(**{many.net.WIDTH: LIMIT}), inputs) if few else np.zeros(many.net.depth)
    )
    known = [
        suffixed(many.leading, "mean_field"),
        suffixed(mf.predict(many.net, level="law", inputs=inputs), "law"),
        suffixed(at_finite_channels(many), "finite_channels"),
        at_infinite_channels(many, few[0] if few else None),
        xr.Dataset({"thin_input_allowance": ("layer", unlimited)}),
    ]
    scatter = {f"few_channels_{name}": rung.drawn[name] for rung in few for name in FEW if name in rung.drawn}
    return xr.merge([many.drawn, *known, xr.Dataset(scatter)], combine_attrs="override")
