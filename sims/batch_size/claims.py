"""Zhang et al. 2026 on batches: the mini-batch identity, and how S and eta* depend on B for labels of several laws."""

import numpy as np
import xarray as xr

from meanfield.common import Array, PowerLaw
from meanfield.nets import MLP
from meanfield.verification import (
    PAPERS_EXPONENT,
    Claim,
    Contest,
    Deviation,
    Judges,
    Kind,
    Ruling,
    Series,
    between,
    checks,
    computed,
    contest,
    effective_draws,
    identity,
    one_site_ratios,
    only_above,
    scale_law,
    shown_laws,
    slope_contest,
)

NAME = "batch_size"

# Cases by which single claims are judged.
INDEPENDENT = "MLP, rho 0, labels mean 0"
CORRELATED = "MLP, rho 0.9, labels mean 0"
LINEAR = "linear MLP, rho 0, labels mean 0"
WITH_MEAN = "MLP, rho 0, labels mean 1"
TAUGHT = "MLP, rho 0.5, labels teacher"
# What the second moments of enumerated batches may lack of the identity, relative to the largest: rounding.
ROUNDING = 1e-12
# How near an exponent in B over a few doublings must be to be called the same.
NEAR = 0.05
# How near a slope in depth between 150 and 300 layers must be to its limit.
DEPTH_NEAR = 0.1
# Excess of the output term over its leading order, per (M + 5) L / n, which is that of one sample: a batch's sums over
# samples are more coherent. 2.5 times as much was seen for 16 samples at widths 64 to 256, less at 512 and 1024.
OUTPUT_EXCESS = 3.0
# A slope of which too few sizes were drawn.
UNKNOWN = PowerLaw(np.nan, np.nan, np.nan)

JUDGES = Judges("Zhang et al. 2026", effective=lambda dataset: effective_draws(dataset, "label_term"))
findings = JUDGES.findings


def tail(dataset: xr.Dataset) -> xr.Dataset:
    """The upper half of the batch sizes, over which growth is fitted."""
    return dataset.isel(batch=slice(dataset.sizes["batch"] // 2, None))


def _drawn_tail(dataset: xr.Dataset, case: str, name: str) -> xr.Dataset:
    """Of one case, the sizes that were drawn."""
    at = tail(dataset).sel(case=case)
    return at.isel(batch=np.isfinite(at[name].values))


def drawn_slope(dataset: xr.Dataset, case: str, name: str = "label_term") -> PowerLaw | None:
    """Slope in B of eta* = (mean over layers of a term)^(-1/2) as drawn; None where fewer than two sizes were."""
    at = _drawn_tail(dataset, case, name)
    return scale_law(at, "batch", name) if at.sizes["batch"] > 1 else None


def theory_slope(dataset: xr.Dataset, case: str) -> float:
    """The same of the mean field, its points weighted as the drawn ones."""
    at = _drawn_tail(dataset, case, "label_term")
    if at.sizes["batch"] < 2:
        return float("nan")
    return Series.of(at, "label_term").slope_of("batch", np.log(at["label_term_mean_field"].values)) / -2


@JUDGES.decide(
    claim="All batches obey E[Dz_a Dz_b] = E xi_a E xi_b + Cov/B, times (P-B)/(P-1) without replacement",
    source="eq. 25",
    rival="no term in 1/B",
    measured="gaps over every batch of a small population",
)
def judge_enumeration(dataset: xr.Dataset) -> Ruling:
    exact, without = dataset["enumerated_gap"].values, dataset["uncorrected_gap"].isel(drawing=0).values
    evidence = f"worst relative gap {exact.max():.1e}, rival {without.min():.2f} or more, tolerance {ROUNDING:g}"
    return identity(exact, 0.0, float(without.min()), ROUNDING, evidence)


@JUDGES.decide(
    claim="Batches sampled from 64 samples follow the mini-batch identity",
    source="eq. 25",
    rival="no term in 1/B",
    measured="mean square changes of one net's top layer, over sampled batches of each size",
)
def judge_sampling(dataset: xr.Dataset) -> Contest:
    energy, stderr, identity, limit = (
        dataset[f"sampled_energy{end}"].values for end in ("", "_stderr", "_identity", "_limit")
    )
    batches = dataset.attrs["sampled_batches"]
    return contest(energy, stderr, claimed=identity, rival=limit, draws=batches, effective=batches)


@JUDGES.decide(
    claim="Label term is the mean field's quadratic form in the labels' covariance, for all cases and batch sizes",
    rival="one label for all samples of a batch",
    measured="drawn label terms of batches of two or more",
)
def judge_mean_field(dataset: xr.Dataset) -> Contest:
    several = dataset.isel(batch=dataset["batch"].values > 1)
    drawn = np.isfinite(several["label_term"].values)
    term, stderr, theory, slack, alike = (
        several[f"label_term{end}"].values[drawn] for end in ("", "_stderr", "_mean_field", "_allowance", "_alike")
    )
    granted = slack / theory
    sides = (Deviation(term - law, stderr, only_above(term, law, granted)) for law in (theory, alike))
    words = f"granted above theory alone: {granted.max():.0%} at most; {_one_site(dataset)}"
    return Contest(*sides, shown=words, apart=alike - theory, granted=slack)


def _one_site(dataset: xr.Dataset) -> str:
    """What finite width is known to do to one sample, beside what is granted: exactly, in the narrowest net."""
    units = min(int(dataset.attrs[name]) for name in ("width", "channels"))
    excess = one_site_ratios(MLP(depth=int(dataset.attrs["depth"]), width=units))["label_term"].max() - 1
    return f"one sample at one site with {units} units has an excess of {excess:.1%}"


@JUDGES.decide(
    claim="eta* moves by 1 + O(1/B) with the batch size for labels of mean 0",
    source="proposition 3.3",
    rival="sqrt(B), the paper's degenerate case",
    measured="the slope in B, granted 1/B at the least of these sizes",
)
def judge_printed(dataset: xr.Dataset) -> Contest:
    law, upper = drawn_slope(dataset, INDEPENDENT), tail(dataset)
    first = float(upper["batch"][0])
    made = slope_contest(law or UNKNOWN, claimed=0.0, rival=0.5, allowance=1 / first)
    words = f"slope of eta* of the label term {_shown(law)} from B = {first:.0f}"
    return made.carried_by(upper.sel(case=[INDEPENDENT]), "label_term").saying(words)


@JUDGES.decide(
    claim="eta* of labels of mean 0 grows as sqrt(B) at the batch's own inputs, whatever they are",
    source="remark on proposition 3.3",
    rival="B / sqrt(1 + (B - 1) f), f the squared kernel between two samples over that of one",
    measured="slopes in B for inputs that are independent or not",
)
def judge_square_root(dataset: xr.Dataset) -> Contest:
    names = (LINEAR, INDEPENDENT, CORRELATED)
    laws = [drawn_slope(dataset, name) for name in names]
    theory = [theory_slope(dataset, name) for name in names]
    weights = [float(dataset["other_sample"].sel(case=name)) for name in names]
    pairs = zip(weights, laws, theory, strict=True)
    words = ", ".join(f"{_shown(law)} at f = {f:.2g} (rival {slope:.3f})" for f, law, slope in pairs)
    made = slope_contest(*(law or UNKNOWN for law in laws), claimed=0.5, rival=theory, allowance=NEAR)
    return made.carried_by(tail(dataset).sel(case=list(names)), "label_term").saying(f"slopes {words}")


def _shown(law: PowerLaw | None) -> str:
    return shown_laws(law) if law else "-"


@JUDGES.decide(
    claim="Label term tends to a floor where labels have a mean, or a teacher and inputs correlate: there 1 + O(1/B)",
    rival="none, 1/B as for labels of mean 0",
    measured="a of S = a + b / B",
)
def judge_floor(dataset: xr.Dataset) -> Contest:
    cases = [WITH_MEAN, TAUGHT]
    floor, stderr, theory, slack = np.array([_floor(dataset, case) for case in cases]).T
    words = ", ".join(f"{a:.4g} +- {e:.2g} (mean field {t:.4g})" for a, e, t in zip(floor, stderr, theory, strict=True))
    made = between(Deviation(floor - theory, stderr, slack), Deviation(floor, stderr))
    return made.carried_by(tail(dataset).sel(case=cases), "label_term").saying(f"floors {words}; {_one_site(dataset)}")


@JUDGES.decide(
    claim="Output term falls with the batch size as the label term of mean 0, and stays as small",
    source="eq. 21",
    rival="it tends to a floor, as outputs of different samples correlate",
    measured="the change of ln(A/B) between the least and the largest batch",
)
def judge_output_share(dataset: xr.Dataset) -> Contest:
    at, terms = dataset.sel(case=INDEPENDENT).isel(batch=[0, -1]), ("output_term", "label_term")
    change, theory = (
        float(np.diff(np.log((at[f"output_term{end}"] / at[f"label_term{end}"]).values))[0])
        for end in ("", "_mean_field")
    )
    relative = [at[f"{name}_stderr"].values / at[name].values for name in terms]
    outputs, depth, width = (dataset.attrs[name] for name in ("outputs", "depth", "width"))
    sizes = " to ".join(str(size) for size in at["batch"].values)
    granted = np.log1p(OUTPUT_EXCESS * (outputs + 5) * depth / width)
    made = contest(change, np.sqrt(np.square(relative).sum()), claimed=0.0, rival=theory, allowance=granted)
    words = f"A/B grows {np.exp(change):.1f}-fold from B = {sizes}, mean field {np.exp(theory):.1f}"
    return made.carried_by(at, *terms).saying(words)


@JUDGES.decide(
    claim="The batch size does not move the depth exponent -3/2: mean field, 150 to 300 layers",
    source="remark on proposition 3.3",
    rival="-1, no growth of overlaps",
    measured="computed slopes in L of eta* of the label term, for labels of mean 0 and 1 and three batch sizes",
)
def judge_depth(dataset: xr.Dataset) -> Ruling:
    slopes = dataset["depth_slope"].values
    words = f"slopes {slopes.max():.3f} .. {slopes.min():.3f}, least steep for large batches; tolerance {DEPTH_NEAR:g}"
    return computed(slopes, PAPERS_EXPONENT, -1.0, DEPTH_NEAR, words)


def _floor(dataset: xr.Dataset, case: str) -> tuple[float, float, float, float]:
    """a of S = a + b / B through the larger batches: drawn, its error, the mean field's, and what is granted."""
    at = tail(dataset).sel(case=case)
    term, stderr, theory, slack = (
        at[f"label_term{end}"].values for end in ("", "_stderr", "_mean_field", "_allowance")
    )
    design: Array = np.stack([np.ones(len(term)), 1 / at["batch"].values], axis=1) / stderr[:, None]
    solve = np.linalg.pinv(design)[0] / stderr
    granted = float(np.max(slack / theory)) * float(solve @ theory)
    return float(solve @ term), float(np.sqrt(np.square(solve * stderr).sum())), float(solve @ theory), granted


CLAIMS = (
    Claim(
        id="A9",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, lemma 4, eq. 25",
        statement="the second moment over mini-batches is that of the whole data, plus Cov / B",
        printed='"E[xi_bar zeta_bar] = E[xi_1] E[zeta_1] + (1/B) Cov(xi_1, zeta_1)" (lemma 4, eq. 25)',
        hypotheses="independent pairs with finite second moments",
        checks=checks(NAME, judge_enumeration, judge_sampling),
        identity=True,
    ),
    Claim(
        id="A10a",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, section 3.3, proposition 3.3 with its remark",
        statement="where the limit of large batches leaves an update, the batch size moves eta* by 1 + O(1/B) (judged: "
        "the label term of labels with a mean, or of a teacher)",
        brief="the batch size moves eta* by 1 + O(1/B) where labels have a mean, or a teacher",
        printed='"The interpretation as a multiplicative factor 1 + O(1/B) assumes that the B -> infinity '
        'contribution to the one-step AM-muP budget at initialization is non-vanishing" (appendix B, remark after '
        "lemma 4)",
        hypotheses="the update of the whole data does not vanish as the batch grows",
        checks=checks(NAME, judge_floor),
    ),
    Claim(
        id="A10b",
        kind=Kind.BEYOND,
        source="Zhang et al. 2026, proposition 3.3 for the labels of its derivation, E y = 0",
        statement="the batch size moves eta* by 1 + O(1/B) for labels of mean 0 too (judged: the label term, which the "
        "derivation takes for the whole; the remark concedes that sqrt(B) is possible where the mean gradient "
        "vanishes)",
        brief="the batch size moves eta* by 1 + O(1/B) for labels of mean 0 too",
        printed='"eta*(L; {C_l, Lambda_l, K_l}, B) = kappa L^(-3/2) (1 + O(max_l 1/C_l + max_l bdry(Lambda_l, K_l) + '
        '1/B))" (section 3.3, proposition 3.3)',
        hypotheses="labels of mean 0, which are independent of the network",
        checks=checks(NAME, judge_printed),
        replaced_by="the label term's eta* goes as B / sqrt(1 + (B - 1) f), f the squared kernel between two samples "
        "over that of one: as B until B f is 1, as sqrt(B) beyond (and at inputs outside the batch), as the remark "
        "announces. Outputs leave the whole update a floor, above which 1 + O(1/B) holds unless the head makes them "
        "vanish",
        premise="labels of mean 0, which the derivation assumes, make the label term the case that the remark calls "
        "degenerate; and at a sample of the batch its own error adds a term in 1 / B^2",
    ),
)
