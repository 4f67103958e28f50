"""The printed report on batch sizes."""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield.verification import batch_sizes
from sims.common.beside import heavy_tail_notes
from sims.common.report import answer, report
from sims.common.table import measured, number, signed, table

QUESTION = "Does the batch size B move eta* by no more than 1 + O(1/B), for labels of mean 0?"
WORDS = {
    "rho": "correlation of the inputs of two samples.",
    "teacher": "labels that a linear map of the inputs gives.",
    "f": "squared kernel of two samples over that of one with itself.",
}
LAW = """Law, for labels of mean m and variance 1 (mean field; G_s the squared kernel of a sample with itself,
G_d with another, f = G_d / G_s; G_1 and G_2 the product of its kernels with two samples, of which
one is itself, or none):
  label term = {G_s + (B-1) G_d + m^2 [G_s + (B-1)(G_d + 2 G_1) + (B-1)(B-2) G_2]} / (M B^2)
  so eta*_B = B / sqrt(1 + (B-1) f) times that of one sample for m = 0 (B if f = 0, sqrt(B) once
  B f >> 1), and 1 + O(1/B) only above the floor m^2 G_2 / M, to which labels with a mean, or a
  teacher with correlated inputs, lead. At an input outside the batch the label term for m = 0 is
  1/B exactly: eta*_B ~ sqrt(B)."""


def text(dataset: xr.Dataset) -> str:
    """The identity, eta* by case and batch size, output terms, slopes in depth, verdicts."""
    tables = [_identity(dataset), _scales(dataset), _terms(dataset), _outputs(dataset), _depth(dataset)]
    notes = heavy_tail_notes(dataset, ["label_term", "output_term"])
    return report(
        QUESTION, _answer(dataset), [_heading(dataset), *tables, LAW, *notes], batch_sizes.findings(dataset), WORDS
    )


def _answer(dataset: xr.Dataset) -> str:
    terms, sizes = dataset["label_term"].sel(case=batch_sizes.INDEPENDENT).values, dataset["batch"].values
    grown = f"{(terms[0] / terms[-1]) ** 0.5:.3g}-fold from B = {sizes[0]} to {sizes[-1]}"
    return answer([batch_sizes.judge_printed(dataset)], f"eta* of the label term grows {grown}")


def _heading(dataset: xr.Dataset) -> str:
    spec = (
        "MLP width {width}, ConvNet channels {channels}, depth {depth}, outputs {outputs}, relu and he head if not said"
    )
    run = "{draws} draws per case and size, seed {seed}; images: {images}; means over layers, learning rate 1"
    return f"{spec}\n{run}".format_map(dataset.attrs)


def _identity(dataset: xr.Dataset) -> str:
    rows = []
    for size in dataset["sampled_batch"].values:
        at = dataset.sel(sampled_batch=size)
        energy, stderr = float(at["sampled_energy"]), float(at["sampled_energy_stderr"])
        law, limit = float(at["sampled_energy_identity"]), float(at["sampled_energy_limit"])
        rows.append([str(size), measured(energy, stderr), number(law), signed((energy - law) / stderr), number(limit)])
    title = "Change at an input outside the batch, one net, batches sampled from 64 samples (P0 eq. 25)"
    return table(["B", "mean square", "with Cov/B", "s.e.", "B = inf"], rows, title)


def _scales(dataset: xr.Dataset) -> str:
    """eta*_B relative to one sample of the case."""
    rows = []
    for case in map(str, dataset["case"].values):
        at = dataset.sel(case=case)
        scale = at["label_term"].values ** -0.5
        law = batch_sizes.drawn_slope(dataset, case)
        slope = "-" if law is None else measured(law.exponent, law.stderr)
        cells = [number(value) for value in scale / scale[0]]
        rows.append(
            [case, number(float(at["other_sample"])), *cells, slope, number(batch_sizes.theory_slope(dataset, case))]
        )
    sizes = [str(size) for size in dataset["batch"].values]
    first = int(batch_sizes.tail(dataset)["batch"][0])
    header = ["eta*(B) / eta*(1), label term", "f", *sizes, f"slope, B >= {first}", "mean field"]
    return table(header, rows, "Learning-rate scale of the label term by batch size, 1 + O(1/B) in the papers")


def _terms(dataset: xr.Dataset) -> str:
    """Label terms in standard errors from the mean field, beyond the allowance."""
    rows = []
    for case in map(str, dataset["case"].values):
        at = dataset.sel(case=case)
        last = np.flatnonzero(np.isfinite(at["label_term"].values))[-1]
        ratio = (at["label_term"] / at["label_term_mean_field"]).values
        error = (at["label_term_stderr"] / at["label_term_mean_field"]).values
        granted = (at["label_term_allowance"] / at["label_term_mean_field"]).values
        excess = (np.abs(ratio - 1) - granted) / error
        cells = [measured(float(ratio[i]), float(error[i])) for i in (0, last)]
        rows.append(
            [case, *cells, number(granted[last]), signed(float(np.nanmax(excess))), number(float(at["label_floor"]))]
        )
    header = ["label term / mean field", "one sample", "largest batch", "allowance", "beyond", "floor"]
    title = "Label terms: the worst of all batches in s.e. beyond the allowance; the floor at B = inf"
    return table(header, rows, title)


def _outputs(dataset: xr.Dataset) -> str:
    """Output over label term, fully-connected nets."""
    rows = []
    for case in map(str, dataset["case"].values):
        at = dataset.sel(case=case)
        leading = (at["output_term_mean_field"] / at["label_term_mean_field"]).values
        if np.isfinite(leading).any():
            share = (at["output_term"] / at["label_term"]).values
            rows.append([case, *(number(value) for value in share), number(leading[-1])])
    sizes = [str(size) for size in dataset["batch"].values]
    title = "Output over label term A/B by batch size; leading order in outputs x depth / width at the largest"
    return table(["A/B", *sizes, "leading order"], rows, title)


def _depth(dataset: xr.Dataset) -> str:
    rows = []
    for mean in dataset["label_mean"].values:
        slopes = dataset["depth_slope"].sel(label_mean=mean).values
        rows.append([f"labels of mean {mean:g}", *(number(slope) for slope in slopes)])
    header = ["eta* of the label term", *(f"B = {size:g}" for size in dataset["theory_batch"].values)]
    return table(header, rows, "Slopes in depth by the mean field, 150 to 300 layers (papers: -1.5 for every B)")
