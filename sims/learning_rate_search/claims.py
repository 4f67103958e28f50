"""Zhang et al. 2026, section 4, by training of our own: does the tuned rate follow the one-step scale over depth?

Slopes and their errors are those of `tuned_rates`. Tied loops are Wang et al. 2026's.
"""

from functools import partial

import numpy as np
import xarray as xr

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

NAME = "learning_rate_search"

JUDGES = Judges()

# What the one-step scale is held against, family by family: a rate that needs no change with depth, the papers' power
# where theory has another one, or the power of loops under the factor L^(-1/2), Wang et al. 2026, eq. 4.
RIVALS = {
    "mlp": 0.0,
    "cnn": 0.0,
    "residual mlp init": PAPERS_EXPONENT,
    "residual mlp multiplier": PAPERS_EXPONENT,
    "residual mlp k=2": PAPERS_EXPONENT,
    "transformer post": 0.0,
    "transformer pre": 0.0,
    "loop linear": -0.5,
    "loop sqrt": 0.0,
}
# Plain ReLU nets, which have one law where all layers are equal: a first layer of few inputs makes its scale steeper.
PLAIN = ("mlp", "cnn")
# Transformers by where they normalise.
NORMS = ("transformer pre", "transformer post")
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
    claim="{family}: the tuned rate falls over depth as the one-step scale of white inputs and labels, with slope "
    "{claimed:.2f}",
    rival="with slope {rival:g}",
    measured="the slope of the rates that minimise the training loss",
    cases=[{"family": family} for family in RIVALS],
)
def judge_one_step(dataset: xr.Dataset, family: str) -> Contest | Ruling:
    return tuned_rates.slope_ruling(dataset, family, lambda at: scale_slope(at, "one_step_scale"), RIVALS[family])


@JUDGES.decide(
    claim="{family}: tuned rates fall as the finite-depth law of equal layers, with slope {claimed:.2f}",
    rival="as L^(-3/2)",
    measured="the slope over the same depths",
    cases=[{"family": family} for family in PLAIN],
)
def judge_finite_depth(dataset: xr.Dataset, family: str) -> Contest | Ruling:
    return tuned_rates.slope_ruling(dataset, family, law_slope, PAPERS_EXPONENT)


@JUDGES.decide(
    claim="Where a Transformer normalises has minimal effect: slopes of tuned rates differ by less than a tenth of "
    "that of post-norm",
    source="Zhang et al. 2026, section 4.5",
    rival="they differ by more",
    measured="the slope of pre-norm less that of post-norm, of the rates that minimise the training loss",
)
def judge_placement(dataset: xr.Dataset) -> Contest | Ruling:
    at = [tuned_rates.family_at(dataset, family) for family in NORMS]
    if min(net.sizes["depth"] for net in at) < 2:
        evidence = "no slope was met: fewer than two depths have a tuned rate"
        return Ruling(Verdict.INCONCLUSIVE, evidence, power="none: no slope")
    pre, post = map(tuned_rates.tuned_slope, at)
    apart, stderr = pre.exponent - post.exponent, float(np.hypot(pre.stderr, post.stderr))
    seeds, effective = min(int(net["located"].max()) for net in at), min(map(tuned_rates.freedom, at)) + 1
    words = f"slopes {shown_laws(pre, post)} over depths {span(at[0]['depth'])}: {apart:+.3f} +- {stderr:.3f}"
    counts = {"draws": seeds, "effective": effective}
    return lower(
        abs(apart) - tuned_rates.EFFECT * abs(post.exponent), stderr, unit="in the difference", shown=words, **counts
    )


def log_ratio(dataset: xr.Dataset) -> tuple[Array, Array]:
    """log10 of tuned over stable rates, of every family and depth that has them, with standard errors."""
    ratio, errors = _log_ratios(dataset)
    known = np.isfinite(ratio)
    return ratio[known], np.hypot(*errors)[known]


def _log_ratios(dataset: xr.Dataset) -> tuple[Array, tuple[Array, Array]]:
    """The same of all nets, NaN where no minimum was met, and the errors of tuned and of stable rates apart."""
    stable = dataset["stable_rate_stderr"] / (dataset["stable_rate"] * np.log(10))
    ratio = dataset["tuned_rate_log10"] - np.log10(dataset["stable_rate"])
    return ratio.values, (dataset["tuned_rate_log10_stderr"].values, stable.values)


def _ratio_bands(dataset: xr.Dataset) -> list[Bands]:
    """Standard errors that count, net by net: by Welch and Satterthwaite, as few nets are drawn for the stable rate."""
    ratio, errors = _log_ratios(dataset)
    known = np.isfinite(ratio)
    variances = np.array([error[known] ** 2 for error in errors])
    samples = np.stack([dataset["located"].values[known] - 1, np.full(known.sum(), tuned_rates.CURVATURE_DRAWS - 1)])
    parts = np.maximum((variances**2 / samples).sum(axis=0), np.finfo(float).tiny)
    degrees = np.maximum(variances.sum(axis=0) ** 2 / parts, samples.min(axis=0))
    return [Bands.of(len(JUDGES) * known.sum(), least + 1) for least in degrees]


@JUDGES.decide(
    claim="2 / lambda_max at initialisation names the tuned rate within a factor of {factor:g}, in every family and at "
    "every depth",
    rival="it is off by more somewhere",
    measured="tuned over stable rate, of medians over drawn nets",
)
def judge_stable_rate(dataset: xr.Dataset) -> Ruling:
    ratio, error = log_ratio(dataset)
    nets, words = dataset["stable_rate"].size, {"factor": FACTOR}
    if not ratio.size:
        return Ruling(Verdict.INCONCLUSIVE, f"no minimum was met in any of {nets} nets", words, "none: no minimum")
    bands = _ratio_bands(dataset)
    alarms, sure = (np.array([getattr(band, name) for band in bands]) for name in ("alarm", "sure"))
    off = np.abs(ratio) - np.log10(FACTOR)
    evidence = f"tuned over stable {10 ** ratio.min():.2g} .. {10 ** ratio.max():.2g}, "
    evidence += f"worst {(off / error).max():.1f} s.e. beyond, where {alarms.min():.3g} or more count"
    if lost := nets - len(ratio):
        evidence += f"; {lost} of {nets} nets have no minimum"
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


def _of(*families: str) -> tuple[Check, ...]:
    """The one-step scale's checks of these families."""
    return checks(NAME, *(partial(judge_one_step, family=family) for family in families))


TABLE = "Zhang et al. 2026, table 1, figures 3, 4; by training of our own"
# What was run: the preset "default" of `sims.learning_rate_search`.
ONE_EPOCH = "one epoch of gradient descent on digits, width 64 or 16 channels, 2 .. 16 units, rates tuned on 20 nets"
WHITE = f"{ONE_EPOCH}; the scale is that of one step of descent on white inputs and labels, not of the net that trains"
CLAIMS = (
    Claim(
        id="A21b",
        kind=Kind.READING,
        source=TABLE,
        statement="tuned rates of small plain nets follow the law at finite depth, not -3/2",
        printed='"strong evidence for the shared leading-order L^(-3/2) depth scale, with the remaining variation '
        'reflecting finite-depth offsets, fixed stem/head components, and architecture-dependent constants" (section '
        "4.1)",
        hypotheses=f"{ONE_EPOCH}; the law is that of layers that are all equal",
        checks=checks(NAME, *(partial(judge_finite_depth, family=family) for family in PLAIN)),
    ),
    Claim(
        id="T1",
        kind=Kind.AS_STATED,
        source=TABLE,
        statement="the tuned rate of small plain nets follows the one-step scale of white inputs and labels over depth",
        brief="tuned rates of small plain nets follow the one-step scale over depth",
        printed='"We treat this grid-searched one-epoch optimum as an empirical proxy for the maximal-update '
        'learning-rate scale eta* defined in Sec. 3.2" (section 4.1)',
        hypotheses=f"{WHITE}: on digits, under cross-entropy, one step of fully-connected nets has slope -1.41 in the "
        "median net, -1.89 on average; 60 nets decide (sims.learning_rate_search --families mlp --draws 60)",
        checks=_of("mlp", "cnn"),
    ),
    Claim(
        id="T2",
        kind=Kind.OWN,
        source="by training of our own, beside Zhang et al. 2026, sections 3.4 and 4.3",
        statement="the tuned rate of small fully-connected residual nets initialised with variance 1/K follows the "
        "one-step scale of white inputs and labels, which tends to K^-1",
        brief="tuned rates of small residual nets of variance 1/K follow the one-step scale",
        printed="no sentence of a paper: a question of our own, with the one-step scale that we derive; Zhang et al. "
        "2026, sections 3.4 and 4.3, put scale and tuned rate at K^(-3/2)",
        hypotheses=f"{WHITE}; branches of one layer. Not asked of convolutional ones, which that paper trains: four of "
        "3 x 3 taps, 16 channels (MNIST, four epochs, 2 .. 16 blocks) had -1.43 +- 0.16 where this scale has -1.20",
        checks=_of("residual mlp init"),
    ),
    Claim(
        id="T3",
        kind=Kind.OWN,
        source="by training of our own, beside Zhang et al. 2026, sections 3.4 and 4.3",
        statement="the tuned rate of small fully-connected residual nets with the multiplier K^(-1/2), and of those "
        "with branches of two layers, follows the one-step scale of white inputs and labels, which tends to K^0",
        brief="tuned rates of other small residual nets follow the one-step scale, to K^0",
        printed="no sentence of a paper: a question of our own, with the one-step scales that we derive; Zhang et "
        "al. 2026, sections 3.1 and 3.4, take the multiplier for variance 1/K and absorb the depth of a branch",
        hypotheses=f"{WHITE}; branches of one layer under the multiplier",
        checks=_of("residual mlp multiplier", "residual mlp k=2"),
    ),
    Claim(
        id="T4",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, section 4.1, tables 1 (post-norm) and 3 (pre-norm); by training of our own",
        statement="the tuned rate of pre- and post-norm Transformers of 16 channels follows the one-step scale of "
        "white inputs and labels over depth",
        brief="tuned rates of pre- and post-norm Transformers follow the one-step scale",
        printed='"We treat this grid-searched one-epoch optimum as an empirical proxy for the maximal-update '
        'learning-rate scale eta* defined in Sec. 3.2" (section 4.1)',
        hypotheses=f"{WHITE}; no factor on branches",
        checks=_of("transformer post", "transformer pre"),
        replaced_by="in one epoch on digits, over 2 to 16 units, the tuned rate of pre-norm nets falls as "
        "L^(-0.57 +- 0.06), the one-step scale as L^(-1.48); that of post-norm nets as L^(-1.38 +- 0.08)",
        premise="the first step at initialisation stands for an epoch of training",
    ),
    Claim(
        id="T5",
        kind=Kind.BEYOND,
        source="Wang et al. 2026, figure 3; by training of our own",
        statement="the tuned rate of small tied loops of one matrix under the factor 1/L follows the one-step scale of "
        "their streams, which tends to L^0",
        brief="tuned rates of small tied loops under 1/L follow the one-step scale of streams",
        printed='"the optimal learning rate for linear scaling remains nearly invariant across L in {1, 2, 4, 8}, '
        'consistent with our theoretical prediction (eta ~ L^0)" (Wang et al. 2026, section 3.2, of pre-norm '
        "Transformers under Adam)",
        hypotheses=f"{ONE_EPOCH}; loops of one matrix without normalisation",
        checks=_of("loop linear"),
    ),
    Claim(
        id="T7",
        kind=Kind.OWN,
        source="docs/theory.md section 21",
        statement="2 / lambda_max at initialisation names the tuned rate of small nets to a factor of 4, with nothing "
        "tuned",
        brief="2 / lambda_max at initialisation names the tuned rate to a factor of 4",
        printed="no sentence of a paper: a question of our own, whether the sharpness at initialisation names the "
        "tuned rate",
        hypotheses=f"{ONE_EPOCH}, nine families",
        checks=checks(NAME, judge_stable_rate),
    ),
)
