"""Zhang et al. 2026 on exponents of growth: what they are at the depths of a run, in its limit, and in the mean field.

Two questions are kept apart, by the same measure for label term, output term and learning-rate scale: whether the mean
field agrees with drawn exponents (`judge_growth`), and whether the exponent is the one that the paper prints, at these
depths (`judge_exponent`) and in deep nets (`judge_limit`).
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import xarray as xr

from meanfield.verification.claims import Check, Claim, JudgeOfRun, Kind, checks
from meanfield.verification.judges import Contest, Judges, Ruling, slope_contest
from meanfield.verification.published import PAPERS_EXPONENT
from meanfield.verification.series import effective_draws, shown_laws, span, theory_slope
from meanfield.verification.verdicts import Verdict
from meanfield.verification.zhang_2026.plain_nets.growth.exponents import (
    DEEP,
    SCALE,
    exponent_at_depths,
    first_deep_layer,
    predicted_scale_slope,
)
from meanfield.verification.zhang_2026.plain_nets.many_channels import LABEL_SCALE


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

# The judges of `sims.cnn_overlap`, of drawn numbers: so many at most.
JUDGES = Judges("Zhang et al. 2026", findings=9)


@JUDGES.decide
def judge_growth(dataset: xr.Dataset, name: str) -> Contest:
    """{title} has the mean field's exponent, {claimed:.3f}, over {where}; rival: {other}, no overlaps between channels;
    measured: exponents over the deeper half of the layers, or slopes of eta* over the depths."""
    drawn = exponent_at_depths(dataset, name)
    other, exponent = ("L^-1", -1.0) if name == SCALE else ("l^2", 2.0)
    made = slope_contest(drawn.law, claimed=drawn.theory, rival=exponent, allowance=drawn.granted)
    words = {"title": title(name), "claimed": drawn.theory, "where": where(dataset, name), "other": other}
    return _drawn(made, dataset, name).saying(f"exponent {shown_laws(drawn.law)}", **words)


@JUDGES.decide
def judge_exponent(dataset: xr.Dataset, name: str) -> Contest:
    """{title} {law} over {where}; rival: {other}, whichever is nearest; source: {source}; measured: the exponent over
    the deeper half of the layers, or the slope of eta* over the depths, less what finite channels add in theory, which
    is also granted; a mean field that is another law is a rival, too."""
    drawn, printed = exponent_at_depths(dataset, name), LAWS[name]
    known, rivals = _theory_of_rival(dataset, name), dict(printed.rivals)
    if known and printed.beyond(known[1]) > printed.near:
        rivals[known[0]] = known[1]
    rival = min(rivals.values(), key=lambda exponent: abs(drawn.law.exponent - exponent))
    made = slope_contest(drawn.law, claimed=printed.exponent, rival=rival, allowance=drawn.granted)
    of_finite = f", {drawn.granted:.3f} granted for finite channels" if drawn.granted > NOTABLE else ""
    words = {
        "title": title(name),
        "law": printed.words,
        "where": where(dataset, name),
        "other": ", ".join(rivals),
        "source": printed.source,
    }
    return _drawn(made, dataset, name).saying(f"exponent {shown_laws(drawn.law)}{of_finite}", **words)


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


@JUDGES.decide
def judge_limit(dataset: xr.Dataset, name: str) -> Ruling:
    """{title} {law} in the limit of deep nets, mean field; rival: {other}; source: {source}; measured: the mean field's
    exponent in nets of {deep} layers with the same channels and outputs, and whether it moves there from {half} layers
    on."""
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
    words = {
        "title": title(name),
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
    return theory_slope(dataset, "depth", LABEL_SCALE, -0.5 * np.log(overlap))


def title(name: str) -> str:
    titles = {SCALE: "eta*", LABEL_SCALE: "eta* of the label term alone"}
    return titles.get(name, f"{name.replace('_', ' ')} at infinitely many channels")


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


def _under_both_readouts(*judges: JudgeOfRun) -> tuple[Check, ...]:
    """Of the run with a convolutional readout, and of the one with the paper's own."""
    return (*checks("cnn_overlap", *judges), *checks("cnn_overlap", *judges, arguments=P0_HEAD))


CLAIMS = (
    Claim(
        id="A3a",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, eq. 22, 23",
        statement="B_l grows as l^3 over the deeper half of nets of a dozen layers, under a convolutional readout and "
        "under the paper's pooled one",
        printed='"kappa_0 = O(1) depends on activation/initialization moments ... but not on l or L" (eq. 22)',
        hypotheses="those of A3; the paper's sum of minima has exponent 2.84 over layers 6 .. 12, and 3 in the limit",
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
        statement="B_l grows as l^3 in the limit of deep nets, under a convolutional readout and under the paper's "
        "pooled one (mean field)",
        printed='"kappa_0 = O(1) depends on activation/initialization moments ... but not on l or L" (eq. 22)',
        hypotheses="those of A3; the mean field agrees with draws where nets are drawn (A3c)",
        checks=_under_both_readouts(partial(judge_limit, name="label_term")),
        replaced_by="l^3 under a convolutional readout; under a pooled one l^3 and, from what pairs of sites share, "
        "l^3 (l/L)^3 besides, so that exponents over the deeper half stay above 3 (4.3 on 8 sites, 4.9 on 16) "
        "while means over layers go as L^3 (A5a)",
        premise="that of A3a: behind a gate at layer l two sites share 1 - 3/l of a label",
    ),
    Claim(
        id="A3c",
        kind=Kind.OWN,
        source="no paper",
        statement="the mean field has the exponents that draws have: of B_l, A_l and of eta*, under a convolutional "
        "readout and under the paper's pooled one",
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
        printed='"the leading depth exponent is -3/2, and the listed terms only affect the prefactor" (proposition '
        "3.3)",
        hypotheses="those of A5a; outputs over channels kept as depth grows",
        checks=_under_both_readouts(partial(judge_limit, name=SCALE)),
        replaced_by="L^-2, as the output term has a power of the depth more than the label term, whose own eta* does "
        "fall as L^(-3/2)",
        premise="the output term is taken for negligible (A4)",
    ),
)
