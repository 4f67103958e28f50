"""Coordinate check: how far nets move in a few steps, against width and depth, for every hyperparameter table.

Nets of L blocks of k matrices are trained, with one optimizer at a time or a hybrid of two, momentum, weight decay
and epsilon included. Every role has the table of the optimizer that steps it. All sizes are root mean squares over
units and samples: of the stream h_0, h_(L/2), h_L and its change since before the first step, of the change of the
outputs f, and of what input, hidden and output weights change alone. Three tables start from one base model: those of
Zheng et al. 2026 for blocks of k >= 2 layers (condition 3.1: many) and of k = 1 (condition B.1: one), and the
standard parameterization.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import Array
from meanfield.execution import Run
from meanfield.optimizers import HYBRIDS
from meanfield.parameterizations import OPTIMIZER_NAMES
from meanfield.simulation import TrainedStreams
from meanfield.verification import (
    OFF,
    Bands,
    Check,
    Claim,
    Contest,
    Finding,
    Judges,
    Kind,
    LadderRow,
    Ruling,
    Verdict,
    against_conditions,
    ladder_slope,
    ladder_values,
    of_all,
    of_rival,
)
from sims.common.blocks import (
    ACTIVATION,
    BIAS_OF,
    BLOCK_OPTIONS,
    DEFAULT,
    DIRECTIONS,
    NETS,
    PAPER,
    PRECISION,
    SMOKE,
    SOAP_EPSILON_OPTION,
    TABLES,
    TABLES_OPTION,
    Values,
    at_places,
    base_option,
    batch_options,
    block_net,
    given_soap_epsilon,
    hyperparameters,
    measure_ladders,
    own_values,
    planned_ladders,
    require_rate,
    run_under,
    trained_in,
    watched,
    worded,
)
from sims.common.command import Option, Preset
from sims.common.report import Document, answer, more_draws
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import Column, Grid, Table, number, slope, table

NAME = "coordinate_check"
LISTED = "how far nets move in a few steps, for every hyperparameter table"

OPTIONS = (
    *BLOCK_OPTIONS,
    *batch_options(),
    ACTIVATION,
    Option("steps", "steps of training (default: 10; smoke: 2)", int, group="training"),
    TABLES_OPTION,
    Option("biases", "biases beside input and hidden matrices, which start at 0", flag=True, group="training"),
    base_option("hidden.learning_rate=0.02"),
    SOAP_EPSILON_OPTION,
    PRECISION,
    Option("plain", "no weight decay and negligible epsilons (default: such as matter)", flag=True, group="training"),
)
# All tables of all optimizers are judged on these.
SMALL: dict[str, Any] = {"widths": [32, 48, 64, 96, 256], "width": 64, "depth": 2}
PRESETS = {
    "smoke": Preset("5 s", **SMOKE | {"optimizers": ["sgd", "adamw", "muon"], "draws": 6, "steps": 2}),
    "default": Preset("20 s", **DEFAULT | SMALL, draws=20, steps=10, optimizers=["muon_kimi"]),
    "paper": Preset("20 min", **PAPER, draws=32, steps=10),
}


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The ladders, tables, steps and batches; values that make no net are refused."""
    described = planned_ladders(options, "steps", "tables", "base", *NETS)
    described |= given_soap_epsilon(options.soap_epsilon, options.optimizers)
    for optimizer in options.optimizers:
        values = values_of(options, optimizer, "standard", options.width, options.depth)
        block_net(values, options.width, options.depth, biases=options.biases)
    return {"described": described | {"plain": int(options.plain), "biases": int(options.biases)}}


def values_of(options: argparse.Namespace, optimizer: str, table: str, width: int, depth: int) -> Values:
    """By a table, with base values of roles as given, and biases that start at 0 (Zheng et al. 2026, appendix E)."""
    own = own_values(options.base)
    if options.biases:
        own = {(role, "initial_variance"): 0.0 for role in BIAS_OF} | own
    how: dict[str, Any] = {"rate": options.rate, "acting": not options.plain, "biases": options.biases, "own": own}
    soap_epsilon = given_soap_epsilon(options.soap_epsilon, options.optimizers)
    return hyperparameters(optimizer, table, width, depth, **how, **soap_epsilon)


def measure(options: argparse.Namespace, results: Results, described: dict[str, Any]) -> xr.Dataset:
    """Streams, outputs and who changes them, by optimizer, table, size, draw and step, over both ladders."""
    require_rate(options)

    def run_of(optimizer: str, table: str, width: int, depth: int) -> Run:
        given = values_of(options, optimizer, table, width, depth)
        training = {"momentum": True, "steps": options.steps}
        return run_under(options, TrainedStreams, optimizer, given, width, depth, **training)

    axes = {"optimizer": options.optimizers, "table": options.tables}
    dataset = measure_ladders(options, results, run_of, lambda _: axes, at_places)
    return dataset.assign_coords(step=range(options.steps + 1)).assign_attrs(worded(described))


OTHER = {"one": "many", "many": "one"}
# Standard errors by which a wrong table must be away from flat; the sentences of the judges say so too.
AWAY = 5.0
# Changes at which a net stands still to rounding, or is about to leave the floats; a slope's error that is rounding.
# The share of draws that must have a net left for a size to count.
LIMITS, MOST = {"float64": (1e-14, 1e250), "float32": (1e-6, 1e30)}, 0.6
ROUNDING = 1e-9

# Entries of tables differ by halves and wholes: a wrong one is off by a root.
JUDGES = Judges()
# One alone, of the claim on the rank of updates.
RANKS = Judges()


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One finding per optimizer and table that was run."""
    each = product(map(str, dataset["optimizer"].values), judged_tables(dataset))
    return [
        judge_standard(dataset, name) if table == "standard" else judge_flat(dataset, name, table)
        for name, table in each
    ]


def judged_tables(dataset: xr.Dataset) -> list[str]:
    """Those that were run: the table of the net's own block depth, the other condition's, and none."""
    right = _right_table(dataset)
    return [table for table in (right, OTHER[right], "standard") if table in dataset["table"]]


def _right_table(dataset: xr.Dataset) -> str:
    return "one" if int(dataset.attrs["block_depth"]) == 1 else "many"


@JUDGES.decide(
    claim="The {title}s keep features, their changes and every role's share in them flat on blocks of k = {k}",
    rival="slopes of half a power or more",
    measured="slopes of them all over ladders of width and depth, after the first and the last step",
)
def judge_tables(dataset: xr.Dataset, optimizers: Sequence[str] = OPTIMIZER_NAMES) -> Ruling:
    return _of_table(dataset, optimizers, _right_table(dataset))


@JUDGES.decide(
    claim="The {title}s keep features, their changes and every role's share in them flat on {kind} blocks of k = {k}",
    rival="on {kind} blocks of k = {k} the {title}s leave features, their changes or a role's share in them a slope "
    "of half a power or more",
    measured="slopes of them all over ladders of width and depth, after the first and the last step",
)
def judge_other_tables(dataset: xr.Dataset, optimizers: Sequence[str] = OPTIMIZER_NAMES) -> Ruling:
    return _of_table(dataset, optimizers, OTHER[_right_table(dataset)])


@JUDGES.decide(
    claim="The standard parameterization keeps |Delta h_L| flat",
    rival="in the standard parameterization |Delta h_L| has slopes 5 s.e. or more from zero in width and in depth",
    measured="every draw's slope of |Delta h_L| after one step, of which the median is taken",
)
def judge_without_tables(dataset: xr.Dataset, optimizers: Sequence[str] = OPTIMIZER_NAMES) -> Ruling:
    return _of_each(dataset, optimizers, judge_standard, {})


def _of_table(dataset: xr.Dataset, optimizers: Sequence[str], table: str) -> Ruling:
    words = {"title": TABLES[table], "k": dataset.attrs["block_depth"], "kind": dataset.attrs["activation"]}
    return _of_each(dataset, optimizers, partial(judge_flat, table=table), words)


def _of_each(
    dataset: xr.Dataset, optimizers: Sequence[str], judge: Callable[..., Finding], words: dict[str, str]
) -> Ruling:
    """One ruling of those for every optimizer that was run."""
    run = {name: judge(dataset, name) for name in map(str, dataset["optimizer"].values) if name in optimizers}
    return of_all(run, optimizers, "optimizers", words)


@JUDGES.decide(
    claim="{optimizer}: the {title} keeps features, their changes and every role's share in them flat in width and "
    "depth",
    brief="{optimizer}: under the {title} features, changes and role shares stay flat",
    rival="slopes of half a power or more",
    measured="slopes in width and in depth of these and of the outputs' change, after the first and the last step",
)
def judge_flat(dataset: xr.Dataset, optimizer: str, table: str) -> Contest | Ruling:
    rows = [
        LadderRow(number.symbol, direction, number.slope(dataset, optimizer, table, direction), step=number.step)
        for direction, number in product(DIRECTIONS, watched(dataset))
    ]
    words = {"title": TABLES[table]}
    if any(np.isnan(row.slope.settled) for row in rows):
        lost = "none: no slope is left to be tilted"
        return Ruling(Verdict.REFUTED, "some nets leave the range of floats, or stand still", words, lost, lost)
    claim, rival = against_conditions(rows)
    hardest = rows[int(np.argmax(claim.excess))]
    made = Contest(claim, rival, apart=OFF, gaussian=True, comparisons=len(rows) * dataset.sizes["optimizer"])
    return made.saying(f"hardest {hardest.slope} ({hardest.where}), allowance {hardest.slope.allowance:.3f}", **words)


@JUDGES.decide(
    claim="{optimizer}: the standard parameterization keeps |Delta h_L| flat",
    rival="slopes 5 s.e. or more from zero in width and in depth",
    measured="every draw's slope of |Delta h_L| after one step, of which the median is taken",
)
def judge_standard(dataset: xr.Dataset, optimizer: str) -> Ruling:
    """Where features are large some draws are so sure of their labels that they stand still, others leave the
    floats, and what either makes of a mean says nothing of the rest.
    """
    away, slopes, least = [], [], 0.0
    for direction in DIRECTIONS:
        at = {"optimizer": optimizer, "table": "standard", "step": 1, "place": "last"}
        values = ladder_values(dataset, "feature_update_norm", direction, **at)
        limits = LIMITS[dataset.attrs.get("precision", "float64")]
        middle, stderr, gone = _middle_slope(dataset[direction].values, values, limits)
        away.append(abs(middle) / max(stderr, ROUNDING))
        least = max(least, Bands(AWAY, AWAY).sure * max(stderr, ROUNDING))
        lost = f" ({gone:.0%} of nets leave the floats or stand still)" if gone else ""
        # Growth is exponential, not a power: a straight line says how steep it is over this ladder.
        slopes.append(f"{middle:+.2f} +- {stderr:.2f} in {direction}{lost}")
    verdict = Verdict.REFUTED if np.min(away) > AWAY else Verdict.INCONCLUSIVE
    evidence = f"slope after one step {', '.join(slopes)}: {min(away):.0f} s.e. or more from flat"
    power = f"slopes of {least:.2g} in width and in depth are refuted"
    return Ruling(verdict, evidence, power=power, power_of_rival="none: flat slopes stay INCONCLUSIVE")


def _middle_slope(
    sizes: Array, values: Array, limits: tuple[float, float] = LIMITS["float64"]
) -> tuple[float, float, float]:
    """Median over draws of a straight line's slope, its error by the median distance from it, the share of lost nets.

    Lines are over sizes at which few nets are lost, and there over those that the draw has left; infinitely steep where
    fewer than three are. Normal numbers are half of them within 1/1.4826 of their spread, and their median scatters
    sqrt(pi/2) times as much as their mean.
    """
    finite = (values > limits[0]) & (values < limits[1])
    left = finite & (finite.mean(axis=1, keepdims=True) >= MOST)
    slopes = [
        np.polyfit(np.log(sizes[kept]), np.log(draw[kept]), 1)[0] if kept.sum() > 2 else np.inf
        for draw, kept in zip(values.T, left.T, strict=True)
    ]
    middle = np.median(slopes)
    spread = 1.4826 * np.median(np.abs(slopes - middle)) if np.isfinite(middle) else 0.0
    return float(middle), float(np.sqrt(np.pi / 2 / len(slopes)) * spread), float(1 - finite.mean())


# Optimizers that step every element by itself, of which the paper assumes it.
OF_ELEMENTS = ("sgd", "adamw", "lion", "sophia")


def rank_rows(dataset: xr.Dataset, optimizers: Sequence[str]) -> list[LadderRow]:
    """Slopes of the stable rank of input, hidden and output updates after the first and the last step."""
    rows, roles = [], list(map(str, dataset["role"].values))
    steps = dict.fromkeys((1, int(dataset["step"].values[-1])))
    for direction, optimizer, role, step in product(DIRECTIONS, optimizers, roles, steps):
        at = {"optimizer": optimizer, "role": role, "step": step, "table": dataset["table"].values[0]}
        law = ladder_slope(dataset[direction].values, ladder_values(dataset, "stable_rank", direction, **at))
        rows.append(LadderRow("stable rank", direction, law, optimizer, role, step))
    return rows


@RANKS.decide(
    claim="Updates of {optimizers} have a stable rank |A|_F^2 / |A|_2^2 that neither width nor depth changes",
    source="assumption C.1, eq. 15",
    rival="it grows or falls as the root of one of them",
    measured="slopes of the stable rank in width and in depth, of input, hidden and output weights, after the first and"
    " the last step",
)
def judge_ranks(dataset: xr.Dataset) -> Contest:
    optimizers = [name for name in map(str, dataset["optimizer"].values) if name in OF_ELEMENTS]
    rows = rank_rows(dataset, optimizers)
    claim, rival = against_conditions(rows)
    hardest = rows[int(np.argmax(claim.excess))]
    law = hardest.slope
    largest = max(float(dataset[f"stable_rank_by_{direction}"].max()) for direction in DIRECTIONS)
    made = Contest(claim, rival, apart=OFF, gaussian=True, comparisons=len(rows))
    shown = f"{len(rows)} slopes, hardest {law} ({hardest.where}), allowance {law.allowance:.3f}; largest {largest:.1f}"
    batch = f"{dataset.attrs['samples']} samples and {dataset.attrs['outputs']} outputs"
    return made.saying(f"{shown} for {batch}", optimizers=", ".join(optimizers))


# Steps that are as large as the gradient (SGD), and those of AdamW and Shampoo, scatter more from draw to draw than
# others. SSO is flat for five steps, as the sphere holds its input weights down from then on, in wide nets earlier.
STEADY = ("muon", "muon_kimi", "soap", "lion", "sophia")
SSO_STEPS = ("--steps", "5")
# At k = 1 Lion nears its limit slowly: a plain slope of |Delta h_L| is 0.07 over 4 .. 64 blocks, 0.03 over 16 .. 256.
DEEPER = ("--depths", "4", "6", "16", "24", "64")


def flatness(
    table: str, optimizers: tuple[str, ...], *arguments: str, judge: Callable[..., Finding] = judge_tables
) -> Check:
    """Of these optimizers, over many steps."""
    decide = partial(judge, optimizers=optimizers)
    decided = of_rival(decide) if judge is judge_other_tables else decide
    return Check(NAME, decided, ("--tables", table, "--optimizers", *optimizers, *arguments))


# All tables for k >= 2 but SGD's, on k = 2; and every table for k = 1.
OF_MANY_LAYERS = (
    flatness("many", STEADY),
    flatness("many", ("adamw",), "--times", "2"),
    flatness("many", ("shampoo",), "--times", "2"),
    flatness("many", ("sso",), *SSO_STEPS),
)
OF_SGD = flatness("many", ("sgd",), "--times", "4")
OF_ONE_LAYER = (
    flatness("one", ("muon_kimi", "muon", "sophia"), "--block-depth", "1"),
    flatness("one", ("lion", "soap"), "--block-depth", "1", *DEEPER),
    flatness("one", ("adamw",), "--block-depth", "1", "--times", "3"),
    flatness("one", ("sgd",), "--block-depth", "1", "--times", "4"),
    flatness("one", ("shampoo",), "--block-depth", "1", "--times", "2"),
    flatness("one", ("sso",), "--block-depth", "1", *SSO_STEPS),
)
# The hybrids that the paper trains.
OF_HYBRIDS = (
    flatness("many", HYBRIDS, "--times", "2"),
    flatness("one", HYBRIDS, "--block-depth", "1", "--times", "2"),
)


def standard(optimizers: tuple[str, ...], *words: str) -> Check:
    """Without a table, of which one step is enough."""
    judge = of_rival(partial(judge_without_tables, optimizers=optimizers))
    return Check(NAME, judge, ("--tables", "standard", "--steps", "1", "--optimizers", *words))


def _other_table(*arguments: str) -> Check:
    """The table for k = 1 on blocks of two layers, of one optimizer."""
    return flatness("one", ("muon",), *arguments, judge=judge_other_tables)


OF_RANKS = ("--tables", "many", "--optimizers", *OF_ELEMENTS, "--times", "2")
# Outputs of a linear net bound the rank of its gradients, four of them here; masks of ReLU lift that to the samples.
RELU = ("--activation", "relu")
# What the default preset runs.
SIZES = "on eight samples and four outputs, widths 32 .. 256 and 2 .. 32 blocks"

CLAIMS = (
    Claim(
        id="S5a",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, principle 2.1, tables 3-7 and 9-13",
        statement="under its own block depth every table keeps features, their changes, the outputs' change and what "
        "input, hidden and output weights change alone flat in width and depth, with weight decay and epsilons, over "
        "ten steps (SSO: over five; SOAP: with an epsilon of 0.002 in the base model)",
        brief="under its own block depth every table keeps nets flat in width and depth",
        printed='"muP aims to realize scale-invariant feature learning while maximizing the feature change induced by '
        'parameter updates" (principle 2.1)',
        hypotheses="one step on one sample, linear blocks, no momentum; checked with all nine optimizers at k = 2 and "
        f"k = 1 over ten steps with momentum, {SIZES} (Lion and SOAP at k = 1: 4 .. 64, chosen after shorter ladders "
        "left them undecided); SSO over five steps, as after ten the change of its features falls as n^(-0.16 +- "
        "0.04) (docs/findings.md). SSO keeps the norm with which weights begin, as the output variance of tables 7 and "
        "13 lies off the sphere of appendix C.11 by a factor n (S13). SOAP's epsilon has no row in the paper: "
        "at 1e-5 as many draws do not decide, and at 1e-8, its usual value, nets leave the range of floats (S5l)",
        checks=(*OF_MANY_LAYERS, OF_SGD, *OF_ONE_LAYER, standard(OPTIMIZER_NAMES, "all")),
    ),
    Claim(
        id="S5h",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, section 5.1, figures 1, 5, 6",
        statement="hybrids of Muon-Kimi, Muon or Shampoo on hidden matrices and AdamW on all else, every role by the "
        "table of its own, keep features and their changes flat in width and depth, and without tables they do not",
        brief="hybrids of a matrix optimizer and AdamW keep flat by tables, and not without",
        printed='"SP exhibits feature-scale growth under width or depth scaling, whereas ... Condition 3.1 (k >= 2) '
        'keeps the final-block feature norm approximately scale-invariant" (appendix E.2)',
        hypotheses="linear blocks of k = 2 and k = 1 layers with weight decay and epsilons in place of the paper's "
        f"Transformers; ten steps with momentum, {SIZES}",
        checks=(*OF_HYBRIDS, standard(HYBRIDS, *HYBRIDS)),
    ),
    Claim(
        id="S5b",
        kind=Kind.READING,
        source="Zheng et al. 2026, takeaway 3, section 5.3",
        statement="with ReLU behind every matrix, on blocks of k = 2 layers, the table for k = 1 does not keep "
        "features, their changes and every role's share in them flat (which is not the block depth's doing: with ReLU "
        "it fails at k = 1 as well, S2b)",
        brief="with ReLU behind every matrix, at k = 2, the table for k = 1 does not keep flat",
        printed='"scaling from Condition 3.1 ... achieves stable feature learning and robust HP transfer ... '
        'Depth-muP-style scaling from Condition B.1 (k = 1) often fail" (takeaway 3)',
        hypotheses="the paper shows it on Transformers; checked with Muon on nets of eq. 28, where |h_L| grows with "
        f"the depth already before training, as outputs of ReLU have a mean (S2b). Ten steps, {SIZES}",
        checks=(_other_table("--activation", "relu"),),
    ),
    Claim(
        id="S5i",
        kind=Kind.READING,
        source="Zheng et al. 2026, takeaway 3, read as a statement on the linear nets of eq. 2",
        statement="in linear nets of blocks of k = 2 layers the table for k = 1 does not keep features, their changes "
        "and every role's share in them flat",
        brief="in linear nets of blocks of k = 2 the table for k = 1 does not keep flat",
        printed='"scaling from Condition 3.1 ... achieves stable feature learning and robust HP transfer ... '
        'Depth-muP-style scaling from Condition B.1 (k = 1) often fail" (takeaway 3)',
        hypotheses="a reading: the paper shows it on Transformers, and its own counting of orders (eq. 5 with the "
        "norms of condition B.1) leaves them flat and loses the second order alone, as L^(-1/2). Muon, ten steps, "
        f"{SIZES}",
        checks=(_other_table(),),
        replaced_by="features, their changes and every role's share are flat, and only the second order of updates is "
        "lost (S5c), as the paper's eq. 5 has it",
        premise="that what condition B.1 loses is seen in the size of features or of their changes",
    ),
    Claim(
        id="S8",
        kind=Kind.PREMISE,
        source="Zheng et al. 2026, assumption C.1, eq. 15",
        statement="updates of SGD, AdamW, Lion and Sophia have a stable rank that neither width nor depth changes",
        brief="updates of SGD, AdamW, Lion and Sophia have a stable rank that no size changes",
        printed='"|A_l|_2 = Theta(|A_l|_F), where the hidden constants are independent of width and depth" (equation '
        "15)",
        hypotheses="eight samples and four outputs, which cap the rank of gradients of linear nets at four whatever "
        "their size; with ReLU behind every matrix the cap is the eight samples. k = 2, ten steps with momentum, "
        "widths 32 .. 256 and 2 .. 32 blocks",
        checks=(
            Check(NAME, judge_ranks, OF_RANKS),
            Check(NAME, judge_ranks, (*OF_RANKS, *RELU)),
        ),
    ),
    Claim(
        id="S5l",
        kind=Kind.BEYOND,
        source="Zheng et al. 2026, appendix C.10, table 4",
        statement="SOAP's table keeps features, their changes and every role's share in them flat at an epsilon of "
        "1e-8, the usual value of programs, too",
        brief="SOAP's table keeps nets flat at an epsilon of 1e-8, too",
        printed='"First, omit the momentum and the stabilization term in the AdamW operator" (appendix C.10)',
        hypotheses="beyond what the paper derives, which has no momentum and no epsilon. SOAP at k = 2, ten steps with "
        f"momentum, {SIZES}",
        checks=(flatness("many", ("soap",), "--soap-epsilon", "1e-8"),),
        replaced_by="with an epsilon of 0.002, as large as small singular values of gradients of the base model, they "
        "are flat (S5a)",
        premise="that no direction of the momentum is without a squared gradient: gradients of eight samples and four "
        "outputs are of rank eight at most, and where the momentum has a turned direction in which no squared gradient "
        "has come in yet, it is divided by epsilon alone",
    ),
)


QUESTION = "Does the {table} keep features and changes flat in width and depth?"
WORDS = {
    "k >= 2 table": "that of Zheng et al. 2026 for blocks of two and more layers (condition 3.1).",
    "k = 1 table": "that of Zheng et al. 2026 for blocks of one layer (condition B.1).",
    "standard": "the parameterization in which no hyperparameter scales with width or depth.",
}
ALONE = {
    "|Delta h_L| by hidden weights alone": "the change of h_L if no other weights had moved, so too for other roles.",
    "plain": "a straight line's slope, without corrections.",
}


def document(dataset: xr.Dataset) -> Document:
    """Per optimizer the slopes of every table in width and depth; sizes of |Delta h_L|; verdicts."""
    optimizers = list(map(str, dataset["optimizer"].values))
    parts = [_slopes(dataset, optimizer) for optimizer in optimizers]
    parts += [_sizes(dataset, optimizer, direction) for optimizer in optimizers for direction in DIRECTIONS]
    judged = findings(dataset)
    first = judged_tables(dataset)[0]
    question = QUESTION.format(table="standard parameterization" if first == "standard" else TABLES[first])
    return Document(
        question=question,
        answer=_answer(dataset, judged),
        heading=_heading(dataset),
        findings=judged,
        parts=parts,
        brief=_summary(dataset),
        steps=[*STEPS, *more_draws(judged, dataset)],
        words=WORDS | ALONE,
    )


def _answer(dataset: xr.Dataset, judged: Sequence[Finding]) -> str:
    """By the first table that is judged of every optimizer, that of the net's own block depth where it was run."""
    first = judged[:: len(judged_tables(dataset))]
    flat = sum(finding.verdict is Verdict.CONFIRMED for finding in first)
    return answer(first, f"confirmed for {flat} of {len(first)} optimizers")


def _heading(dataset: xr.Dataset) -> str:
    nets = "L blocks of {block_depth} matrices, {activation}; widths {widths} at L = {depth}; L = {depths} at "
    run = "width {width}; {samples} samples, {outputs} outputs; {steps} steps in {trained}, {draws} draws, seed {seed}"
    acting = "no weight decay, negligible epsilons" if dataset.attrs["plain"] else "weight decay and epsilons matter"
    if dataset.attrs["biases"]:
        acting += "; biases"
    if "soap_epsilon" in dataset.attrs:
        acting += "; SOAP's epsilon {soap_epsilon:g} in the base model"
    if dataset.attrs["base"]:
        acting += "; base values {base}"
    how = "slope s of log y = a + s log x + c / x (depths: + d / L^2), draw by draw; in brackets the plain slope"
    return "\n".join([nets + run, acting, how]).format_map({**dataset.attrs, "trained": trained_in(dataset.attrs)})


STEPS = (("--tables many one standard", "the same optimizers under all three tables, side by side"),)


def _summary(dataset: xr.Dataset) -> Grid:
    """Slopes of the last features' change and of the outputs' after the last step: 0 is flat."""
    rows = watched(dataset)
    last = max(row.step for row in rows)
    shown = [row for row in rows if row.step == last and row.symbol in ("|Delta h_L|", "|Delta f|")]
    lines = []
    for optimizer in map(str, dataset["optimizer"].values):
        for name in map(str, dataset["table"].values):
            laws = [row.slope(dataset, optimizer, name, along) for row in shown for along in DIRECTIONS]
            lines.append([optimizer, TABLES[name], *(slope(law.settled, law.settled_stderr) for law in laws)])
    header = [[f"{row.symbol} in {direction}" for direction in DIRECTIONS] for row in shown]
    title = f"Power of width and of depth that changes go as after step {last} (a table that scales keeps all at 0)"
    return table([["optimizer", "table"], *header], lines, title)


def _slopes(dataset: xr.Dataset, optimizer: str) -> Grid:
    """A line for everything that is watched, under every table; columns: ladders and steps."""
    rows, lines = watched(dataset), []
    steps = list(dict.fromkeys(row.step for row in rows))
    for name in map(str, dataset["table"].values):
        for symbol in dict.fromkeys(row.symbol for row in rows):
            same = [row for row in rows if row.symbol == symbol]
            laws = [row.slope(dataset, optimizer, name, along) for along in DIRECTIONS for row in same]
            cells = [f"{slope(law.settled, law.settled_stderr)} ({law.plain:+.2f})" for law in laws]
            lines.append([TABLES[name], symbol, *cells])
    header = [[f"in {direction}, step {step}" for step in steps] for direction in DIRECTIONS]
    return table([["table", "slope of"], *header], lines, f"{optimizer}: slopes")


def _sizes(dataset: xr.Dataset, optimizer: str, direction: str) -> Grid:
    """|Delta h_L| after the first and the last step; some nets leave the floats, and their means with them."""
    name = f"feature_update_norm_by_{direction}"
    steps = list(dict.fromkeys((1, int(dataset["step"].values[-1]))))
    with np.errstate(all="ignore"):
        means = dataset[[name]].sel(optimizer=optimizer, place="last", step=steps).mean("draw", skipna=False)

    def mean_at(size: int) -> Column:
        return Column(f"{direction} {size}", lambda at: number(float(at[name].sel({direction: size}))))

    columns = [mean_at(size) for size in dataset[direction].values]
    title = f"{optimizer}: |Delta h_L| in {direction}, mean over draws"
    dims = ["table", "step"]
    return Table("sizes", title, dims, dims, columns, shown={"table": TABLES})(means)


STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    planned=planned,
    measure=measure,
    report=document,
    claims=CLAIMS,
)


if __name__ == "__main__":
    run_as_command(NAME)
