"""Zhang et al. 2026, section 4, by training of our own: does the tuned rate follow the one-step scale over depth?

A tuned rate is the minimum of the training loss over learning rates; every depth has seeds of its own, so that the
errors of depths are independent. Slopes are those of a line through log10 of the rate over log10 of the depth with
equal weights: weights by the spreads of a few seeds, as the paper has them, are themselves random. Theory's slope is
that of the same line through the same depths. Tied loops are Wang et al. 2026's.
"""

from functools import partial

import numpy as np
import xarray as xr

from meanfield.common.arrays import Array
from meanfield.common.estimates import PowerLaw, fit_power_law
from meanfield.verification.claims import Check, Claim, checks
from meanfield.verification.drawn_slopes import shown, span
from meanfield.verification.judges import Contest, Judges, Ruling, slope_contest
from meanfield.verification.published import PAPERS_EXPONENT
from meanfield.verification.verdicts import Bands, Finding, Verdict

JUDGES = Judges()

SIMULATION = "learning_rate_search"
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
# 2 / lambda_max names a rate if it is right to this factor.
FACTOR = 4.0


def family_at(dataset: xr.Dataset, family: str) -> xr.Dataset:
    """One family at the depths where two seeds or more have a minimum."""
    at = dataset.sel(family=family)
    return at.isel(depth=np.flatnonzero(np.isfinite(at["tuned_rate_log10_stderr"].values)))


def slope_weights(at: xr.Dataset) -> Array:
    """Those of the depths in the slope of a line through equally weighted points."""
    logs = np.log10(at["depth"].values)
    centred = logs - logs.mean() if logs.size else logs
    return np.asarray(centred / max(float(centred @ centred), np.finfo(float).tiny))


def tuned_slope(at: xr.Dataset) -> PowerLaw:
    """The slope of tuned rates with its standard error; NaN where fewer than two depths have a tuned rate."""
    if at.sizes["depth"] < 2:
        return PowerLaw(float("nan"), float("nan"), float("nan"))
    weights, logs = slope_weights(at), at["tuned_rate_log10"].values
    slope = float(weights @ logs)
    error = float(np.sqrt(weights**2 @ at["tuned_rate_log10_stderr"].values ** 2))
    return PowerLaw(slope, error, 10.0 ** float(logs.mean() - slope * np.log10(at["depth"].values).mean()))


def weighted_slope(at: xr.Dataset) -> PowerLaw:
    """The papers' fit: weights inversely proportional to the variances over seeds."""
    if at.sizes["depth"] < 2:
        return PowerLaw(float("nan"), float("nan"), float("nan"))
    rate = 10.0 ** at["tuned_rate_log10"].values
    return fit_power_law(at["depth"].values, rate, rate * np.log(10) * at["tuned_rate_log10_stderr"].values)


def scale_slope(at: xr.Dataset, name: str) -> float:
    """That of a scale without errors through the same depths, such as the one-step theory's."""
    if at.sizes["depth"] < 2:
        return float("nan")
    return float(slope_weights(at) @ np.log10(at[name].values))


def law_slope(at: xr.Dataset) -> float:
    """That of the finite-depth law of equal layers, sqrt(24 / ((L + 1)(L^2 + L + 1)))."""
    depth = at["depth"].values
    return float(slope_weights(at) @ np.log10(((depth + 1) * (depth**2 + depth + 1)) ** -0.5))


def freedom(at: xr.Dataset) -> float:
    """Degrees of freedom of the slope's error, by Welch and Satterthwaite: at least those of a single depth."""
    shares = (slope_weights(at) * at["tuned_rate_log10_stderr"].values) ** 2
    least = at["located"].values - 1
    return float(shares.sum() ** 2 / max((shares**2 / least).sum(), np.finfo(float).tiny)) if shares.size else 0.0


def _contest(at: xr.Dataset, claimed: float, rival: float) -> Contest:
    law = tuned_slope(at)
    words = f"slope {shown(law)} over depths {span(at['depth'])}" if at.sizes["depth"] > 1 else "no slope was met"
    return slope_contest(law, claimed=claimed, rival=rival, shown=words, effective=freedom(at) + 1)


@JUDGES.decide_each(*({"family": family} for family in RIVALS))
def judge_one_step(dataset: xr.Dataset, family: str) -> Contest:
    """{family}: the tuned rate falls over depth as the one-step scale, with slope {claimed:.2f}; rival: with slope
    {rival:g}; measured: the slope of the rates that minimise the training loss."""
    at, rival = family_at(dataset, family), RIVALS[family]
    claimed = scale_slope(at, "one_step_scale")
    made = _contest(at, claimed, rival)
    return made.saying(made.shown, claimed=claimed, rival=rival)


@JUDGES.decide_each(*({"family": family} for family in PLAIN))
def judge_finite_depth(dataset: xr.Dataset, family: str) -> Contest:
    """{family}: tuned rates fall as the finite-depth law of equal layers, with slope {claimed:.2f}; rival: as
    L^(-3/2); measured: the slope over the same depths."""
    at = family_at(dataset, family)
    claimed = law_slope(at)
    made = _contest(at, claimed, PAPERS_EXPONENT)
    return made.saying(made.shown, claimed=claimed)


def log_ratio(dataset: xr.Dataset) -> tuple[Array, Array]:
    """log10 of tuned over stable rates, of every family and depth that has them, with standard errors."""
    error = dataset["stable_rate_stderr"] / (dataset["stable_rate"] * np.log(10))
    ratio = (dataset["tuned_rate_log10"] - np.log10(dataset["stable_rate"])).values
    known = np.isfinite(ratio)
    return ratio[known], np.hypot(dataset["tuned_rate_log10_stderr"], error).values[known]


@JUDGES.decide
def judge_stable_rate(dataset: xr.Dataset) -> Ruling:
    """2 / lambda_max at initialisation names the tuned rate within a factor of {factor:g}, in every family and at every
    depth; rival: it is off by more somewhere; measured: tuned over stable rate, of medians over drawn nets."""
    ratio, error = log_ratio(dataset)
    bands = Bands.of(len(JUDGES) * len(ratio), float(dataset.attrs["draws"]))
    off = np.abs(ratio) - np.log10(FACTOR)
    beyond = float((off / error).max())
    evidence = f"tuned over stable {10 ** ratio.min():.2g} .. {10 ** ratio.max():.2g}, worst {beyond:.1f} s.e. beyond"
    words = {"factor": FACTOR}
    if (off > bands.alarm * error).any():
        return Ruling(Verdict.REFUTED, evidence, words)
    confirmed = (off < -bands.alarm * error).all()
    return Ruling(Verdict.CONFIRMED if confirmed else Verdict.INCONCLUSIVE, evidence, words)


def findings(dataset: xr.Dataset) -> list[Finding]:
    """On the families that this run has."""
    families = set(dataset["family"].values)
    own = [judge_one_step(dataset, family) for family in RIVALS if family in families]
    law = [judge_finite_depth(dataset, family) for family in PLAIN if family in families]
    return [*own, *law, judge_stable_rate(dataset)]


def _of(*families: str) -> tuple[Check, ...]:
    """The one-step scale's checks of these families."""
    return checks(SIMULATION, *(partial(judge_one_step, family=family) for family in families))


TABLE = "Zhang et al. 2026, table 1, figures 3, 4; by training of our own"
CLAIMS = (
    Claim(
        id="A21b",
        source=TABLE,
        statement="tuned rates of plain nets follow the law at finite depth, not -3/2",
        checks=checks(SIMULATION, *(partial(judge_finite_depth, family=family) for family in PLAIN)),
    ),
    Claim(
        id="T1",
        source=TABLE,
        statement="the tuned rate of plain nets follows the one-step scale over depth",
        checks=_of("mlp", "cnn"),
    ),
    Claim(
        id="T2",
        source=TABLE,
        statement="that of residual nets initialised with variance 1/K follows the one-step scale, which tends to K^-1",
        checks=_of("residual mlp init"),
    ),
    Claim(
        id="T3",
        source=TABLE,
        statement="that of residual nets with the multiplier K^(-1/2), and of branches of two layers, follows the "
        "one-step scale, which tends to K^0",
        checks=_of("residual mlp multiplier", "residual mlp k=2"),
    ),
    Claim(
        id="T4",
        source=TABLE,
        statement="that of pre- and post-norm Transformers follows the one-step scale over depth",
        checks=_of("transformer post", "transformer pre"),
    ),
    Claim(
        id="T5",
        source="Wang et al. 2026, figure 3; by training of our own",
        statement="tied loops under the factor 1/L need no change of the rate",
        checks=_of("loop linear"),
    ),
    Claim(
        id="T7",
        source="docs/theory.md section 21",
        statement="2 / lambda_max at initialisation names the tuned rate to a factor of 4, with nothing tuned",
        checks=checks(SIMULATION, judge_stable_rate),
    ),
)
