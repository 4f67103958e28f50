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
from meanfield.verification import PAPERS_EXPONENT, Finding, Series
from sims.common.command import Option, Preset, counted, ladder_of
from sims.common.datasets import ENDS, Axes, Variable, attributes, over, seeded_run, taken
from sims.common.images import image_tokens
from sims.common.report import Report, answer, folded
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import MISSING, Column, Grid, Table, drawn, number, predicted, signed, slope
from sims.transformer_depth.claims import (
    CLAIMS,
    LABEL_SCALE,
    LOCAL,
    MORE,
    NAME,
    NORMS,
    REMAINDER,
    RHO,
    SHALLOW,
    WIDE,
    drawn_slope,
    far_slopes,
    findings,
    has_mean_field,
    judge_post_limit,
    judge_pre_limit,
    net_of,
    pre_norm_slope,
    predicted_slope,
)

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


# What is printed.

WORDS = {
    "post-norm": "z <- norm(z + a f(z)); pre-norm: z <- z + a f(norm(z)); f is attention and FFN by turns, D blocks of "
    "both are L = 2 D depth units.",
    "none": "scaling a = 1; multiplier_sqrt: a = L^(-1/2); multiplier_linear: a = 1/L.",
    "inverse": "logits of attention are q.k / size, size being that of a head, and vanish with the width; "
    "inverse_sqrt: they are q.k / size^(1/2), as in use.",
    "local": "slope d ln eta* / d ln L from the depth above to this one.",
    "correlation": "mean cosine of the angle between two tokens of a sample; at 1 all tokens are alike.",
    "rho": "mean square of a tangent of the stream at layer l over that at the input. Of shared tangents, the same at "
    "all tokens; of their difference, which sums to zero over tokens. spread: standard deviation of rho over draws, of "
    "shared tangents, over rho.",
}
WHOLE = "learning_rate_scale"
IN_USE = "inverse_sqrt"


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    if not has_mean_field(dataset):
        laws = {norm: drawn_slope(net_of(dataset, norm, IN_USE)) for norm in NORMS}
        words = ", ".join(f"{slope(law.exponent, law.stderr)} in {norm}-norm nets" for norm, law in laws.items())
        return f"Given inputs have no mean field; drawn slopes of the label term are {words} ({IN_USE})."
    judged, far = [judge_post_limit(dataset), judge_pre_limit(dataset)], int(dataset["slope_depth"][-1])
    words = ", ".join(f"{far_slopes(dataset, norm)[-1]:.3f} ({norm}-norm)" for norm in NORMS)
    return answer(judged, f"slope {words} of the label term's eta* at L = {far:,}")


def _scale_tables(dataset: xr.Dataset) -> list[Grid]:
    """eta* of the label term by depth and attention, drawn and predicted, without scaling."""

    def of_norm(norm: str) -> Table:
        title = f"{norm}-norm, scaling none: eta* of the label term by attention"
        nets = {str(attention): net_of(dataset, norm, attention) for attention in dataset["attention_scale"].values}
        columns = [_scale_column(attention, net) for attention, net in nets.items()]
        return Table("scale tables", title, ["depth"], "L", columns)

    return [of_norm(norm)(dataset) for norm in NORMS]


def _scale_column(attention: str, net: xr.Dataset) -> Column:
    """Of one net: drawn, mean field, standard errors apart, and the slope from the depth above to this one."""
    between = Series.of(net, LABEL_SCALE).local_slopes("depth")
    local = [MISSING, *map(slope, between.slope, between.stderr)]
    slopes = dict(zip(net["depth"].values, local, strict=True))

    def cells(at: xr.Dataset) -> list[str]:
        here = net.sel(depth=at["depth"])
        theory = float(np.exp(here[f"log_{LABEL_SCALE}_mean_field"]))
        apart = float((here[LABEL_SCALE] - theory) / here[f"{LABEL_SCALE}_stderr"])
        return [drawn(here, LABEL_SCALE), number(theory), signed(apart), slopes[int(at["depth"])]]

    return Column([attention, "mean field", "s.e.", "local"], cells)


def _slope_title(dataset: xr.Dataset) -> str:
    depths = dataset["depth"].values
    return f"Slopes in L over {depths[0]} .. {depths[-1]}"


def _drawn_slope(at: xr.Dataset, name: str) -> str:
    law = drawn_slope(at, name)
    return slope(law.exponent, law.stderr)


def _predicted_slope(at: xr.Dataset) -> str:
    theory = predicted_slope(at)
    return MISSING if np.isnan(theory) else f"{theory:+.3f}"


SLOPE_TABLE = Table(
    "slope table",
    _slope_title,
    ["norm", "scaling", "attention_scale"],
    "net, scaling, attention",
    [
        Column("eta*", lambda at: _drawn_slope(at, WHOLE)),
        Column("of B alone", lambda at: _drawn_slope(at, LABEL_SCALE)),
        Column("mean field of B", _predicted_slope),
    ],
    key="{}-norm {} {}".format,
)


def _slopes_in_use(dataset: xr.Dataset) -> Grid:
    """For attention as it is in use."""
    return SLOPE_TABLE(dataset.sel(attention_scale=[IN_USE]))


def _local_columns(dataset: xr.Dataset) -> list[Column]:
    """Of either norm: the slopes by scale of attention, and its law."""
    first, *others = map(str, dataset["attention_scale"].values)

    def column(norm: str) -> Column:
        def cells(at: xr.Dataset) -> list[str]:
            law = PAPERS_EXPONENT if norm == "post" else pre_norm_slope(int(at["slope_depth"]))
            return [f"{value:.3f}" for value in (*at[LOCAL].sel(norm=norm).values, law)]

        return Column([f"{norm}: {first}", *others, "law"], cells)

    return [*map(column, NORMS)]


LOCAL_TABLE = Table(
    "local table",
    "Local slopes of the label term's eta*, in the mean field, from L/2 to L, "
    "scaling none; laws: post L^(-3/2), pre L^(-1/2) (ln L)^(-3/2)",
    ["slope_depth"],
    "L",
    _local_columns,
)


def _local_table(dataset: xr.Dataset) -> str | Grid:
    """Nothing where inputs are given."""
    return LOCAL_TABLE(dataset) if has_mean_field(dataset) else ""


def _layer_column(norm: str) -> Column:
    header = [f"{norm}: correlation", "variance", "rho shared", "rho difference", "spread"]
    return Column(header, lambda at: _layer_cells(at.sel(norm=norm)))


LAYER_TABLE = Table(
    "layer table",
    f"By layer of the deepest nets (scaling none, {IN_USE}); rho from the input on",
    ["layer"],
    "l",
    [*map(_layer_column, NORMS)],
)


def _layer_table(dataset: xr.Dataset) -> Grid:
    """Tokens, stream and rho of the deepest nets, for attention as in use, at powers of two and at the last layer."""
    deepest = dataset.sel(attention_scale=IN_USE, scaling="none", start=0)
    last = int(deepest["layer"][-1])
    return LAYER_TABLE(deepest.sel(layer=sorted({2**power for power in range(1, last.bit_length())} | {last})))


def _layer_cells(here: xr.Dataset) -> list[str]:
    shared, other = (here.sel(direction=direction) for direction in ("shared", "difference"))
    spread = float(shared[f"{RHO}_spread"] / shared[RHO])
    tokens = [predicted(here, "token_correlation"), predicted(here, "stream_variance")]
    return [*tokens, drawn(shared, RHO), drawn(other, RHO), f"{spread:.2g}"]


def _breaks(dataset: xr.Dataset) -> str:
    """Every place where the proof of Zhang et al. 2026, appendix D, does not go through, with its number."""
    last, early, widths = int(dataset["layer"][-1]), SHALLOW, dataset["width"].values
    in_use = dataset.sel(attention_scale=IN_USE)
    grown = float(in_use[RHO].sel(norm="pre", direction="shared", start=0, layer=last))
    lost = float(in_use[RHO].sel(norm="post", direction="difference", start=early, layer=last))
    left = in_use[REMAINDER].sel(norm="post", wide_layer=early).values
    noise = (in_use[f"{RHO}_spread"] / in_use[RHO]).sel(norm="post", direction="shared", start=0).values
    plain = in_use.sel(scaling="none")
    variance = float(plain["stream_variance"].sel(norm="pre", layer=last))
    alike = float(plain["token_correlation"].sel(norm="post", layer=early))
    places = [
        f"Remark D.4 asks for bounded rho in pre-norm nets: of shared tangents it is {grown:.3g} at l = {last}, where "
        f"the variance of the stream is {variance:.3g}.",
        f"Eq. 42 asks for rho above a constant for all h, l: in post-norm nets that of differences is {lost:.2g} from "
        f"h = {early} to l = {last}.",
        f"Eq. 43 asks for one rho up to o(1): half the difference of both is {left[0]:.3f} at width {widths[0]} and "
        f"{left[-1]:.3f} at width {widths[-1]} (post-norm, h = 0, l = {early}).",
        f"Eq. 44 asks for small fluctuations at all depths: they are {noise[early - 1]:.2g} of rho at l = {early} and "
        f"{noise[-1]:.2g} at l = {last} (post-norm, width {widths[-1]}).",
        f"Section D.4 counts overlaps as in a chain of layers, without tokens: but these grow alike first, with a "
        f"correlation of {alike:.2f} at l = {early} (post-norm).",
    ]
    return "\n".join(["Where the proof of Zhang et al. 2026 breaks", *(folded(place, "  - ", 4) for place in places)])


REPORT = Report(
    question="Does eta* of Transformers fall as L^(-3/2) in the depth units L, wherever they normalise?",
    answer=_answer,
    heading="Transformer: width {width}, heads {heads}, tokens {tokens}, outputs {outputs}; {draws} draws of "
    "the deepest nets, more of others, seed {seed}; learning rate 1",
    parts=[_scale_tables, SLOPE_TABLE, _local_table, _layer_table, _breaks],
    findings=findings,
    brief=_slopes_in_use,
    heavy=(LABEL_SCALE, WHOLE, RHO),
    words=WORDS,
)


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


if __name__ == "__main__":
    run_as_command("transformer_depth")
