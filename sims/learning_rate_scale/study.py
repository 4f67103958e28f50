"""How the learning-rate scale eta*(L) falls with depth in theory: local slopes, and the slopes that a fit would find.

No net is drawn: the mean field gives the label term's scale for plain and residual nets of every depth, and for loops
the rate that keeps the change of the stream under one update fixed; the exact recursion gives the scale of the whole
update for fully-connected nets. Slopes over the depths that the papers print stand beside those that they measured and
the exponents that they claim, with no fitted constant; a table says how far the power law misses a carried rate, and
the claims on eta*(L) get their verdicts. With --transfer, carries a learning rate to another depth.
"""

import argparse
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import MOST_LAYERS
from meanfield.nets import MLP, TiedLoop, Transformer
from meanfield.theory import energies_by_depth, learning_rate_exponent, scales_at
from meanfield.verification import measured_slopes, printed_exponents, spline_slopes
from sims.common.command import Option, Preset, counted
from sims.common.datasets import Variable, over
from sims.common.results import Results
from sims.common.study import Study
from sims.learning_rate_scale.claims import CLAIMS
from sims.learning_rate_scale.families import SHOWN_DEPTHS, depth_grid, shown
from sims.learning_rate_scale.report import REPORT, carried

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
        "what that step moves by 1: absolute (default: all layers), relative (over their own size), last (the last "
        "layer, over its own size) or outputs",
        default="absolute",
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
        "give residual nets of the transfer a plain layer below their blocks, which reads so many channels (default: "
        "none; it stops every rise)",
        int,
        metavar="CHANNELS",
        group="",
    ),
    Option(
        "family",
        "net of the transfer: mlp (default), mlp linear, cnn 1d, cnn 2d (or cnn), either cnn pooled, residual SCALING "
        "k=1..3 (residual: init k=1; a scaling is a name or a number alpha, for branches times K^(-alpha)), residual "
        "cnn 1d, looped linear (or sqrt, looped: linear), deep linear (or sqrt), transformer pre (or transformer), "
        "transformer post; residual nets and Transformers count blocks; transformer pre needs a --rule",
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
    unset = dict.fromkeys(("from", "to", "rule", "stem", "data", "batch_size")) | {"optimizer": "sgd", "of": "absolute"}
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


class _Scales(Study):
    """With --transfer, the one carried rate in place of the report."""

    def run(self, options: argparse.Namespace) -> int:
        if options.transfer is None:
            return super().run(options)
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
