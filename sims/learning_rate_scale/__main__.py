"""How the learning-rate scale eta*(L) falls with depth in theory: local slopes, and the slopes that a fit would find.

No net is drawn: the mean field gives the label term's scale for plain and residual nets of every depth, and for loops
the rate that keeps the change of the stream under one update fixed; the exact recursion gives the scale of the whole
update for fully-connected nets. Slopes over the depths that the papers print stand beside those that they measured and
the exponents that they claim, with no fitted constant; a table says how far the power law misses a carried rate, and
the claims on eta*(L) get their verdicts. With --transfer, carries a learning rate to another depth.
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import isnan, nan
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.common import MOST_LAYERS, fit_power_law, require_choice, require_count
from meanfield.nets import MLP, SCALINGS, ConvNet, ResidualConvNet, ResidualMLP, TiedLoop, Transformer
from meanfield.theory import energies_by_depth, learning_rate_exponent, scales_at
from meanfield.transfer import RIVALS, RULES, OneStep, depth_over_width
from meanfield.verification import (
    COMMON_SWEEP,
    PAPERS_EXPONENT,
    Finding,
    judged_slopes,
    measured_slopes,
    printed_exponents,
    span,
    spline_slopes,
)
from sims.common.command import Option, Preset, counted, name_or_number
from sims.common.datasets import Variable, over
from sims.common.images import DataShape
from sims.common.report import ETA, Document, Report, answer, folded
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import MISSING, Grid, exponents, fraction, from_log, measured, number, table
from sims.common.training_data import training_data
from sims.learning_rate_scale.claims import (
    CLAIMS,
    findings,
    fitted_law,
    judge_power_law_in_use,
    law_of,
    plain_families,
    printed_for,
    residual_families,
    scale_of,
    slopes_of,
    swept_depths,
)

# The nets whose scales are compared over depth, and the depths at which they are.

BLOCK_DEPTHS = (1, 2, 3)
SHOWN_RESIDUAL = (
    "residual init k=1",
    "residual init k=2",
    "residual multiplier_sqrt k=1",
    "residual multiplier_linear k=2",
    "residual cnn 1d",
)
# Transformers that rates are carried between: tokens, and channels of a head.
TOKENS, HEAD_SIZE = 16, 64
# Shorter names that --family takes too.
ALIASES = {
    "cnn": "cnn 2d",
    "residual": "residual init k=1",
    "looped": "looped linear",
    "transformer": "transformer pre",
}


def plain(depth: int, width: int, outputs: int) -> dict[str, Any]:
    """White inputs, he heads, convolutional readouts."""
    conv: dict[str, Any] = {"depth": depth, "channels": width, "outputs": outputs, "readout": "convolution"}
    return {
        "mlp": MLP(depth=depth, width=width, outputs=outputs),
        "mlp linear": MLP(depth=depth, width=width, outputs=outputs, activation="linear"),
        "cnn 1d": ConvNet(grid=(32,), kernel=(3,), **conv),
        "cnn 2d": ConvNet(grid=(16, 16), kernel=(3, 3), **conv),
    }


def residual(depth: int, width: int, outputs: int) -> dict[str, Any]:
    """ReLU blocks alone, every scaling and branch depth k; of convolutions, one layer per block (Zhang et al. 2026)."""
    nets: dict[str, Any] = {
        f"residual {scaling} k={k}": ResidualMLP(
            depth=depth, width=width, outputs=outputs, block_depth=k, scaling=scaling
        )
        for scaling, k in product(SCALINGS, BLOCK_DEPTHS)
    }
    conv: dict[str, Any] = {"depth": depth, "channels": width, "outputs": outputs, "readout": "convolution"}
    return nets | {
        "residual cnn 1d": ResidualConvNet(grid=(32,), kernel=(3,), **conv),
        "residual cnn 2d": ResidualConvNet(grid=(16, 16), kernel=(3, 3), **conv),
    }


def loops(depth: int, width: int) -> dict[str, TiedLoop]:
    """One matrix for all steps ("looped") or one for each ("deep"), under eps = L^-1 and L^(-1/2)."""
    return {
        f"{model} {alpha}": TiedLoop(depth=depth, width=width, alpha=alpha, tied=model == "looped")
        for model, alpha in product(("looped", "deep"), ("linear", "sqrt"))
    }


def transformers(depth: int, width: int, outputs: int) -> dict[str, Transformer]:
    """Pre- and post-norm Transformers of ``depth`` blocks on white tokens; heads of `HEAD_SIZE` if they fit."""
    heads = max(1, width // HEAD_SIZE) if width % HEAD_SIZE == 0 else 1
    shared: dict[str, Any] = {"depth": depth, "width": width, "heads": heads, "tokens": TOKENS, "outputs": outputs}
    return {f"transformer {norm}": Transformer(norm=norm, **shared) for norm in ("pre", "post")}


def shown(depth: int, width: int, outputs: int) -> dict[str, dict[str, Any]]:
    """Nets, loops and Transformers of the report."""
    blocks = residual(depth, width, outputs)
    nets = plain(depth, width, outputs) | {name: blocks[name] for name in SHOWN_RESIDUAL}
    return {"nets": nets, "loops": loops(depth, width), "transformers": transformers(depth, width, outputs)}


def served_as(name: str, width: int, outputs: int) -> Any:
    """The net of depth 1 of this name, or "residual ALPHA k=..", whose branches are multiplied by K^(-ALPHA).

    Raises:
        ValueError: a name that stands for no net.
    """
    nets = served(width, outputs)
    match name.split():
        case ["residual", scaling, layers] if not isinstance(alpha := name_or_number(scaling), str):
            k = {f"k={k}": k for k in BLOCK_DEPTHS}
            require_choice(f"--family {name!r}: layers of a branch", layers, k)
            return ResidualMLP(depth=1, width=width, outputs=outputs, block_depth=k[layers], scaling=alpha)
    require_choice("--family", name, nets)
    return nets[name]


def served(width: int, outputs: int) -> dict[str, Any]:
    """Everything of depth 1 that a rate can be carried for, by full and by shorter names."""
    nets = plain(1, width, outputs) | residual(1, width, outputs) | loops(1, width) | transformers(1, width, outputs)
    pooled = [f"{blocks}cnn {sides}d" for blocks, sides in product(("", "residual "), (1, 2))]
    nets |= {f"{name} pooled": replace(nets[name], readout="pooled") for name in pooled}
    return nets | {short: nets[name] for short, name in ALIASES.items()}


def on_data(net: Any, source: str) -> Any:
    """The net with input, grid and outputs as the data have them.

    A stream that begins at the input keeps its width: an image is embedded in it, whole or in patches.
    """
    data = DataShape.of(source)
    if isinstance(net, TiedLoop):
        return net
    sizes: dict[str, Any] = {"outputs": data.classes}
    if isinstance(net, Transformer):
        return replace(net, tokens=data.tokens, **sizes)
    if net.grid:
        if not len(net.grid) == len(data.sides) == 2:
            raise ValueError(
                f"--data is {source}, of axes {data.sides}: this net has {net.grid}; give 'cnn 2d pooled' or 'residual "
                "cnn 2d pooled'"
            )
        if isinstance(net, ResidualConvNet) and net.stem == 0 and data.channels != net.channels:
            raise ValueError(
                f"--data is {source}, of {data.channels} channels, and blocks of {net.channels} cannot add to them: "
                "give --stem 1, a layer below the blocks that reads the data"
            )
        return replace(net, grid=data.sides, input_channels=data.channels, **sizes)
    return replace(net, **sizes) if net.units[0].skip == 0 else replace(net, input_width=data.values, **sizes)


SHOWN_DEPTHS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000)

# Depths at which a rate is tuned, and factors by which depth then grows; the deepest net of the run ends each row.
STARTS = (3, 6, 12, 25)
FACTORS = (2, 4, 8)

# All depths up to here, which trained nets were swept over; above, these of every decade: theory is smooth there.
DENSE = max(COMMON_SWEEP)
PER_DECADE = (1, 2, 3, 5, 7)


def depth_grid(deepest: int) -> list[int]:
    """The depths of the dataset: all small ones, those that the report prints, and steps of a factor 2 at most."""
    steps = {round(step * 10**power) for power in range(1, len(str(deepest))) for step in PER_DECADE}
    ends = {start * factor for start in STARTS for factor in FACTORS}
    return sorted(depth for depth in {*range(1, DENSE + 1), *SHOWN_DEPTHS, *steps, *ends, deepest} if depth <= deepest)


LISTED = "eta*(L) of every family; --transfer carries a rate to a depth"

# Those that ask for a rate to be carried.
OF_TRANSFER = (
    Option("transfer", "a tuned learning rate to carry to another depth", float, metavar="RATE", group=""),
    Option("from", "depth at which the rate was tuned", int, metavar="L0", group=""),
    Option("to", "depth to carry it to", int, metavar="L", group=""),
    Option(
        "rule",
        "rule of the transfer, such as finite_depth (default: auto, which chooses)",
        metavar="NAME",
        group="",
    ),
    Option(
        "optimizer",
        "whose first step carries the rate: sgd (default), adamw, lion, muon, muon_kimi, shampoo, soap and others, or "
        "two of them, such as muon-adamw",
        default="sgd",
        metavar="NAME",
        group="",
    ),
    Option(
        "of",
        "what that step moves by 1: absolute (all layers), relative (over their own size), last (the last layer, over "
        "its own size) or outputs (default: absolute without --data; with it relative in plain nets and loops, "
        "outputs in others, and last for muon-adamw)",
        metavar="CHANGE",
        group="",
    ),
    Option(
        "data",
        "digits, mnist or a file with inputs and labels: first steps are drawn on them, 32 of each net, under "
        "cross-entropy (default: predicted for white data, where there is a theory)",
        metavar="SOURCE",
        group="",
    ),
    Option("batch_size", "samples of a batch of --data (default: all)", int, metavar="B", group=""),
    Option(
        "stem",
        "give residual nets of the transfer a plain layer below their blocks, which reads so many channels, or those "
        "of --data (default: none; it stops every rise)",
        int,
        metavar="CHANNELS",
        group="",
    ),
    Option(
        "family",
        "net of the transfer: mlp (default), mlp linear, cnn 1d, cnn 2d (or cnn), cnn 1d pooled, cnn 2d pooled, "
        "residual SCALING k=1..3 (residual: init k=1; a scaling is a name or a number alpha, for branches times "
        "K^(-alpha)), residual cnn 1d or 2d, or these pooled, looped linear (or sqrt, looped: linear), deep linear (or "
        "sqrt), transformer pre (or transformer), transformer post; residual nets and Transformers count blocks; "
        "transformer pre needs --rule",
        default="mlp",
        group="",
    ),
)
OPTIONS = (
    Option(
        "depth",
        "deepest net; time goes as its square",
        int,
        metavar="L",
        check=counted("a slope needs two depths", minimum=2, maximum=MOST_LAYERS),
        group="",
    ),
    Option("width", "channels of every layer", int, 1024, metavar="N", group=""),
    Option("outputs", "outputs, for the exact scale", int, 10, metavar="M", group=""),
    *OF_TRANSFER,
)
PRESETS = {
    "smoke": Preset("6 s", depth=300),
    "default": Preset("8 s", depth=1000),
    "paper": Preset("30 s", depth=3000),
}

VARIABLES = (
    Variable("family_exponent", "exponent of the label term's eta* at large depth", "NaN where it is no power"),
    Variable("family_printed", "exponent of eta* that a paper prints", "NaN where it prints none"),
    Variable("loop_exponent", "exponent of a loop's eta at large depth", "NaN where it is no power"),
    Variable("loop_printed", "exponent of a loop's eta that a paper prints", "NaN where it prints none"),
    Variable("transformer_learning_rate_scale", "label term's eta* of Transformers, mean field"),
    Variable("exact_slope", "local slope in depth of the exact eta* of fully-connected nets"),
    Variable("family", "family of nets"),
    Variable("paper", "paper that prints an exponent"),
    Variable("loop", "model of a loop, and its factor on steps"),
    Variable("transformer", "Transformer by where it normalises"),
    Variable("exact_depth", "depth L at which eta* is exact"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The nets, the loops and the Transformers at the greatest depth."""
    unset = dict.fromkeys(("from", "to", "rule", "stem", "of", "data", "batch_size")) | {"optimizer": "sgd"}
    for name, default in unset.items():
        value = vars(options)[name]
        if value != default:
            written = f"--{name.replace('_', '-')}"
            raise ValueError(f"{written} is {value}, but there is no rate to carry; give one with --transfer")
    return shown(options.depth, options.width, options.outputs)


def measure(
    options: argparse.Namespace,
    results: Results,
    nets: dict[str, Any],
    loops: dict[str, TiedLoop],
    transformers: dict[str, Transformer],
) -> xr.Dataset:
    """Mean-field scales by depth of families, loops and Transformers; the exact scale of the whole update for "mlp"."""
    depths = depth_grid(options.depth)
    papers = list(dict.fromkeys(paper for net in (*nets.values(), *loops.values()) for paper in printed_exponents(net)))
    families = _by_depth("family", "label_learning_rate_scale", nets, depths, papers)
    streams = _by_depth("loop", "stream_learning_rate_scale", loops, depths, papers)
    rows = [{"transformer_learning_rate_scale": scales_at(net, depths)} for net in transformers.values()]
    blocks = over({"transformer": list(transformers)}, rows, "depth")
    dataset = xr.merge([families, streams, blocks, _exact_scale(nets["mlp"])], combine_attrs="drop")
    specs = {"architectures": nets, "loops": loops, "transformers": transformers}
    return dataset.assign_attrs(
        {name: json.dumps([net.describe() for net in those.values()]) for name, those in specs.items()}
    )


def _by_depth(dim: str, quantity: str, nets: Mapping[str, Any], depths: list[int], papers: list[str]) -> xr.Dataset:
    """One scale over ``dim`` and depth, the exponent that it tends to, and what papers print for it."""
    scales = [
        {quantity: scales_at(net, depths), f"{dim}_exponent": learning_rate_exponent(net)} for net in nets.values()
    ]
    printed = [
        {f"{dim}_printed": printed_exponents(net).get(paper, np.nan)} for net in nets.values() for paper in papers
    ]
    by_depth = over({dim: list(nets)}, scales, "depth").assign_coords(depth=depths)
    return xr.merge([by_depth, over({dim: list(nets), "paper": papers}, printed)])


def _exact_scale(mlp: MLP) -> xr.Dataset:
    """ln eta* of the whole update, exact, with its local slope, at every depth that the report shows or fits."""
    wanted = {*SHOWN_DEPTHS, *(depth for slope in measured_slopes() for depth in slope.depths), mlp.depth}
    depths_given = sorted(depth for depth in wanted if depth <= mlp.depth)
    around = {depth: _neighbours(depth, mlp.depth) for depth in depths_given}
    near = sorted({n for depths in around.values() for n in depths})
    energies = energies_by_depth(mlp, near)["log_energy"].sel(energy="update_energy", layers="mean").values
    logs = dict(zip(near, -0.5 * energies, strict=True))
    rows = [
        {"log_learning_rate_scale": logs[depth], "exact_slope": _slope_at(depth, {n: logs[n] for n in around[depth]})}
        for depth in depths_given
    ]
    return over({"exact_depth": depths_given}, rows)


def _neighbours(depth: int, deepest: int) -> list[int]:
    """Five successive depths, or as many as there are, with this one in the middle if it can be."""
    first = max(1, min(depth - 2, deepest - 4))
    return [n for n in range(first, first + 5) if n <= deepest]


def _slope_at(depth: int, logs: Mapping[int, float]) -> float:
    scale = np.exp(np.array(list(logs.values())) - logs[depth])
    return float(spline_slopes(np.array(list(logs)), scale)[list(logs).index(depth)])


# What is printed.

# Depth from which a net reaches the depths of some measured slope.
LEAST_DEPTH = min(slope.depths[-1] for slope in measured_slopes())
# A local slope beyond which eta* falls exponentially.
EXPONENTIAL = 10.0
# What stands in for the papers' ResNets: blocks of one layer, initialised with variance 1/K.
RESNET = "residual init k=1"

WORDS = {
    "local slope": "d ln eta* / d ln L at one depth.",
    "init": "residual nets initialised with variance 1/K; multiplier_sqrt, multiplier_linear: with branches multiplied "
    "by K^(-1/2), 1/K; k: layers of a branch.",
    "looped": "one matrix for all steps; deep: one for each; linear, sqrt: under eps = 1/L, L^(-1/2).",
}
PLAIN_TITLE = "eta*(L) / eta*(1) of the label term (local slope), mean field; last: exact, output term included"
RESIDUAL_TITLE = "The same of residual nets by the number of blocks, without plain layers, ReLU"
OWN_LAWS = "The same of residual nets and loops, by the law of each, L^x with x behind its name"
TRANSFORMER_TITLE = "The same of Transformers by the number of blocks (2 depth units each), 16 white tokens"
LOOP_TITLE = "Loops: eta(L) / eta(1) that keeps |dh_L| under one update fixed (local slope), mean field"

NOTE = (
    "Table 1: mean over CIFAR-10, CIFAR-100 and ImageNet, its scatter as error; its depths are not printed, 3 .. 30 "
    "stands in. Tables 5, 6: fits through the rates that they print (table 5 at effective depths D + 1, from which its "
    "scaled rates follow). ViTs and audio nets are none of the families here, and the papers' ResNets have plain "
    "layers too."
)
LOOP_NOTE = (
    "Updates of isotropic signs. With a matrix for every step (deep) their changes add up in squares, hence "
    "L^(alpha - 1/2); the L^(alpha - 1) that Wang et al. 2026 print for stacks is that of updates whose changes all "
    "point one way."
)


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    deepest = f"local slope {slopes_of(dataset, 'mlp')[-1]:.3f}"
    if COMMON_SWEEP not in swept_depths(dataset):
        return f"Too shallow for those depths: {deepest} at L = {_deepest(dataset)} (ReLU MLPs, mean field)."
    fitted = fitted_law(dataset, "mlp", COMMON_SWEEP).exponent
    at = f"the mean field's slope is {fitted:.3f} over depths {span(COMMON_SWEEP)}, its {deepest} at"
    return answer([judge_power_law_in_use(dataset)], f"{at} L = {_deepest(dataset)} (ReLU MLPs)")


def _deepest(dataset: xr.Dataset) -> int:
    return int(dataset["depth"][-1])


def _loops(dataset: xr.Dataset) -> list[str]:
    return [str(name) for name in dataset["loop"].values]


def _transformers(dataset: xr.Dataset) -> list[str]:
    return [str(name) for name in dataset["transformer"].values]


def _with_power(dataset: xr.Dataset) -> list[str]:
    """Residual families and loops whose scale tends to a power of the depth."""
    names = [*residual_families(dataset), *_loops(dataset)]
    return [name for name in names if np.isfinite(law_of(dataset, name))]


def _short(name: str) -> str:
    """A family's name under a heading that says the rest."""
    return name.removeprefix("residual ")


def _scale_table(
    dataset: xr.Dataset,
    named: Callable[[xr.Dataset], list[str]],
    title: str,
    *,
    unit: str = "depth",
    exact: bool = False,
) -> Grid:
    columns = {name: (scale_of(dataset, name).values, slopes_of(dataset, name)) for name in named(dataset)}
    logs, exact_slopes = (dataset[name].to_series() for name in ("log_learning_rate_scale", "exact_slope"))
    lines = []
    for depth in (depth for depth in SHOWN_DEPTHS if depth <= _deepest(dataset)):
        at = int(np.searchsorted(dataset["depth"].values, depth))
        cells = [f"{scale[at] / scale[0]:.4g} ({_slope(slopes[at])})" for scale, slopes in columns.values()]
        if exact:
            cells.append(f"{from_log(logs[depth] - logs[1])} ({_slope(exact_slopes[depth])})")
        lines.append([str(depth), *cells])
    return table([unit, *map(_short, columns), *(["mlp exact"] if exact else [])], lines, title)


def _beside_trained(dataset: xr.Dataset) -> list[str | Grid]:
    """Slopes over depths of trained nets, where the run reaches such."""
    if _deepest(dataset) < LEAST_DEPTH:
        return []
    return [_law_table(dataset), _slope_table(dataset), NOTE]


def _law_table(dataset: xr.Dataset) -> Grid:
    """Slopes that a fit finds, the local one at the end, the law, and what the papers print, by family."""
    swept, lines = swept_depths(dataset), []
    for name in (*plain_families(dataset), *residual_families(dataset), *_loops(dataset)):
        slopes = [fitted_law(dataset, name, depths).exponent for depths in swept] + [slopes_of(dataset, name)[-1]]
        law = law_of(dataset, name)
        last = ["exponential" if np.isnan(law) else fraction(law), exponents(printed_for(dataset, name))]
        lines.append([name, *map(_slope, slopes), *last])
    header = ["fit over", *map(span, swept), [f"at {_deepest(dataset)}", "law", "papers"]]
    return table(header, lines, "Slopes of eta*(L) in theory: fitted over depths of the papers' sweeps, and far down")


def _brief_table(dataset: xr.Dataset) -> Grid:
    """Slopes of plain nets in theory over the depths of the papers' sweeps, and those that trained nets showed."""
    swept, lines = swept_depths(dataset), []
    for name in plain_families(dataset):
        slopes = [fitted_law(dataset, name, depths).exponent for depths in swept] + [slopes_of(dataset, name)[-1]]
        lines.append([name, *map(_slope, slopes), fraction(law_of(dataset, name))])
    trained = {slope.depths: measured(slope.slope, slope.stderr) for slope in judged_slopes()}
    if swept:
        row = (trained.get(depths, MISSING) for depths in swept)
        lines.append(["tuned rates", *row, MISSING, MISSING])
    header = ["net", *(f"L = {span(depths)}" for depths in swept), f"local, L = {_deepest(dataset)}", "limit"]
    title = "Slope of the label term's eta*(L), fitted to the mean field; last row: tuned (Zhang et al. 2026)"
    return table(header, lines, title)


def _slope_table(dataset: xr.Dataset) -> Grid:
    """Measured slopes beside those that a fit finds in theory over the same depths."""
    lines = []
    for tuned in (slope for slope in measured_slopes() if slope.depths in swept_depths(dataset)):
        exact = np.exp(dataset["log_learning_rate_scale"].sel(exact_depth=list(tuned.depths)).values)
        plain, resnet = (fitted_law(dataset, name, tuned.depths).exponent for name in ("mlp", RESNET))
        slopes = [f"{slope:.3f}" for slope in (plain, fit_power_law(tuned.depths, exact).exponent, resnet)]
        differences = [f"{tuned.slope - rival:+.3f}" for rival in (plain, PAPERS_EXPONENT)]
        lines.append([tuned.source, span(tuned.depths), measured(tuned.slope, tuned.stderr), *slopes, *differences])
    less = ["less mlp", "less -3/2"]
    header = [["slope of tuned rates", "depths"], "measured", ["mlp", "mlp exact", RESNET], less]
    return table(header, lines, "Slopes that trained nets showed, and that a fit finds in theory over the same depths")


def _transfer_table(dataset: xr.Dataset, named: Callable[[xr.Dataset], list[str]], shared: float | None = None) -> Grid:
    """How far a power law, one for all or each family's own, misses a rate that the finite-depth scale carries."""
    deepest, names, lines = _deepest(dataset), named(dataset), []
    scales, place = {name: scale_of(dataset, name).values for name in names}, dataset.get_index("depth").get_loc
    laws = {name: law_of(dataset, name) if shared is None else shared for name in names}
    for start in (depth for depth in STARTS if depth < deepest):
        for end in [*(start * factor for factor in FACTORS if start * factor < deepest), deepest]:
            finite = {name: scale[place(end)] / scale[place(start)] for name, scale in scales.items()}
            cells = [f"{finite[name] / (end / start) ** laws[name] - 1:+.1%}" for name in names]
            power = [] if shared is None else [number((end / start) ** shared)]
            lines.append([str(start), str(end), *power, *cells])
    if shared is None:
        header, title = [f"{_short(name)}: {fraction(laws[name])}" for name in names], OWN_LAWS
        return table([["from L0", "to L"], *header], lines, title)
    title = "Transfer: rate by the finite-depth rule over rate by the power law, less 1 (label term, mean field)"
    return table([["from L0", "to L"], f"(L/L0)^({fraction(shared)})", *names], lines, title)


def _slope(slope: float) -> str:
    """Three decimals; of steep ones, which fall exponentially and are less certain on wide steps of depth, one."""
    return f"{slope:.3f}" if abs(slope) < EXPONENTIAL else f"{slope:.1f}"


REPORT = Report(
    question="Is eta*(L) of plain nets the power law L^(-3/2) at the depths of common nets?",
    answer=_answer,
    heading="Mean field, no draws. cnn: rings of 32 sites (1d), grids of 16 x 16 (2d), 3 taps an axis; residual: "
    "branches of k layers, of variance 1/K (init), or times K^(-1/2) (multiplier_sqrt), 1/K (multiplier_linear)\n"
    f"{ETA}",
    brief=_brief_table,
    steps=[
        ("--transfer 0.1 --from 12 --to 48", "carry a rate tuned at depth 12 to depth 48 by this law"),
        ("--preset paper", "theory to 3,000 layers"),
    ],
    parts=[
        partial(_scale_table, named=plain_families, title=PLAIN_TITLE, exact=True),
        partial(_scale_table, named=residual_families, title=RESIDUAL_TITLE, unit="blocks"),
        partial(_scale_table, named=_transformers, title=TRANSFORMER_TITLE, unit="blocks"),
        partial(_scale_table, named=_loops, title=LOOP_TITLE, unit="steps"),
        LOOP_NOTE,
        _beside_trained,
        partial(_transfer_table, named=plain_families, shared=PAPERS_EXPONENT),
        partial(_transfer_table, named=_with_power),
    ],
    findings=findings,
    words=WORDS,
)


# Fields of a spec that say what the net is, in the order of a sentence, and those that only some families have.
SHOWN_FIELDS = ("width", "channels", "grid", "kernel", "padding", "activation", "head", "readout", "outputs", "inputs")
OF_FAMILIES = (
    "block_depth",
    "stem",
    "input_width",
    "input_channels",
    "scaling",
    "alpha",
    "tied",
    "weight_variance",
    "heads",
    "tokens",
    "ffn",
    "norm",
)


def carried(options: argparse.Namespace) -> str:
    """The report on the rate that the options ask for, with all that should be known of it."""
    start = vars(options)["from"]
    for name, depth in (("--from", start), ("--to", options.to)):
        if depth is None:
            raise ValueError(f"--transfer {options.transfer:g} is given without {name}, a depth; it needs both")
        require_count(name, depth, why="a depth")
    net = served_as(options.family, options.width, options.outputs)
    net = net if options.stem is None else _on_stem(net, options)
    how: dict[str, Any] = {"optimizer": options.optimizer, "of": options.of}
    if options.data is not None:
        net = on_data(net, options.data)
        how |= {"data": training_data(options.data, net), "batch_size": options.batch_size}
    elif options.batch_size is not None:
        raise ValueError(f"--batch-size is {options.batch_size}, but no data are given; give them with --data")
    how |= {} if options.rule is None else {"rule": options.rule}
    return text(options.transfer, net, start, options.to, options.family, **how)


def _on_stem(net: Any, options: argparse.Namespace) -> Any:
    """The residual net with a plain layer below its blocks."""
    require_count("--stem", options.stem, why="channels that a stem reads")
    if not isinstance(net, ResidualMLP | ResidualConvNet):
        raise ValueError(f"--stem {options.stem} is for residual nets, not for --family {options.family!r}; drop it")
    return replace(net, stem=1, **{net.INPUT: options.stem})


def text(rate: float, net: Any, start: int, end: int, family: str, **how: Any) -> str:
    """The report on one carried rate, the answer first; ``how`` is that of `meanfield.explain_transfer`."""
    transfer = mf.explain_transfer(rate, replace(net, depth=start), replace(net, depth=end), **how)
    parts: list[str | Grid] = [_rule_table(rate, net, start, end, transfer)]
    if transfer.interval is not None:
        low, high = transfer.interval
        parts.append(f"Four in five nets of depth {end} would take a rate between {low:.3g} and {high:.3g}.")
    share = depth_over_width(replace(net, depth=end))
    parts += [
        f"Net: {_described(net)}; depth over width {share:.2g} at depth {end}.",
        "\n".join(["Premises:", *(folded(sentence, "- ", 2) for sentence in transfer.premises)]),
        *(f"WARNING: {sentence}" for sentence in transfer.warnings),
    ]
    under = f" under {transfer.optimizer}" if transfer.rule == OneStep.name else ""
    question = f"Which learning rate at depth {end}{under}, if {rate:g} was tuned at depth {start} ({family})?"
    error = f" (+- {transfer.error:.0%}, from draws)" if transfer.error else ""
    carried = f"{transfer.rate:.4g}{error}, by rule {transfer.rule!r}: {transfer.reason}."
    return Document(question=question, answer=carried, parts=parts).text()


def _rule_table(rate: float, net: Any, start: int, end: int, transfer: mf.Transfer) -> Grid:
    """The rates of all rules, and, of descent, of the exponents that papers print for this family."""
    header = ["rule", "eta* by", "learning rate"]
    if transfer.rule == OneStep.name:
        return table(header, [[transfer.rule, transfer.reason, f"{transfer.rate:.4g}"]])
    powers = not isinstance(net, Transformer)
    law = learning_rate_exponent(net) if powers else nan
    titles = {name: (RULES | RIVALS)[name].title for name in transfer.rates}
    if "power_law" in titles:
        titles["power_law"] += f" L^({fraction(law)})"
    rows = [[name, titles[name], f"{carried:.4g}"] for name, carried in transfer.rates.items()]
    if isnan(law):
        why = "an exponential of the depth, or of a power of it" if powers else "no power of common depths"
        rows.append(["power_law", f"none holds: eta* is {why}", "-"])
    printed = {paper: exponent for paper, exponent in printed_exponents(net).items() if exponent != law}
    for paper, exponent in printed.items():
        rows.append(["", f"L^({fraction(exponent)}) ({paper})", f"{rate * (end / start) ** exponent:.4g}"])
    return table(header, rows)


def _described(net: Any) -> str:
    """The net in words of its spec; depth is the question's."""
    spec = net.describe()
    named = [f"{name} {spec[name]}" for name in (*SHOWN_FIELDS, *OF_FAMILIES) if spec.get(name) is not None]
    return f"{spec['family']} of " + ", ".join(named)


class _Scales(Study):
    """With --transfer, the one carried rate in place of the report."""

    def run(self, options: argparse.Namespace) -> int:
        if options.transfer is None:
            return super().run(options)
        if options.out is not None:
            raise ValueError(f"--out is {options.out}, but --transfer prints a rate and writes no file: drop --out")
        print(carried(options))
        return 0


STUDY = _Scales(
    name="learning_rate_scale",
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    compiles="2 s",
    draws=False,
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=REPORT,
    claims=CLAIMS,
)


if __name__ == "__main__":
    run_as_command("learning_rate_scale")
