"""Measure the depth law of convolutional nets: label term, output term, update energy, overlap energy by layer.

Draws networks at initialisation, computes for every draw the exact one-step change of every pre-activation, and
holds the result against the mean field and the papers' sum-of-minima law, with a verdict for each.
"""

import argparse
import json
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.common import MOST_LAYERS, require_counts
from meanfield.execution import Run, provenance
from meanfield.nets import ConvNet
from meanfield.simulation import Energies, controls_refusal
from meanfield.theory import finite_width_allowance
from meanfield.verification import (
    Rung,
    at_finite_channels,
    at_infinite_channels,
    has_channel_factor,
)
from sims.cnn_overlap.claims import CLAIMS, LABEL_SCALE, NAME, SCALE, deep_exponents
from sims.cnn_overlap.report import document
from sims.cnn_overlap.settings import (
    Setting,
    Source,
    at_settings,
    draws_beside,
    nets_beside,
    premises_in_the_report,
    turning_points,
)
from sims.common.command import Option, Preset, chosen_arrays, counted
from sims.common.datasets import Variable, attributes, labels_in_mean_field, seeded_run, suffixed, words_of
from sims.common.images import images_from_file, photo_crops
from sims.common.results import Results
from sims.common.study import Study

LISTED = "how the terms and eta* of convolutional nets grow with depth"

# Channels that stand for infinitely many, where theory asks for a number.
LIMIT = 10**12
# What the judges must know of the draws with half the channels: how far single draws scatter.
FEW = ("label_term", "label_term_stderr", "overlap_energy", "overlap_energy_stderr")


def lengths(written: str, given: list[int]) -> list[int]:
    """Sites along the one or two axes of a grid."""
    require_counts(written, given)
    if len(given) > 2:
        raise ValueError(f"{written} {given} has {len(given)} axes; give 1 or 2")
    return given


INPUT_LAYOUTS = """An image file holds (grid), (channels, grid) or (samples, channels, grid), channels first or last;
  with --samples n or --input-channels 1, an array (n, grid) is n grey samples. Images are standardised."""

OPTIONS = (
    Option("depth", "hidden layers", int, metavar="L", check=counted(maximum=MOST_LAYERS)),
    Option(
        "channels",
        "channels of every hidden layer",
        int,
        metavar="C",
        check=counted("a second run has half of them", minimum=2),
    ),
    Option("grid", "sites along the one or two axes", int, metavar="N", many="+", check=lengths),
    Option("kernel", "taps along each axis, odd or even; one number for all axes", int, metavar="K", many="+"),
    Option("padding", "circular (default) or zero", default="circular"),
    Option("activation", "relu (default), linear, gelu or tanh", default="relu"),
    Option(
        "readout",
        "convolution (default; theory has its label term at finite channels) or pooled, the papers' head",
        default="convolution",
    ),
    Option(
        "head",
        "variance of the readout's weights: he (default) 1/(q fan_in), fan_in 1/fan_in, mup 1/fan_in^2",
        default="he",
    ),
    Option("outputs", "output channels, classes of a label", int, metavar="M"),
    Option(
        "input",
        "gaussian (default: fresh white noise), photo (crops of a photograph), or FILE[::ARRAY] (.npy, .npz, .nc)",
        default="gaussian",
        metavar="SOURCE",
        group="input",
    ),
    Option(
        "input_channels",
        "channels of the input (gaussian: as the hidden layers; photo: 3 for RGB, 1 for grey; a file: its own)",
        int,
        metavar="C",
        check=counted(),
        group="input",
    ),
    Option(
        "samples",
        "samples in the batch (default: 1; a file: its own)",
        int,
        metavar="B",
        check=counted(),
        group="input",
    ),
)
SHARED: dict[str, Any] = {"precision": "float32"}
PRESETS = {
    "smoke": Preset("3 s", depth=4, channels=32, grid=[8], kernel=[3], outputs=10, draws=160, **SHARED),
    "default": Preset("12 s", depth=12, channels=256, grid=[16], kernel=[3], outputs=100, draws=640, **SHARED),
    "paper": Preset("15 min", depth=16, channels=256, grid=[16, 16], kernel=[3], outputs=100, draws=2048, **SHARED),
}

AT_LIMIT = ("label_term", "overlap_energy", LABEL_SCALE)
PREDICTED = (*AT_LIMIT, "output_term", "update_energy", SCALE)
IN_DEEP_NETS = ("label_term", "output_term", "overlap_energy", SCALE, LABEL_SCALE)


def _each(names: tuple[str, ...], end: str, words: str) -> list[Variable]:
    return [Variable(f"{name}_{end}", f"{name.replace('_', ' ')}, {words}") for name in names]


# What variables over the settings are of.
OF_SETTINGS = {
    "learning_rate_scale": "learning-rate scale",
    "label_learning_rate_scale": "learning-rate scale of the label term alone",
    "output_learning_rate_scale": "learning-rate scale of the output term alone",
    "output_over_label": "output term over label term at the last layer",
}
VARIABLES = (
    Variable("setting", "readout, number of outputs, and variance of the head's weights"),
    *(Variable(f"setting_{name}", f"{words}, by setting") for name, words in OF_SETTINGS.items()),
    *(
        Variable(f"setting_{name}_finite_channels", f"{words}, by setting, theory at the net's own channels")
        for name, words in OF_SETTINGS.items()
    ),
    Variable("setting_load", "outputs x depth / channels, by setting"),
    Variable(
        "setting_turning",
        "outputs x depth / channels of the deepest net from which eta* falls faster than L^(-3/2) over these depths, "
        "mean field",
    ),
    *_each(PREDICTED, "finite_channels", "theory at the net's own channels"),
    *_each(AT_LIMIT, "limit", "drawn, brought to infinitely many channels"),
    *_each(IN_DEEP_NETS, "deep", "exponent in deep nets, mean field"),
    Variable("extrapolation_left", "what extrapolation in 1/channels may leave, relative to the mean field"),
    Variable("thin_input_allowance", "what few channels of a drawn input may add, relative to the mean field"),
    Variable("deep_depth", "depth of deep nets"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The nets of the ladder and their inputs; sizes are refused before any file is read."""
    inputs = _inputs(options)
    nets = [_net(options, depth, inputs) for depth in depth_ladder(options.depth)]
    for net in (nets[-1], *nets_beside(nets[-1])):
        _run(options, net, inputs).require_memory(options.workers.here)
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

    Where theory does not know a net's terms at finite channels, it is drawn with half of them, too. Nets of the other
    settings are drawn less often, and have variables of their own, over ``setting`` and ``depth``.
    """
    drawn_nets, others = [_drawn_nets(net, inputs) for net in nets], [nets_beside(net) for net in nets]
    own = [_run(options, net, inputs) for rung in drawn_nets for net in rung]
    drawn = iter(results.draw([*own, *(_run_beside(options, net, inputs) for rung in others for net in rung)]))
    rungs = [with_theory([(net, next(drawn)) for net in rung], inputs) for rung in drawn_nets]
    sources = [
        [Source(net, rung), *(Source.beside(other, next(drawn), inputs) for other in at_depth)]
        for net, rung, at_depth in zip(nets, rungs, others, strict=True)
    ]
    depths = {"depth": [net.depth for net in nets]}
    dataset = xr.concat(rungs, dim="depth", join="outer", combine_attrs="override").assign_coords(depths)
    settings = xr.concat([at_settings(at) for at in sources], dim="depth").assign_coords(depths)
    dataset = dataset.merge(settings).assign(deep_exponents(nets[-1]))
    dataset.attrs |= attributes(options) | {
        "architecture": json.dumps(nets[-1].describe()),
        "few_channels": drawn_nets[-1][-1].channels if len(drawn_nets[-1]) > 1 else 0,
        "inputs": options.input,
        "draws_beside": draws_beside(options.draws),
        "provenance": provenance(seeds=[str(_run(options, net, inputs).seed) for net in nets], draws=options.draws),
    }
    return dataset.assign(turning_points(dataset, sources, inputs))


def _drawn_nets(net: ConvNet, inputs: Any) -> list[ConvNet]:
    return [net] if has_channel_factor(net, inputs) else [net, net.replace(channels=net.channels_by_layer[-1] // 2)]


def _run(options: argparse.Namespace, net: ConvNet, inputs: Any) -> Run:
    """The draws of one net, with controls wherever their means are known."""
    energies = Energies(inputs=inputs, controls=not controls_refusal(net, inputs), **chosen_arrays(options))
    return seeded_run(options, net, energies, f"depth {net.depth}, channels {net.channels}")


def _run_beside(options: argparse.Namespace, net: ConvNet, inputs: Any) -> Run:
    """Fewer draws of a net of another setting, by seeds of their own."""
    run = _run(options, net, inputs)
    label = f"depth {net.depth}, channels {net.channels}, {Setting.of(net)}"
    return seeded_run(options, net, run.measure, label, draws_beside(options.draws))


def with_theory(drawn: list[tuple[Any, xr.Dataset]], inputs: Any = None) -> xr.Dataset:
    """One depth: what was drawn, every level's predictions as NAME_level, and what is left at infinitely many."""
    with premises_in_the_report():
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
    scatter = {
        f"few_channels_{name}": rung.drawn[name].assign_attrs(
            long_name=f"{words_of(name)['long_name']}, half the channels"
        )
        for rung in few
        for name in FEW
        if name in rung.drawn
    }
    return xr.merge([many.drawn, *known, xr.Dataset(scatter)], combine_attrs="override")


STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    notes={"input": INPUT_LAYOUTS},
    presets=PRESETS,
    compiles="4 s",
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=document,
    claims=CLAIMS,
    arrays=True,
)
