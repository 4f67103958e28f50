"""The printed report on cross-entropy beside squared loss."""

from __future__ import annotations

from itertools import product

import numpy as np
import xarray as xr

from meanfield.verification import cross_entropies
from sims.common.beside import heavy_tail_notes
from sims.common.report import answer, report
from sims.common.table import measured, number, table

QUESTION = "Does cross-entropy in place of squared loss change the prefactor of eta* alone?"
LAW = (
    "Law: whatever the net, its width and its head, the label term under cross-entropy is C - 1 times that under "
    "squared loss, exactly: labels enter through the trace of their covariance (I - 11'/C)/C alone. The output term is "
    "the label term times (E|p|^2 - 1/C) / (1 - 1/C) at leading order in M L/n: none under the muP head, where p is "
    "uniform."
)


def text(dataset: xr.Dataset) -> str:
    """Errors at the outputs, terms by depth, ratios of the losses, slopes, verdicts."""
    tables = [_terms(dataset), _ratios(dataset), _slopes(dataset)]
    notes = heavy_tail_notes(dataset, ["label_term", "output_term"])
    parts = [_heading(dataset), *tables, LAW, *notes]
    return report(QUESTION, _answer(dataset), parts, cross_entropies.findings(dataset))


def _answer(dataset: xr.Dataset) -> str:
    laws = [cross_entropies.depth_slope(dataset, "MLP", "he", loss) for loss in ("cross_entropy", "squared")]
    other, squared = (f"{law.exponent:.3f} +- {law.stderr:.3f}" for law in laws)
    judged = [cross_entropies.judge_exponent(dataset), cross_entropies.judge_exponent_with_outputs(dataset)]
    return answer(judged, f"slopes {other} against {squared} (MLP, He)")


def _heading(dataset: xr.Dataset) -> str:
    spec = (
        "MLP width {width}; ConvNet channels {channels}, ring of 8 sites, pooled; relu, {classes} classes, one sample"
    )
    run = "{draws} draws each, seed {seed}; means over layers, learning rate 1"
    return f"{spec}\n{run}".format_map(dataset.attrs)


def _each(dataset: xr.Dataset) -> list[tuple[str, str]]:
    return [(str(net), str(head)) for net, head in product(dataset["net"].values, dataset["head"].values)]


def _terms(dataset: xr.Dataset) -> str:
    """|p - y|^2, label term and A/B under cross-entropy."""
    rows = []
    for (net, head), depth in product(_each(dataset), dataset["depth"].values):
        at = dataset.sel(net=net, head=head, loss="cross_entropy", depth=depth)
        cells = [measured(float(at[name]), float(at[f"{name}_stderr"])) for name in ("output_error", "label_term")]
        share, leading = (float(at[f"output_term{end}"] / at[f"label_term{end}"]) for end in ("", "_mean_field"))
        error, term = (number(float(at[f"{name}_mean_field"])) for name in ("output_error", "label_term"))
        rows.append([net, head, str(depth), cells[0], error, cells[1], term, number(share), number(leading)])
    header = [
        ["net", "head", "depth"],
        ["|p - y|^2", "mean field"],
        ["label term", "mean field"],
        ["A/B", "leading order"],
    ]
    uniform = 1 - 1 / dataset.attrs["classes"]
    return table(header, rows, f"Cross-entropy (|p - y|^2 at uniform p: {uniform:.4g})")


def _ratios(dataset: xr.Dataset) -> str:
    """Label term and eta* under cross-entropy over those under squared loss."""
    rows = []
    for net, head in _each(dataset):
        cells = []
        for name, power in (("label_term", 1.0), ("update_energy", -0.5)):
            logs, errors = (
                found.sel(net=net, head=head).values for found in cross_entropies.scale_ratio(dataset, name)
            )
            ratios = np.exp(power * logs)
            cells += [measured(float(r), float(abs(power) * e * r)) for r, e in zip(ratios, errors, strict=True)]
        rows.append([net, head, *cells])
    depths = [int(depth) for depth in dataset["depth"].values]
    header = [["net", "head"], [f"B, L = {depth}" for depth in depths], [f"eta*, L = {depth}" for depth in depths]]
    classes = dataset.attrs["classes"]
    title = f"Cross-entropy over squared loss (C - 1 = {classes - 1}, its inverse root {(classes - 1) ** -0.5:.3f})"
    return table(header, rows, title)


def _slopes(dataset: xr.Dataset) -> str:
    rows = []
    for net, head in _each(dataset):
        laws = [
            cross_entropies.depth_slope(dataset, net, head, loss, name)
            for name, loss in product(("update_energy", "label_term"), ("squared", "cross_entropy"))
        ]
        rows.append([net, head, *(measured(law.exponent, law.stderr) for law in laws)])
    whole, alone = ["eta*, squared", "eta*, cross-entropy"], ["label term alone, squared", "cross-entropy"]
    header = [["net", "head"], whole, alone]
    return table(header, rows, "Slopes in depth (papers: -1.5 for both)")
