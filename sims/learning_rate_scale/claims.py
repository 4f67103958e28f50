"""What papers say of eta*(L): of plain nets in the limit and in use, of trained nets, of residual nets and loops.

All is judged on what theory computes without draws, or on slopes that the papers measured.
"""

import json
from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

import meanfield as mf
from meanfield.common import Array, PowerLaw, fit_power_law
from meanfield.nets import MLP
from meanfield.theory import single_site_overlap
from meanfield.verification import (
    COMMON_SWEEP,
    PAPERS_EXPONENT,
    WIDEST_BAND,
    Bands,
    Claim,
    Deviation,
    Finding,
    Judges,
    Kind,
    MeasuredSlope,
    Ruling,
    between,
    checks,
    computed,
    judge,
    judged_slopes,
    measured_slopes,
    span,
    spline_slopes,
)

# The scale of nets whose channels share no overlaps (B_l ~ l^2).
NO_OVERLAP_EXPONENT = -1.0
# Tolerances of exponents: a tenth where the rivals are half a unit or more apart, less where they are closer.
TOLERANCE, CLOSE_TOLERANCE, LIMIT_TOLERANCE = 0.1, 0.03, 0.05
# Widths at which a net of this depth is wide, and the power of the width that He's rule leaves in its scale.
WIDE, WIDE_DEPTH, OFF = (256, 1024), 8, -0.5
# Below this distance two exponents are one law.
SAME = 1e-9

JUDGES = Judges("Zhang et al. 2026")
# Of residual nets and loops, by any paper.
OF_FAMILIES = Judges()


def findings(dataset: xr.Dataset) -> list[Finding]:
    """Of plain nets; of slopes that were measured; of exponents that papers print for other families."""
    judged = judged_slopes()
    in_use = [judge_power_law_in_use(dataset)] if COMMON_SWEEP in swept_depths(dataset) else []
    trained = [judge_measured_slope(slope, len(judged)) for slope in judged]
    return [judge_asymptote(dataset), *in_use, *trained, *family_findings(dataset)]


def swept_depths(dataset: xr.Dataset) -> list[tuple[int, ...]]:
    """The depths of all measured slopes, without repetition, as far as the run reaches them."""
    swept = dict.fromkeys(slope.depths for slope in measured_slopes())
    return [depths for depths in swept if max(depths) <= int(dataset["depth"][-1])]


@JUDGES.decide(
    claim="eta* of the label term tends to kappa L^(-3/2), mean field",
    rival="slope -1, no overlaps between channels",
    source="section 3.3; Zhang et al. 2025, theorem 1",
    measured="local slopes of plain families",
)
def judge_asymptote(dataset: xr.Dataset) -> Ruling:
    families = plain_families(dataset)
    slopes = np.array([slopes_of(dataset, name)[-1] for name in families])
    evidence = f"local slope at L = {int(dataset['depth'][-1])}: {_by_family(slopes, families)}"
    return computed(slopes, PAPERS_EXPONENT, NO_OVERLAP_EXPONENT, LIMIT_TOLERANCE, evidence)


@JUDGES.decide(
    claim="eta* of the label term is kappa L^(-3/2) at depths {depths}, mean field",
    rival="slope {rival:.3f} of the finite-depth law sqrt(24/((L+1)(L^2+L+1)))",
    measured="fitted slopes of ReLU nets; the rival is the law of one site, docs/theory.md section 6",
)
def judge_power_law_in_use(dataset: xr.Dataset) -> Ruling:
    families, rival = plain_families(dataset, "relu"), finite_depth_slope(COMMON_SWEEP)
    slopes = np.array([fitted_law(dataset, name, COMMON_SWEEP).exponent for name in families])
    words = {"depths": span(COMMON_SWEEP), "rival": rival}
    evidence = f"fitted slopes {_by_family(slopes, families)}"
    return computed(slopes, PAPERS_EXPONENT, rival, CLOSE_TOLERANCE, evidence, words)


def _by_family(slopes: Array, families: Sequence[str]) -> str:
    return ", ".join(f"{slope:.3f} ({name})" for name, slope in zip(families, slopes, strict=True))


@JUDGES.decide(
    claim="eta* of the label term does not depend on the width at a given depth",
    rival="it falls as n^(-1/2)",
    source="section 3.2; Zhang et al. 2025, theorem 1",
    measured="exact slopes in n of fully-connected ReLU nets of {depth} layers by He's rule, over n = {widths}",
)
def judge_width(dataset: xr.Dataset) -> Ruling:
    slopes = {head: _slope_in_width(head) for head in ("he", "mup")}
    evidence = f"slope {slopes['he']:+.3f}; with a head of variance 1/n^2 (muP) {slopes['mup']:+.3f}"
    return computed(slopes["he"], 0.0, OFF, TOLERANCE, evidence, {"depth": WIDE_DEPTH, "widths": span(WIDE)})


def _slope_in_width(head: str) -> float:
    nets = [MLP(depth=WIDE_DEPTH, width=width, head=head) for width in WIDE]
    scales = [float(mf.predict(net, level="exact")["label_learning_rate_scale"]) for net in nets]
    return float(np.diff(np.log(scales))[0] / np.diff(np.log(WIDE))[0])


def judge_table_1(dataset: xr.Dataset) -> Finding:
    """The mean of the nine measured slopes, against the finite-depth law over 3 .. 30."""
    first, *_ = slopes = judged_slopes()
    return judge_measured_slope(first, len(slopes))


@JUDGES.decide(
    brief="{measured.source}: slope {expected:.3f} of the finite-depth law",
    claim="{measured.source}: the slope is that of plain nets' finite-depth law over depths {depths}, {expected:.3f}",
    rival="-3/2",
    measured="our mean of the printed slopes, or our fit through the printed rates; the error is from the scatter",
)
def judge_measured_slope(measured: MeasuredSlope, comparisons: int) -> Ruling:
    """No constant is fitted. Nothing but the scatter of the printed numbers says how certain they are; more cannot be
    drawn. Claim and rival are therefore held to the same band, left once in a hundred papers.
    """
    expected = finite_depth_slope(measured.depths)
    apart, from_rival = (measured.slope - slope for slope in (expected, PAPERS_EXPONENT))
    band = Bands.of(2 * comparisons, measured.freedom + 1, gaussian=True).doubt
    made = between(*(Deviation(distance, measured.stderr) for distance in (apart, from_rival)))
    bands = Bands(doubt=band, alarm=band, freedom=measured.freedom)
    reach = "too few rates are printed for a band"
    if band <= WIDEST_BAND:
        reach = f"band {band:.2g} s.e., left once in a hundred papers"
    differences = f"{apart:+.3f} from it, {from_rival:+.3f} from -3/2"
    evidence = f"measured {measured.slope:.3f} +- {measured.stderr:.3f}: {differences}; {reach}"
    assumed = ", assumed as none are printed" if measured.depths == COMMON_SWEEP else ""
    words = {"expected": expected, "depths": span(measured.depths) + assumed}
    return Ruling(judge(made.claim, made.rival, bands), evidence, words, *made.powers(bands, bands))


def finite_depth_slope(depths: ArrayLike) -> float:
    """Slope that a fit finds in the finite-depth law of ReLU nets of one site, over these depths."""
    layers = np.arange(1, int(np.max(depths)) + 1)
    mean = np.cumsum(single_site_overlap(layers, "relu")) / layers
    return fit_power_law(depths, mean[np.asarray(depths) - 1] ** -0.5).exponent


def family_findings(dataset: xr.Dataset) -> list[Finding]:
    """One per exponent that a paper prints for a residual net, and for a tied loop whose eta* is a power of L.

    Wang et al. 2026 quote their rule for stacks from updates that point one way; isotropic ones are no test of it.
    Where tied loops grow exponentially, `sims.looped_update` judges by draws.
    """
    powers = dataset["loop"][np.isfinite(dataset["loop_exponent"].values)].values
    loops = [str(name) for name in powers if str(name).startswith("looped")]
    names = [*residual_families(dataset), *loops]
    return [judge_printed(dataset, name, paper) for name in names for paper in printed_for(dataset, name)]


@OF_FAMILIES.decide(
    claim="{name}: eta* goes as L^{claimed:g} ({paper}), mean field",
    rival="L^{rival:g}, {whose}",
    measured="the local slope at the deepest net",
)
def judge_printed(dataset: xr.Dataset, name: str, paper: str) -> Ruling:
    claimed, law = printed_for(dataset, name)[paper], law_of(dataset, name)
    agree = abs(claimed - law) < SAME
    rival, whose = (PAPERS_EXPONENT, "the law of plain nets") if agree else (law, "its own law")
    slope = slopes_of(dataset, name)[-1]
    evidence = f"local slope {slope:+.3f} at L = {int(dataset['depth'][-1])}"
    words = {"claimed": claimed, "rival": rival, "whose": whose}
    return computed(slope, claimed, rival, LIMIT_TOLERANCE, evidence, words)


# What a dataset says of a family, a Transformer or a loop.


def plain_families(dataset: xr.Dataset, *activations: str) -> list[str]:
    """Families without skip connections, of these activations if any are given."""
    nets = zip(dataset["family"].values, json.loads(dataset.attrs["architectures"]), strict=True)
    plain = ((name, net["activation"]) for name, net in nets if "block_depth" not in net)
    return [str(name) for name, activation in plain if activation in (activations or (activation,))]


def residual_families(dataset: xr.Dataset) -> list[str]:
    plain = plain_families(dataset)
    return [str(name) for name in dataset["family"].values if name not in plain]


def scale_of(dataset: xr.Dataset, name: str) -> xr.DataArray:
    """Scale by depth: of a family's or a Transformer's label term, or of a loop's stream."""
    if name in dataset["family"].values:
        return dataset["label_learning_rate_scale"].sel(family=name)
    if name in dataset["transformer"].values:
        return dataset["transformer_learning_rate_scale"].sel(transformer=name)
    return dataset["stream_learning_rate_scale"].sel(loop=name)


def slopes_of(dataset: xr.Dataset, name: str) -> Array:
    """Local slopes of a scale at every depth."""
    return spline_slopes(dataset["depth"].values, scale_of(dataset, name).values)


def fitted_law(dataset: xr.Dataset, name: str, depths: Sequence[int]) -> PowerLaw:
    """The power law that a fit finds in a scale over these depths."""
    return fit_power_law(depths, scale_of(dataset, name).sel(depth=list(depths)).values)


def law_of(dataset: xr.Dataset, name: str) -> float:
    """Exponent that the scale of a family or loop tends to; NaN where it is no power of the depth."""
    return float(_of(dataset, name, "exponent"))


def printed_for(dataset: xr.Dataset, name: str) -> dict[str, float]:
    """Exponents that papers print for a family or loop, by paper."""
    printed = _of(dataset, name, "printed").dropna("paper")
    return {str(paper): float(printed.sel(paper=paper)) for paper in printed["paper"].values}


def _of(dataset: xr.Dataset, name: str, quantity: str) -> xr.DataArray:
    dim = "family" if name in dataset["family"].values else "loop"
    return dataset[f"{dim}_{quantity}"].sel({dim: name})


CLAIMS = (
    Claim(
        id="A23a",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2025, theorem 1 (Zhang et al. 2026 have no more than 'width-robust', section 3.2)",
        statement="kappa in eta* = kappa L^(-3/2) does not depend on the width (judged: the label term)",
        brief="kappa in eta* = kappa L^(-3/2) does not depend on the width",
        printed='"For arbitrary channel widths ... A learning rate tuned at one width transfers to any other width '
        'without retuning" (Zhang et al. 2025, theorem 1 and its implication)',
        hypotheses="ReLU, weights by He's fan-in rule, the head's among them (section 3.2), gradient descent",
        checks=checks("learning_rate_scale", judge_width),
        replaced_by="kappa ~ n^(-1/2); with a head of variance 1/n^2 (muP) it stays",
        premise="He's rule keeps values, not their changes: the change by a layer's weights is a sum over n inputs",
    ),
    Claim(
        id="A21",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, table 1, figure 3",
        statement="measured slopes of -1.18 .. -1.57, mean -1.38, deviate from -1.5 because depth is finite (judged: "
        "their mean over nine nets, residual nets and ViTs among them, against the law of plain nets; the paper "
        "also names stems, heads and constants of architectures)",
        brief="measured slopes, mean -1.38, deviate from -1.5 because depth is finite",
        printed='"the empirical exponents range from -1.18 to -1.57, with a mean of -1.38 ... reflecting finite-depth '
        'offsets, fixed stem/head components, and architecture-dependent constants" (section 4.1)',
        hypotheses="depths of 3 .. 30, assumed, as the paper does not print those of table 1; nine independent slopes",
        checks=checks("learning_rate_scale", judge_table_1),
        undecided="nine printed slopes, whose scatter hides a tenth: no run of ours adds to them",
    ),
)
