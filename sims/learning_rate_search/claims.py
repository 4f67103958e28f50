"""Zhang et al. 2026, section 4, by training of our own: does the tuned rate follow the one-step scale over depth?

The scale is the rate at which one step of the optimizer that trains moves the layers of the net by 1, on its data,
under its loss and by its batches, as the paper's scale is: the median over drawn nets. Slopes and their errors are
those of `tuned_rates`, through the depths at which nets learn. Tied loops are Wang et al. 2026's.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from meanfield.common import Array, PowerLaw, fit_power_law
from meanfield.verification import (
    PAPERS_EXPONENT,
    Bands,
    Check,
    Claim,
    Contest,
    Finding,
    Judges,
    Kind,
    Ruling,
    Shares,
    Verdict,
    checks,
    lower,
    shown_laws,
    span,
    tuned_rates,
)
from sims.learning_rate_search.first_steps import FINE_CNN, FINER_PLAIN, PRESET, TRAINED

NAME = "learning_rate_search"

JUDGES = Judges(budget=tuned_rates.TRAINED_BUDGET)

# What the one-step scale is held against, family by family: a rate that needs no change with depth, or the power of the
# papers where one step lies far from it.
RIVALS = {
    "mlp": 0.0,
    "cnn on mnist": 0.0,
    "residual mlp init": PAPERS_EXPONENT,
    "residual cnn init on mnist": 0.0,
    "residual mlp multiplier": PAPERS_EXPONENT,
    "residual cnn multiplier on mnist": PAPERS_EXPONENT,
    "residual mlp k=2": PAPERS_EXPONENT,
    "transformer post on mnist": 0.0,
    "transformer pre on mnist": 0.0,
}
# Plain ReLU nets, which have one law where all layers are equal: a first layer of few inputs makes its scale steeper.
PLAIN = ("mlp", "cnn on mnist")
# The scale of Zhang et al. 2026, by the change of the layers, as `sims.common.tuned_nets` names it.
ABSOLUTE = "absolute_scale"
# Transformers by where they normalise.
NORMS = ("transformer pre on mnist", "transformer post on mnist")
# 2 / lambda_max names a rate if it is right to this factor.
FACTOR = 4.0


def weighted_slope(at: xr.Dataset) -> PowerLaw:
    """The papers' fit: weights inversely proportional to the variances over seeds; NaN where one of them is 0."""
    if at.sizes["depth"] < 2 or not at["tuned_rate_log10_stderr"].all():
        return PowerLaw(float("nan"), float("nan"), float("nan"))
    rate = 10.0 ** at["tuned_rate_log10"].values
    return fit_power_law(at["depth"].values, rate, rate * np.log(10) * at["tuned_rate_log10_stderr"].values)


def scale_slope(at: xr.Dataset, name: str) -> float:
    """The slope of a scale without errors through the same depths, such as the one-step theory's."""
    if at.sizes["depth"] < 2:
        return float("nan")
    return float(tuned_rates.slope_weights(at) @ np.log10(at[name].values))


def law_slope(at: xr.Dataset) -> float:
    """The slope of the finite-depth law of equal layers, sqrt(24 / ((L + 1)(L^2 + L + 1)))."""
    depth = at["depth"].values
    return float(tuned_rates.slope_weights(at) @ np.log10(((depth + 1) * (depth**2 + depth + 1)) ** -0.5))


@JUDGES.decide(
    brief="{family}: the tuned rate has the slope of one step in depth, {claimed:.2f}",
    claim="{family}: the tuned rate falls over depth as one step moves the layers of the nets that train, with slope "
    "{claimed:.2f}",
    rival="with slope {rival:g}",
    measured="the slope of the rates that minimise the training loss",
    cases=[{"family": family} for family in RIVALS],
)
def judge_one_step(dataset: xr.Dataset, family: str) -> Contest | Ruling:
    """Of nets that learn."""
    if family not in dataset["family"]:
        return _not_run(family, rival=RIVALS[family])
    at = tuned_rates.learned_at(dataset, family)
    claimed, error = tuned_rates.drawn_slope(at, ABSOLUTE)
    made = tuned_rates.slope_ruling(at, claimed, RIVALS[family], error=error)
    if isinstance(made, Contest):
        of_mean = scale_slope(at, "absolute_mean_scale")
        made = replace(made, shown=f"{made.shown}; by the mean over nets one step has {of_mean:.2f}")
    return made


def _not_run(family: str, **words: float) -> Ruling:
    return Ruling(Verdict.INCONCLUSIVE, f"{family} was not run", words, "none: no net")


@JUDGES.decide(
    claim="{family}: tuned rates fall as the finite-depth law of equal layers, with slope {claimed:.2f}",
    rival="as L^(-3/2)",
    measured="the slope over the same depths",
    cases=[{"family": family} for family in PLAIN],
)
def judge_finite_depth(dataset: xr.Dataset, family: str) -> Contest | Ruling:
    if family not in dataset["family"]:
        return _not_run(family)
    at = tuned_rates.learned_at(dataset, family)
    return tuned_rates.slope_ruling(at, law_slope(at), PAPERS_EXPONENT)


@JUDGES.decide(
    brief="Slopes of tuned rates differ by less than a tenth, pre-norm or post-norm",
    claim="Where a Transformer normalises has minimal effect: slopes of tuned rates differ by less than a tenth of "
    "that of post-norm",
    source="Zhang et al. 2026, section 4.5",
    rival="they differ by more",
    measured="the slope of pre-norm less that of post-norm, of the rates that minimise the training loss",
)
def judge_placement(dataset: xr.Dataset) -> Contest | Ruling:
    """Over the depths at which both have a tuned rate, as slopes bend with depth."""
    pre, post = (tuned_rates.family_at(dataset, family) for family in NORMS)
    common = np.intersect1d(pre["depth"], post["depth"])
    at = [net.sel(depth=common) for net in (pre, post)]
    if len(common) < 2:
        evidence = "no slope was met: fewer than two depths have a tuned rate"
        return Ruling(Verdict.INCONCLUSIVE, evidence, power="none: no slope")
    before, after = map(tuned_rates.tuned_slope, at)
    apart, stderr = before.exponent - after.exponent, float(np.hypot(before.stderr, after.stderr))
    seeds, effective = min(int(net["located"].max()) for net in at), min(map(tuned_rates.freedom, at)) + 1
    words = f"slopes {shown_laws(before, after)} over depths {span(common)}: {apart:+.3f} +- {stderr:.3f}"
    counts = {"draws": seeds, "effective": effective, "gaussian": True}
    return lower(
        abs(apart) - tuned_rates.EFFECT * abs(after.exponent), stderr, unit="in the difference", shown=words, **counts
    )


def log_ratio(dataset: xr.Dataset, stable: str = "stable_rate") -> Array:
    """log10 of tuned over stable rates, (family, depth); NaN where no minimum was met."""
    return np.asarray((dataset["tuned_rate_log10"] - np.log10(dataset[stable])).values)


def _ratio_errors(dataset: xr.Dataset) -> tuple[Array, Array]:
    """Standard errors of tuned and of stable rates, as of `log_ratio`."""
    stable = dataset["stable_rate_stderr"] / (dataset["stable_rate"] * np.log(10))
    return dataset["tuned_rate_log10_stderr"].values, stable.values


def _ratio_bands(dataset: xr.Dataset, known: NDArray[np.bool_]) -> list[Bands]:
    """Standard errors that count, net by net: by Welch and Satterthwaite, as few nets are drawn for the stable rate."""
    variances = np.array([error[known] ** 2 for error in _ratio_errors(dataset)])
    located = dataset["located"].values[known]
    samples = np.stack([located - 1, np.full(known.sum(), dataset.attrs["curvature_draws"] - 1)])
    parts = np.maximum((variances**2 / samples).sum(axis=0), np.finfo(float).tiny)
    degrees = np.maximum(variances.sum(axis=0) ** 2 / parts, samples.min(axis=0))
    how: dict[str, Any] = {"gaussian": True, "budget": JUDGES.budget}
    return [Bands.of(len(JUDGES) * known.sum(), least + 1, **how) for least in degrees]


@JUDGES.decide(
    brief="2 / lambda_max names the tuned rate of nets that learn within a factor of {factor:g}",
    claim="2 / lambda_max at initialisation names the tuned rate of every net that learns within a factor of "
    "{factor:g}",
    rival="it is off by more somewhere",
    measured="tuned over stable rate, of medians over drawn nets",
)
def judge_stable_rate(dataset: xr.Dataset) -> Ruling:
    learned, ratios, words = tuned_rates.learning(dataset).values, log_ratio(dataset), {"factor": FACTOR}
    known = learned & np.isfinite(ratios)
    if not known.any():
        evidence = f"of {learned.size} nets {learned.sum()} learn, and none of these has a minimum"
        return Ruling(Verdict.INCONCLUSIVE, evidence, words, "none: no minimum")
    bands, ratio, error = _ratio_bands(dataset, known), ratios[known], np.hypot(*_ratio_errors(dataset))[known]
    alarms, sure = (np.array([getattr(band, name) for band in bands]) for name in ("alarm", "sure"))
    off = np.abs(ratio) - np.log10(FACTOR)
    evidence = f"tuned over stable {10 ** ratio.min():.2g} .. {10 ** ratio.max():.2g}, "
    evidence += f"worst {(off / error).max():.1f} s.e. beyond, where {alarms.min():.3g} or more count"
    if lost := int(learned.sum()) - len(ratio):
        evidence += f"; {lost} of {learned.sum()} nets that learn have no minimum"
    with np.errstate(over="ignore"):  # of few draws no factor is too large
        refuted = FACTOR * 10 ** (sure * error)
    power = Shares(refuted.min(), refuted.max()).in_words(f"a net off by a factor of {refuted.min():.2g} is refuted")
    if (off > alarms * error).any():
        return Ruling(Verdict.REFUTED, evidence, words, power)
    confirmed = not lost and (off < -alarms * error).all()
    return Ruling(Verdict.CONFIRMED if confirmed else Verdict.INCONCLUSIVE, evidence, words, power)


def findings(dataset: xr.Dataset) -> list[Finding]:
    """On the families that this run has; 2 / lambda_max is a rate of gradient descent, and no other is held to it."""
    families = set(dataset["family"].values)
    own = [judge_one_step(dataset, family) for family in RIVALS if family in families]
    law = [judge_finite_depth(dataset, family) for family in PLAIN if family in families]
    placement = [judge_placement(dataset)] if families.issuperset(NORMS) else []
    descends = dataset.attrs.get("optimizer", "sgd") == "sgd"
    return [*own, *law, *placement, *([judge_stable_rate(dataset)] if descends else [])]


def _of(*families: str, arguments: tuple[str, ...] = ()) -> tuple[Check, ...]:
    """The one-step scale's checks of these families."""
    judges = (partial(judge_one_step, family=family) for family in families)
    return checks(NAME, *judges, arguments=arguments)


TABLE = "Zhang et al. 2026, table 1, figures 3, 4; by training of our own"
PROXY = (
    '"We treat this grid-searched one-epoch optimum as an empirical proxy for the maximal-update learning-rate scale '
    'eta* defined in Sec. 3.2" (section 4.1)'
)
# What is run: nets that learn, by gradient descent. Until then these rows were of nets trained for one epoch, which
# hardly learn, and of white inputs and labels; scale, data and bands were chosen after those runs, and before these.
DESCENDED = (
    f"gradient descent, {TRAINED}; the scale is that of one step on the data, by the change of the layers, from which "
    "no distance is allowed that errors do not explain; the paper trains for one epoch, and these rows were moved from "
    "such nets, which hardly learn, after their runs, which had confirmed T2"
)
ETA = (
    "has over depth the exponent of their own eta*, the rate at which one step moves their layers by 1 (mean square "
    "over layers, median net)"
)
LATER = "the first step at initialisation stands for training until nets learn"
# Fully-connected residual nets, which are cheap to train, on four times the seeds: the first 12 did not decide.
INIT, K2 = "residual mlp init", "residual mlp k=2"
MORE_SEEDS = ("--families", INIT, K2, "--draws", "48")
MORE_LOOPS = ("--families", "loop sqrt", "--times", "8", "--spacing", "0.0625", "--curvature-draws", "96")
SECOND_LOOK = "48 seeds of fully-connected nets, of which the first 12 were looked at before and did not decide"
# Pre- and post-norm Transformers of 32 channels on MNIST, at twice the seeds.
BOTH_NORMS = ("--families", *reversed(NORMS), "--wider", "2", "--times", "2")
OF_NORMS = (
    "this run was made for rows on a paper's tables (A24, A25), whose slopes had been seen when this row was moved to "
    "it, from 16 channels and one epoch on digits, in which nets hardly learn (pre-norm -0.57 +- 0.06, post-norm -1.38 "
    "+- 0.08 over 2 to 16 units)"
)
CLAIMS = (
    Claim(
        id="A21b",
        kind=Kind.READING,
        source=TABLE,
        statement="tuned rates of small plain nets follow the law at finite depth, not -3/2",
        printed='"strong evidence for the shared leading-order L^(-3/2) depth scale, with the remaining variation '
        'reflecting finite-depth offsets, fixed stem/head components, and architecture-dependent constants" (section '
        "4.1)",
        hypotheses=f"gradient descent, {TRAINED}; the law is that of layers that are all equal; {FINER_PLAIN}",
        checks=checks(NAME, *(partial(judge_finite_depth, family=family) for family in PLAIN))
        + checks(NAME, partial(judge_finite_depth, family="cnn on mnist"), arguments=FINE_CNN),
        replaced_by="the tuned rate of convolutional nets falls over 2 to 8 layers as L^(-2.30 +- 0.21) with 16 "
        "channels and as L^(-2.47 +- 0.10) with 32, where the law has L^(-1.24); that of fully-connected ones over 2 "
        "to 16 layers as L^(-1.14 +- 0.10), which it allows, as L^(-3/2) does",
        premise=f"{LATER}; layers and data as they are, in place of equal and white ones, take the law to L^(-1.51) "
        "alone",
        preset=PRESET,
    ),
    Claim(
        id="T1",
        kind=Kind.BEYOND,
        source=TABLE,
        statement=f"the tuned rate of small plain nets {ETA}",
        brief="tuned rates of small plain nets follow one step over depth",
        printed=PROXY,
        hypotheses=f"{DESCENDED}; {FINER_PLAIN}, as runs of 16 channels had not told",
        checks=_of("mlp", "cnn on mnist") + _of("cnn on mnist", arguments=FINE_CNN),
        replaced_by="in fully-connected nets it does not surely fall otherwise, as L^(-1.14 +- 0.10) where one step "
        "has -1.34; in convolutional ones of 32 channels it falls over 2 to 8 layers as L^(-2.47 +- 0.10), where one "
        "step of the median net has -1.37 +- 0.15 and the mean over nets -1.87",
        premise=LATER,
        preset=PRESET,
    ),
    Claim(
        id="T2",
        kind=Kind.BEYOND,
        source="Zhang et al. 2026, sections 4.1 and 4.3, table 1; by training of our own",
        statement="the tuned rate of small residual nets initialised with variance 1/K, fully-connected and "
        f"convolutional, {ETA}",
        brief="tuned rates of small residual nets of variance 1/K follow one step over depth",
        printed=PROXY,
        hypotheses=f"{DESCENDED}; branches of one layer; the paper trains convolutional ones; it derives K^(-3/2) for "
        f"this scale, which tends to K^-1; {SECOND_LOOK}",
        checks=_of(INIT, arguments=MORE_SEEDS) + _of("residual cnn init on mnist"),
        replaced_by="in convolutional nets it does, as K^(-1.43 +- 0.12); in fully-connected ones the tuned rate falls "
        "over 2 to 16 blocks as K^(-0.81 +- 0.04), where one step moves the layers as K^(-1.17) and the outputs as "
        "K^(-0.90), which holds to 0.15 (E1a)",
        premise="the absolute change of the layers, each counting alike, is what bounds the rate that trains best",
        preset=PRESET,
    ),
    Claim(
        id="T3",
        kind=Kind.BEYOND,
        source="Zhang et al. 2026, sections 3.4, 4.1 and 4.3; by training of our own",
        statement="the tuned rate of small residual nets with the multiplier K^(-1/2), fully-connected and "
        f"convolutional, and of those with branches of two layers, {ETA}",
        brief="tuned rates of other small residual nets follow one step over depth",
        printed=PROXY,
        hypotheses=f"{DESCENDED}; branches of one layer under the multiplier; the paper takes the multiplier for "
        "variance 1/K and absorbs the depth of a branch; this scale tends to K^0; "
        f"branches of two layers: {SECOND_LOOK}",
        checks=_of("residual mlp multiplier", "residual cnn multiplier on mnist") + _of(K2, arguments=MORE_SEEDS),
        replaced_by="under the multiplier it does; with branches of two layers the tuned rate is the same for 2 to 16 "
        "blocks, as K^(0.00 +- 0.03), where one step moves the layers as K^(+0.22) and the outputs as K^(+0.18)",
        premise="the absolute change of the layers, each counting alike, is what bounds the rate that trains best",
        preset=PRESET,
    ),
    Claim(
        id="T4",
        kind=Kind.BEYOND,
        source="Zhang et al. 2026, section 4.1, tables 1 (post-norm) and 3 (pre-norm); by training of our own",
        statement=f"the tuned rate of small pre- and post-norm Transformers {ETA}",
        brief="tuned rates of pre- and post-norm Transformers follow one step over depth",
        printed=PROXY,
        hypotheses=f"gradient descent, {TRAINED}; 32 channels, 24 nets, no factor on branches; {OF_NORMS}",
        checks=_of(*reversed(NORMS), arguments=BOTH_NORMS),
        replaced_by="the tuned rate of pre-norm nets falls over 4 to 16 units as L^(-0.280 +- 0.071), where one step "
        "on the data has L^(-1.13) by the layers and L^(-0.57) by the outputs; that of post-norm nets over 4 and 8 as "
        "L^(-0.995 +- 0.103), where one step of the layers has L^(-1.52), which errors allow",
        premise=LATER,
        preset=PRESET,
    ),
    Claim(
        id="A20c",
        kind=Kind.BEYOND,
        source="Zhang et al. 2026, section 4.5, on small nets of our own",
        statement="in small Transformers normalisation placement has minimal effect on the exponent of eta* over "
        "depths that are trained: slopes differ by less than a tenth of post-norm's (judged: tuned rates of our own "
        "nets over 2 .. 16 units)",
        brief="normalisation placement hardly moves the exponent of eta* at trained depths",
        printed='"In ViTs, Pre-LN and Post-LN yield similar exponents (-1.131 vs -1.178, 4.0% difference), '
        'indicating that normalization placement has minimal effect on depth scaling" (section 4.5)',
        hypotheses="the paper tunes ViTs of width 768 on ImageNet, whose slopes are -1.131 and -1.178; a tenth is our "
        "reading of 'minimal'; here 32 channels on MNIST, eight epochs of gradient descent, 24 nets, losses of 0.55 to "
        f"0.92 where chance is 2.30; other rows leave out nets above 0.77, and all count here; {OF_NORMS}",
        checks=checks(NAME, judge_placement, arguments=BOTH_NORMS),
        replaced_by="in eight epochs of gradient descent on MNIST, 32 channels, tuned rates of pre-norm nets fall "
        "over 2 to 16 units as L^(-0.35 +- 0.04), those of post-norm ones as L^(-0.98 +- 0.04)",
        premise="nets of 32 channels, trained for 896 steps, tell what the paper's ViTs tell",
        preset=PRESET,
    ),
    Claim(
        id="T7",
        kind=Kind.OWN,
        source="docs/theory.md section 21",
        statement="2 / lambda_max at initialisation names the tuned rate of every small net that learns to a factor of "
        "4, with nothing tuned",
        brief="2 / lambda_max at initialisation names the tuned rate to a factor of 4",
        printed="no sentence of a paper: a question of our own, whether the sharpness at initialisation names the "
        "tuned rate",
        hypotheses=f"gradient descent, {TRAINED}; loops of factor L^(-1/2) on 96 seeds and 96 curvatures, too, tuned "
        "to a 16th of a decade, written down before that run, after 12 and 16 had 9.5 times the stable rate at 16 "
        "steps, 2.5 standard errors beyond 4",
        checks=checks(NAME, judge_stable_rate) + checks(NAME, judge_stable_rate, arguments=MORE_LOOPS),
        replaced_by="loops of factor L^(-1/2) are tuned at 2.7, 4.3, 6.0 and 8.5 times it at 2, 4, 8 and 16 steps; of "
        "all nets that learn the least is 0.35 times it",
        premise="the curvature stays as it is at initialisation",
        preset=PRESET,
    ),
)
