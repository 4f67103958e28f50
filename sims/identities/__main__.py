"""Statements of the papers that are identities, or are not: each checked to rounding on examples, without statistics.

All are of Zhang et al. 2026. The split of the update energy by an average over labels, with its prefactor (lemma 2), by
enumeration of all labels and by central differences over all parameters of a small net; the mean that is consistent
when layers are regrouped (appendix A), by a search for counterexamples; LayerNorm's Jacobian and the bound on its norm
(lemma 7).
"""

import argparse
import json
from math import prod
from typing import Any

import xarray as xr

from meanfield.common import require_count
from meanfield.nets import MLP
from meanfield.verification import Verdict
from sims.common.command import Option, Preset
from sims.common.datasets import Variable, over
from sims.common.report import Document, answer
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import Column, Grid, Table, number
from sims.identities import aggregators, hyperparameter_tables, label_average, layer_norm

LISTED = "statements that hold to rounding, or do not"

# What is asked for.

MOST_OUTPUTS = 12
# Central differences move every weight alone, in a copy of all: the cost is the square of their number.
MOST_WEIGHTS = 100_000


def _few_outputs(written: str, given: int) -> int:
    if require_count(written, given) > MOST_OUTPUTS:
        raise ValueError(f"{written} is {given}; all 2^M labels are enumerated, so give {MOST_OUTPUTS} or fewer")
    return given


OPTIONS = (
    Option("depth", "hidden layers of the net", int, metavar="L", group=""),
    Option("width", "units of its layers", int, metavar="N", group=""),
    Option(
        "outputs",
        f"its outputs, of 2^M labels of +-1 (at most {MOST_OUTPUTS})",
        int,
        metavar="M",
        check=_few_outputs,
        group="",
    ),
    Option("seed", "of the net and of all examples", int, 0, group=""),
)
PRESETS = {
    "smoke": Preset("4 s", depth=2, width=4, outputs=2),
    "default": Preset("4 s", depth=4, width=8, outputs=3),
    "paper": Preset("5 s", depth=8, width=24, outputs=8),
}

# What is measured.

VARIABLES = (
    Variable("enumerated", "update energy S, mean over all labels"),
    Variable("split", "output term and label term together, A + B"),
    Variable(
        "kernel_term",
        "label term with the prefactor that is printed",
        "sigma_y^2 mean_a sum_t Theta_at^2 / M, by central differences",
        source="Zhang et al. 2026, eq. 19",
    ),
    Variable("violation", "largest relative violation of a property that is found", source="Zhang et al. 2026, A1"),
    Variable(
        "norm_ratio",
        "norm of LayerNorm's Jacobian in units of gamma_max / s",
        symbol="|J| s / gamma_max",
        source="Zhang et al. 2026, eq. 39",
    ),
    Variable("aggregator", "mean of the layers' energies"),
    Variable("property", "property of a mean: permutation, scale, merge, normalisation"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The net."""
    net = MLP(depth=options.depth, width=options.width, outputs=options.outputs)
    if (moved := sum(prod(shape) for shape in net.weight_shapes)) > MOST_WEIGHTS:
        raise ValueError(f"the net has {moved:,} weights, each of which is moved alone; lower --depth or --width")
    return {"net": net}


def measure(options: argparse.Namespace, results: Results, net: MLP) -> xr.Dataset:
    """All numbers that are shown; the examples are found again from the seed."""
    violations = aggregators.worst_violations(aggregators.AGGREGATORS, options.seed)
    axes = {"aggregator": list(violations), "property": list(violations["arithmetic"])}
    searched = [{"violation": by_kind[kind]} for by_kind in violations.values() for kind in axes["property"]]
    ratios = [layer_norm.norm_ratio(example) for example in layer_norm.examples(options.seed)]
    examples = xr.Dataset({"norm_ratio": ("example", ratios)})
    dataset = xr.merge(
        [label_average.label_average(net, options.seed), over(axes, searched), examples], combine_attrs="override"
    )
    return dataset.assign_attrs(architecture=json.dumps(net.describe()))


# What is printed.

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


def document(dataset: xr.Dataset) -> Document:
    """Label average by layer, properties of aggregators, the norm of LayerNorm's Jacobian, verdicts."""
    seed, ratios = int(dataset.attrs["seed"]), dataset["norm_ratio"]
    findings = [
        label_average.judge_split(dataset),
        label_average.judge_prefactor(dataset),
        *aggregators.JUDGES.findings(seed),
        *layer_norm.JUDGES.findings(seed),
        hyperparameter_tables.judge_derivation(seed),
    ]
    spread = f"{float(ratios.min()):.4f} .. {float(ratios.max()):.4f}"
    norms = f"LayerNorm: |J| s / gamma_max of {ratios.size} examples: {spread}"
    broken = sum(finding.verdict is Verdict.REFUTED for finding in findings)
    summary = answer(findings, f"{broken} of {len(findings)} statements do not hold")
    question = "Do the identities that the papers print hold to rounding?"
    parts: list[str | Grid] = [LABEL_TABLE(dataset), AGGREGATOR_TABLE(dataset), norms]
    return Document(question=question, answer=summary, findings=findings, parts=parts, words=WORDS)


LABEL_TABLE = Table(
    "label table",
    "One net of {outputs} outputs, seed {seed}",
    ["layer"],
    "layer",
    [Column(words, name) for name, words in LABEL_TERMS.items()],
)


def _property_columns(dataset: xr.Dataset) -> list[Column]:
    def column(kind: str) -> Column:
        return Column(kind, lambda at: number(float(at["violation"].sel(property=kind))))

    return [column(str(kind)) for kind in dataset["property"].values]


AGGREGATOR_TABLE = Table(
    "aggregator table",
    "Largest relative violation found (rounding: below 1e-9)",
    ["aggregator"],
    "mean of layers",
    _property_columns,
)


STUDY = Study(
    name="identities",
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    compiles="0.5 s",
    draws=False,
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=document,
    claims=(*label_average.CLAIMS, *aggregators.CLAIMS, *layer_norm.CLAIMS, *hyperparameter_tables.CLAIMS),
)


if __name__ == "__main__":
    run_as_command("identities")
