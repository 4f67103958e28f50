"""Coordinate check of GPT-like nets: the size of features after ten steps, against width and depth, by table.

Pre-norm Transformers of characters, causal, rotary, with GELU, learn to predict the next character of English text, as
in figures 1, 3, 5, 6 and 8 of Zheng et al. 2026, with and without layer normalisation. |h_L| is the root mean square of
the stream behind the last block, on the batch that every step takes. Three tables start from one base model: those for
blocks of k >= 2 layers (condition 3.1: many) and of k = 1 (condition B.1: one), and the standard parameterization. The
base model is 64 channels wide and 2 blocks deep, with heads of 16 (the paper: 256, 4 and 64), and its streams are O(1).
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from meanfield import Chain
from meanfield.execution import Run
from meanfield.nets import with_hyperparameters
from meanfield.simulation import TrainedFeatures
from meanfield.verification import (
    OFF,
    Check,
    Claim,
    Contest,
    Deviation,
    Finding,
    Judges,
    Kind,
    LadderRow,
    LadderSlope,
    Ruling,
    Verdict,
    against_conditions,
    of_rival,
)
from sims.common.blocks import (
    BASE_SCALES,
    BASE_WIDTH,
    DIRECTIONS,
    LADDER_OPTIONS,
    PRECISION,
    SOAP_EPSILON_OPTION,
    TABLES,
    TABLES_OPTION,
    Values,
    Watched,
    at_places,
    checked_ladders,
    given_soap_epsilon,
    hyperparameters,
    measure_ladders,
    rungs,
    trained_in,
    training_precision,
    worded,
)
from sims.common.command import Option, Preset
from sims.common.datasets import Variable
from sims.common.gpts import require_whole_heads, text_net
from sims.common.images import TEXT
from sims.common.report import Report, answer
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import Column, Grid, Table, number, slope
from sims.common.training_data import training_data

NAME = "transformer_coordinate_check"
LISTED = "how far GPT-like nets move in a few steps, table by table"

# What is asked for.

OPTIONS = (
    *LADDER_OPTIONS,
    Option(
        "normalisations",
        "layer, rms or none (default: layer none)",
        default=["layer", "none"],
        metavar="NAME",
        many="+",
        check=lambda _, given: list(dict.fromkeys(given)),
        group="nets",
    ),
    Option("tokens", "characters of a window", int, metavar="T", group="training"),
    Option("samples", "windows of a batch, of which every draw has one of its own", int, metavar="B", group="training"),
    Option("steps", "steps of training on that batch", int, group="training"),
    Option(
        "curvature",
        "of Sophia: from one character drawn at every place (sampled, default), as in practice, or exact",
        default="sampled",
        choices=("sampled", "exact"),
        group="training",
    ),
    SOAP_EPSILON_OPTION,
    PRECISION,
    TABLES_OPTION,
)
# As the paper trains in its figure 1: Muon-Kimi for hidden matrices, AdamW for all else.
HYBRID = "muon_kimi-adamw"
PRESETS = {
    "smoke": Preset(
        "5 s",
        **{"optimizers": [HYBRID], "widths": [16, 32, 64], "depths": [1, 2, 4], "width": 32, "depth": 1},
        **{"tokens": 8, "samples": 4, "draws": 4, "steps": 3},
    ),
    "default": Preset(
        "30 s",
        **{"optimizers": [HYBRID], "widths": [32, 48, 64, 128], "depths": [2, 3, 5, 16], "width": 32, "depth": 2},
        **{"tokens": 16, "samples": 4, "draws": 24, "steps": 10},
    ),
    "paper": Preset(
        "6 h",
        optimizers=[HYBRID, "muon-adamw", "shampoo-adamw", "sophia", "adamw"],
        **{"widths": [64, 128, 256, 512, 1024], "depths": [2, 4, 8, 16, 32, 64], "width": 64, "depth": 4},
        **{"tokens": 64, "samples": 8, "draws": 24, "steps": 10},
    ),
}

# Which nets.

# The base model has the variances of `text_net` at its width, and its outputs are not multiplied.
BASE_VALUES = {(role, "initial_variance"): 1.0 for role in BASE_SCALES} | {("output", "block_multiplier"): 1.0}


def values_of(optimizer: str, table: str, width: int, depth: int, **soap_epsilon: Any) -> Values:
    """role -> hyperparameters by a table; of variances, the factors on those of the base model. No weight decay."""
    return hyperparameters(optimizer, table, width, depth, own=BASE_VALUES, **soap_epsilon)


def net_under(given: Values, width: int, depth: int, normalisation: str, **sizes: Any) -> Chain:
    """The same with the multipliers and variances that a table gives."""
    net, base = (text_net(own, depth, normalisation, **sizes) for own in (width, BASE_WIDTH))
    return with_hyperparameters(net, base, given)


# What is measured.

VARIABLES = (Variable("normalisation", "normalisation before every branch"),)
# Windows of text, from which every draw takes its batch.
WINDOWS = 64
# What all numbers of a run depend on besides the ladders.
OWN = ("tokens", "samples", "steps", "tables", "normalisations", "curvature")


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The ladders, tables, normalisations and batches; every net is made once, so that none is refused later."""
    described = checked_ladders(options, *OWN) | given_soap_epsilon(options.soap_epsilon, options.optimizers)
    for size in {size for along in DIRECTIONS for size in rungs(options, along)}:
        require_whole_heads(size[0])
        for normalisation in options.normalisations:
            text_net(*size, normalisation, **_batch(options))
    return {"described": described}


def _batch(options: argparse.Namespace) -> dict[str, int]:
    return {"tokens": options.tokens, "inputs": options.samples}


def measure(options: argparse.Namespace, results: Results, described: dict[str, Any]) -> xr.Dataset:
    """The stream, its change and the outputs' change, by size, draw and step."""
    sizes = _batch(options)
    net = text_net(options.width, options.depth, options.normalisations[0], **sizes)
    inputs, targets = training_data(TEXT, net, samples=WINDOWS * options.samples, seed=options.seed)
    how = {"steps": options.steps, "sampled_curvature": options.curvature == "sampled"}
    training = partial(TrainedFeatures, momentum=True, inputs=inputs, targets=targets, **how)

    soap_epsilon = given_soap_epsilon(options.soap_epsilon, options.optimizers)

    def run_of(normalisation: str, optimizer: str, table: str, width: int, depth: int) -> Run:
        given = values_of(optimizer, table, width, depth, **soap_epsilon)
        net = net_under(given, width, depth, normalisation, **sizes)
        precision = training_precision(options, optimizer)
        measure = training(optimizer=optimizer, hyperparameters=given, precision=precision)
        return Run(net, measure, options.draws, options.seed)

    axes = {name: getattr(options, f"{name}s") for name in ("normalisation", "optimizer", "table")}
    dataset = measure_ladders(options, results, run_of, lambda _: axes, at_places)
    return dataset.assign_coords(step=range(options.steps + 1)).assign_attrs(worded(described))


# What is claimed, and what decides it.

# The least slope that is called growth: a doubling over a sixteenfold size.
GROWTH = 0.25
WITH = {"layer": "With LayerNorm", "rms": "With RMS normalisation", "none": "Without normalisation"}

JUDGES = Judges()


def watched(dataset: xr.Dataset) -> list[Watched]:
    """The stream behind the last block before training; after it, that stream, its change and the outputs' change."""
    last = int(dataset["step"].values[-1])
    features = [Watched("feature_norm", step, "place", "last") for step in (0, last)]
    return [*features, Watched("feature_update_norm", last, "place", "last"), Watched("output_update_norm", last)]


def features_slope(dataset: xr.Dataset, normalisation: str, optimizer: str, table: str, direction: str) -> LadderSlope:
    """Of |h_L| after the last step."""
    at = dataset.sel(normalisation=normalisation)
    return watched(dataset)[1].slope(at, optimizer, table, direction)


def findings(dataset: xr.Dataset) -> list[Finding]:
    """Of every normalisation and table that was run."""
    tables, norms = (set(map(str, dataset[name].values)) for name in ("table", "normalisation"))
    judged = []
    for norm in (norm for norm in WITH if norm in norms):
        directions = DIRECTIONS if norm == "layer" else ("depth",)
        judged += [judge_flat(dataset, norm, "many", directions)] if "many" in tables else []
        judged += [judge_growth(dataset, norm, directions)] if "standard" in tables else []
        judged += [judge_flat(dataset, norm, "one", ("depth",))] if "one" in tables else []
    return judged


@JUDGES.decide(
    claim="{norm} the {title} keeps |h_L| flat in {ways} over {steps} steps",
    rival="{norm} |h_L| grows or falls under the {title} in {ways} over {steps} steps, by half a power or more",
    measured="slopes of |h_L| after the last step in the limit of large sizes, by a fit with a term in 1 / size",
)
def judge_flat(
    dataset: xr.Dataset, normalisation: str, table: str, directions: Sequence[str] = DIRECTIONS
) -> Contest | Ruling:
    rows = _rows(dataset, normalisation, table, directions)
    words = _words(dataset, normalisation, directions) | {"title": TABLES[table]}
    if any(np.isnan(row.slope.settled) for row in rows):
        return Ruling(Verdict.REFUTED, "some nets leave the range of floats", words)
    claim, rival = against_conditions(rows)
    shown = ", ".join(
        f"{row.slope} ({row.optimizer}, {row.direction}; allowance {row.slope.allowance:.3f})" for row in rows
    )
    return Contest(claim, rival, apart=OFF, gaussian=True, comparisons=len(rows)).saying(f"slopes {shown}", **words)


@JUDGES.decide(
    claim="{norm} |h_L| grows in {ways} over {steps} steps of the standard parameterization, as a quarter power or "
    "faster",
    brief="{norm} |h_L| grows in {ways} in the standard parameterization",
    rival="it does not grow",
    measured="slopes of |h_L| after the last step, of a straight line and in the limit of large sizes",
)
def judge_growth(dataset: xr.Dataset, normalisation: str, directions: Sequence[str] = DIRECTIONS) -> Contest | Ruling:
    """Growth is what both slopes show, and no growth what neither does: where |h_L| rises and falls again they
    disagree.
    """
    rows = _rows(dataset, normalisation, "standard", directions)
    words = _words(dataset, normalisation, directions)
    slopes, stderr = (
        np.array([[getattr(row.slope, fit + end) for row in rows] for fit in ("plain", "settled")])
        for end in ("", "_stderr")
    )
    if np.isnan(slopes).any():
        return Ruling(Verdict.CONFIRMED, "most nets leave the range of floats", words)
    steeper = slopes.argmax(axis=0), range(len(rows))
    claim = Deviation(np.maximum(GROWTH - slopes[steeper], 0.0), stderr[steeper])
    slowest = np.unravel_index(np.argmin(slopes / stderr), slopes.shape)
    rival = Deviation(max(slopes[slowest], 0.0), stderr[slowest])
    shown = ", ".join(
        f"{row.slope.plain:+.2f} +- {row.slope.plain_stderr:.2f}, in the limit {row.slope} ({row.optimizer}, "
        f"{row.direction})"
        for row in rows
    )
    disagree = np.any((slopes.max(axis=0) >= GROWTH) & (slopes.min(axis=0) < 0))
    note = "; one rises and the other falls, as of no power of the size" if disagree else ""
    made = Contest(claim, rival, apart=GROWTH, comparisons=slopes.size, gaussian=True, note=note)
    return made.saying(f"slopes {shown}", **words)


def _rows(dataset: xr.Dataset, normalisation: str, table: str, directions: Sequence[str]) -> list[LadderRow]:
    return [
        LadderRow("|h_L|", along, features_slope(dataset, normalisation, name, table, along), optimizer=name)
        for name, along in product(map(str, dataset["optimizer"].values), directions)
    ]


def _words(dataset: xr.Dataset, normalisation: str, directions: Sequence[str]) -> dict[str, str]:
    steps = str(dataset.attrs["steps"])
    return {"norm": WITH[normalisation], "ways": " and ".join(directions), "steps": steps}


# The paper's main example without arguments, on nets with LayerNorm and without; and AdamW for all weights.
ADAMW = ("--optimizers", "adamw", "--normalisations", "layer")
# The examples of its appendix.
APPENDIX = tuple(
    ("--optimizers", name, "--normalisations", "layer", "--tables", "many", "standard")
    for name in ("muon-adamw", "shampoo-adamw", "sophia")
)
OF_APPENDIX = (
    "the optimizers of figures 5, 6 and 8; Sophia, as it is run in practice, takes the curvature at drawn labels"
)
HYPOTHESES = "nets of characters, 32 to 128 channels wide and 2 to 16 blocks deep, ten steps on one batch"
FIGURE_1 = "figure 1 is of Muon-Kimi with AdamW; AdamW for all weights (table 6) is ours"
UNNORMALISED = "Zheng et al. 2026, section 5.4, figure 3, read as the check of figure 1 without LayerNorm"


def _checks(judge: Callable[..., Finding], *runs: tuple[str, ...], **how: Any) -> tuple[Check, ...]:
    return tuple(Check(NAME, partial(judge, **how), arguments) for arguments in runs)


def _not_flat(dataset: xr.Dataset, normalisation: str, table: str, directions: Sequence[str]) -> Finding:
    return of_rival(partial(judge_flat, normalisation=normalisation, table=table, directions=directions))(dataset)


CLAIMS = (
    Claim(
        id="S11a",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, section 5.2, figure 1 (a, b)",
        statement="GPT-like nets with LayerNorm, Muon-Kimi with AdamW and AdamW alone: under condition 3.1 ten steps "
        "keep |h_L| flat in width and depth",
        brief="GPT-like nets, Muon-Kimi and AdamW: condition 3.1 keeps |h_L| flat in all sizes",
        printed='"muP maintains stable and scale-invariant feature scales, consistent with Principle 2.1" (section '
        "5.2)",
        hypotheses=f"{FIGURE_1}; {HYPOTHESES}",
        checks=_checks(judge_flat, (), ADAMW, normalisation="layer", table="many"),
    ),
    Claim(
        id="S11b",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, section 5.2, figure 1 (a, b)",
        statement="GPT-like nets with LayerNorm, Muon-Kimi with AdamW and AdamW alone: in the standard "
        "parameterization |h_L| grows with width and depth",
        brief="GPT-like nets, Muon-Kimi and AdamW: |h_L| grows with all sizes by the standard",
        printed='"under SP, the feature scale grows rapidly with both width and depth" (section 5.2)',
        hypotheses=f"{FIGURE_1}; {HYPOTHESES}",
        checks=_checks(judge_growth, (), ADAMW, normalisation="layer"),
    ),
    Claim(
        id="S11c",
        kind=Kind.READING,
        source=UNNORMALISED,
        statement="GPT-like nets without LayerNorm, Muon-Kimi with AdamW: under condition 3.1 ten steps keep |h_L| "
        "flat in depth",
        brief="GPT-like nets without LayerNorm: condition 3.1 keeps |h_L| flat in depth",
        printed='"we remove LayerNorm layers and repeat the depth-scaling experiments ... muP remains stable even at '
        'large depths (L = 256)" (section 5.4)',
        hypotheses=f"Muon-Kimi with AdamW; {HYPOTHESES}",
        checks=_checks(judge_flat, (), normalisation="none", table="many", directions=("depth",)),
    ),
    Claim(
        id="S11d",
        kind=Kind.READING,
        source=UNNORMALISED,
        statement="GPT-like nets without LayerNorm, Muon-Kimi with AdamW: in the standard parameterization |h_L| grows "
        "with depth",
        brief="GPT-like nets without LayerNorm: |h_L| grows with depth by the standard",
        printed='"SP becomes increasingly prone to loss divergence as depth increases in the absence of LayerNorm" '
        "(figure 3)",
        hypotheses="a reading: the sentence is about losses, of which S10r speaks. Of the default's nets |h_L| is 2.9, "
        f"5.5, 10.4 and 7.7 at 2, 3, 5 and 16 blocks, no power of L; Muon-Kimi with AdamW; {HYPOTHESES}",
        checks=_checks(judge_growth, (), normalisation="none", directions=("depth",)),
        undecided="after ten steps |h_L| rises and falls over depths, by no power: the claim has no exponent to hold",
    ),
    Claim(
        id="S11e",
        kind=Kind.READING,
        source="Zheng et al. 2026, takeaway 3, read as a statement on the check of figure 1",
        statement="GPT-like nets with LayerNorm, Muon-Kimi with AdamW and AdamW alone: under condition B.1 (k = 1) ten "
        "steps do not keep |h_L| flat in depth",
        brief="GPT-like nets, Muon-Kimi and AdamW: B.1 does not keep |h_L| flat in depth",
        printed='"scaling from Condition 3.1 ... achieves stable feature learning and robust HP transfer ... '
        'Depth-muP-style scaling from Condition B.1 (k = 1) often fail" (takeaway 3)',
        hypotheses="a reading: the paper makes this check under condition 3.1 and by the standard alone, and shows "
        f"by rates (figure 2) what condition B.1 loses; {FIGURE_1}; {HYPOTHESES}",
        checks=_checks(_not_flat, (), ADAMW, normalisation="layer", table="one", directions=("depth",)),
        replaced_by="|h_L| is flat in depth under conditions 3.1 and B.1 alike: the check does not tell them apart",
        premise="what condition B.1 loses, the second order of updates (S5c), is seen in the size of features",
    ),
    Claim(
        id="S11f",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, appendix E, figures 5, 6 and 8 (a, b)",
        statement="GPT-like nets with LayerNorm, Muon and Shampoo, each with AdamW, and Sophia: under condition 3.1 "
        "ten steps keep |h_L| flat in width and depth",
        brief="GPT-like nets, Muon, Shampoo, Sophia: 3.1 keeps |h_L| flat in all sizes",
        printed='"Across these optimizer settings, ... the muP formulation from Condition 3.1 (k >= 2) keeps the '
        'final-block feature norm approximately scale-invariant" (appendix E.2)',
        hypotheses=f"{OF_APPENDIX}; {HYPOTHESES}",
        checks=_checks(judge_flat, *APPENDIX, normalisation="layer", table="many"),
    ),
    Claim(
        id="S11g",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, appendix E, figures 5, 6 and 8 (a, b)",
        statement="GPT-like nets with LayerNorm, Muon and Shampoo, each with AdamW, and Sophia: in the standard "
        "parameterization |h_L| grows with width and depth",
        brief="GPT-like nets, Muon, Shampoo, Sophia: |h_L| grows with all sizes by the standard",
        printed='"Across these optimizer settings, ... SP exhibits feature-scale growth under width or depth '
        'scaling" (appendix E.2)',
        hypotheses=f"{OF_APPENDIX}; {HYPOTHESES}",
        checks=_checks(judge_growth, *APPENDIX, normalisation="layer"),
    ),
)


# What is printed.

WORDS = {
    "k >= 2 table": "that of Zheng et al. 2026 for blocks of two and more layers (condition 3.1).",
    "k = 1 table": "that of Zheng et al. 2026 for blocks of one layer (condition B.1).",
    "standard": "the parameterization in which no hyperparameter scales with width or depth.",
    "h_L": "the stream behind the last block, before the last normalisation; f: the outputs, of every character.",
    "Delta": "the change since training began, on the batch of the steps.",
}
CURVATURES = {
    "sampled": "from one character drawn at every place (Liu et al. 2024), as in practice",
    "exact": "from all characters at every place, as an exact sum",
}


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    optimizer, norm = (str(dataset[name].values[0]) for name in ("optimizer", "normalisation"))
    run = [name for name in TABLES if name in dataset["table"].values]
    slopes = [features_slope(dataset, norm, optimizer, name, "depth").plain for name in run]
    by_table = (f"{TABLES[name]} {value:+.2f}" for name, value in zip(run, slopes, strict=True))
    return answer(findings[:1], f"slopes in L: {', '.join(by_table)}")


def _training(dataset: xr.Dataset) -> str:
    """In which precision nets trained, and how Sophia and SOAP were run, where they were."""
    precision = f"Nets trained in {trained_in(dataset.attrs)}."
    has_sophia = any("sophia" in str(name).split("-") for name in dataset["optimizer"].values)
    curvature = f" Sophia takes its curvature {CURVATURES[dataset.attrs['curvature']]}."
    epsilon = dataset.attrs.get("soap_epsilon")
    soap = "" if epsilon is None else f" SOAP's epsilon is {epsilon:g} in the base model."
    return precision + curvature * has_sophia + soap


def _slopes(dataset: xr.Dataset) -> list[Grid]:
    """A table for every normalisation and ladder: a line for every optimizer and table."""
    return [
        _slope_table(dataset.sel(normalisation=norm), direction, WITH[norm])
        for norm in map(str, dataset["normalisation"].values)
        for direction in DIRECTIONS
    ]


def _slope_table(dataset: xr.Dataset, direction: str, words: str) -> Grid:
    def column(of: Watched) -> Column:
        def cell(at: xr.Dataset) -> str:
            law = of.slope(dataset, str(at["optimizer"].values), str(at["table"].values), direction)
            return f"{slope(law.settled, law.settled_stderr)} ({law.plain:+.2f})"

        return Column(f"{of.symbol}, step {of.step}", cell)

    dims, columns = ["optimizer", "table"], [column(of) for of in watched(dataset)]
    return Table("slopes", f"{words}: slopes in {direction}", dims, dims, columns, shown={"table": TABLES})(dataset)


def _sizes(dataset: xr.Dataset) -> list[Grid]:
    """|h_L| after the last step, mean over draws, a table for every ladder."""
    return [_size_table(dataset, direction) for direction in DIRECTIONS]


def _size_table(dataset: xr.Dataset, direction: str) -> Grid:
    name = f"feature_norm_by_{direction}"
    means = dataset[[name]].sel(place="last").isel(step=-1).mean("draw", skipna=False)

    def column(size: int) -> Column:
        return Column(f"{direction} {size}", lambda at: number(float(at[name].sel({direction: size}))))

    title = f"|h_L| after {dataset.attrs['steps']} steps in {direction}"
    dims, columns = ["normalisation", "optimizer", "table"], [column(size) for size in dataset[direction].values]
    return Table("sizes", title, dims, ["norm", *dims[1:]], columns, shown={"table": TABLES})(means)


STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=Report(
        question="Does the k >= 2 table keep features of GPT-like nets flat in width and depth?",
        answer=_answer,
        heading="Characters of English text: {samples} windows of {tokens}, {steps} steps on them; {draws} draws, seed "
        "{seed}\nwidths {widths} at L = {depth} blocks, L = {depths} at width {width}; no weight decay\n"
        "slope s of log y = a + s log x + c / x, draw by draw; in brackets that of a straight line",
        parts=[_training, _slopes, _sizes],
        findings=findings,
        words=WORDS,
    ),
    claims=CLAIMS,
)

if __name__ == "__main__":
    run_as_command(NAME)
