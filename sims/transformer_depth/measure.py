"""Transformers over depth, drawn and predicted; tokens and streams by layer; how far changes of the stream travel."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import MOST_LAYERS, Array, require_count
from meanfield.nets import Transformer
from meanfield.simulation import TangentPropagation, TokenStatistics
from meanfield.verification import depth_exponents, tangent_propagation
from sims.common.datasets import Axes, attributes, ladder, over, seeded_run, taken
from sims.common.images import image_tokens
from sims.common.results import Results
from sims.transformer_depth.theory import TOKENS, by_layer, local_slopes, scales, slope_depths

AXES: Axes = {
    "norm": ("post", "pre"),
    "scaling": ("none", "multiplier_sqrt", "multiplier_linear"),
    "attention_scale": ("inverse", "inverse_sqrt"),
}
UNSCALED: Axes = {name: AXES[name] for name in ("norm", "attention_scale")}
SCALES = ("learning_rate_scale", "label_learning_rate_scale")
RHO, SHALLOW, WIDE = tangent_propagation.RHO, tangent_propagation.SHALLOW, depth_exponents.WIDE
# Scales are extrapolated from the width and a quarter of it; tangents are followed at half of it, too.
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
    if depths[-1] < SHALLOW:
        raise ValueError(
            f"--blocks reach {depths[-1] // 2}; rho is judged at layer {SHALLOW}: give {SHALLOW // 2} or more"
        )
    if np.sum(depths <= WIDE * width) < 2:
        raise ValueError(
            f"--width {width} is below 8 times the second of the depths {', '.join(map(str, depths))}: slopes are "
            "judged where nets are that wide; give a larger width, or fewer blocks"
        )


def _widths(width: int) -> list[int]:
    """A quarter, a half, and the whole of it."""
    return [width // part for part in NARROWING]


def _patches(options: argparse.Namespace, net: Transformer) -> dict[int, Array]:
    """By width, one image as tokens, embedded anew for every width."""
    require_count("--patch", options.patch, why="pixels along a side of a patch")
    return {
        width: image_tokens(options.input, replace(net, width=width), options.patch, options.seed)
        for width in _widths(options.width)
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

    narrow_NAME is drawn at a quarter of the width, without scaling.
    """
    plain = [net for net in nets if net.scaling == "none"]
    widths = _widths(options.width)
    narrow = [replace(net, width=widths[0]) for net in plain]
    streams = [replace(net, depth=depth) for net, depth in product([*nets, *narrow], blocks)]
    followed = [replace(net, depth=blocks[-1], width=width) for net, width in product(plain, widths)]
    runs = [
        seeded_run(options, net, measure(inputs=inputs.get(net.width)), f"{measure.__name__} of {net.describe()}")
        for measure, drawn in ((TokenStatistics, streams), (TangentPropagation, followed))
        for net in drawn
    ]
    measured = iter(results.draw(runs))
    wide, thin = (list(islice(measured, len(some) * len(blocks))) for some in (nets, narrow))
    parts = [
        _scales(wide, AXES, blocks),
        _scales(thin, UNSCALED, blocks, "narrow_"),
        over(AXES, [taken(drawn, *TOKENS) for drawn in wide[len(blocks) - 1 :: len(blocks)]], "layer"),
        *_propagation(list(measured), widths),
        _predicted(nets, plain, blocks, far).where(not inputs),  # it is that of white tokens
    ]
    layers = list(range(1, 2 * blocks[-1] + 1))
    coords = {"depth": [2 * count for count in blocks], "layer": layers, "slope_depth": slope_depths(far)}
    own = attributes(options, "width", "heads", "tokens", "outputs", "input")
    return xr.merge(parts).assign_coords(coords).assign_attrs(own)


def _scales(measured: Sequence[xr.Dataset], axes: Axes, blocks: Sequence[int], start: str = "") -> xr.Dataset:
    """Both scales over the axes and depth, their names with this start."""
    rows = [{f"{start}{name}": value for name, value in taken(drawn, *SCALES).items()} for drawn in measured]
    return over(axes | {"depth": [2 * count for count in blocks]}, rows)


def _predicted(nets: list[Transformer], plain: list[Transformer], blocks: list[int], far: int) -> xr.Dataset:
    """The mean field of white tokens: scales over depth, tokens by layer of the deepest nets, local slopes."""
    deepest = [replace(net, depth=blocks[-1]) for net in nets]
    parts = [
        over(AXES, [scales(net, blocks) for net in nets], "depth"),
        over(AXES, [by_layer(net) for net in deepest], "layer"),
        over(UNSCALED, [local_slopes(net, far) for net in plain], "slope_depth"),
    ]
    return xr.merge(parts)


def _propagation(measured: Sequence[xr.Dataset], widths: Sequence[int]) -> list[xr.Dataset]:
    """rho from the input on by direction and layer, its spread over draws, and the remainder."""
    axes, from_input = UNSCALED | {"width": widths}, [drawn.sel(start=0) for drawn in measured]
    by_direction = [taken(drawn, RHO) | taken(drawn, f"{RHO}_spread", ends=("", "_stderr")) for drawn in from_input]
    left = [taken(drawn, f"{RHO}_remainder") for drawn in from_input]
    directions = {"direction": measured[0]["direction"].values}
    return [over(axes, by_direction, "direction", "layer").assign_coords(directions), over(axes, left, "layer")]
