"""Transformers over depth, drawn and predicted; tokens and streams by layer; how far changes of the stream travel."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import MOST_LAYERS, Array, require_count
from meanfield.execution import Run
from meanfield.nets import Transformer
from meanfield.simulation import TangentPropagation, TokenStatistics
from meanfield.verification import depth_exponents, tangent_propagation
from sims.common.command import ladder
from sims.common.data.images import image_tokens
from sims.common.datasets import ENDS, Axes, attributes, over, seeded_run, taken
from sims.common.results import Results
from sims.transformer_depth.theory import TOKENS, by_layer, local_slopes, scales, slope_depths

AXES: Axes = {
    "norm": ("post", "pre"),
    "scaling": ("none", "multiplier_sqrt", "multiplier_linear"),
    "attention_scale": ("inverse", "inverse_sqrt"),
}
UNSCALED: Axes = {name: AXES[name] for name in ("norm", "attention_scale")}
SCALES = ("learning_rate_scale", "label_learning_rate_scale")
RHO, SHALLOW, WIDE = "tangent_propagation", tangent_propagation.SHALLOW, depth_exponents.WIDE
# Nets that verdicts rest on are drawn so many times as often as others; those with a factor on branches, which scatter
# less, by this part.
MORE, FEWER = depth_exponents.MORE, 2
# Parts of the width at which tangents are compared; scales are drawn at half the width, too.
NARROWING = (4, 2, 1)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """One net of a single block for each place, the numbers of blocks, and how far theory goes."""
    blocks = ladder("--blocks", options.blocks, 3, "a slope", maximum=MOST_LAYERS // 2, why="blocks that are drawn")
    require_count("--far", options.far, minimum=1000, maximum=MOST_LAYERS, why="depth units that theory goes up to")
    _require_judged(2 * np.array(blocks), options.width)
    needed = NARROWING[0] * options.heads
    if options.width % needed:
        raise ValueError(
            f"--width {options.width} is no multiple of {needed}; half and a quarter of it are drawn, too, and "
            f"{options.heads} heads must divide them all"
        )
    shared = {name: getattr(options, name) for name in ("width", "heads", "tokens", "outputs")}
    nets = [Transformer(depth=1, **shared, **dict(zip(AXES, place, strict=True))) for place in product(*AXES.values())]
    inputs = {} if options.input == "gaussian" else _patches(options, nets[0])
    deepest = replace(nets[0], depth=blocks[-1])
    seeded_run(options, deepest, TokenStatistics(), "").require_memory(options.workers.here)
    return {"nets": nets, "blocks": blocks, "far": options.far, "inputs": inputs}


def _require_judged(depths: Array, width: int) -> None:
    """Refuse depths and a width at which the verdicts would have no number to read."""
    if depths[-1] < 2 * SHALLOW:
        raise ValueError(
            f"--blocks reach {depths[-1] // 2}; tangents are followed from layer {SHALLOW}: give {SHALLOW}"
        )
    wide = depths[depths <= WIDE * width]
    if len(wide) < 2 or wide[-1] < SHALLOW:
        raise ValueError(
            f"--width {width} is 8 times as large as {len(wide)} of the depths {', '.join(map(str, depths))}; verdicts "
            f"need two such depths, the second at least {SHALLOW}: give a larger width, or other blocks"
        )


def _patches(options: argparse.Namespace, net: Transformer) -> dict[int, Array]:
    """By width, an image as tokens, embedded anew for every width."""
    require_count("--patch", options.patch, why="pixels along a side of a patch")
    return {
        width: image_tokens(options.input, replace(net, width=width), options.patch, options.seed)
        for width in _widths(net)
    }


def measure(
    options: argparse.Namespace,
    results: Results,
    nets: list[Transformer],
    blocks: list[int],
    far: int,
    inputs: dict[int, Array],
) -> xr.Dataset:
    """Scales drawn (NAME) and predicted (log_NAME_mean_field) over depth; slopes of theory; tokens and rho by layer.

    narrow_NAME is drawn at half the width, NAME_by_width at a quarter, a half and the whole of it, without scaling.
    """
    runs = _runs(options, nets, blocks, inputs)
    measured = iter(results.draw([run for some in runs.values() for run in some]))
    wide, narrow, by_width, deep = (list(islice(measured, len(some))) for some in runs.values())
    depths, shallow = ([2 * count for count in counts] for counts in (blocks, _shallow(nets[0], blocks)))
    parts = [
        over(AXES | {"depth": depths}, [taken(drawn, *SCALES) for drawn in wide]),
        over(AXES, [taken(drawn, *TOKENS) for drawn in wide[len(blocks) - 1 :: len(blocks)]], "layer"),
        over(UNSCALED | {"wide_depth": shallow}, [_renamed(drawn, *SCALES, start="narrow_") for drawn in narrow]),
        *_propagation(by_width, deep, _widths(nets[0])),
        _predicted(nets, blocks, far).where(not inputs),  # it is that of white tokens
    ]
    layers = list(range(1, depths[-1] + 1))
    coords = {"depth": depths, "layer": layers, "wide_layer": layers[: shallow[-1]], "slope_depth": slope_depths(far)}
    own = attributes(options, "width", "heads", "tokens", "outputs", "input")
    return xr.merge(parts).assign_coords(coords).assign_attrs(own)


def _runs(
    options: argparse.Namespace, nets: list[Transformer], blocks: list[int], inputs: dict[int, Array]
) -> dict[str, list[Run]]:
    """Streams of all nets; of those at half the width that are judged; tangents by width, and of the deepest nets."""
    plain, shallow = [net for net in nets if net.scaling == "none"], _shallow(nets[0], blocks)
    often = options.draws * MORE

    def run(net: Transformer, measure: Any, draws: int) -> Run:
        label = f"{type(measure).__name__} of {net.describe()}"
        return seeded_run(options, net, replace(measure, inputs=inputs.get(net.width)), label, draws)

    def draws(net: Transformer) -> int:
        if net.scaling != "none":
            return max(2, options.draws // FEWER)
        return often if net.depth in shallow else options.draws

    quarter, half, full = _widths(nets[0])
    streams = [replace(net, depth=depth) for net, depth in product(nets, blocks)]
    narrow = [replace(net, width=half, depth=depth) for net, depth in product(plain, shallow)]
    widths = [replace(net, width=width, depth=shallow[-1]) for net, width in product(plain, (quarter, half, full))]
    deepest = [replace(net, depth=blocks[-1]) for net in plain]
    return {
        "streams": [run(net, TokenStatistics(), draws(net)) for net in streams],
        "narrow": [run(net, TokenStatistics(), often) for net in narrow],
        "by_width": [run(net, TangentPropagation(), often) for net in widths],
        "deepest": [run(net, TangentPropagation(starts=(0, SHALLOW)), options.draws) for net in deepest],
    }


def _widths(net: Transformer) -> list[int]:
    """A quarter, a half, and the whole of its width."""
    return [net.width // part for part in NARROWING]


def _shallow(net: Transformer, blocks: Sequence[int]) -> list[int]:
    """Blocks up to which the net counts as wide."""
    return [count for count in blocks if 2 * count <= WIDE * net.width]


def _renamed(drawn: xr.Dataset, *names: str, start: str = "", end: str = "") -> dict[str, Any]:
    """As `taken`, of start + NAME + end; shares where they are measured."""
    values = {f"{start}{name}{end}{error}": drawn.get(f"{name}{error}") for name, error in product(names, ENDS)}
    return {name: value.values for name, value in values.items() if value is not None}


def _propagation(by_width: Sequence[xr.Dataset], deep: Sequence[xr.Dataset], widths: Sequence[int]) -> list[xr.Dataset]:
    """rho by direction and layer: by width from the input on, with the remainder; of the deepest from two layers on."""
    axes, from_input = UNSCALED | {"width": widths}, [drawn.sel(start=0) for drawn in by_width]
    both = ("direction", "wide_layer")
    parts = [
        over(axes, [_renamed(drawn, RHO, f"{RHO}_spread", end="_by_width") for drawn in from_input], *both),
        over(axes, [_renamed(drawn, f"{RHO}_remainder", end="_by_width") for drawn in from_input], "wide_layer"),
        over(UNSCALED, [_renamed(drawn, RHO, f"{RHO}_spread") for drawn in deep], "direction", "start", "layer"),
    ]
    starts = {name: deep[0][name].values for name in ("direction", "start")}
    return [part.assign_coords({name: starts[name] for name in starts if name in part.dims}) for part in parts]


def _predicted(nets: list[Transformer], blocks: list[int], far: int) -> xr.Dataset:
    """The mean field of white tokens: scales over depth, tokens by layer of the deepest nets, local slopes."""
    plain, deepest = [net for net in nets if net.scaling == "none"], [replace(net, depth=blocks[-1]) for net in nets]
    parts = [
        over(AXES, [scales(net, blocks) for net in nets], "depth"),
        over(AXES, [by_layer(net) for net in deepest], "layer"),
        over(UNSCALED, [local_slopes(net, far) for net in plain], "slope_depth"),
    ]
    return xr.merge(parts)
