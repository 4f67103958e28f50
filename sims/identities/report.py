"""The printed report on identities."""

import xarray as xr

from meanfield.verification import Verdict, aggregators, hyperparameter_tables, judge_prefactor, judge_split, layer_norm
from sims.common.report import answer, report
from sims.common.tables import number, predicted, rows, table

QUESTION = "Do the identities that the papers print hold to rounding?"
LABEL_TERMS = {
    "enumerated": "S over all labels",
    "split": "A + B",
    "label_term": "B",
    "kernel_term": "sum of squared kernel / M",
}
WORDS = {
    "A + B": "the sum of output term A and label term B, which is to be the mean of S over labels.",
    "sum of squared kernel / M": "B with the prefactor that the papers print.",
}


def text(dataset: xr.Dataset) -> str:
    """Label average by layer, properties of aggregators, the norm of LayerNorm's Jacobian, verdicts."""
    seed, ratios = int(dataset.attrs["seed"]), dataset["norm_ratio"]
    findings = [
        judge_split(dataset),
        judge_prefactor(dataset),
        aggregators.judge_uniqueness(seed),
        aggregators.judge_other_means(seed),
        aggregators.judge_harmonic_sensitivity(),
        layer_norm.judge_jacobian(seed),
        layer_norm.judge_bound(seed),
        hyperparameter_tables.judge_derivation(seed),
    ]
    spread = f"{float(ratios.min()):.4f} .. {float(ratios.max()):.4f}"
    norms = f"LayerNorm: |J| s / gamma_max of {ratios.size} examples: {spread}"
    broken = sum(finding.verdict is Verdict.REFUTED for finding in findings)
    summary = answer(findings, f"{broken} of {len(findings)} statements do not hold")
    return report(QUESTION, summary, [_label_table(dataset), _aggregator_table(dataset), norms], findings, WORDS)


def _label_table(dataset: xr.Dataset) -> str:
    lines = rows(dataset, ["layer"], lambda at: [predicted(at, name) for name in LABEL_TERMS])
    title = "One net of {outputs} outputs, seed {seed}".format_map(dataset.attrs)
    return table(["layer", *LABEL_TERMS.values()], lines, title)


def _aggregator_table(dataset: xr.Dataset) -> str:
    lines = rows(dataset, ["aggregator"], lambda at: map(number, at["violation"].values))
    title = "Largest relative violation found (rounding: below 1e-9)"
    return table(["mean of layers", *map(str, dataset["property"].values)], lines, title)
