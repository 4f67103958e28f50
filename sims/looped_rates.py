"""The learning rate that trains looped Transformers best, over the number of loops: aligned under 1/L, or shifted?

Language models of one Llama-style pre-norm block that is applied L times, between an embedding and a readout, learn to
predict the next character of English text by Adam, as in figure 3 of Wang et al. 2026 at 340M parameters. Branches are
multiplied by L^(-1/2) ("sqrt") or 1/L ("linear"). For every L the rate that minimises the training loss is searched
for; further nets are trained at that rate, whose losses compare the scalings. With --blocks own the L blocks have
weights of their own, as those of a GPT have. Beside stand the rates at which one step of the optimizer that trains, on
its text and batches, moves the layers or the outputs by 1. The rate is constant in training: without warm-up, decay or
weight decay, which the paper has.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import Array, PowerLaw
from meanfield.execution import scales_run, simulate_all
from meanfield.nets import Transformer
from meanfield.transfer import Tuning, tune_all
from meanfield.verification import (
    PAPERS_EXPONENT,
    Claim,
    Contest,
    Finding,
    Judges,
    Kind,
    Ruling,
    Verdict,
    checks,
    lower,
    tuned_rates,
)
from sims.common.command import TRAINED_ON, Option, Preset, counted, ladder_of
from sims.common.datasets import Axes, Variable, attributes, over
from sims.common.gpts import loss_of_pairs
from sims.common.images import CHARACTERS, TEXT
from sims.common.report import Report, answer
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import MISSING, Column, Table, fitted, number
from sims.common.training_data import MOST_TRAINED, InputsAndTargets, training_data
from sims.common.tuned_nets import MOVED, STEP_DRAWS, TUNING_SEEDS, WIDER, median_scales, own_seeds, times_as_wide

NAME = "looped_rates"
LISTED = "whether tuned rates of looped Transformers align over loops"

# What is asked for.

SHARED, OWN = "shared", "own"
OPTIONS = (
    Option(
        "loops",
        "numbers of loops, or of blocks, two or more",
        int,
        metavar="L",
        many="+",
        check=ladder_of(2, "a slope", maximum=MOST_TRAINED, why="numbers of loops"),
    ),
    Option(
        "blocks",
        "weights of the L blocks: shared, one block that is applied L times (default), or own",
        default=SHARED,
        choices=(SHARED, OWN),
    ),
    Option("width", "channels of a token", int, metavar="N"),
    WIDER,
    Option("heads", "heads of attention", int, 2),
    Option("tokens", "characters of a window", int, metavar="T"),
    Option(
        "steps",
        "steps of training; every window is met once",
        int,
        check=counted("steps of training"),
        group="training",
    ),
    Option(
        "batch_size",
        "windows of a mini-batch",
        int,
        8,
        metavar="B",
        check=counted("windows of a mini-batch"),
        group="training",
    ),
    Option(
        "optimizer", "adamw (default), or another name that meanfield.train takes", default="adamw", group="training"
    ),
    TUNING_SEEDS,
    Option("spacing", "finest steps between rates, in decades", float, 0.25, group="training"),
    TRAINED_ON,
)
PRESETS = {
    "smoke": Preset("6 s", loops=[1, 2, 4], width=8, tokens=8, steps=20, tuning_seeds=3, draws=6),
    "default": Preset("80 s", loops=[1, 2, 4, 8], width=32, tokens=16, steps=100, tuning_seeds=12, draws=36),
    "evidence": Preset(
        "25 min",
        "nets that learn: looped Transformers keep one rate over 1 to 8 loops to a factor of 1.3, under 1/L and "
        "under L^(-1/2); more in docs/findings.md",
        loops=[1, 2, 4, 8],
        width=32,
        tokens=16,
        steps=448,
        tuning_seeds=12,
        draws=36,
    ),
    "paper": Preset("20 h", loops=[1, 2, 4, 8, 16], width=128, tokens=64, steps=1000, tuning_seeds=12, draws=36),
}

# What is measured.

# What every net trains by.
TRAINING = ("steps", "batch_size", "optimizer", "backend")
# By its name in the library. One loop makes two additions, of attention and of the FFN, and the factor counts these.
SQRT, LINEAR = "sqrt", "linear"
SCALINGS = {SQRT: "multiplier_sqrt", LINEAR: "multiplier_linear"}
FACTORS = {SQRT: "(2 L)^(-1/2)", LINEAR: "1/(2 L)"}
# Llama's: hidden units of a gated FFN over the width, so that it has as many weights as an ungated one of four.
FFN = 8 / 3

VARIABLES = (
    Variable("complete", "1 where every net has a minimum of the loss, and no search was cut short"),
    Variable("located", "nets whose loss has a minimum over the rates"),
    Variable("tuned_loss", "training loss at the tuned rate, of nets that it was not tuned on"),
    Variable("learned_loss", "loss of pairs of letters, below which a net has learned"),
    *(
        Variable(
            f"{of}_scale",
            f"rate at which one step of the optimizer that trains moves {moved} by 1",
            "median over drawn nets, on the text, loss and batches of training",
        )
        for of, moved in MOVED.items()
    ),
    Variable("scaling", "factor on branches: sqrt, (2 L)^(-1/2), or linear, 1/(2 L)"),
    Variable("rate", "learning rate"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """What is tuned, under either scaling for all numbers of loops."""
    loops, windows = options.loops, options.steps * options.batch_size
    data = training_data(TEXT, _net(options, LINEAR, loops[0]), samples=windows, seed=options.seed)
    return {"tunings": [_tuning(options, data, *place) for place in product(SCALINGS, loops)], "loops": loops}


def _net(options: argparse.Namespace, scaling: str, loops: int) -> Transformer:
    """All of them take the same windows of text."""
    llama: dict[str, Any] = {"normalisation": "rms", "causal": True, "rotary": True, "activation": "swiglu", "ffn": FFN}
    text: dict[str, Any] = {"vocabulary": len(CHARACTERS), "outputs": len(CHARACTERS), "head": "fan_in"}
    sizes = {name: getattr(options, name) for name in ("heads", "tokens")} | {"width": _width(options)}
    blocks: dict[str, Any] = {"depth": loops, "tied": options.blocks == SHARED}
    return Transformer(scaling=SCALINGS[scaling], readout="every", **blocks, **sizes, **llama, **text)


def _width(options: argparse.Namespace) -> int:
    """Channels as they are run."""
    return times_as_wide(f"--wider {options.wider:g}", options.wider, "width", options.width)


def _tuning(options: argparse.Namespace, data: InputsAndTargets, scaling: str, loops: int) -> Tuning:
    """With seeds that both scalings share, so that their losses compare, and no other number of loops has."""
    return Tuning(
        net=_net(options, scaling, loops),
        data=data,
        training={name: getattr(options, name) for name in TRAINING} | {"precision": "float32"},
        seeds=own_seeds(options.seed, f"looped rates {loops}", options.tuning_seeds),
        spacing=options.spacing,
        curvature_draws=0,
    )


def measure(options: argparse.Namespace, results: Results, tunings: list[Tuning], loops: list[int]) -> xr.Dataset:
    """Minima and losses over (scaling, loops, seed), and losses of further nets at the tuned rates over draws."""
    tuned = tune_all(tunings, workers=options.workers, store=results.pieces)
    rates = sorted(set(np.concatenate([of_net["rate"].values for of_net in tuned])))
    axes: Axes = {"scaling": list(SCALINGS), "loops": loops}
    searched = [{"final_loss": of_net["final_loss"].reindex(rate=rates).values} for of_net in tuned]
    losses = [{"tuned_loss": of_net} for of_net in _tuned_losses(options, results, tunings, tuned)]
    parts = [
        over(axes, searched, "rate", "seed").assign_coords(rate=rates),
        over(axes, [_row(of_net) for of_net in tuned], "seed"),
        over(axes, losses, "draw"),
        over(axes, _step_scales(options, results, tunings)),
        xr.Dataset({"learned_loss": loss_of_pairs(*map(np.asarray, tunings[0].data))}),
    ]
    names = ("blocks", "heads", "tokens", "steps", "batch_size", "optimizer", "tuning_seeds", "spacing")
    return xr.merge(parts).assign_attrs(attributes(options, *names) | {"width": _width(options)})


def _row(of_net: xr.Dataset) -> dict[str, Any]:
    """One net: its tuned rate, and that of every seed."""
    row: dict[str, Any] = {name: float(of_net[name]) for name in ("tuned_rate_log10", "tuned_rate_log10_stderr")}
    row |= {name: of_net.attrs[name] for name in ("complete", "located")}
    return row | {"seed_tuned_rate_log10": of_net["seed_tuned_rate_log10"].values}


def _step_scales(options: argparse.Namespace, results: Results, tunings: Sequence[Tuning]) -> list[dict[str, float]]:
    """Medians over drawn nets of the four scales of one step, net by net."""
    how = {"optimizer": options.optimizer, "batch_size": options.batch_size, "precision": "float32"}
    runs = [scales_run(tuning.net, tuning.data, draws=STEP_DRAWS, seed=options.seed, **how) for tuning in tunings]
    return list(map(median_scales, simulate_all(runs, workers=options.workers, store=results.pieces)))


def _tuned_losses(
    options: argparse.Namespace, results: Results, tunings: Sequence[Tuning], tuned: Sequence[xr.Dataset]
) -> list[Array]:
    """Losses at the tuned rate of nets that it was not tuned on, so that they are not chosen; NaN without a rate."""
    rates = [float(of_net["tuned_rate"]) for of_net in tuned]
    runs = [
        replace(tuning, seeds=range(after := tuning.each_seed[-1] + 1, after + options.draws)).run([rate])
        for tuning, rate in zip(tunings, rates, strict=True)
        if np.isfinite(rate)
    ]
    made = iter(results.draw(runs))
    nothing = np.full(options.draws, np.nan)
    return [next(made)["final_loss"].values[0] if np.isfinite(rate) else nothing for rate in rates]


# What is claimed, and what decides it. A tuned rate is the minimum of the training loss over rates; slopes and their
# errors are those of `tuned_rates`.

JUDGES = Judges("Wang et al. 2026", budget=tuned_rates.TRAINED_BUDGET)
OF_OWN_BLOCKS = Judges(budget=tuned_rates.TRAINED_BUDGET)

# Slopes of the tuned rate in L by equation 4, L^(alpha - 1), under branches times L^(-alpha).
CLAIMED = {SQRT: -0.5, LINEAR: 0.0}
# Figure 3b aligns optima in "a narrow band", on a small grid of rates that is not named. It is read as a factor of
# sqrt(2) over all numbers of loops, half a step of a grid of powers of two.
NARROW = 2**0.5


def at_tuned(dataset: xr.Dataset, scaling: str) -> xr.Dataset:
    """One scaling at the loops that have a tuned rate: loops are depths, as `tuned_rates` names them."""
    return tuned_rates.family_at(dataset.rename(scaling="family", loops="depth"), scaling)


def learned_at(dataset: xr.Dataset, scaling: str) -> xr.Dataset:
    """The same at the loops at which nets learn, ending below what pairs of letters tell of the next one."""
    at = at_tuned(dataset, scaling)
    return at.isel(depth=np.flatnonzero((at["tuned_loss"].mean("draw") < at["learned_loss"]).values))


def tuned_slope(dataset: xr.Dataset, scaling: str) -> PowerLaw:
    """Of the tuned rates in the number of loops."""
    return tuned_rates.tuned_slope(at_tuned(dataset, scaling))


def loss_difference(at: xr.Dataset) -> tuple[float, float]:
    """Loss at the tuned rate of the linear factor less that of the square root, with its error over pairs of nets."""
    losses = at["tuned_loss"]
    differences = losses.sel(scaling=LINEAR).values - losses.sel(scaling=SQRT).values
    return float(differences.mean()), float(differences.std(ddof=1) / np.sqrt(len(differences)))


@JUDGES.decide(
    claim="Under the factor 1/L tuned rates move over loops as one step moves the layers of the nets that train, with "
    "slope {claimed:.2f}",
    brief="Under the factor 1/L tuned rates have the slope of one step, {claimed:.2f}",
    source="section 3.2",
    rival="with slope {rival:g}",
    measured="the slope of the rates that minimise the training loss, of nets that learn",
)
def judge_one_step(dataset: xr.Dataset) -> Contest | Ruling:
    at = learned_at(dataset, LINEAR)
    claimed, error = tuned_rates.drawn_slope(at, "absolute_scale")
    return tuned_rates.slope_ruling(at, claimed, CLAIMED[SQRT], error=error, sizes="loops")


@JUDGES.decide(
    claim="Under the factor 1/L tuned rates align in a narrow band for all numbers of loops, within a factor of "
    "sqrt(2)",
    brief="Under the factor 1/L tuned rates of all loop counts lie within a factor of sqrt(2)",
    source="figure 3b",
    rival="they fall as L^(-1/2)",
    measured="the slope of the rates that minimise the training loss",
)
def judge_linear(dataset: xr.Dataset) -> Contest | Ruling:
    claimed, rival = CLAIMED[LINEAR], CLAIMED[SQRT]
    return tuned_rates.slope_ruling(
        learned_at(dataset, LINEAR), claimed, rival, allowance=_narrow(dataset), sizes="loops"
    )


@JUDGES.decide(
    claim="Under the factor L^(-1/2) tuned rates leave that narrow band, by more than a factor of sqrt(2) from the "
    "fewest loops to the most",
    brief="Under the factor L^(-1/2) tuned rates spread by more than a factor of sqrt(2)",
    source="section 3.2 and figure 3a",
    rival="they stay within it",
    measured="the slope of the rates that minimise the training loss",
)
def judge_shift(dataset: xr.Dataset) -> Contest | Ruling:
    made = tuned_rates.slope_ruling(learned_at(dataset, SQRT), 0.0, CLAIMED[SQRT], sizes="loops")
    if isinstance(made, Ruling):
        return made
    slope, stderr = (float(column[0]) for column in (made.claim.difference, made.claim.stderr))
    shift = lower(_narrow(dataset) - abs(slope), stderr, unit="in the slope")
    return replace(shift, shown=made.shown, draws=made.draws, effective=made.effective, gaussian=True)


@JUDGES.decide(
    claim="Under the factor L^(-1/2) tuned rates fall as L^(-1/2), by L^(alpha-1)",
    brief="Under the factor L^(-1/2) tuned rates fall as L^(-1/2)",
    source="section 1, and eq. 4 beyond eps L = O(1)",
    rival="they are the same for every number of loops",
    measured="the slope of the rates that minimise the training loss",
)
def judge_sqrt(dataset: xr.Dataset) -> Contest | Ruling:
    return tuned_rates.slope_ruling(learned_at(dataset, SQRT), CLAIMED[SQRT], CLAIMED[LINEAR], sizes="loops")


@OF_OWN_BLOCKS.decide(
    claim="GPTs that learn under {optimizer}, branches times {factor}: tuned rates have over blocks the slope of one "
    "step, {claimed:.2f}, by the relative change of the layers",
    brief="Blocks of own weights times {factor}: tuned rates have the slope of one step, {claimed:.2f}",
    rival="slope {rival:g}",
    measured="the slope of the rates that minimise the training loss, of nets that learn",
    cases=[{"scaling": scaling} for scaling in SCALINGS],
)
def judge_own_blocks(dataset: xr.Dataset, scaling: str) -> Contest | Ruling:
    at = learned_at(dataset, scaling)
    claimed, error = tuned_rates.drawn_slope(at, "relative_scale")
    rival = 0.0 if abs(claimed) >= tuned_rates.APART else PAPERS_EXPONENT
    how: dict[str, Any] = {"error": error, "allowance": tuned_rates.ALLOWED, "sizes": "blocks"}
    made = tuned_rates.slope_ruling(at, claimed, rival, **how)
    words = {"optimizer": dataset.attrs["optimizer"], "factor": FACTORS[scaling]}
    return replace(made, words=made.words | words)


def findings(dataset: xr.Dataset) -> list[Finding]:
    """On one block that is applied over and over, or on blocks of their own."""
    return (JUDGES if dataset.attrs["blocks"] == SHARED else OF_OWN_BLOCKS).findings(dataset)


def _narrow(dataset: xr.Dataset) -> float:
    """The slope of rates that move by a factor of `NARROW` from the fewest loops to the most."""
    loops = dataset["loops"].values
    return float(np.log(NARROW) / np.log(loops[-1] / loops[0]))


@JUDGES.decide(
    claim="At {loops} loops the factor 1/L reaches a lower training loss than L^(-1/2)",
    source="section 3.2",
    rival="it reaches a higher one",
    measured="losses at the tuned rate of each, from the same initial weights",
)
def judge_loss(dataset: xr.Dataset) -> Contest | Ruling:
    loops = int(dataset["loops"][-1])
    losses = dataset["tuned_loss"].sel(loops=loops)
    if lost := int((~np.isfinite(losses)).sum()):
        evidence = f"{lost} of {losses.size} nets have no finite loss at the tuned rate, or there is no such rate"
        return Ruling(Verdict.INCONCLUSIVE, evidence, {"loops": loops}, "none: no loss to compare")
    if not (losses.mean("draw") < dataset["learned_loss"]).all():
        evidence = "nets have not learned at the tuned rate"
        return Ruling(Verdict.INCONCLUSIVE, evidence, {"loops": loops}, "none: no net learns")
    mean, stderr = loss_difference(dataset.sel(loops=loops))
    made = lower(mean, stderr, unit="in the loss")
    return made.saying(f"linear less sqrt {mean:+.4f} +- {stderr:.2g}", loops=loops)


# What is run: nets that learn. Until then these rows were of nets trained for 100 steps, which hardly do; length and
# bands were chosen after those runs, and before these.
PRESET = "evidence"
SMALL_SCALE = (
    "width 32, one block, 448 steps of Adam at a constant rate on windows of 16 characters, where the paper has 340M "
    "parameters, a warm-up, a decay and weight decay; branches times (2 L)^(-1/2) or 1/(2 L); rates tuned on 12 nets, "
    "which end below the loss of pairs of letters; moved from nets of 100 steps, which hardly learn, after their runs; "
    "one run in a thousand may refute what is true"
)

CLAIMS = (
    Claim(
        id="L7a",
        kind=Kind.BEYOND,
        source="Wang et al. 2026, figure 3b, at small scale",
        statement="tuned rates of looped Transformers align over the number of loops under the factor 1/L: within a "
        "factor sqrt(2) over 1 .. 8 loops",
        brief="tuned rates of looped Transformers align over loops under the factor 1/L",
        printed='"under our proposed linear scaling (b), the optima remain aligned in a narrow band across all loop '
        'counts" (figure 3)',
        hypotheses=f"{SMALL_SCALE}; the paper says 'a narrow band', whose reading as sqrt(2) was chosen after the "
        "rates of 16 nets had been seen",
        checks=checks(NAME, judge_linear),
        preset=PRESET,
    ),
    Claim(
        id="L7b",
        kind=Kind.BEYOND,
        source="Wang et al. 2026, section 3.2, figure 3a, at small scale",
        statement="tuned rates of looped Transformers shift over the number of loops under the factor L^(-1/2): by "
        "more than a factor sqrt(2) over 1 .. 8 loops",
        brief="tuned rates of looped Transformers shift over loops under the factor L^(-1/2)",
        printed='"the optimal learning rate for sqrt scaling shifts significantly as L increases" (section 3.2)',
        hypotheses=f"{SMALL_SCALE}; the paper says 'significantly', which is read as outside the band of L7a",
        checks=checks(NAME, judge_shift),
        replaced_by="in 448 steps of Adam at width 32 the tuned rate is the same for 1 to 8 loops, as "
        "L^(0.015 +- 0.011); under the factor 1/L it rises as L^(0.106 +- 0.012)",
        premise="the size of the net and the course of its training, which are far from the paper's, do not matter",
        preset=PRESET,
    ),
    Claim(
        id="L7c",
        kind=Kind.BEYOND,
        source="Wang et al. 2026, section 3.2, at small scale",
        statement="at 8 loops the factor 1/L trains to a lower loss than L^(-1/2), each at the rate that is best for "
        "it",
        brief="at 8 loops the factor 1/L trains to a lower loss than L^(-1/2)",
        printed='"At L = 8, linear scaling achieves a significantly lower minimum loss than sqrt scaling (a '
        'non-trivial reduction of 0.025)" (section 3.2)',
        hypotheses=f"{SMALL_SCALE}, losses of 36 other nets",
        checks=checks(NAME, judge_loss),
        preset=PRESET,
    ),
    Claim(
        id="L7d",
        kind=Kind.BEYOND,
        source="Wang et al. 2026, section 1; eq. 4 has it where eps L = O(1), and section 3.2 reports a departure from "
        "it; at small scale",
        statement="under the factor L^(-1/2) too, tuned rates of looped Transformers go as L^(alpha - 1) = L^(-1/2)",
        brief="tuned rates of looped Transformers go as L^(-1/2) under the factor L^(-1/2)",
        printed='"we derive that the optimal learning rate scales as eta ~ L^(alpha - 1), consistent with deep model '
        'behavior" (section 1)',
        hypotheses=f"{SMALL_SCALE}; those of eq. 4 without eps L = O(1)",
        checks=checks(NAME, judge_sqrt),
        preset=PRESET,
        replaced_by="in 448 steps of Adam at width 32 the tuned rate is the same for 1 to 8 loops under L^(-1/2), too, "
        "as L^(0.015 +- 0.011); what loops cost there is loss",
        premise="the size of one update's change of the stream decides which rate trains best; and eps L = O(1), which "
        "equation 4 asks for, fails at alpha = 1/2; section 3.2 itself sees the tuned rate leave the "
        "rule of deep stacks there, which is the same L^(alpha - 1)",
    ),
    Claim(
        id="T5",
        kind=Kind.OWN,
        source="by training of our own, beside Wang et al. 2026, section 3.2, figure 3b",
        statement="the tuned rate of looped Transformers under the factor 1/L has over the number of loops the "
        "exponent of the rate at which one step of Adam moves their layers by 1 (median net)",
        brief="tuned rates of looped Transformers under 1/L follow one step over loops",
        printed="no sentence of a paper: a question of our own, whether one step says exactly by how much rates move; "
        "Wang et al. 2026, section 3.2, call them 'nearly invariant' (L7a)",
        hypotheses=f"{SMALL_SCALE}; the scale is that of one step of Adam on the text, the median over drawn nets",
        checks=checks(NAME, judge_one_step),
        replaced_by="in 448 steps of Adam at width 32 the tuned rate rises as L^(0.106 +- 0.012) over 1 to 8 loops, by "
        "a factor of 1.25, where one step has L^(0.01)",
        premise="the first step at initialisation stands for 448 steps of training",
        preset=PRESET,
    ),
    Claim(
        id="E1e",
        kind=Kind.OWN,
        source="docs/theory.md section 24",
        statement="tuned rates of pre-norm GPTs of characters, whose blocks have weights of their own, fall over depth "
        "as one step of Adam says, to 0.15 in the slope, by the relative change of the layers",
        brief="tuned slopes of GPTs of characters are those of one step of Adam",
        printed="no sentence of a paper: a question of our own, whether the step that is made first tells how nets "
        "train",
        hypotheses=f"{SMALL_SCALE}; 1 .. 8 blocks, branches times (2 L)^(-1/2) and 1/(2 L); sizes and bands were "
        "written down before these runs, and after those of one block that is applied over and over",
        checks=checks(
            NAME, *(partial(judge_own_blocks, scaling=scaling) for scaling in SCALINGS), arguments=("--blocks", OWN)
        ),
        replaced_by="under 1/(2 L) the tuned rate stays, as L^(0.01 +- 0.01), where one step has L^(0.07); under "
        "(2 L)^(-1/2) it falls over 1 to 8 blocks as L^(-0.14 +- 0.01), where one step has L^(-0.49)",
        premise="the first step at initialisation stands for 448 steps of training",
        preset=PRESET,
    ),
    Claim(
        id="E1l",
        kind=Kind.OWN,
        source="docs/theory.md section 24",
        statement="tuned rates of pre-norm GPTs of characters of 64 channels that see 64 characters fall over 1 to 4 "
        "blocks as one step of Adam says, to 0.15 in the slope, by the relative change of the layers",
        brief="tuned slopes of GPTs are those of one step at 64 channels and characters, too",
        printed="no sentence of a paper: a question of our own, whether the step that is made first tells how nets "
        "train",
        hypotheses="448 steps of Adam at a constant rate on 8 windows of 64 characters, 64 channels, 1 and 4 blocks, "
        "branches times (2 L)^(-1/2) and 1/(2 L); rates tuned on 24 nets at an eighth of a decade, which end below the "
        "loss of pairs of letters; one run in a thousand may refute what is true; these sizes were written down after "
        "12 nets at a quarter of a decade had left (2 L)^(-1/2) 4.1 standard errors beyond what is allowed, where 4.4 "
        "decide",
        checks=checks(
            NAME,
            *(partial(judge_own_blocks, scaling=scaling) for scaling in SCALINGS),
            arguments=(
                *("--blocks", OWN, "--wider", "2", "--tokens", "64", "--loops", "1", "4"),
                *("--times", "2", "--spacing", "0.125"),
            ),
        ),
        replaced_by="under 1/(2 L) they do, as L^(-0.07 +- 0.01) where one step has L^(0.07 +- 0.02); under "
        "(2 L)^(-1/2) they fall as L^(-0.25 +- 0.01), where it has L^(-0.51 +- 0.02)",
        premise="the first step at initialisation stands for 448 steps of training",
        preset=PRESET,
    ),
)

# What is printed.

WORDS = {
    "tuned rate": "the learning rate that minimises the loss on all windows after the last step: the vertex of a "
    "parabola of ln(loss) over log10(rate) for every seed, and the geometric mean of these over seeds.",
    "loss": "mean over draws, nets that the rate was not tuned on, at the tuned rate; linear less sqrt from the same "
    "initial weights and mini-batches.",
    "step, absolute; relative; outputs": "the slope of the rate at which one step of the optimizer that trains moves "
    "the layers by 1, each by its own size, or the outputs by 1; medians over drawn nets.",
    "sqrt, linear": "branches times (2 L)^(-1/2) and 1/(2 L), as a loop adds two branches.",
}


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    laws = {scaling: tuned_slope(dataset, scaling) for scaling in CLAIMED}
    slopes = (f"{scaling} {law.exponent:+.2f} +- {law.stderr:.2f}" for scaling, law in laws.items())
    return answer(findings[:1], f"slopes in L: {', '.join(slopes)}")


def _slope_title(dataset: xr.Dataset) -> str:
    loops = dataset["loops"].values
    return f"Slopes of the tuned rate in L over {loops[0]} .. {loops[-1]}"


# Scales of one step whose slopes stand beside those of tuned rates.
OF_STEP = ("absolute", "relative", "outputs")


def _slope_columns(dataset: xr.Dataset) -> list[Column]:
    def of_step(at: xr.Dataset, of: str) -> str:
        slope, error = tuned_rates.drawn_slope(at_tuned(dataset, str(at["scaling"].values)), f"{of}_scale")
        return fitted(PowerLaw(slope, error, 1.0))

    return [
        Column("tuned rate", lambda at: fitted(tuned_slope(dataset, str(at["scaling"].values)))),
        Column("L^(alpha-1)", lambda at: number(CLAIMED[str(at["scaling"].values)])),
        Column([f"step, {of}" for of in OF_STEP], lambda at: [of_step(at, of) for of in OF_STEP]),
    ]


def _rate_column(scaling: str) -> Column:
    """The tuned rate, its error, and the loss of other nets at it."""

    def cells(at: xr.Dataset) -> list[str]:
        of_net = at.sel(scaling=scaling)
        error = float(of_net["tuned_rate_log10_stderr"])
        rate = number(10.0 ** float(of_net["tuned_rate_log10"]))
        return [rate, MISSING if np.isnan(error) else f"{error:.3f}", f"{of_net['tuned_loss'].values.mean():.4f}"]

    return Column([scaling, "+- decades", "loss"], cells)


def _loss_cell(at: xr.Dataset) -> str:
    mean, error = loss_difference(at)
    return f"{mean:+.4f} +- {error:.2g}" if np.isfinite(mean) else MISSING


SLOPE_TABLE = Table("slope table", _slope_title, ["scaling"], "scaling", _slope_columns)
RATE_TABLE = Table("rate table", "Tuned rates and losses", ["loops"], "loops", [*map(_rate_column, CLAIMED)])
LOSS_TABLE = Table(
    "loss table",
    "Difference of losses at the tuned rates",
    ["loops"],
    "loops",
    [Column("linear - sqrt", _loss_cell)],
)

STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=Report(
        question="Do tuned rates of Transformers of L blocks with {blocks} weights go with L as claimed?",
        answer=_answer,
        heading="Characters of English text: windows of {tokens}, {steps} steps of {batch_size} windows, {optimizer} "
        "at a constant rate;\nwidth {width}, {heads} heads, L blocks of {blocks} weights; every rate is tuned on "
        "{tuning_seeds} nets,\nand {draws} others train at it; seed {seed}",
        parts=[SLOPE_TABLE, RATE_TABLE, LOSS_TABLE],
        findings=findings,
        words=WORDS,
    ),
    claims=CLAIMS,
)

if __name__ == "__main__":
    run_as_command(NAME)
