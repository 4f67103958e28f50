"""Zhang et al. 2026 on growth with depth, judged on one measured net and on a ladder of depths.

Two questions are kept apart, by the same measure for label term, output term and learning-rate scale: whether the
mean field agrees with drawn exponents (`judge_growth`), and whether the exponent is the one that the paper prints, at
these depths (`judge_exponent`) and in deep nets (`judge_limit`).

Terms that theory knows at infinitely many channels are held against it there (`many_channels`), in standard errors
alone. A growth law with a free prefactor is held against the data by contrasts with an anchor layer a: m_l - (law_l /
law_a) m_a has mean zero under the law, whatever its prefactor, and its error follows from the covariance of the
layers.
"""

import json
import warnings
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.common import Array, PowerLaw
from meanfield.nets import ConvNet
from meanfield.theory import learning_rate_exponent
from meanfield.verification import (
    NO_LAW,
    PAPERS_EXPONENT,
    Bands,
    Check,
    Claim,
    Contest,
    Deviation,
    Finding,
    JudgeOfRun,
    Judges,
    Kind,
    Ruling,
    Series,
    Verdict,
    best,
    checks,
    deeper_half,
    effective_draws,
    exponent_of,
    first_deep_layer,
    growth_exponent,
    shown_laws,
    slope_contest,
    span,
)
from sims.cnn_overlap.settings import PAPERS, draws_under, scales_under, setting_of, slope_under

SCALE, LABEL_SCALE = "learning_rate_scale", "label_learning_rate_scale"
# Depths at which the mean field stands for deep nets: exponents are had at all but the first.
DEEP = (64, 128, 256)


@dataclass(frozen=True)
class LimitExponent:
    """An exponent at infinitely many channels.

    Attributes:
        law: as drawn, less what finite channels add in theory.
        granted: what that, or the road to infinitely many channels, may leave.
        theory: the mean field's; NaN where it is not predicted.
    """

    law: PowerLaw
    granted: float
    theory: float


def exponent_at_depths(ladder: xr.Dataset, name: str) -> LimitExponent:
    """Of a term over the deeper half of the deepest net, or of a scale over the ladder of depths."""
    if name in (SCALE, LABEL_SCALE):
        law, added = scale_slope(ladder, best(ladder, name)), steepening(ladder, name)
        theory = predicted_scale_slope(ladder, name, "mean_field")
        return LimitExponent(PowerLaw(law.exponent - added, law.stderr, law.prefactor), abs(added), theory)
    deepest = ladder.isel(depth=-1)
    known = f"{name}_mean_field"
    theory = exponent_of(deepest[known].values) if known in deepest else float("nan")
    if f"{name}_limit" not in deepest:
        law, added = growth_exponent(deepest, best(deepest, name)), added_exponent(deepest, name)
        return LimitExponent(PowerLaw(law.exponent - added, law.stderr, law.prefactor), abs(added), theory)
    deep = np.log1p(limit_allowance(deepest)[deeper_half(deepest.sizes["layer"])])
    return LimitExponent(growth_exponent(deepest, f"{name}_limit"), abs(deep[-1] - deep[0]) / np.log(2), theory)


def limit_allowance(dataset: xr.Dataset) -> Array:
    """What theory leaves open at infinitely many channels, relative to it: nothing, but for inputs drawn with few
    channels, and for what the extrapolation of smooth gates may leave."""
    return np.asarray((dataset["thin_input_allowance"] + dataset["extrapolation_left"]).values)


def added_exponent(deepest: xr.Dataset, name: str) -> float:
    """What finite channels add to a growth exponent by theory's ratio; 0 where there is none."""
    if f"{name}_finite_channels" not in deepest:
        return 0.0
    finite, limit = (exponent_of(deepest[f"{name}_{level}"].values) for level in ("finite_channels", "mean_field"))
    return finite - limit


def scale_slope(ladder: xr.Dataset, name: str) -> PowerLaw:
    """Log-log slope of a drawn learning-rate scale over a ladder of depths; NaN where a scale does not exist."""
    return Series.of(ladder, name).law("depth") if np.all(np.isfinite(ladder[name])) else NO_LAW


def predicted_scale_slope(ladder: xr.Dataset, name: str, level: str) -> float:
    """The same slope of a predicted scale, its points weighted as the drawn ones; NaN where it is not predicted."""
    if f"{name}_{level}" not in ladder:
        return float("nan")
    return Series.of(ladder, best(ladder, name)).slope_of("depth", np.log(ladder[f"{name}_{level}"].values))


def steepening(ladder: xr.Dataset, name: str) -> float:
    """What finite channels add to the slope of a scale by theory's ratios; 0 where there are none."""
    if f"{name}_finite_channels" not in ladder:
        return 0.0
    levels = ("finite_channels", "mean_field")
    finite, limit = (predicted_scale_slope(ladder, name, level) for level in levels)
    return finite - limit


def net_of(dataset: xr.Dataset) -> ConvNet:
    """The net that a dataset records."""
    spec = json.loads(dataset.attrs["architecture"])
    return ConvNet(**{name: value for name, value in spec.items() if name != "family"})


def no_power_law(net: ConvNet) -> str:
    """Why the terms of this net follow no power of the layer at large depth; "" where they do."""
    if np.isfinite(learning_rate_exponent(net)):
        return ""
    return "as layers lose signals at edges" if net.sigma.homogeneous else "as smooth gates change energies"


def deep_exponents(net: ConvNet) -> xr.Dataset:
    """NAME_deep over ``deep_depth`` (all of `DEEP` but the first): the mean field's exponents of nets so deep.

    Terms are fitted over the deeper half of the layers, scales between a depth and the one before. Channels, outputs,
    readout and head are the net's own, inputs white: what inputs have in common between sites is the same in the end.
    Empty where there is no power law; without what has no mean field.
    """
    if no_power_law(net):
        return xr.Dataset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mf.PremiseWarning)  # of finite channels, which are no part of the limit
        deep = [mf.predict(net.replace(depth=depth), level="mean_field") for depth in DEEP]
    terms = [name for name in ("label_term", "output_term", "overlap_energy") if name in deep[-1]]
    exponents = {name: [exponent_of(at[name].values) for at in deep[1:]] for name in terms}
    for name in (name for name in (SCALE, LABEL_SCALE) if name in deep[-1]):
        logs = np.array([float(at[f"log_{name}"]) for at in deep])
        exponents[name] = [
            float(change / step) for change, step in zip(np.diff(logs), np.diff(np.log(DEEP)), strict=True)
        ]
    columns = {f"{name}_deep": ("deep_depth", values) for name, values in exponents.items()}
    return xr.Dataset(columns, coords={"deep_depth": list(DEEP[1:])})


# The study whose runs these judges read.
NAME = "cnn_overlap"
# Of a prediction, what rounding may leave.
ROUNDING = 1e-9
# Growth laws need so many layers.
LEAST_DEPTH = 3


@dataclass(frozen=True)
class PrintedLaw:
    """What the paper says of an exponent, and what would be true if two tangents shared less, or more, of a net.

    Exponents nearer to the printed one than ``near`` count as that one; ``at_most`` where the paper bounds it from
    above alone.
    """

    exponent: float
    words: str
    rivals: dict[str, float]
    near: float
    source: str
    at_most: bool = False

    def beyond(self, exponent: float) -> float:
        """How far off an exponent is."""
        return max(exponent - self.exponent, 0.0) if self.at_most else abs(exponent - self.exponent)


CUBE = PrintedLaw(3.0, "grows as l^3", {"l^2": 2.0, "l^4": 4.0}, 0.1, "eq. 22, 23")
LAWS = {
    "label_term": CUBE,
    "overlap_energy": CUBE,
    "output_term": PrintedLaw(2.0, "grows no faster than l^2", {"l^3": 3.0, "l^4": 4.0}, 0.1, "eq. 21", at_most=True),
    SCALE: PrintedLaw(PAPERS_EXPONENT, "falls as L^(-3/2)", {"L^-1": -1.0, "L^-2": -2.0}, 0.05, "section 3.3"),
    LABEL_SCALE: PrintedLaw(PAPERS_EXPONENT, "falls as L^(-3/2)", {"L^-1": -1.0, "L^-2": -2.0}, 0.05, "section 3.3"),
}
# Allowances below this go without saying.
NOTABLE = 5e-4
# The paper's own readout, and outputs of data of ten classes.
P0_HEAD = ("--readout", "pooled", "--outputs", "10", "--head", "fan_in")
# Exponents of deep nets within so many `near` of the printed one, and moving towards it, tend to it.
REACHED = 2.5

# Of drawn numbers: so many findings at most.
JUDGES = Judges("Zhang et al. 2026", findings=10)


def judged_term(ladder: xr.Dataset) -> str | None:
    """The term on which growth is judged: the label term where it is drawn and predicted, else the overlap energy."""
    needs = {name: {f"{name}_limit", f"{name}_law"} for name in ("label_term", "overlap_energy")}
    return next((name for name, columns in needs.items() if columns <= set(ladder)), None)


def findings(ladder: xr.Dataset) -> list[Finding]:
    """One for every law, from a ladder of depths measured with its predictions (NAME_mean_field) beside.

    Growth is judged on the deepest net.
    """
    name = judged_term(ladder)
    named = [judge(ladder, name) for judge in (judge_mean_field, judge_sum_of_minima)] if name else []
    terms = [*([name] if name else []), "output_term", SCALE]
    theory = [judge_growth(ladder, term) for term in terms if term in predicted(ladder)]
    cube = [judge_exponent(ladder, name)] if name else []
    limits = [judge_limit(ladder, term) for term in (*terms, LABEL_SCALE) if f"{term}_deep" in ladder]
    label_scales = [judge_label_scale(ladder)] if f"{LABEL_SCALE}_limit" in ladder else []
    has_others = "setting" in ladder and setting_of(ladder) != PAPERS
    papers = [judge_papers_head(ladder)] if has_others else []
    depths = [*cube, judge_output_term(ladder), judge_exponent(ladder, SCALE)]
    return [*papers, *depths, *limits, *theory, *named, *label_scales]


@JUDGES.decide(
    claim="{title} has the mean field's exponent, {claimed:.3f}, over {where}",
    brief="{short} has the mean field's exponent, {claimed:.3f}, over {where}",
    rival="{other}, no overlaps between channels",
    measured="exponents over the deeper half of the layers, or slopes of eta* over the depths",
)
def judge_growth(dataset: xr.Dataset, name: str) -> Contest:
    drawn = exponent_at_depths(dataset, name)
    other, exponent = ("L^-1", -1.0) if name == SCALE else ("l^2", 2.0)
    made = slope_contest(drawn.law, claimed=drawn.theory, rival=exponent, allowance=drawn.granted)
    words = titles(name) | {"claimed": drawn.theory, "where": where(dataset, name), "other": other}
    return _drawn(made, dataset, name).saying(f"exponent {shown_laws(drawn.law)}", **words)


@JUDGES.decide(
    claim="{title} {law} over {where}",
    brief="{short} {law} over {where}",
    rival="{other}, whichever is nearest",
    source="{source}",
    measured="the exponent over the deeper half of the layers, or the slope of eta* over the depths, less what finite "
    "channels add in theory, which is also granted; a mean field that is another law is a rival, too",
)
def judge_exponent(dataset: xr.Dataset, name: str) -> Contest:
    made = _of_printed_law(exponent_at_depths(dataset, name), name, _theory_of_rival(dataset, name))
    return _drawn(made.saying(made.shown, **made.words, where=where(dataset, name)), dataset, name)


@JUDGES.decide(
    claim="under the paper's head (pooled, 10 outputs, variance 1/n) eta* {law} over {where}",
    brief="under the paper's head eta* {law} over {where}",
    rival="{other}, whichever is nearest",
    source="{source}",
    measured="the slope over the depths of eta* in nets under that head, less what finite channels add in theory, "
    "which is also granted; a mean field that is another law is a rival, too",
)
def judge_papers_head(dataset: xr.Dataset) -> Contest:
    at = scales_under(dataset, str(PAPERS))
    law = scale_slope(at, SCALE)
    finite, theory = (slope_under(at, SCALE, level) for level in ("finite_channels", "mean_field"))
    added = finite - theory if np.isfinite(finite - theory) else 0.0
    drawn = LimitExponent(PowerLaw(law.exponent - added, law.stderr, law.prefactor), abs(added), theory)
    known = None if np.isnan(theory) else (f"exponent {theory:.3f}, the mean field's of the whole update", theory)
    made = _of_printed_law(drawn, SCALE, known)
    # A scale is the root of a mean energy, whose relative error is twice as large.
    draws, spread = draws_under(dataset, PAPERS), 2 * Series.of(at, SCALE).relative_error.max().item()
    made = replace(made, effective=draws / (1 + draws * spread**2)).shared_in(at, SCALE)
    return made.saying(made.shown, **made.words, where=where(dataset, SCALE))


def _of_printed_law(drawn: LimitExponent, name: str, known: tuple[str, float] | None) -> Contest:
    """The printed exponent against the nearest of its rivals, the mean field's being one where it is another law."""
    printed = LAWS[name]
    rivals = dict(printed.rivals)
    if known and printed.beyond(known[1]) > printed.near:
        rivals[known[0]] = known[1]
    rival = min(rivals.values(), key=lambda exponent: abs(drawn.law.exponent - exponent))
    made = slope_contest(drawn.law, claimed=printed.exponent, rival=rival, allowance=drawn.granted)
    of_finite = f", {drawn.granted:.3f} granted for finite channels" if drawn.granted > NOTABLE else ""
    words = titles(name) | {"law": printed.words, "other": ", ".join(rivals), "source": printed.source}
    return made.saying(f"exponent {shown_laws(drawn.law)}{of_finite}", **words)


def _theory_of_rival(dataset: xr.Dataset, name: str) -> tuple[str, float] | None:
    """The mean field's exponent behind its name: of eta* that of the label term where the whole update is open."""
    theory = exponent_at_depths(dataset, name).theory
    if not np.isnan(theory):
        update = " of the whole update" if name == SCALE else ""
        return f"exponent {theory:.3f}, the mean field's{update}", theory
    if name != SCALE:
        return None
    slope = label_slope(dataset)
    return f"exponent {slope:.3f}, the mean field's slope of the label term as that of the whole update is open", slope


@JUDGES.decide(
    claim="{title} {law} in the limit of deep nets, mean field",
    brief="{short} {law} in deep nets, mean field",
    rival="{other}",
    source="{source}",
    measured="the mean field's exponent in nets of {deep} layers with the same channels and outputs, and whether it "
    "moves there from {half} layers on",
)
def judge_limit(dataset: xr.Dataset, name: str) -> Ruling:
    printed = LAWS[name]
    before, last = dataset[f"{name}_deep"].values[-2:]
    off, was = printed.beyond(last), printed.beyond(before)
    reached = off <= REACHED * printed.near
    settles = off <= was + printed.near / 10
    verdict = Verdict.INCONCLUSIVE
    if reached and settles:
        verdict = Verdict.CONFIRMED
    elif not reached and off >= was - printed.near / 10:
        verdict = Verdict.REFUTED
    half, deep = DEEP[-2:]
    words = titles(name) | {
        "law": printed.words,
        "other": ", ".join(printed.rivals),
        "source": printed.source,
        "deep": deep,
        "half": half,
    }
    evidence = f"exponent {last:.3f} at {deep} layers, {before:.3f} at {half}"
    power = f"exact: an exponent more than {REACHED * printed.near:g} off that does not come nearer is refuted"
    return Ruling(verdict, evidence, words, power)


def label_slope(dataset: xr.Dataset) -> float:
    """The mean field's slope of the label term's scale; where it is not predicted, of the overlap energy's."""
    if f"{LABEL_SCALE}_mean_field" in dataset:
        return predicted_scale_slope(dataset, LABEL_SCALE, "mean_field")
    overlap = dataset["overlap_energy_mean_field"].mean("layer").values
    return Series.of(dataset, LABEL_SCALE).slope_of("depth", -0.5 * np.log(overlap))


def titles(name: str) -> dict[str, str]:
    """What a term or scale is called, and in a line."""
    scales = {SCALE: "eta*", LABEL_SCALE: "eta* of the label term alone"}
    term = scales.get(name, name.replace("_", " "))
    ends = ("", "") if name in scales else (" at infinitely many channels", " at C = inf")
    return {"title": f"{term}{ends[0]}", "short": f"{term}{ends[1]}"}


def where(dataset: xr.Dataset, name: str) -> str:
    """Over which layers of the deepest net, or depths of nets, an exponent is fitted."""
    if name == SCALE:
        return f"depths {span(dataset['depth'])}"
    layers = dataset.sizes["layer"]
    return f"layers {first_deep_layer(layers)} .. {layers}"


def carried(made: Contest, dataset: xr.Dataset, name: str) -> Contest:
    """With the draws that carry a term's limit: where nets with few channels are drawn too, the fewer of both."""
    made = made.carried_by(dataset, name).shared_in(dataset, f"{name}_limit")
    return replace(made, effective=effective(dataset, name))


def _drawn(made: Contest, ladder: xr.Dataset, name: str) -> Contest:
    """With the draws that carry an exponent."""
    deepest = ladder.isel(depth=-1)
    if name == SCALE:
        return made.carried_by(ladder, "update_energy").shared_in(ladder, name)
    if name == "output_term":
        return made.carried_by(deepest, name).shared_in(deepest, name)
    return carried(made, deepest, name)


def effective(dataset: xr.Dataset, name: str) -> float:
    drawn = [name, f"few_channels_{name}"]
    return effective_draws(dataset, *(column for column in drawn if column in dataset))


def predicted(ladder: xr.Dataset) -> list[str]:
    """What is drawn and has a mean field, of the terms and of eta*."""
    return [name for name in LAWS if name != LABEL_SCALE and {name, f"{name}_mean_field"} <= set(ladder)]


@JUDGES.decide(
    claim="{title} follows the mean field, no constant fitted",
    brief="{short} follows the mean field, no constant fitted",
    rival="sum of minima, prefactor free",
    measured="drawn means at every layer of the deepest net, carried over to infinitely many channels",
)
def judge_mean_field(dataset: xr.Dataset, name: str) -> Contest:
    deepest = dataset.isel(depth=-1)
    claim = against_values(deepest, name, deepest[f"{name}_mean_field"].values)
    return _by_layer(deepest, name, claim, against_growth(deepest, name, deepest[f"{name}_law"].values))


@JUDGES.decide(
    claim="{title} is proportional to the sum of minima{form}",
    brief="{short} is proportional to the sum of minima",
    rival="l^2, no overlaps between channels",
    source="eq. 22, 23",
    measured="contrasts with a running sum of squared kernels; the rival is its last summand",
)
def judge_sum_of_minima(dataset: xr.Dataset, name: str) -> Contest:
    deepest = dataset.isel(depth=-1)
    law = deepest[f"{name}_law"].values
    growths = (law, np.diff(law, prepend=0.0))
    return _by_layer(deepest, name, *(against_growth(deepest, name, growth) for growth in growths))


def against_values(dataset: xr.Dataset, name: str, expected: Array) -> Deviation:
    """Deviation at infinitely many channels from a prediction without free constants, layer by layer."""
    limit = f"{name}_limit"
    allowance = (limit_allowance(dataset) + ROUNDING) * expected
    return Deviation(dataset[limit].values - expected, dataset[f"{limit}_stderr"].values, allowance)


def against_growth(dataset: xr.Dataset, name: str, growth: Array) -> Deviation:
    """Deviation from a growth law with a free prefactor: contrasts of the layers above the anchor with the anchor."""
    start = int(dataset[f"{name}_law"].attrs["anchor_layer"]) - 1
    limit = f"{name}_limit"
    mean, covariance = dataset[limit].values[start:], dataset[f"{limit}_covariance"].values[start:, start:]
    ratio = growth[start + 1 :] / growth[start]
    variance = np.diagonal(covariance)[1:] - 2 * ratio * covariance[0, 1:] + ratio**2 * covariance[0, 0]
    allowance = (limit_allowance(dataset)[start + 1 :] + ROUNDING) * ratio * mean[0]
    return Deviation(mean[1:] - ratio * mean[0], np.sqrt(np.maximum(variance, 0)), allowance)


def _by_layer(dataset: xr.Dataset, name: str, claim: Deviation, rival: Deviation) -> Contest:
    """On every layer of one term, at infinitely many channels."""
    form = "" if dataset[f"{name}_law"].attrs["equal_layers"] else ", layers weighted by their input channels"
    apart = np.zeros_like(claim.difference)
    above = slice(-rival.difference.size, None)
    apart[above] = claim.difference[above] - rival.difference
    made = Contest(claim, rival, comparisons=_comparisons(dataset), apart=apart)
    return carried(made, dataset, name).saying("", **titles(name), form=form)


def _comparisons(deepest: xr.Dataset) -> int:
    return len(JUDGES) * deepest.sizes["layer"]


@JUDGES.decide(
    claim="Output term grows no faster than l^2",
    rival="it grows like the label term",
    source="eq. 21",
    measured="growth exponents over the deeper half of the layers, less what finite channels add in theory, which is "
    "also granted as output terms have the ratio of one site",
)
def judge_output_term(dataset: xr.Dataset) -> Contest:
    deepest, terms = dataset.isel(depth=-1), ("output_term", "label_term")
    output, label = (growth_exponent(deepest, best(deepest, name)) for name in terms)
    added = [added_exponent(deepest, name) for name in terms]
    ratio = np.divide(*(deepest[best(deepest, name)].values[-1] for name in terms))
    claim = Deviation(LAWS["output_term"].beyond(output.exponent - added[0]), output.stderr, abs(added[0]))
    apart = output.exponent - added[0] - label.exponent + added[1]
    rival = Deviation(apart, np.hypot(output.stderr, label.stderr), abs(added[0]))
    words = f"exponents: output {shown_laws(output)}, label {shown_laws(label)}; A/B = {ratio:.3g} at the last layer"
    made = Contest(claim, rival, apart=label.exponent - added[1] - 2.0)
    return made.carried_by(deepest, *terms).shared_in(deepest, *terms).saying(words)


@JUDGES.decide(
    claim="eta* of the label term alone, at infinitely many channels, falls with the mean field's slope {claimed:.3f}",
    brief="eta* of the label term alone, at C = inf, falls with the mean field's slope {claimed:.3f}",
    rival="slope -3/2",
    measured="the slope in L of eta* from drawn label terms, carried over to infinitely many channels",
)
def judge_label_scale(dataset: xr.Dataset) -> Contest:
    law, claimed = scale_slope(dataset, f"{LABEL_SCALE}_limit"), label_slope(dataset)
    depths = dataset["depth"].values
    left = np.log1p([float(limit_allowance(dataset.sel(depth=depth))[depth - 1]) for depth in depths])
    slack = float(abs(left[-1] - left[0]) / 2 / np.log(depths[-1] / depths[0]))
    made = slope_contest(law, claimed=claimed, rival=PAPERS_EXPONENT, allowance=slack)
    return carried(made, dataset, "label_term").saying(f"slope {shown_laws(law)}", claimed=claimed)


@dataclass(frozen=True)
class LeastErrors:
    """The least errors of a theory that 99 of 100 runs refute: in an exponent, and relative in all layers alike."""

    exponent: float
    prefactor: float


def power(ladder: xr.Dataset, name: str) -> LeastErrors:
    """Of the judges of the growth of a term (`judge_growth`, `judge_mean_field`), by the errors of this very run."""
    deepest = ladder.isel(depth=-1)
    carrying = effective(deepest, name)
    law = growth_exponent(deepest, f"{name}_limit")
    off = Bands.of(len(JUDGES), carrying).sure
    expected = deepest[f"{name}_mean_field"].values
    relative = deepest[f"{name}_limit_stderr"].values / expected
    least = np.min(Bands.of(_comparisons(deepest), carrying).sure * relative + limit_allowance(deepest))
    return LeastErrors(off * law.stderr, float(least))


def _under_both_readouts(*judges: JudgeOfRun) -> tuple[Check, ...]:
    """Of the run with a convolutional readout, and of the one with the paper's own."""
    return (*checks(NAME, *judges), *checks(NAME, *judges, arguments=P0_HEAD))


CLAIMS = (
    Claim(
        id="A3",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, eq. 22, 23",
        statement="B_l is proportional to the sum of minima, l(l+1)(2l+1)/6, with one prefactor for all l",
        brief="B_l is proportional to the sum of minima, with one prefactor for all l",
        printed='"kappa_0 = O(1) depends on activation/initialization moments ... but not on l or L" (eq. 22)',
        hypotheses="lemma 1 (A1) and homogeneous layers, many channels",
        checks=checks(NAME, partial(judge_sum_of_minima, name="label_term")),
        replaced_by="the mean field, l(2l^2+1)/12 for ReLU nets of one site: of order l^3, as eq. 23 has it, with a "
        "prefactor that moves from 1/4 of the sum's at l = 1 to 1/2 in deep nets",
        premise="a gate passes two tangents at one unit with chance 1/2 and at two units with 1/4; one factor is taken "
        "for both",
    ),
    Claim(
        id="A4a",
        kind=Kind.BEYOND,
        source="Zhang et al. 2026, eq. 21, appendix B.3",
        statement="A_l grows no faster than l^2 where outputs are not few beside channels, too: at the depths of a run "
        "and, at one number of outputs times depth over channels, in the limit of deep nets, under a convolutional "
        "readout and under the paper's pooled one",
        brief="A_l grows no faster than l^2, at finite depth and in its limit, either readout",
        printed='"The term A does not alter the depth exponent because it grows at most quadratically in l" (appendix '
        "B.3)",
        hypotheses="those of A4, of which eq. 22 has many channels; exponents by the measure of A3a and A3b",
        checks=_under_both_readouts(judge_output_term, partial(judge_limit, name="output_term")),
        replaced_by="exponents of 3.6 to 3.9 over layers 6 .. 12 and towards 4 in deep nets, as outputs drive the net "
        "along its own features; with few outputs A_l grows as B_l (A4)",
        premise="the outputs, through which A_l is driven, are taken for independent of the overlaps below",
    ),
    Claim(
        id="A3a",
        kind=Kind.READING,
        source="Zhang et al. 2026, eq. 22, 23",
        statement="B_l grows as l^3 over the deeper half of nets of a dozen layers, under a convolutional readout and "
        "under the paper's pooled one",
        brief="B_l grows as l^3 in the deeper half of nets of a dozen layers, either readout",
        printed='"kappa_0 = O(1) depends on activation/initialization moments ... but not on l or L" (eq. 22)',
        hypotheses="those of A3; the paper's sum of minima has exponent 2.84 over layers 6 .. 12, and 3 in the limit: "
        "that so few layers show the limit's is our reading of 'B_l = Theta(l^3)'",
        checks=_under_both_readouts(partial(judge_exponent, name="label_term")),
        replaced_by="the mean field: under a convolutional readout an exponent of 2.99 over layers 6 .. 12, under a "
        "pooled one of 4.2",
        premise="a label is taken to reach a layer by the same factor kappa_0 whichever layer it is; under a pooled "
        "readout it reaches all sites alike, and gates between top and layer take that apart",
    ),
    Claim(
        id="A3b",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, eq. 22, 23",
        statement="in the limit of deep nets B_l is l^3 times a kappa_0 that depends on neither l nor L, under a "
        "convolutional readout and under the paper's pooled one (mean field; judged: its exponent over the deeper half "
        "of layers)",
        brief="in the limit of deep nets B_l is one kappa_0 times l^3, either readout",
        printed='"kappa_0 = O(1) depends on activation/initialization moments ... but not on l or L" (eq. 22)',
        hypotheses="those of A3; the mean field agrees with draws where nets are drawn (A3c)",
        checks=_under_both_readouts(partial(judge_limit, name="label_term")),
        replaced_by="one kappa_0 under a convolutional readout; under a pooled one B_l is of order l^3, as eq. 21 has "
        "it, with a kappa_0 that rises with l/L: to l^3 comes l^3 (l/L)^3 from what pairs of sites share, so that "
        "exponents over the deeper half stay above 3 (4.3 on 8 sites, 4.9 on 16), while means over layers go as L^3 "
        "(A5a)",
        premise="that of A3a: behind a gate at layer l two sites share 1 - 3/l of a label",
    ),
    Claim(
        id="A3c",
        kind=Kind.OWN,
        source="no paper",
        statement="the mean field has the exponents that draws have: of B_l, A_l and of eta*, under a convolutional "
        "readout and under the paper's pooled one",
        brief="the mean field has the exponents of draws: of B_l, A_l, eta*, either readout",
        printed="no sentence of a paper: what is asked is whether our own theory agrees with our own draws",
        hypotheses="ReLU nets on circular grids, white inputs; draws are carried over to infinitely many channels",
        checks=_under_both_readouts(
            *(partial(judge_growth, name=name) for name in ("label_term", "output_term", SCALE))
        ),
    ),
    Claim(
        id="A5c",
        kind=Kind.BEYOND,
        source="Zhang et al. 2026, section 3.3",
        statement="eta* of the whole update falls as L^(-3/2) over depths up to a dozen layers, under a convolutional "
        "readout and under the paper's pooled one",
        brief="eta* of the whole update falls as L^(-3/2) over a dozen layers, either readout",
        printed='"the leading depth exponent is -3/2, and the listed terms only affect the prefactor" (proposition '
        "3.3)",
        hypotheses="those of A5a, with depth taken for large; as many outputs as the run has",
        checks=_under_both_readouts(partial(judge_exponent, name=SCALE)),
        replaced_by="the mean field of the whole update",
        premise="the output term is taken for negligible (A4), and a dozen layers for many",
    ),
    Claim(
        id="A5d",
        kind=Kind.BEYOND,
        source="Zhang et al. 2026, section 3.3",
        statement="eta* of the whole update falls as L^(-3/2) in the limit of deep nets at fixed outputs over channels "
        "(mean field)",
        brief="eta* of the whole update falls as L^(-3/2) in the limit of deep nets",
        printed='"the leading depth exponent is -3/2, and the listed terms only affect the prefactor" (proposition '
        "3.3)",
        hypotheses="those of A5a; outputs over channels kept as depth grows",
        checks=_under_both_readouts(partial(judge_limit, name=SCALE)),
        replaced_by="L^-2, as the output term has a power of the depth more than the label term, whose own eta* does "
        "fall as L^(-3/2)",
        premise="the output term is taken for negligible (A4)",
    ),
)
