"""Claims on the loss: what cross-entropy instead of squared loss changes, and what it does not."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from meanfield.common.estimates import PowerLaw, fit_power_law
from meanfield.verification.verdicts import Deviation, Finding, effective_draws, weigh

Array = NDArray[np.float64]

# Findings of one run, over which its false-alarm budget is split.
FINDINGS = 7
# Exponents in depth that differ by less are the same.
NEAR = 0.05
# Relative deviation granted to an average over logits: their variance fluctuates by some 5 L / n from net to net, and
# an average over the softmax bends with it.
LOGITS = 0.5
# Excess of the output term over its leading order, per (M + 5) L / n, that of one sample and squared loss.
OUTPUT_EXCESS = 2.0


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One finding per claim, on a run of `sims.cross_entropy`."""
    return [
        judge_label_term(dataset),
        judge_prefactor(dataset),
        judge_exponent(dataset),
        judge_exponent_with_outputs(dataset),
        judge_error(dataset, "mup"),
        judge_error(dataset, "he"),
        judge_output_term(dataset),
    ]


def depth_slope(dataset: xr.Dataset, net: str, head: str, loss: str, name: str = "update_energy") -> PowerLaw:
    """Slope in L of (mean over layers of a term)^(-1/2) as drawn: of eta* for the update energy."""
    at = dataset.sel(net=net, head=head, loss=loss)
    law = fit_power_law(at["depth"].values, at[name].values, at[f"{name}_stderr"].values)
    return PowerLaw(-law.exponent / 2, law.stderr / 2, law.prefactor**-0.5)


def scale_ratio(dataset: xr.Dataset, name: str = "update_energy") -> tuple[xr.DataArray, xr.DataArray]:
    """log of a term under cross-entropy over that under squared loss, and its standard error."""
    other, squared = (dataset.sel(loss=loss) for loss in ("cross_entropy", "squared"))
    relative = [one[f"{name}_stderr"] / one[name] for one in (other, squared)]
    return xr.apply_ufunc(np.log, other[name] / squared[name]), (relative[0] ** 2 + relative[1] ** 2) ** 0.5


def judge_label_term(dataset: xr.Dataset) -> Finding:
    """B under cross-entropy is C - 1 times that under squared loss, at any width; rival: |p - y|^2 over |y|^2 of C."""
    logs, stderr = (found.values.ravel() for found in scale_ratio(dataset, "label_term"))
    classes = int(dataset.attrs["classes"])
    nothing = np.zeros_like(logs)
    ratios = (classes - 1, (classes - 1) / classes**2)
    claim, rival = (Deviation(logs - np.log(value), stderr, nothing) for value in ratios)
    titles = (
        f"label term is C - 1 = {ratios[0]} times that under squared loss, for both nets and heads and at every depth",
        f"(1 - 1/C)/C = {ratios[1]:.2g}, the ratio of |error|^2 without the 1/M of the squared loss",
    )
    mean = float(np.exp(np.average(logs, weights=stderr**-2)))
    return _finding(dataset, titles, claim, rival, f"ratio {mean:.3g} on average", ("label_term",))


def judge_prefactor(dataset: xr.Dataset) -> Finding:
    """eta* of the whole update falls by sqrt(C - 1) under the muP head; rival: the prefactor stays."""
    logs, stderr = (found.sel(head="mup").values.ravel() for found in scale_ratio(dataset))
    classes = int(dataset.attrs["classes"])
    slack = np.full(logs.size, 2 * NEAR)
    claim, rival = (Deviation(logs - value, stderr, slack) for value in (np.log(classes - 1), 0.0))
    titles = (
        f"under the muP head eta* is (C - 1)^(-1/2) = {(classes - 1) ** -0.5:.3g} times that under squared loss",
        "equal",
    )
    shown = f"ratios {np.exp(-logs.max() / 2):.3f} .. {np.exp(-logs.min() / 2):.3f}"
    return _finding(dataset.sel(head="mup"), titles, claim, rival, shown)


def judge_exponent(dataset: xr.Dataset) -> Finding:
    """eta* falls alike in depth under both losses, muP head; rival: 1/2 apart, as -3/2 and -2."""
    nets = [str(net) for net in dataset["net"].values]
    gaps, stderr, shown = _exponent_gaps(dataset, nets, "mup")
    claim, rival = _gaps(gaps, stderr, 0.0), _gaps(np.abs(gaps), stderr, 0.5)
    titles = (
        "eta* falls with the same exponent in depth under cross-entropy (P0 section G), where outputs vanish",
        "1/2 apart, as the exponents of labels (-3/2) and of outputs (-2) that drive a step",
    )
    return _finding(dataset.sel(head="mup"), titles, claim, rival, shown)


def judge_exponent_with_outputs(dataset: xr.Dataset) -> Finding:
    """The same, MLP under the He head; rival: outputs steepen the squared loss's alone, by exact expectations."""
    gaps, stderr, shown = _exponent_gaps(dataset, ["MLP"], "he")
    at = dataset.sel(net="MLP", head="he", loss="squared")
    logs = [np.log(at[f"{name}_exact"].values) for name in ("label_term", "update_energy")]
    label, whole = (-0.5 * np.polyfit(np.log(at["depth"].values), log, 1)[0] for log in logs)
    claim, rival = _gaps(gaps, stderr, 0.0), _gaps(gaps, stderr, float(label - whole))
    titles = (
        "eta* falls with the same exponent in depth where outputs are of order one (MLP, He head) too",
        f"{label - whole:.3f} less steeply: the squared loss's output term steepens its own, by the exact expectations",
    )
    return _finding(dataset.sel(net="MLP", head="he"), titles, claim, rival, shown)


def _exponent_gaps(dataset: xr.Dataset, nets: list[str], head: str) -> tuple[Array, Array, str]:
    """Slope of eta* under cross-entropy less that under squared loss, its error, and both in words."""
    losses = ("cross_entropy", "squared")
    pairs = [[depth_slope(dataset, net, head, loss) for loss in losses] for net in nets]
    gaps = np.array([other.exponent - squared.exponent for other, squared in pairs])
    stderr = np.array([float(np.hypot(other.stderr, squared.stderr)) for other, squared in pairs])
    both = zip(nets, pairs, strict=True)
    words = ", ".join(f"{net} {other.exponent:.3f} and {squared.exponent:.3f}" for net, (other, squared) in both)
    return gaps, stderr, f"slopes {words} (squared)"


def judge_error(dataset: xr.Dataset, head: str) -> Finding:
    """|p - y|^2 = 1 - 1/C at initialisation of the MLP; rival: logits of order one (He head), or of none (muP head)."""
    at = dataset.sel(net="MLP", loss="cross_entropy")
    error, stderr = (at[f"output_error{end}"].sel(head=head).values for end in ("", "_stderr"))
    uniform = 1 - 1 / int(dataset.attrs["classes"])
    gaussian = at["output_error_mean_field"].sel(head="he").values
    slack = LOGITS * at["depth"].values / float(dataset.attrs["width"]) * (gaussian - uniform)
    claim, rival = (Deviation(error - value, stderr, slack) for value in (uniform, gaussian))
    titles = (
        f"|p - y|^2 = 1 - 1/C = {uniform:.3g} under the {'muP' if head == 'mup' else 'He'} head (P0 section G)",
        f"{gaussian[0]:.4g}, logits of variance 1",
    )
    at = at.sel(head=head)
    return _finding(at, titles, claim, rival, f"drawn {error.min():.4g} .. {error.max():.4g}", ("output_error",))


def judge_output_term(dataset: xr.Dataset) -> Finding:
    """A/B of the MLP with He head under cross-entropy, at leading order; rival: that of the squared loss."""
    at = dataset.sel(net="MLP", head="he", loss="cross_entropy")
    logs = np.log((at["output_term"] / at["label_term"]).values)
    relative = [(at[f"{name}_stderr"] / at[name]).values for name in ("output_term", "label_term")]
    stderr = np.hypot(*relative)
    granted = OUTPUT_EXCESS * (dataset.attrs["classes"] + 5) / dataset.attrs["width"] * at["depth"].values
    squared = dataset.sel(net="MLP", head="he", loss="squared")
    targets = [np.log((one["output_term_mean_field"] / one["label_term_mean_field"]).values) for one in (at, squared)]
    claim, rival = (Deviation(logs - target, stderr, np.log1p(granted)) for target in targets)
    titles = (
        "output term under the He head is the label term times (E|p|^2 - 1/C) / (1 - 1/C), beside corrections in M L/n",
        "as large as the label term, as under squared loss",
    )
    shown = f"A/B {np.exp(logs[0]):.3f} .. {np.exp(logs[-1]):.3f}, leading order {np.exp(targets[0][0]):.3f}"
    return _finding(at, titles, claim, rival, shown, ("label_term", "output_term"))


def _gaps(gaps: ArrayLike, stderr: ArrayLike, value: float) -> Deviation:
    found = np.asarray(gaps)
    return Deviation(found - value, np.asarray(stderr), np.full(found.size, NEAR))


def _finding(
    dataset: xr.Dataset,
    titles: tuple[str, str],
    claim: Deviation,
    rival: Deviation,
    shown: str,
    names: tuple[str, ...] = ("update_energy",),
) -> Finding:
    """By the draws that carry the means of the terms ``names`` in this part of the dataset."""
    comparisons, draws = FINDINGS * claim.difference.size, dataset.attrs["draws"]
    effective = effective_draws(dataset, *names)
    return weigh(titles, claim, rival, comparisons=comparisons, draws=draws, effective=effective, shown=shown)
