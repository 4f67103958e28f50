"""How the learning-rate scale eta*(L) of Transformers falls with their depth units, and why.

Pre- and post-norm Transformers of D blocks, which are L = 2 D depth units, are drawn for two scales of attention and
three scalings of the branches, and held against the mean field, which is then followed to large L. Besides: how nearly
alike tokens become, how the variance of the stream grows, and how far changes of the stream travel, for changes that
all tokens share and for changes that sum to zero over tokens (Zhang et al. 2026, section 3.5 and appendix D).
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.common import MOST_LAYERS, Array, require_count
from meanfield.execution import Run
from meanfield.nets import Transformer
from meanfield.simulation import TangentPropagation, TokenStatistics
from meanfield.theory import scales_at
from sims.common.command import Option, Preset, counted, ladder_of
from sims.common.datasets import ENDS, Axes, Variable, attributes, over, seeded_run, taken
from sims.common.images import image_tokens
from sims.common.results import Results
from sims.common.study import Study
from sims.transformer_depth.claims import CLAIMS, LABEL_SCALE, LOCAL, MORE, NAME, RHO, SHALLOW, WIDE
from sims.transformer_depth.report import REPORT

LISTED = "which depth law holds for Transformers, by where they normalise"

# What is asked for.

OPTIONS = (
    Option(
        "blocks",
        "blocks of the nets that are drawn, three or more; L = 2 D",
        int,
        metavar="D",
        many="+",
        check=ladder_of(3, "a slope", maximum=MOST_LAYERS // 2, why="blocks that are drawn"),
    ),
    Option(
        "far",
        "depth units to which theory follows the slopes",
        int,
        metavar="L",
        check=counted("depth units that theory goes up to", minimum=1000, maximum=MOST_LAYERS),
    ),
    Option("width", "channels of a token; nets of half and of a quarter are drawn too", int, metavar="N"),
    Option("heads", "heads of attention; they divide a quarter of the width", int, 4),
    Option("tokens", "tokens of a sample", int, metavar="T"),
    Option("outputs", "outputs; the more, the less draws scatter", int, metavar="M"),
    Option(
        "input",
        "gaussian (default: fresh white tokens), photo (patches of a crop of a photograph), or FILE[::ARRAY]",
        default="gaussian",
        metavar="SOURCE",
    ),
    Option("patch", "pixels along a side of a patch of images", int, 4, metavar="P"),
)
SIZES: dict[str, Any] = {"blocks": [2, 4, 8, 16, 32, 64], "far": 1_000_000}
PRESETS = {
    "smoke": Preset("10 s", blocks=[2, 4, 8], width=64, tokens=4, outputs=16, draws=12, far=1000),
    "default": Preset("30 s", **SIZES, width=256, tokens=8, outputs=64, draws=16),
    "paper": Preset("4 h", **SIZES, width=1024, tokens=16, outputs=256, draws=128),
}

# What is measured.

AXES: Axes = {
    "norm": ("post", "pre"),
    "scaling": ("none", "multiplier_sqrt", "multiplier_linear"),
    "attention_scale": ("inverse", "inverse_sqrt"),
}
UNSCALED: Axes = {name: AXES[name] for name in ("norm", "attention_scale")}
SCALES = ("learning_rate_scale", LABEL_SCALE)
TOKENS = ("token_correlation", "stream_variance")
# Nets with a factor on branches, which scatter less, are drawn by this part of the draws.
FEWER = 2
# Parts of the width at which tangents are compared; scales are drawn at half the width, too.
NARROWING = (4, 2, 1)

VARIABLES = (
    Variable("narrow_learning_rate_scale", "eta* at half the width"),
    Variable("narrow_label_learning_rate_scale", "eta* of the label term at half the width"),
    *(
        Variable(f"{RHO}{end}_by_width", f"{words} from the input on, by width", source="Zhang et al. 2026, appendix D")
        for end, words in (
            ("", "rho, mean square of a tangent over that at the input,"),
            ("_spread", "standard deviation of rho over draws,"),
            ("_remainder", "half the difference of rho of both directions,"),
        )
    ),
    Variable(LOCAL, "local slope of the label term's eta*, mean field", "from L / 2 to L"),
    Variable("norm", "where a Transformer normalises, behind branches (post) or before them (pre)"),
    Variable("attention_scale", "scale of attention: inverse, q.k / size, or inverse_sqrt, q.k / size^(1/2)"),
    Variable("direction", "tangents that all tokens share, or their difference, which sums to zero over tokens"),
    Variable("start", "layer from which tangents are followed, 0 at the input"),
    Variable("depth", "depth units L"),
    Variable("wide_depth", "depth units L at which the net is wide"),
    Variable("wide_layer", "layer of the deepest net that is wide"),
    Variable("slope_depth", "depth units L up to which a local slope is taken"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """One net of a single block for each place, the numbers of blocks, and how far theory goes."""
    blocks = options.blocks
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


def slope_depths(far: int) -> list[int]:
    """Depth units at which local slopes are taken: powers of two up to 128, then of ten, and the last one."""
    powers = [2**power for power in range(3, 8)] + [10**power for power in range(3, 6)]
    return [*(depth for depth in powers if depth < far), far]


def scales(net: Transformer, blocks: Sequence[int]) -> dict[str, Any]:
    """log eta* of the label term at these numbers of blocks, white tokens."""
    return {f"log_{LABEL_SCALE}_mean_field": np.log(scales_at(net, blocks))}


def local_slopes(net: Transformer, far: int) -> dict[str, Any]:
    """d log eta* / d log L between L / 2 and L, at the depths L of `slope_depths`, white tokens."""
    ends = np.array([(depth // 4, depth // 2) for depth in slope_depths(far)])
    logs = np.log(scales_at(net, ends.ravel().tolist())).reshape(ends.shape)
    return {LOCAL: np.diff(logs)[:, 0] / np.diff(np.log(ends))[:, 0]}


def by_layer(net: Transformer) -> dict[str, Any]:
    """Correlation between tokens and variance of the stream by layer, white tokens."""
    predicted = mf.predict(net, level="mean_field")
    return {f"{name}_mean_field": predicted[name].values for name in TOKENS}


STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    compiles="25 s",
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=REPORT,
    claims=CLAIMS,
)
