"""The printed report on identities."""

from __future__ import annotations

import xarray as xr

from meanfield.verification import Verdict, aggregators, judge_prefactor, judge_split, layer_norm
from sims.common.report import answer, report
from sims.common.table import number, table

QUESTION = "Do the identities that the papers print hold to rounding?"


def text(dataset: xr.Dataset) -> str:
    """Label average by layer, properties of aggregators, the norm of LayerNorm's Jacobian, verdicts."""
    seed = int(dataset.attrs["seed"])
    findings = [
        judge_split(dataset),
        judge_prefactor(dataset),
        aggregators.judge_uniqueness(seed),
        aggregators.judge_other_means(seed),
        aggregators.judge_harmonic_sensitivity(),
        layer_norm.judge_jacobian(seed),
        layer_norm.judge_bound(seed),
    ]
    ratios = dataset["norm_ratio"]
    spread = f"{float(ratios.min()):.4f} .. {float(ratios.max()):.4f}"
    norms = f"LayerNorm: |J| s / gamma_max of {ratios.size} examples: {spread}"
    broken = sum(finding.verdict is Verdict.REFUTED for finding in findings)
    summary = answer(findings, f"{broken} of {len(findings)} statements do not hold")
    return report(QUESTION, summary, [_label_table(dataset), _aggregator_table(dataset), norms], findings)


def _label_table(dataset: xr.Dataset) -> str:
    names = ("enumerated", "split", "label_term", "kernel_term")
    rows = [
        [str(layer), *(number(float(dataset[name].sel(layer=layer))) for name in names)]
        for layer in dataset["layer"].values
    ]
    header = ["layer", "S over all labels", "A + B", "B", "sum of squared kernel / M"]
    return table(header, rows, f"One net of {dataset.attrs['outputs']} outputs, seed {dataset.attrs['seed']}")


def _aggregator_table(dataset: xr.Dataset) -> str:
    kinds = [str(kind) for kind in dataset["property"].values]
    rows = [
        [str(name), *(number(float(value)) for value in dataset["violation"].sel(aggregator=name).values)]
        for name in dataset["aggregator"].values
    ]
    return table(["mean of layers", *kinds], rows, "Largest relative violation found (rounding: below 1e-9)")
