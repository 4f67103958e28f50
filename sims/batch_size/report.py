"""The printed report on batch sizes."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield.verification import Finding
from meanfield.verification import batch_sizes as claims
from sims.common.report import Report, answer
from sims.common.tables import MISSING, against, fitted, label, measured, number, predicted, rows, signed, table

WORDS = {
    "rho": "correlation of the inputs of two samples.",
    "teacher": "labels that a linear map of the inputs gives.",
    "f": "squared kernel of two samples over that of one with itself.",
    "with Cov/B": "the mean square by Zhang et al. 2026, eq. 25; B = inf: its limit for batches of all samples.",
    "beyond": "standard errors beyond the allowance, at the batch size where they are most.",
    "floor": "what the label term tends to as B grows.",
}
LAW = """Law, for labels of mean m and variance 1 (mean field; G_s the squared kernel of a sample with itself,
G_d with another, f = G_d / G_s; G_1 and G_2 the product of its kernels with two samples, of which
one is itself, or none):
  label term = {G_s + (B-1) G_d + m^2 [G_s + (B-1)(G_d + 2 G_1) + (B-1)(B-2) G_2]} / (M B^2)
For m = 0, eta*_B is B / sqrt(1 + (B-1) f) times that of one sample: B if f = 0, and of the order
of sqrt(B) once B f >> 1. It is 1 + O(1/B) only above the floor m^2 G_2 / M, which labels with a
mean have, or those of a teacher where inputs correlate. At an input outside the batch the label
term for m = 0 is 1/B exactly: eta*_B ~ sqrt(B)."""


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    terms, sizes = dataset["label_term"].sel(case=claims.INDEPENDENT).values, dataset["batch"].values
    grown = f"{(terms[0] / terms[-1]) ** 0.5:.3g}-fold from B = {sizes[0]} to {sizes[-1]}"
    return answer([claims.judge_printed(dataset)], f"eta* of the label term grows {grown}")


def _identity(dataset: xr.Dataset) -> str:
    def cells(at: xr.Dataset) -> list[str]:
        return [*against(at, "sampled_energy", "identity"), predicted(at, "sampled_energy_limit")]

    title = "Change at an input outside the batch, one net, batches sampled from 64 samples (Zhang et al. 2026, eq. 25)"
    return table(["B", "mean square", "with Cov/B", "s.e.", "B = inf"], rows(dataset, ["sampled_batch"], cells), title)


def _scales(dataset: xr.Dataset) -> str:
    """eta*_B relative to one sample of the case."""

    def cells(at: xr.Dataset) -> list[str]:
        case, scale = str(at["case"].values), at["label_term"].values ** -0.5
        law = claims.drawn_slope(dataset, case)
        slopes = [MISSING if law is None else fitted(law), number(claims.theory_slope(dataset, case))]
        return [predicted(at, "other_sample"), *map(number, scale / scale[0]), *slopes]

    first = int(claims.tail(dataset)["batch"][0])
    header = ["eta*(B) / eta*(1), label term", "f", *_sizes(dataset), f"slope, B >= {first}", "mean field"]
    title = "Learning-rate scale of the label term by batch size, 1 + O(1/B) in the papers"
    return table(header, rows(dataset, ["case"], cells), title)


def _terms(dataset: xr.Dataset) -> str:
    """Label terms in standard errors from the mean field, beyond the allowance."""

    def cells(at: xr.Dataset) -> list[str]:
        names = ("label_term", "label_term_stderr", "label_term_allowance")
        ratio, error, granted = ((at[name] / at["label_term_mean_field"]).values for name in names)
        last = np.flatnonzero(np.isfinite(at["label_term"].values))[-1]
        worst = float(np.nanmax((np.abs(ratio - 1) - granted) / error))
        ends = [measured(float(ratio[place]), float(error[place])) for place in (0, last)]
        return [*ends, number(granted[last]), signed(worst), predicted(at, "label_floor")]

    header = ["label term / mean field", "one sample", "largest batch", "allowance", "beyond", "floor"]
    return table(header, rows(dataset, ["case"], cells), "Label terms over their mean field, and their floor")


def _outputs(dataset: xr.Dataset) -> str:
    """Output over label term, fully-connected nets."""
    leading = (dataset["output_term_mean_field"] / dataset["label_term_mean_field"]).isel(batch=-1)
    with_outputs = dataset.assign(leading=leading).isel(case=np.flatnonzero(np.isfinite(leading.values)))

    def cells(at: xr.Dataset) -> list[str]:
        return [*map(number, (at["output_term"] / at["label_term"]).values), predicted(at, "leading")]

    title = "Output over label term A/B by batch size; leading order in outputs x depth / width at the largest"
    return table(["A/B", *_sizes(dataset), "leading order"], rows(with_outputs, ["case"], cells), title)


def _depth(dataset: xr.Dataset) -> str:
    slopes = rows(dataset, ["label_mean"], lambda at: map(number, at["depth_slope"].values))
    lines = [[f"labels of mean {mean}", *cells] for mean, *cells in slopes]
    header = ["eta* of the label term", *(f"B = {size:g}" for size in dataset["theory_batch"].values)]
    return table(header, lines, "Slopes in depth by the mean field, 150 to 300 layers (papers: -1.5 for every B)")


def _sizes(dataset: xr.Dataset) -> list[str]:
    return [label(size) for size in dataset["batch"].values]


text = Report(
    question="Does the batch size B move eta* by no more than 1 + O(1/B), for labels of mean 0?",
    answer=_answer,
    heading="MLPs of width {width}, ConvNets of {channels} channels, depth {depth}, outputs {outputs}; "
    "relu and he head unless "
    "said otherwise; {draws} draws per case and size, seed {seed}; images: {images}; means over "
    "layers, learning rate 1",
    parts=[_identity, _scales, _terms, _outputs, _depth, LAW],
    findings=claims.findings,
    heavy=["label_term", "output_term"],
    words=WORDS,
).text
