"""Claims on the size of a batch: the mini-batch identity, and how S and eta* depend on B for labels of several laws."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from meanfield.common.estimates import PowerLaw, fit_power_law
from meanfield.verification.verdicts import Deviation, Finding, judge_computed, weigh

Array = NDArray[np.float64]

# Findings of one run, over which its false-alarm budget is split.
FINDINGS = 8
# Cases of `sims.batch_size` by which single claims are judged.
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


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One finding per claim, on a run of `sims.batch_size`."""
    return [
        judge_enumeration(dataset),
        judge_sampling(dataset),
        judge_mean_field(dataset),
        judge_printed(dataset),
        judge_square_root(dataset),
        judge_floor(dataset),
        judge_output_share(dataset),
        judge_depth(dataset),
    ]


def tail(dataset: xr.Dataset) -> xr.Dataset:
    """The upper half of the batch sizes, over which growth is fitted."""
    return dataset.isel(batch=slice(dataset.sizes["batch"] // 2, None))


def drawn_slope(dataset: xr.Dataset, case: str, name: str = "label_term") -> PowerLaw | None:
    """Slope in B of eta* = (mean over layers of a term)^(-1/2) as drawn; None where fewer than two sizes were."""
    at = tail(dataset).sel(case=case)
    at = at.isel(batch=np.isfinite(at[name].values))
    if at.sizes["batch"] < 2:
        return None
    law = fit_power_law(at["batch"].values, at[name].values, at[f"{name}_stderr"].values)
    return PowerLaw(-law.exponent / 2, law.stderr / 2, law.prefactor**-0.5)


def theory_slope(dataset: xr.Dataset, case: str) -> float:
    """The same of the mean field, its points weighted as the drawn ones."""
    at = tail(dataset).sel(case=case)
    at = at.isel(batch=np.isfinite(at["label_term"].values))
    if at.sizes["batch"] < 2:
        return float("nan")
    weights = (at["label_term"] / at["label_term_stderr"]).values
    logs = np.log(at["label_term_mean_field"].values)
    return float(np.polyfit(np.log(at["batch"].values), logs, 1, w=weights)[0] / -2)


def judge_enumeration(dataset: xr.Dataset) -> Finding:
    """P0 eq. 25 over every batch of a small population; rival: without the term Cov / B."""
    exact = dataset["enumerated_gap"].values
    without = dataset["uncorrected_gap"].isel(drawing=0).values
    verdict = judge_computed(exact, 0.0, float(without.min()), ROUNDING)
    evidence = f"worst relative gap {exact.max():.1e}, rival {without.min():.2f} or more, tolerance {ROUNDING:g}"
    titles = (
        "all batches obey E[Dz_a Dz_b] = E xi_a E xi_b + Cov/B (P0 eq. 25), times (P-B)/(P-1) without replacement",
        "no term in 1/B",
    )
    return Finding(*titles, verdict, evidence)


def judge_sampling(dataset: xr.Dataset) -> Finding:
    """The same for batches sampled from a larger population."""
    energy, stderr = dataset["sampled_energy"].values, dataset["sampled_energy_stderr"].values
    nothing = np.zeros_like(energy)
    claim, rival = (
        Deviation(energy - dataset[f"sampled_energy_{name}"].values, stderr, nothing) for name in ("identity", "limit")
    )
    titles = "batches sampled from 64 samples follow P0 eq. 25", "no term in 1/B"
    comparisons, batches = FINDINGS * energy.size, dataset.attrs["sampled_batches"]
    return weigh(titles, claim, rival, comparisons=comparisons, draws=batches)


def judge_mean_field(dataset: xr.Dataset) -> Finding:
    """Label terms of all cases and sizes above 1; rival: the samples of a batch have one label."""
    several = dataset.isel(batch=dataset["batch"].values > 1)
    drawn = np.isfinite(several["label_term"].values)
    term, stderr, theory, slack, alike = (
        several[f"label_term{end}"].values[drawn] for end in ("", "_stderr", "_mean_field", "_allowance", "_alike")
    )
    claim, rival = Deviation(term - theory, stderr, slack), Deviation(term - alike, stderr, slack / theory * alike)
    titles = (
        "label term is the mean field's quadratic form in the labels' covariance, for all cases and batch sizes",
        "one label for all samples of a batch",
    )
    return _finding(dataset, titles, claim, rival)


def judge_printed(dataset: xr.Dataset) -> Finding:
    """eta* = kappa L^(-3/2) (1 + O(1/B)) for labels of mean 0, as P0 has them; rival: sqrt(B)."""
    law = drawn_slope(dataset, INDEPENDENT)
    first = float(tail(dataset)["batch"][0])
    claim, rival = _slopes([law], 0.0, 1 / first), _slopes([law], 0.5, 1 / first)
    titles = (
        "eta* moves by 1 + O(1/B) with the batch size for labels of mean 0 (P0 proposition 3.3)",
        "sqrt(B), P0's degenerate case",
    )
    shown = f"slope of eta* of the label term {_shown(law)} from B = {first:.0f}"
    return _finding(tail(dataset).sel(case=[INDEPENDENT]), titles, claim, rival, shown)


def judge_square_root(dataset: xr.Dataset) -> Finding:
    """eta* ~ sqrt(B) for labels of mean 0 whatever the inputs; rival: B / sqrt(1 + (B - 1) f), the mean field's."""
    names = (LINEAR, INDEPENDENT, CORRELATED)
    laws = [drawn_slope(dataset, name) for name in names]
    theory = [theory_slope(dataset, name) for name in names]
    claim, rival = _slopes(laws, 0.5, NEAR), _slopes(laws, theory, NEAR)
    titles = (
        "eta* of labels of mean 0 grows as sqrt(B) at the batch's own inputs, whatever they are (P0's remark)",
        "B / sqrt(1 + (B - 1) f), f the squared kernel between two samples over that of one",
    )
    weights = [float(dataset["other_sample"].sel(case=name)) for name in names]
    pairs = zip(weights, laws, theory, strict=True)
    shown = ", ".join(f"{_shown(law)} at f = {f:.2g} (rival {slope:.3f})" for f, law, slope in pairs)
    return _finding(tail(dataset).sel(case=list(names)), titles, claim, rival, f"slopes {shown}")


def judge_floor(dataset: xr.Dataset) -> Finding:
    """Labels that samples share leave a floor a in S = a + b / B; rival: none."""
    floors = [_floor(dataset, name) for name in (WITH_MEAN, TAUGHT)]
    found, stderr, theory, slack = np.array(floors).T
    claim, rival = Deviation(found - theory, stderr, slack), Deviation(found, stderr, np.zeros_like(found))
    titles = (
        "label term tends to a floor where labels have a mean, or a teacher and inputs correlate: there 1 + O(1/B)",
        "none, 1/B as for labels of mean 0",
    )
    shown = ", ".join(f"{a:.4g} +- {e:.2g} (mean field {t:.4g})" for a, e, t in zip(found, stderr, theory, strict=True))
    return _finding(tail(dataset).sel(case=[WITH_MEAN, TAUGHT]), titles, claim, rival, f"floors {shown}")


def judge_output_share(dataset: xr.Dataset) -> Finding:
    """A/B does not depend on the batch size; rival: outputs of different samples correlate, as the mean field says."""
    at = dataset.sel(case=INDEPENDENT).isel(batch=[0, -1])
    change, theory = (
        float(np.diff(np.log((at[f"output_term{end}"] / at[f"label_term{end}"]).values))[0])
        for end in ("", "_mean_field")
    )
    relative = [at[f"{name}_stderr"].values / at[name].values for name in ("output_term", "label_term")]
    stderr = np.array([float(np.sqrt(np.square(relative).sum()))])
    slack = np.array([_output_slack(dataset)])
    claim, rival = (Deviation(np.array([change - value]), stderr, slack) for value in (0.0, theory))
    titles = (
        "output term falls with the batch size as the label term of mean 0, and stays as small (P0 eq. 21)",
        "it tends to a floor, as outputs of different samples correlate",
    )
    sizes = " to ".join(str(size) for size in at["batch"].values)
    shown = f"A/B grows {np.exp(change):.1f}-fold from B = {sizes}, mean field {np.exp(theory):.1f}"
    return _finding(at, titles, claim, rival, shown, ("output_term", "label_term"))


def judge_depth(dataset: xr.Dataset) -> Finding:
    """The depth exponent of eta* of the label term for every batch size, by theory; rival: -1."""
    slopes = dataset["depth_slope"].values
    titles = (
        "the batch size does not move the depth exponent -3/2 (P0's remark): mean field, 150 to 300 layers",
        "-1, no growth of overlaps",
    )
    shown = f"slopes {slopes.max():.3f} .. {slopes.min():.3f}, least steep for large batches; tolerance {DEPTH_NEAR:g}"
    return Finding(*titles, judge_computed(slopes, -1.5, -1.0, DEPTH_NEAR), shown)


def _floor(dataset: xr.Dataset, case: str) -> tuple[float, float, float, float]:
    """a of S = a + b / B through the larger batches: drawn, its error, the mean field's, and what is granted."""
    at = tail(dataset).sel(case=case)
    term, stderr, theory, slack = (
        at[f"label_term{end}"].values for end in ("", "_stderr", "_mean_field", "_allowance")
    )
    design = np.stack([np.ones(len(term)), 1 / at["batch"].values], axis=1) / stderr[:, None]
    solve = np.linalg.pinv(design)[0] / stderr
    granted = float(np.max(slack / theory)) * float(solve @ theory)
    return float(solve @ term), float(np.sqrt(np.square(solve * stderr).sum())), float(solve @ theory), granted


def _output_slack(dataset: xr.Dataset) -> float:
    spec = dataset.attrs
    return float(np.log1p(OUTPUT_EXCESS * (spec["outputs"] + 5) * spec["depth"] / spec["width"]))


def _slopes(laws: list[PowerLaw | None], values: ArrayLike, slack: float) -> Deviation:
    exponents = np.array([law.exponent if law else np.nan for law in laws])
    stderr = np.array([law.stderr if law else np.nan for law in laws])
    return Deviation(exponents - np.asarray(values), stderr, np.full(len(laws), slack))


def _shown(law: PowerLaw | None) -> str:
    return "-" if law is None else f"{law.exponent:.3f} +- {law.stderr:.3f}"


def _finding(
    dataset: xr.Dataset,
    titles: tuple[str, str],
    claim: Deviation,
    rival: Deviation,
    shown: str = "",
    names: tuple[str, ...] = ("label_term",),
) -> Finding:
    """By the draws of nets that carry the means ``names`` of this part of a dataset."""
    effective = min(_effective_draws(dataset, name) for name in names)
    comparisons, draws = FINDINGS * claim.difference.size, dataset.attrs["draws"]
    return weigh(titles, claim, rival, comparisons=comparisons, draws=draws, effective=effective, shown=shown)


def _effective_draws(dataset: xr.Dataset, name: str) -> float:
    """Kish's count of the draws that carry the worst of these means."""
    draws = float(dataset.attrs["draws"])
    relative = np.sqrt(draws) * dataset[f"{name}_stderr"] / dataset[name]
    return float((draws / (1 + relative**2)).min())
