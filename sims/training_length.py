"""How the learning rate that trains best goes with the number of steps T, the batch B and the schedule of the rate.

Every net is trained on real data under many learning rates, for every optimizer, schedule, number of steps and batch,
and the rate that minimises the training loss is searched for. Beside it stand the scales of the optimizer's first step,
the rates at which it moves outputs or layers by 1: they know the batch, and cannot know how many steps follow. How
scale over tuned rate goes with T and B is what a rate that is named by the scale must be told.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import isfinite, nan
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import PowerLaw
from meanfield.execution import scales_run, simulate_all
from meanfield.nets import Net
from meanfield.transfer import Tuning, tune_all
from meanfield.verification import (
    Claim,
    Contest,
    Finding,
    Judges,
    Kind,
    Ruling,
    Verdict,
    checks,
    shown_laws,
    slope_contest,
    span,
    tuned_rates,
)
from sims.common import images
from sims.common.command import TRAINED_ON, Option, Preset, counted, ladder_of
from sims.common.datasets import Axes, Variable, attributes, over
from sims.common.report import Report, answer, folded
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import MISSING, Column, Grid, Table, fitted, measured, number
from sims.common.training_data import InputsAndTargets, shared_training_data, trained_net
from sims.common.tuned_nets import DATA_OPTIONS, MOVED, OF, SPACING, STEP_DRAWS, decades, median_scales, own_seeds

NAME = "training_length"
LISTED = "how the rate that trains best goes with steps, batch and schedule"

# What is asked for.

NETS, TRAINING = "nets", "training"


def _each_once(written: str, given: list[str]) -> list[str]:
    return list(dict.fromkeys(given))


OPTIONS = (
    Option(
        "families",
        "families of nets (quote names of several words)",
        metavar="NAME",
        many="+",
        check=_each_once,
        group=NETS,
    ),
    Option("depth", "layers, blocks or steps of the nets", int, metavar="L", group=NETS),
    Option("width", "units of a layer, or channels", int, metavar="N", group=NETS),
    *DATA_OPTIONS,
    Option(
        "optimizers",
        "names that meanfield.train takes, such as sgd (without momentum), adamw, muon-adamw",
        metavar="NAME",
        many="+",
        check=_each_once,
        group=TRAINING,
    ),
    Option(
        "schedules",
        "constant or warmup_cosine, of which a rate is the peak, or both",
        metavar="NAME",
        many="+",
        check=_each_once,
        group=TRAINING,
    ),
    Option(
        "steps",
        "numbers of steps, two or more",
        int,
        metavar="T",
        many="+",
        check=ladder_of(2, "an exponent", why="steps of training"),
        group=TRAINING,
    ),
    Option(
        "batch_sizes",
        "samples of a mini-batch, two numbers or more",
        int,
        metavar="B",
        many="+",
        check=ladder_of(2, "an exponent", why="samples of a mini-batch"),
        group=TRAINING,
    ),
    SPACING,
    TRAINED_ON,
)
CONSTANT, WARMUP = "constant", "warmup_cosine"
DESCENT, ADAMW = "sgd", "adamw"
FAMILIES = ["mlp", "residual mlp init", "residual mlp multiplier"]
SHARED: dict[str, Any] = {"optimizers": [DESCENT, ADAMW, "muon-adamw"], "schedules": [CONSTANT, WARMUP]}
PRESETS = {
    "smoke": Preset(
        "10 s",
        families=FAMILIES[:2],
        optimizers=[DESCENT, ADAMW],
        schedules=[CONSTANT, WARMUP],
        depth=2,
        width=16,
        samples=32,
        steps=[16, 64],
        batch_sizes=[8, 32],
        draws=2,
    ),
    "default": Preset(
        "3 min",
        families=FAMILIES[::2],
        depth=4,
        width=64,
        samples=1792,
        steps=[32, 128, 512],
        batch_sizes=[16, 64],
        draws=4,
        **SHARED,
    ),
    "evidence": Preset(
        "100 min",
        "nets that learn: with batches of 16 rates of descent stay with the steps T, and those of AdamW fall as "
        "T^(-0.15 +- 0.03); more in docs/findings.md",
        families=FAMILIES,
        depth=4,
        width=64,
        samples=1792,
        steps=[128, 512, 2048],
        batch_sizes=[16, 64, 256],
        draws=12,
        **SHARED,
    ),
    "paper": Preset(
        "9 h",
        families=FAMILIES,
        depth=4,
        width=64,
        samples=1792,
        steps=[128, 512, 2048, 8192],
        batch_sizes=[16, 64, 256],
        draws=16,
        **SHARED,
    ),
}

# What is measured.

# Where a search begins; of others it begins where `tuned_rate` has it.
GUESSES = {DESCENT: 0.1}
OF_SEARCH = ("tuned_rate_log10", "tuned_rate_log10_stderr")

VARIABLES = (
    Variable("complete", "whether the search of every seed has ended"),
    Variable("located", "seeds that have a minimum"),
    Variable("least_loss", "least loss over the rates that were tried", "mean over seeds, on all data"),
    Variable("chance_loss", "loss where all classes have the same probability"),
    Variable("learns", "whether nets learn", "a tuned rate, and a least loss below a third of that of chance"),
    *(
        Variable(
            f"{of}_scale",
            f"rate at which one step of the optimizer moves {moved} by 1",
            "median over drawn nets, on the data, loss and batches of training",
        )
        for of, moved in MOVED.items()
    ),
    Variable("family", "family of nets"),
    Variable("schedule", "how the rate goes in training: constant, or warmup_cosine, of which it is the peak"),
    Variable("steps", "steps of training T"),
    Variable("batch_size", "samples of a mini-batch B"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """What is tuned: every family under every optimizer and schedule, for all numbers of steps and all batches."""
    depth = counted("layers, blocks or steps of the nets")("--depth", options.depth)
    sizes = (depth, options.width, options.data, options.sides)
    nets = [trained_net(family, *sizes) for family in options.families]
    data = shared_training_data(options.data, nets, samples=options.samples, seed=options.seed)
    axes = {
        "optimizer": options.optimizers,
        "schedule": options.schedules,
        "family": options.families,
        "steps": options.steps,
        "batch_size": options.batch_sizes,
    }
    trained = dict(zip(options.families, zip(nets, data, strict=True), strict=True))
    return {"tunings": [_tuning(options, trained, *place) for place in product(*axes.values())], "axes": axes}


def _tuning(
    options: argparse.Namespace,
    trained: dict[str, tuple[Net, InputsAndTargets]],
    optimizer: str,
    schedule: str,
    family: str,
    steps: int,
    batch_size: int,
) -> Tuning:
    """With seeds that no other place has, so that errors of different places are independent."""
    net, data = trained[family]
    place = f"{NAME} {optimizer} {schedule} {family} {steps} {batch_size}"
    how = {"optimizer": optimizer, "schedule": schedule, "steps": steps, "batch_size": batch_size}
    return Tuning(
        net=net,
        data=data,
        training=how | {"backend": options.backend, "precision": "float32"},
        seeds=own_seeds(options.seed, place, options.draws),
        guess=GUESSES.get(optimizer),
        spacing=options.spacing,
        curvature_draws=0,
    )


def measure(options: argparse.Namespace, results: Results, tunings: list[Tuning], axes: Axes) -> xr.Dataset:
    """Tuned rates and least losses at every place, and the scales of one step of each optimizer, family and batch."""
    tuned = tune_all(tunings, workers=options.workers, store=results.pieces)
    rows = [
        {name: float(of_net[name]) for name in OF_SEARCH}
        | {name: of_net.attrs[name] for name in ("complete", "located")}
        | {"least_loss": float(of_net["final_loss"].min("rate").mean("seed"))}
        for of_net in tuned
    ]
    seeds = [{"seed_tuned_rate_log10": of_net["seed_tuned_rate_log10"].values} for of_net in tuned]
    parts = [over(axes, rows), over(axes, seeds, "draw"), _scales(options, results, tunings, axes)]
    chance = float(np.log(images.DataShape.of(options.data).classes))
    described = attributes(options, "data", "sides", "samples", "depth", "width", "spacing")
    dataset = xr.merge(parts).assign(chance_loss=chance).assign_attrs(described)
    return dataset.assign(learns=_learns(dataset))


def _learns(dataset: xr.Dataset) -> xr.DataArray:
    """By the least loss, of nets that have a tuned rate."""
    learned = dataset["least_loss"] < tuned_rates.LEARNED * dataset["chance_loss"]
    return learned & np.isfinite(dataset["tuned_rate_log10_stderr"])


def _scales(options: argparse.Namespace, results: Results, tunings: Sequence[Tuning], axes: Axes) -> xr.Dataset:
    """Medians over drawn nets, which are none of those that train: steps and schedules say nothing of a first step."""
    alike = {name: axes[name] for name in ("optimizer", "family", "batch_size")}
    of_place = dict(zip(product(*axes.values()), tunings, strict=True))
    runs = []
    for optimizer, family, batch_size in product(*alike.values()):
        tuning = of_place[optimizer, axes["schedule"][0], family, axes["steps"][0], batch_size]
        how = {name: tuning.training[name] for name in ("optimizer", "batch_size", "precision")}
        runs.append(scales_run(tuning.net, tuning.data, draws=STEP_DRAWS, seed=options.seed, **how))
    made = simulate_all(runs, workers=options.workers, store=results.pieces)
    return over(alike, list(map(median_scales, made)))


# Exponents: slopes of logarithms, one for all families. A family has at every batch a constant of its own over steps,
# and for every number of steps one over batches. All nets that learn weigh alike: weights by the spreads of a few seeds
# are themselves random.

WORDED = {"steps": "numbers of steps", "batch_size": "batches"}


@dataclass(frozen=True)
class Exponent:
    """A slope with its standard error, the draws that carry this, and the nets that the slope is of."""

    law: PowerLaw
    effective: float
    nets: int

    @property
    def known(self) -> bool:
        return isfinite(self.law.exponent)


def exponent(at: xr.Dataset, along: str, scale: str = "") -> Exponent:
    """Of tuned rates along steps or batches, or of a scale over them, under one optimizer and one schedule.

    The median of a scale is one number for all numbers of steps, so that its error counts once for all of them. Degrees
    of freedom are those of Welch and Satterthwaite.
    """
    known = at["learns"] & (np.isfinite(at[scale]) if scale else True)
    logs = xr.DataArray(np.log10(at[along])).where(known)
    centred = (logs - logs.mean(along)).fillna(0.0)
    spread = float((centred**2).sum())
    nets = int((known & (known.sum(along) > 1)).sum())
    if not spread:
        return Exponent(PowerLaw(nan, nan, nan), nan, nets)
    weights = centred / spread
    tuned, errors = at["tuned_rate_log10"].where(known, 0.0), at["tuned_rate_log10_stderr"].where(known, 0.0)
    values, shares = tuned, [(weights * errors) ** 2]
    degrees = [at["located"].where(known, 2) - 1]
    if scale:
        values = xr.DataArray(np.log10(at[scale].where(np.isfinite(at[scale]), 1.0))) - tuned
        of_median = (at[f"{scale}_stderr"] / (at[scale] * np.log(10))).fillna(0.0)
        shares.append((weights.sum("steps") * of_median) ** 2)
        degrees.append(xr.full_like(of_median, STEP_DRAWS - 1))
    variance = sum(float(share.sum()) for share in shares)
    parts = sum(float((share**2 / freedom).sum()) for share, freedom in zip(shares, degrees, strict=True))
    freedom = variance**2 / max(parts, np.finfo(float).tiny)
    law = PowerLaw(float((weights * values).sum()), variance**0.5, nan)
    return Exponent(law, freedom + 1, nets)


def of_schedule(dataset: xr.Dataset) -> tuple[float, float, int]:
    """log10 of the peak rate of warmup and cosine over the constant rate, its error, and how many nets have both."""
    pair = [dataset.sel(schedule=name) for name in (WARMUP, CONSTANT)]
    known = pair[0]["learns"] & pair[1]["learns"]
    if not (nets := int(known.sum())):
        return nan, nan, 0
    peak, constant = (of["tuned_rate_log10"].where(known) for of in pair)
    errors = [of["tuned_rate_log10_stderr"].where(known, 0.0) for of in pair]
    variance = sum(float((error**2).sum()) for error in errors)
    return float((peak - constant).mean()), variance**0.5 / nets, nets


# What is claimed, and what decides it: sizes, bands and rivals were written down before the nets were trained.

JUDGES = Judges(budget=tuned_rates.TRAINED_BUDGET)
# Exponents that differ by no more are one: a factor of 1.3 over sixteen times the steps.
ALLOWED = 0.1
STAYS, FALLS, ROOT = 0.0, -0.2, -0.5
OUTPUTS = "outputs_scale"


def _ruling(
    dataset: xr.Dataset, optimizer: str, along: str, claimed: float, rivals: Sequence[float], scale: str = ""
) -> Contest | Ruling:
    """Against the rival that is nearer to what is measured, so that whoever leaves it has left the other, too."""
    at = dataset.sel(optimizer=optimizer, schedule=CONSTANT)
    fit = exponent(at, along, scale)
    if not fit.known:
        words = {"rival": " or ".join(f"{rival:g}" for rival in rivals)}
        evidence = f"no exponent: no net learns for two {WORDED[along]} or more"
        return Ruling(Verdict.INCONCLUSIVE, evidence, words, "none: no exponent")
    rival = min(rivals, key=lambda rival: abs(rival - fit.law.exponent))
    made = slope_contest(
        fit.law,
        claimed=claimed,
        rival=rival,
        allowance=ALLOWED,
        draws=dataset.attrs["draws"],
        effective=fit.effective,
        gaussian=True,
    )
    shown = f"exponent {shown_laws(fit.law)} over {WORDED[along]} {span(at[along])}, of {fit.nets} nets that learn"
    return made.saying(shown, rival=f"{rival:g}")


@JUDGES.decide(
    brief="Under descent the tuned rate does not depend on the number of steps",
    claim="Under gradient descent at a constant rate the tuned rate does not depend on the number of steps T: exponent "
    "0 in T, to 0.1",
    rival="exponent {rival}",
    measured="one slope of tuned rates in T for all families, at every batch, of nets that learn",
)
def judge_descent(dataset: xr.Dataset) -> Contest | Ruling:
    return _ruling(dataset, DESCENT, "steps", STAYS, [ROOT])


@JUDGES.decide(
    brief="Under AdamW the tuned rate falls as T^(-0.2) with the number of steps T",
    claim="Under AdamW at a constant rate the tuned rate falls with the number of steps T as T^(-0.2): exponent -0.2, "
    "to 0.1",
    rival="exponent {rival}",
    measured="one slope of tuned rates in T for all families, at every batch, of nets that learn",
)
def judge_adamw(dataset: xr.Dataset) -> Contest | Ruling:
    return _ruling(dataset, ADAMW, "steps", FALLS, [STAYS, ROOT])


@JUDGES.decide(
    brief="Under descent the outputs' scale over the tuned rate does not depend on the batch",
    claim="Under gradient descent at a constant rate the scale of the outputs over the tuned rate does not depend on "
    "the batch B: exponent 0 in B, to 0.1",
    rival="exponent {rival}",
    measured="one slope of this ratio in B for all families, for every number of steps, of nets that learn",
)
def judge_batch(dataset: xr.Dataset) -> Contest | Ruling:
    return _ruling(dataset, DESCENT, "batch_size", STAYS, [-ROOT], OUTPUTS)


def findings(dataset: xr.Dataset) -> list[Finding]:
    """Of the optimizers that this run has, at a constant rate."""
    if CONSTANT not in dataset["schedule"]:
        return []
    judges = {judge_descent: DESCENT, judge_adamw: ADAMW, judge_batch: DESCENT}
    return [judge(dataset) for judge, optimizer in judges.items() if optimizer in dataset["optimizer"]]


TRAINED = (
    "digits, nets of 4 units of width 64 of three families, constant rates, 128 .. 2,048 steps of batches of 16 .. "
    "256, rates tuned on 12 nets; nets whose loss is below a third of chance count"
)
SOURCE = "docs/theory.md section 24"
UNPRINTED = "no sentence of a paper: a question of our own, what a rate that one step names must be told"
# The preset that is run.
PRESET = "evidence"
CLAIMS = (
    Claim(
        id="E3a",
        kind=Kind.OWN,
        source=SOURCE,
        statement="under gradient descent at a constant rate the tuned rate of small fully-connected nets of 4 units "
        "that learn does not depend on the number of steps (exponent 0, to 0.1; rival -1/2)",
        brief="under descent the tuned rate does not depend on the number of steps",
        printed=UNPRINTED,
        hypotheses=f"{TRAINED}; written down before these runs, after a prototype whose rates were 0.144 and 0.141 "
        "for eight times the steps. With errors of 0.03 decades a rate an exponent of 0.19 is refuted where all nets "
        "learn, and one of 0.29 where none does in 128 steps",
        checks=checks(NAME, judge_descent),
        preset=PRESET,
    ),
    Claim(
        id="E3b",
        kind=Kind.OWN,
        source=SOURCE,
        statement="under AdamW at a constant rate the tuned rate of small fully-connected nets of 4 units that learn "
        "falls with the number of steps as T^(-0.2) (to 0.1; rivals 0 and -1/2)",
        brief="under AdamW the tuned rate falls as T^(-0.2) with the number of steps",
        printed=UNPRINTED,
        hypotheses=f"{TRAINED}; written down before these runs, after a prototype that saw a factor of 1.5 for eight "
        "times the steps. With errors of 0.03 decades a rate it is decided against an exponent of 0 where all nets "
        "learn, and not where none does in 128 steps",
        checks=checks(NAME, judge_adamw),
        undecided="the exponent depends on the batch, -0.15 +- 0.03 with 16 and -0.54 +- 0.08 with 256, so that more "
        "seeds sharpen a mean of unlike numbers",
        preset=PRESET,
    ),
    Claim(
        id="E3c",
        kind=Kind.OWN,
        source=SOURCE,
        statement="under gradient descent at a constant rate, in small fully-connected nets of 4 units, the scale of "
        "the outputs in one step over the tuned rate does not depend on the batch (exponent 0, to 0.1; rival 1/2)",
        brief="under descent outputs' scale over tuned rate does not depend on the batch",
        printed=UNPRINTED,
        hypotheses=f"{TRAINED}; written down before these runs, after none that says it or the contrary. With errors "
        "of 0.03 decades a rate, and of 8 % a scale, an exponent of 0.3 is refuted where all nets learn",
        checks=checks(NAME, judge_batch),
        replaced_by="the scale of the outputs over the tuned rate falls with the batch as B^(-0.39 +- 0.04), as the "
        "tuned rate rises as B^(0.50 +- 0.03): 12 nets each of 4 units of three families, batches of 16 to 256, after "
        "128 as after 2,048 steps",
        premise="the mean change that the first step makes bounds the rate, whatever noise the batches of later steps "
        "have",
        preset=PRESET,
    ),
)

# What is printed.

WORDS = {
    "tuned rate": "the learning rate that minimises the loss on all training data after the last step: the vertex of a "
    "parabola of ln(loss) over log10(rate) for every seed, and the geometric mean of these over seeds; under warmup "
    "and cosine the peak.",
    "outputs": "scale of one step of the optimizer: the rate at which it moves the outputs by 1 (mean square, median "
    "over drawn nets); relative, the layers, each over its own size; last, the last layer over its size; absolute, the "
    "layers.",
    "exponent": "one slope of logarithms for all families that learn, with a constant of its own for each at every "
    "other size.",
    "learn": "the least loss, over rates, is below a third of that of equal probabilities; * marks nets that do not, "
    "which no exponent and no factor counts.",
}
HEADING = (
    "Trained on {data}: images of at most {sides} pixels a side on grids and in rows, {samples} samples; nets of "
    "{depth} units of width {width}; {draws} seeds for every optimizer, schedule, number of steps T and batch B"
)


def _answer(dataset: xr.Dataset, verdicts: Sequence[Finding]) -> str:
    at = dataset.sel(schedule=dataset["schedule"][0])
    laws = {str(name): exponent(at.sel(optimizer=name), "steps") for name in dataset["optimizer"].values}
    known = [f"{name} {shown_laws(of.law)}" for name, of in laws.items() if of.known]
    in_steps = [finding for finding in verdicts if "number of steps" in finding.claim]
    return answer(
        in_steps, f"exponents in T: {', '.join(known)}" if known else "no net learns for two numbers of steps"
    )


def _exponent_column(header: str, along: str, scale: str = "") -> Column:
    return Column(header, lambda at: fitted(exponent(at, along, scale).law))


EXPONENT_TABLE = Table(
    "exponent table",
    "Exponents in steps T and batch B of the tuned rate, and in B of scales of one step over it",
    ["optimizer", "schedule"],
    ["optimizer", "schedule"],
    [
        Column("nets", lambda at: f"{int(at['learns'].sum())} of {at['located'].size}"),
        _exponent_column("rate in T", "steps"),
        _exponent_column("rate in B", "batch_size"),
        *(_exponent_column(f"{of}/rate in B", "batch_size", f"{of}_scale") for of in OF),
    ],
)


def _constant_title(dataset: xr.Dataset) -> str:
    steps, batch = _reference(dataset)
    return f"Scale of one step over tuned rate, at {steps} steps of batches of {batch}: geometric means over families"


def _reference(dataset: xr.Dataset) -> tuple[int, int]:
    """The most steps, which nets learn in if in any, and the least batch."""
    return int(dataset["steps"][-1]), int(dataset["batch_size"][0])


def _constant(at: xr.Dataset, scale: str) -> str:
    steps, batch = _reference(at)
    families = at.sel(steps=steps, batch_size=batch)
    finite = families["learns"] & np.isfinite(families[scale])
    ratio = (xr.DataArray(np.log10(families[scale])) - families["tuned_rate_log10"]).where(finite)
    return number(float(10.0 ** ratio.mean()))


def _along(along: str, at: str, words: str) -> Callable[[xr.Dataset], Grid]:
    """Exponents of the tuned rate in one of the two, at each of the other: one slope for all is a mean of these."""

    def cell(of: xr.Dataset, value: int) -> str:
        return fitted(exponent(of.sel({at: [value]}), along).law)

    def columns(dataset: xr.Dataset) -> list[Column]:
        return [Column(f"{SYMBOLS[at]} = {value:,}", partial(cell, value=value)) for value in dataset[at].values]

    title = f"Exponents in {words} of the tuned rate, at each {SYMBOLS[at]} by itself"
    return Table(f"{along} table", title, ["optimizer", "schedule"], ["optimizer", "schedule"], columns)


SYMBOLS = {"steps": "T", "batch_size": "B"}
STEPS_TABLE = _along("steps", "batch_size", "steps T")
BATCH_TABLE = _along("batch_size", "steps", "batch B")

CONSTANT_TABLE = Table(
    "constant table",
    _constant_title,
    ["optimizer", "schedule"],
    ["optimizer", "schedule"],
    [Column(of, partial(_constant, scale=f"{of}_scale")) for of in OF],
)


def _factor(at: xr.Dataset, steps: int | None = None) -> str:
    """The step from a constant rate to warmup and cosine, with the standard error of the factor."""
    log, error, nets = of_schedule(at if steps is None else at.sel(steps=steps))
    return measured(10.0**log, 10.0**log * np.log(10) * error) if nets else MISSING


def _factors(dataset: xr.Dataset) -> Sequence[Grid]:
    return [SCHEDULE_TABLE(dataset)] if {CONSTANT, WARMUP} <= set(dataset["schedule"].values) else []


SCHEDULE_TABLE = Table(
    "schedule table",
    "Tuned peak under warmup and cosine over the tuned constant rate, by the number of steps T",
    ["optimizer", "batch_size"],
    ["optimizer", "B"],
    lambda dataset: [
        Column("all", _factor),
        *(Column(f"T = {steps:,}", partial(_factor, steps=int(steps))) for steps in dataset["steps"].values),
    ],
)


def _loss(at: xr.Dataset) -> str:
    return f"{float(at['least_loss']):.2f}{'' if bool(at['learns']) else ' *'}"


def _over_tuned(name: str) -> Callable[[xr.Dataset], str]:
    return lambda at: number(float(at[name]) / 10.0 ** float(at["tuned_rate_log10"]))


PLACES = ["optimizer", "schedule", "family", "steps", "batch_size"]
RATE_TABLE = Table(
    "rate table",
    "Tuned rates, and scales of one step over them (* the net hardly learns)",
    PLACES,
    ["optimizer", "schedule", "family", "T", "B"],
    [
        Column("loss", _loss),
        Column("tuned rate", lambda at: number(10.0 ** float(at["tuned_rate_log10"]))),
        Column("+- decades", decades),
        *(Column(of, _over_tuned(f"{of}_scale")) for of in OF),
    ],
)


def _advice(dataset: xr.Dataset) -> str:
    """What an engineer may do, in the numbers of this run."""
    words = []
    for optimizer in map(str, dataset["optimizer"].values):
        at = dataset.sel(optimizer=optimizer, schedule=dataset["schedule"].values[0])
        few, many = (exponent(at.isel(batch_size=[end]), "steps") for end in (0, -1))
        short, long = (exponent(at.isel(steps=[end]), "batch_size") for end in (0, -1))
        if all(law.known for law in (few, many, short, long)):
            by_few, by_many, by_short, by_long = (4.0**law.law.exponent for law in (few, many, short, long))
            least, most = (int(at["batch_size"][end]) for end in (0, -1))
            first, last = (int(at["steps"][end]) for end in (0, -1))
            words.append(
                f"under {optimizer}, four times the steps multiply the tuned rate by {by_few:.2g} with batches of "
                f"{least} and by {by_many:.2g} with batches of {most}; four times the batch multiply it by "
                f"{by_short:.2g} after {first:,} steps and by {by_long:.2g} after {last:,}"
            )
    said = "; ".join(words) or "too few nets of this run learn to say how a tuned rate goes with steps and batch"
    return folded(f"In practice: {said}.", "", 0)


STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    compiles="12 s",
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=Report(
        question="Does descent's tuned rate stay, and AdamW's fall as T^(-0.2), with the steps T?",
        answer=_answer,
        heading=HEADING,
        parts=[EXPONENT_TABLE, STEPS_TABLE, BATCH_TABLE, CONSTANT_TABLE, _factors, RATE_TABLE, _advice],
        findings=findings,
        words=WORDS,
    ),
    claims=CLAIMS,
    # The images of a run without --data.
    require_installed=partial(images.require_installed, "digits"),
)

if __name__ == "__main__":
    run_as_command(NAME)
