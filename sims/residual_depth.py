"""How the learning-rate scale eta*(K) of residual nets falls, or does not, with the number of blocks K.

For every activation, branch depth k and scaling (branch weights of variance 1/K, branch times K^(-1/2) or 1/K, none),
nets are drawn over a grid of K and held against theory over the same K: the exact expectation for linear nets, the mean
field for ReLU. Its slope is followed to large K and set beside what the papers say. Then mixed backbones of m plain
layers and K blocks, whose slopes in m and K are told apart; PathSum's rule; and the net of the papers' ResNet tables.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.common import MOST_LAYERS, PowerLaw, fit_power_law
from meanfield.nets import SCALINGS, ResidualConvNet, ResidualMLP
from meanfield.simulation import Energies
from meanfield.theory import log_path_sum_scale, mean_field_profiles, residual_exponent
from meanfield.verification import (
    PAPERS_EXPONENT,
    TABLE_1,
    Claim,
    Contest,
    Deviation,
    Finding,
    JudgeOfRun,
    Judges,
    Kind,
    Ruling,
    Series,
    checks,
    contest,
    exponents_of,
    judge_identity,
    printed_residual_exponents,
    shown_laws,
    slope_contest,
)
from sims.common.blocks import BLOCKS_OPTION, RELU_OVER_LINEAR
from sims.common.command import Option, Preset, chosen_arrays, counted
from sims.common.datasets import Axes, Variable, attributes, over, seeded_run, taken
from sims.common.report import ETA, Report, answer
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import Column, Grid, Table, drawn, exponents, fitted, heavy_tail_notes, number, signed

NAME = "residual_depth"
LISTED = "which depth law holds under which residual scaling"

# What is asked for.

OPTIONS = (
    BLOCKS_OPTION,
    Option(
        "far",
        "blocks to which theory follows the slopes",
        int,
        metavar="K",
        check=counted("the slope is followed up to so many blocks", minimum=10, maximum=MOST_LAYERS),
    ),
    Option("width", "units of the stream", int, metavar="N"),
    Option("outputs", "outputs", int, 10, metavar="M"),
)
PRESETS = {
    "smoke": Preset("4 s", blocks=[4, 8, 16], width=256, draws=32, far=100),
    "default": Preset("15 s", blocks=[8, 16, 32, 64, 128], width=512, draws=24, far=2_000),
    "paper": Preset("20 min", blocks=[8, 16, 32, 64, 128, 256], width=1024, draws=512, far=10_000),
}

# What is measured.

AXES: Axes = {"activation": ("relu", "linear"), "block_depth": (1, 2, 3), "scaling": SCALINGS}
WHOLE, LABEL_SCALE = SCALES = ("learning_rate_scale", "label_learning_rate_scale")
# Plain layers and blocks of mixed backbones at which slopes are taken, by changing one of the two by a tenth.
BACKBONES = {f"m = {stem}, K = {blocks}": (stem, blocks) for stem, blocks in ((10, 100), (50, 50), (100, 10))}
# The axis "count" of a backbone, and the field of a net that it stands for.
COUNTS = {"m": "stem", "K": "depth"}
WIDE = 10**6
# Zhang et al. 2026's ResNets: 3x3 convolutions of 64 channels, one per block, under a stem, over a common sweep.
PAPER_DEPTHS = (4, 8, 16, 32)

VARIABLES = (
    Variable("learning_rate_scale_far_slope", "local slope of eta* in the blocks K, far up", "between far / 2 and far"),
    Variable(
        "label_learning_rate_scale_far_slope",
        "local slope of the label term's eta* in the blocks K, far up",
        "between far / 2 and far, in theory",
    ),
    Variable("backbone_slope", "local slope of the label term's eta* in m or in K, in theory", "count: m or K"),
    Variable("backbone_layers", "plain layers m and blocks K of a mixed backbone"),
    Variable("papers_net_log_scale", "logarithm of the label term's eta* of the ResNet of Zhang et al. 2026"),
    Variable("backbone", "mixed backbone of m plain layers below K blocks"),
    Variable("count", "what is counted: plain layers m, or blocks K"),
    Variable("papers_blocks", "residual blocks K of the ResNet of Zhang et al. 2026"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """One net of a single block for each activation, branch depth and scaling; the numbers of blocks."""
    nets = [
        ResidualMLP(depth=1, width=options.width, outputs=options.outputs, **dict(zip(AXES, place, strict=True)))
        for place in product(*AXES.values())
    ]
    return {"nets": nets, "blocks": options.blocks, "far": options.far}


def measure(
    options: argparse.Namespace, results: Results, nets: list[ResidualMLP], blocks: list[int], far: int
) -> xr.Dataset:
    """Scales drawn (NAME) and predicted (NAME_theory) over the blocks; slopes of theory far up; mixed backbones."""
    energies = Energies(**chosen_arrays(options))
    runs = [
        seeded_run(options, replace(net, depth=depth), energies, f"{net.describe()} of {depth} blocks")
        for net, depth in product(nets, blocks)
    ]
    drawn = zip(runs, results.draw(runs), strict=True)
    parts = [
        over(AXES | {"blocks": blocks}, [taken(scales, *SCALES) | _logs(run.net) for run, scales in drawn]),
        over(AXES, [{f"{name}_far_slope": _local_slope(net, name, far) for name in SCALES} for net in nets]),
        _mixed_backbones(options.outputs),
        _papers_net(),
    ]
    return xr.merge(parts).assign_attrs(attributes(options, "width", "outputs", "far"))


def _logs(net: ResidualMLP) -> dict[str, float]:
    """Both scales in theory, exact where there is such a level, and in the mean field."""
    theory = {f"log_{name}_theory": log_scale(net, name) for name in SCALES}
    return theory | {f"log_{name}_mean_field": log_scale(net, name, exact=False) for name in SCALES}


def log_scale(net: Any, name: str, *, exact: bool = True) -> float:
    """log of a predicted scale: exact for linear nets; else the mean field's, which has the label term's alone."""
    if exact and net.activation == "linear":
        return float(mf.predict(net, level="exact")[f"log_{name}"])
    if name != LABEL_SCALE:
        return float("nan")
    with np.errstate(all="ignore"):
        return float(-0.5 * np.log(mean_field_profiles(net)[1].mean()))


def _local_slope(net: ResidualMLP, name: str, far: int) -> float:
    """d log scale / d log K between far / 2 and far blocks; NaN without scaling, where it falls exponentially."""
    if net.scaling == "none":
        return float("nan")
    low, high = (log_scale(replace(net, depth=depth), name) for depth in (far // 2, far))
    return float((high - low) / np.log(far / (far // 2)))


def _mixed_backbones(outputs: int) -> xr.Dataset:
    """Local slopes of the label term's scale in m and in K for backbones of m plain layers below K blocks (k = 1)."""
    axes: Axes = {"activation": AXES["activation"], "backbone": list(BACKBONES), "count": list(COUNTS)}
    slopes = []
    for activation, backbone, count in product(*axes.values()):
        stem, blocks = BACKBONES[backbone]
        net = ResidualMLP(depth=blocks, width=WIDE, outputs=outputs, activation=activation, stem=stem)
        field = COUNTS[count]
        counts = [round(factor * getattr(net, field)) for factor in (0.9, 1.1)]
        low, high = (log_scale(replace(net, **{field: number}), LABEL_SCALE) for number in counts)
        slopes.append({"backbone_slope": (high - low) / np.log(counts[1] / counts[0])})
    layers = over({"backbone": list(BACKBONES)}, [{"backbone_layers": pair} for pair in BACKBONES.values()], "count")
    return xr.merge([over(axes, slopes), layers])


def _papers_net() -> xr.Dataset:
    """log of the label term's scale of the paper's ResNet, mean field: a stem and K blocks of one 3x3 convolution."""
    net = ResidualConvNet(
        depth=1, channels=64, grid=(16, 16), kernel=(3, 3), stem=1, input_channels=3, readout="convolution"
    )
    logs = [{"papers_net_log_scale": log_scale(replace(net, depth=depth), LABEL_SCALE)} for depth in PAPER_DEPTHS]
    return over({"papers_blocks": PAPER_DEPTHS}, logs)


# What is claimed, and what decides it.

SCALED = ("init", "multiplier_sqrt", "multiplier_linear")
IN_WORDS = {"init": "variance 1/K", "multiplier_sqrt": "multiplier K^(-1/2)", "multiplier_linear": "multiplier 1/K"}
# A tenth of an exponent: what mixed backbones of a hundred layers may be short of their asymptotic slopes.
NEAR = 0.1

JUDGES = Judges(largest_share=lambda dataset: Series.of(dataset, LABEL_SCALE).sel(scaling=list(SCALED)).largest_share)


def drawn_slope(at: xr.Dataset, name: str = LABEL_SCALE) -> PowerLaw:
    """Slope of a drawn scale over the blocks, of one net: without scaling, squares of energies soon are no floats."""
    return Series.of(at, name).drawn("blocks").law("blocks")


def theory_slope(at: xr.Dataset, name: str = LABEL_SCALE, level: str = "theory") -> float:
    """The same slope of theory, its points weighted as the drawn ones."""
    drawn_scale = Series.of(at, name).drawn("blocks")
    logs = at[f"log_{name}_{level}"].sel(blocks=drawn_scale.value["blocks"]).values
    return drawn_scale.slope_of("blocks", logs) if np.isfinite(logs).all() else float("nan")


def finite_width_slack(dataset: xr.Dataset, at: xr.Dataset) -> float:
    """What finite width may do to a slope that the mean field predicts: from linear nets, where it is known exactly."""
    if at["activation"] == "linear":
        return 0.0
    linear = dataset.sel(activation="linear", block_depth=at["block_depth"], scaling=at["scaling"])
    return RELU_OVER_LINEAR * abs(theory_slope(linear) - theory_slope(linear, level="mean_field"))


def _lacking(at: xr.Dataset) -> float:
    """What theory's slope over the drawn blocks still lacks of its slope far up."""
    return abs(theory_slope(at) - float(at[f"{LABEL_SCALE}_far_slope"]))


@JUDGES.decide(
    claim="Label term's eta*(K) falls as the exact expectation and the mean field say, for every net",
    rival="as K^(-3/2)",
    measured="slopes of linear nets by the exact expectation, of ReLU nets by the mean field",
    brief="Slopes of the label term's eta* in K are those of theory, for all kinds of nets",
)
def judge_theory(dataset: xr.Dataset) -> Contest:
    nets = [
        dataset.sel(activation=activation, block_depth=block_depth, scaling=scaling)
        for activation in dataset["activation"].values
        for block_depth in dataset["block_depth"].values
        for scaling in SCALED
    ]
    slope, stderr = exponents_of(*map(drawn_slope, nets))
    slack = [finite_width_slack(dataset, net) for net in nets]
    expected = [theory_slope(net) for net in nets]
    nearest = float(Deviation(slope - PAPERS_EXPONENT, stderr, slack).excess.min())
    words = f"the rival's nearest net is {nearest:.1f} s.e. away"
    return contest(slope, stderr, claimed=expected, rival=PAPERS_EXPONENT, allowance=slack, shown=words)


# Exponents that are printed for one scaling and branch depth.
PRINTED = (
    ("init", 1, PAPERS_EXPONENT, "branches initialised with variance 1/(q K n) (Zhang et al. 2026, sections 3.4, C.2)"),
    ("multiplier_sqrt", 1, PAPERS_EXPONENT, "a multiplier K^(-1/2), one reading of Zhang et al. 2026, section 3.4"),
    ("multiplier_sqrt", 1, 0.0, "multiplier K^(-1/2), k = 1 (Zheng et al. 2026, table 11, SGD)"),
    ("multiplier_linear", 2, 1.0, "multiplier 1/K, k = 2 (Zheng et al. 2026, table 5, SGD)"),
    ("multiplier_linear", 3, 1.0, "multiplier 1/K, k = 3 (Zheng et al. 2026, table 5, SGD)"),
)
CASES: list[dict[str, Any]] = [
    dict(zip(("scaling", "block_depth", "claimed", "net"), printed, strict=True)) for printed in PRINTED
]


@JUDGES.decide(
    claim="eta* ~ K^{claimed:g} for {net}",
    rival="K^{rival:g}",
    measured="the slope in K of ReLU nets; the rival follows from the kernel's growth",
    brief="k = {block_depth}, {scaled}: eta* ~ K^{claimed:g}",
    cases=CASES,
)
def judge_exponent(dataset: xr.Dataset, scaling: str, block_depth: int, claimed: float, net: str) -> Contest:
    at = dataset.sel(activation="relu", scaling=scaling, block_depth=block_depth)
    law, exponent = drawn_slope(at), residual_exponent(scaling, block_depth)
    rival = exponent if abs(exponent - claimed) > NEAR else PAPERS_EXPONENT
    slack = _lacking(at) + finite_width_slack(dataset, at)
    far = f"{float(at[f'{LABEL_SCALE}_far_slope']):.3f} at {dataset.attrs['far']} blocks"
    words = f"slope {{laws}}, in theory {far}"
    named = {"rival": rival, "scaled": IN_WORDS[scaling]}
    return slope_contest(law, claimed=claimed, rival=rival, allowance=slack, shown=words, words=named)


judge_initialisation: JudgeOfRun = partial(judge_exponent, **CASES[0])
judge_multiplier: JudgeOfRun = partial(judge_exponent, **CASES[1])


@JUDGES.decide(
    claim='Exponents under "init" scaling do not depend on the branch depth k (Zhang et al. 2026, sections 3.1, C.2)',
    rival="exponent k - 2",
    measured="slopes in K less that of branches of one layer",
    brief="The exponent of eta* in K does not depend on k, under variance 1/K",
)
def judge_block_depth(dataset: xr.Dataset) -> Contest:
    depths = dataset["block_depth"].values
    nets = [dataset.sel(activation="relu", scaling="init", block_depth=k) for k in depths]
    laws, lacking = [drawn_slope(net) for net in nets], np.array([_lacking(net) for net in nets])
    slope, stderr = exponents_of(*laws)
    above, error, granted = slope[1:] - slope[0], np.hypot(stderr[1:], stderr[0]), lacking[1:] + lacking[0]
    words = f"slopes for k = 1, 2, 3: {shown_laws(*laws)}"
    return contest(above, error, claimed=0.0, rival=depths[1:] - depths[0], allowance=granted, shown=words)


@JUDGES.decide(
    claim="Plain layers and blocks count alike, eta* ~ (m + K)^(-3/2) (Zhang et al. 2026, sections 3.4, C.2)",
    rival="each has a slope of its own",
    measured="slopes of mixed backbones in m and in K, each by theory alone",
    brief="m plain layers and K blocks count alike, eta* ~ (m + K)^(-3/2) (theory, k = 1)",
)
def judge_effective_depth(dataset: xr.Dataset) -> Ruling:
    layers, slope = dataset["backbone_layers"].values, dataset["backbone_slope"].sel(activation="relu").values
    claimed = PAPERS_EXPONENT * layers / layers.sum(axis=1, keepdims=True)
    difference = np.abs(slope - claimed).ravel()
    worst = int(np.argmax(difference))
    evidence = f"slope {slope.ravel()[worst]:.3f} where {claimed.ravel()[worst]:.3f} is claimed"
    verdict = judge_identity(difference, 0.0, np.inf, NEAR)
    return Ruling(verdict, evidence, power=f"exact: any slope off by more than {NEAR:g} is refuted")


@JUDGES.decide(
    claim="PathSum departs from eta* as blocks are added (Zhang et al. 2026, section 4.3)",
    rival="it follows eta*",
    measured="the rule over eta* from end to end, where a factor e is a departure",
    brief="The rule PathSum departs from eta* as blocks are added (k = 1, variance 1/K)",
)
def judge_path_sum(dataset: xr.Dataset) -> Contest:
    at = dataset.sel(activation="relu", scaling="init", block_depth=1).isel(blocks=[0, -1])
    blocks, stderr = at["blocks"].values, (at[f"{LABEL_SCALE}_stderr"] / at[LABEL_SCALE]).values
    apart = float(np.diff(log_path_sum_scale(blocks) - np.log(at[LABEL_SCALE].values))[0])
    error = float(np.hypot(*stderr))
    words = f"from {blocks[0]} to {blocks[1]} blocks it falls {float(np.exp(-apart)):.3g} times too far"
    return Contest(Deviation(max(apart + 1.0, 0.0), error), Deviation(apart, error), shown=words, apart=1.0)


CLAIMS = (
    Claim(
        id="A13",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, sections 3.4, C.2; Zhang et al. 2025, theorem 3",
        statement="eta* = Theta(K^(-3/2)) for residual nets whose branches are initialised with variance 1/(q K n) "
        "(judged, as in A14, A15 and A22: the label term)",
        brief="eta* = Theta(K^(-3/2)) for branches initialised with variance 1/(q K n)",
        printed='"enforcing the AM-muP budget S = O(1) yields eta*(K) = Theta(K^(-3/2))" (appendix C.2)',
        hypotheses="branches by eq. 5, plain layers by the fan-in rule, branches of a fixed inner structure, and the "
        "weak dependence of appendix B, which is what fails",
        checks=checks(NAME, judge_initialisation),
        replaced_by="K^-1 for branches of one layer, K^(k - 2) for branches of k",
        premise="overlaps between units are taken to add up as in plain nets; a block adds only 1/K of them",
    ),
    Claim(
        id="A14",
        kind=Kind.READING,
        source="Zhang et al. 2026, sections 3.1, 3.4",
        statement="ambiguous in the paper, whose 'scaling residual-branch weights by K^(-1/2)' is eq. 5 itself; as a "
        "multiplier on the branch, which section 3.4 can be read to say: eta* = Theta(K^(-3/2)) again",
        brief="eta* = Theta(K^(-3/2)) for branches with the multiplier K^(-1/2), on one reading",
        printed='"standard fan-in initialization together with a multiplicative K^(-1/2) scaling on the residual '
        'branch" (section 3.4)',
        hypotheses="those of A13, the factor outside the weights",
        checks=checks(NAME, judge_multiplier),
        replaced_by="K^0: the update of a weight is multiplied too, S(initialisation) = K^2 S(multiplier) for k = 1",
        premise="a factor in the initialisation and one outside give equal nets, not equal gradients",
    ),
    Claim(
        id="A15",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, section C.2; Zhang et al. 2025, C.1",
        statement="depth counts as m + K in mixed backbones, and the depth of a branch is absorbed",
        printed='"the same argument applies with K replaced by the effective depth L_res := m + K ... residual units '
        'contribute only O(1) propagation factors" (appendix C.2); "Fixed O(1) internal structure inside a branch or '
        'block is absorbed into the local template" (section 3.1)',
        hypotheses="those of A13, with m plain layers and branches of k layers",
        checks=checks(NAME, judge_block_depth, judge_effective_depth),
        replaced_by="eta* ~ K^(k - 2) in the blocks, while every plain layer counts as in a plain net",
        premise="a block of k layers is taken for one layer, and a block for a layer",
    ),
    Claim(
        id="A22",
        kind=Kind.BEYOND,
        source="Zhang et al. 2026, section 4.3, of one step in place of training",
        statement="PathSum (Chen et al. 2024) departs from the truth with depth in residual nets (judged: from the "
        "one-step eta*; the paper compares with tuned optima)",
        brief="PathSum (Chen et al. 2024) departs from the truth with depth in residual nets",
        printed='"In contrast, PathSum (Chen et al., 2024) shows increasing deviation from empirical optima at '
        'larger depths" (section 4.3)',
        hypotheses="branches by eq. 5, of one layer",
        checks=checks(NAME, judge_path_sum),
    ),
)

# What is printed.

WORDS = {
    "k": "layers of a branch: z <- z + a branch(z) in every block.",
    "init": "scaling of a net of K blocks: branch weights of variance 1/(q K n), a = 1.",
    "multiplier_sqrt": "a = K^(-1/2); multiplier_linear: a = 1/K; weights of variance 1/(q n).",
    "none": "a = 1, weights of variance 1/(q n).",
    "PathSum": "a rule for learning rates of residual nets, Chen et al. 2024.",
}
# The exponent in m + K of Zhang et al. 2026.
(PRINTED_EXPONENT,) = printed_residual_exponents("init", 1).values()


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    nets = [dataset.sel(activation="relu", scaling="init", block_depth=k) for k in dataset["block_depth"].values]
    laws = (drawn_slope(net) for net in nets)
    slopes = ", ".join(f"{law.exponent:.2f} +- {law.stderr:.2f}" for law in laws)
    depths, blocks = ", ".join(map(str, dataset["block_depth"].values)), dataset["blocks"].values
    where = f"drawn over K = {blocks[0]} .. {blocks[-1]} at width {dataset.attrs['width']}"
    numbers = f"slopes {where} are {slopes} for branches of k = {depths} layers, and k = 1 is judged"
    return answer([judge_initialisation(dataset)], numbers)


def _scale_columns(scaling: str) -> list[Column]:
    """eta* of the label term, drawn and mean field, for ReLU and k = 1."""

    def net(at: xr.Dataset) -> xr.Dataset:
        return at.sel(activation="relu", block_depth=1, scaling=scaling)

    return [
        Column(scaling, lambda at: drawn(net(at), LABEL_SCALE)),
        Column("mean field", lambda at: number(float(np.exp(net(at)[f"log_{LABEL_SCALE}_theory"])))),
    ]


def _distance(at: xr.Dataset) -> str:
    """Of the drawn slope from that of theory, in standard errors."""
    law = drawn_slope(at)
    return signed((law.exponent - theory_slope(at)) / law.stderr)


def _law(at: xr.Dataset) -> str:
    law = residual_exponent(str(at["scaling"].values), int(at["block_depth"]))
    return "falls as 2^-K" if np.isnan(law) else f"{law:+g}"


def _printed(at: xr.Dataset) -> str:
    return exponents(printed_residual_exponents(str(at["scaling"].values), int(at["block_depth"])))


def _slope_columns(dataset: xr.Dataset) -> list[list[Column]]:
    whole = [
        Column("eta*", lambda at: fitted(drawn_slope(at, WHOLE))),
        Column("exact", lambda at: number(theory_slope(at, WHOLE))),
    ]
    label = [
        Column("eta* of B alone", lambda at: fitted(drawn_slope(at))),
        Column("theory", lambda at: number(theory_slope(at))),
        Column("s.e.", _distance),
    ]
    far = Column(f"at {dataset.attrs['far']}", f"{LABEL_SCALE}_far_slope")
    return [whole, label, [far, Column("law", _law), Column("papers", _printed)]]


def _slope_title(dataset: xr.Dataset) -> str:
    blocks = dataset["blocks"].values
    return f"Slopes in K over {blocks[0]} .. {blocks[-1]} blocks (theory: exact if linear, mean field if ReLU)"


def _backbone_column(count: str) -> Column:
    """The slope in m or in K, and the one that is printed: its share of m + K."""

    def cells(at: xr.Dataset) -> list[str]:
        layers = at["backbone_layers"]
        printed = PRINTED_EXPONENT * layers.sel(count=count) / layers.sum()
        return [f"{float(slope):.3f}" for slope in (at["backbone_slope"].sel(count=count), printed)]

    return Column([f"slope in {count}", "printed"], cells)


SCALE_TABLE = Table(
    "scale table",
    "eta* of the label term, ReLU, k = 1",
    ["blocks"],
    "blocks",
    [_scale_columns(scaling) for scaling in SCALINGS],
)
SLOPE_TABLE = Table(
    "slope table",
    _slope_title,
    ["activation", "block_depth", "scaling"],
    "net",
    _slope_columns,
    key=lambda activation, k, scaling: f"{activation} k={k} {scaling}",
)


def _brief_table(dataset: xr.Dataset) -> Grid:
    """Slopes of ReLU nets, drawn and predicted, and the powers that are claimed."""
    blocks = dataset["blocks"].values
    columns = [
        Column("drawn slope", lambda at: fitted(drawn_slope(at))),
        Column("mean field", lambda at: number(theory_slope(at))),
        Column("off (s.e.)", _distance),
        Column(f"mean field at K = {dataset.attrs['far']}", f"{LABEL_SCALE}_far_slope"),
        Column("its limit", _law),
    ]
    title = f"Slope in K of the label term's eta*: ReLU, K = {blocks[0]} .. {blocks[-1]} blocks, branches of k layers"
    made = Table(
        "brief table", title, ["block_depth", "scaling"], ["k", "scaled by"], columns, shown={"scaling": IN_WORDS}
    )
    return made(dataset.sel(activation="relu", scaling=list(SCALED)))


BACKBONE_TABLE = Table(
    "backbone table",
    'm plain layers below K blocks ("init", k = 1), label term in theory; printed: those of (m + K)^(-3/2) '
    "(Zhang et al. 2026)",
    ["activation", "backbone"],
    "backbone",
    [_backbone_column(count) for count in COUNTS],
    key=lambda activation, backbone: f"{activation}, {backbone}",
)


def _notes(dataset: xr.Dataset) -> str:
    blocks = dataset["blocks"].values
    rule = np.gradient(log_path_sum_scale(blocks), np.log(blocks))
    local_slopes = ", ".join(f"{slope:.1f} at {count}" for slope, count in zip(rule, blocks, strict=True))
    notes = [
        f"PathSum's rule (k = 1) has local slopes {local_slopes} blocks: no power law.",
        heavy_tail_notes(dataset.sel(scaling=list(SCALED)), (LABEL_SCALE, WHOLE)),
        "Without scaling the stream doubles at every block, and at large K rare draws make the means.",
    ]
    return "\n".join(filter(None, notes))


def _printed_net(dataset: xr.Dataset) -> str:
    depths = dataset["papers_blocks"].values
    law = fit_power_law(depths, np.exp(dataset["papers_net_log_scale"].values))
    trained = ", ".join(f"{slope:.3f}" for slope in TABLE_1["ResNet"])
    return (
        "The ResNet of Zhang et al. 2026 (stem, one 3x3 convolution per block, 64 channels, init), label term by the "
        f"mean field:\nslope {law.exponent:.3f} over {depths[0]} .. {depths[-1]} blocks; of tuned rates (table 1): "
        f"{trained}"
    )


STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    compiles="40 s",
    arrays=True,
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=Report(
        question="Does eta* of residual nets initialised with variance 1/K fall as K^(-3/2) in the blocks K?",
        answer=_answer,
        heading="ResidualMLP: width {width}, outputs {outputs}, K blocks, no plain layers; {draws} draws for each "
        f"net, seed {{seed}}\n{ETA}",
        brief=_brief_table,
        steps=[
            ("--blocks 16 32 64 128", "deeper nets, whose slopes are nearer to their limits"),
            ("--preset paper", "256 blocks of width 1024, 512 draws: small errors, in 20 minutes"),
        ],
        parts=[SCALE_TABLE, SLOPE_TABLE, _notes, BACKBONE_TABLE, _printed_net],
        findings=JUDGES.findings,
        words=WORDS,
    ),
    claims=CLAIMS,
)

if __name__ == "__main__":
    run_as_command(NAME)
