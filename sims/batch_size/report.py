"""The printed report on batch sizes."""

from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr

from meanfield.common import Array
from meanfield.verification import Finding
from sims.batch_size import claims
from sims.common.report import Report, answer
from sims.common.tables import MISSING, Column, Grid, Table, against, fitted, label, measured, number, signed

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


def _by_size(dataset: xr.Dataset, values: Callable[[xr.Dataset], Array]) -> list[Column]:
    """A column for every batch size, of a row's values at all of them."""

    def column(place: int, size: int) -> Column:
        return Column(label(size), lambda at: number(values(at)[place]))

    return [column(*size) for size in enumerate(dataset["batch"].values)]


IDENTITY = Table(
    "identity",
    "Change at an input outside the batch, one net, batches sampled from 64 samples (Zhang et al. 2026, eq. 25)",
    ["sampled_batch"],
    "B",
    [
        Column(["mean square", "with Cov/B", "s.e."], lambda at: against(at, "sampled_energy", "identity")),
        Column("B = inf", "sampled_energy_limit"),
    ],
)


def _scale_columns(dataset: xr.Dataset) -> list[Column]:
    """eta*_B relative to one sample of the case."""

    def relative(at: xr.Dataset) -> Array:
        scale: Array = at["label_term"].values ** -0.5
        return scale / scale[0]

    def slope(at: xr.Dataset) -> str:
        law = claims.drawn_slope(dataset, str(at["case"].values))
        return MISSING if law is None else fitted(law)

    return [
        Column("f", "other_sample"),
        *_by_size(dataset, relative),
        Column(f"slope, B >= {int(claims.tail(dataset)['batch'][0])}", slope),
        Column("mean field", lambda at: number(claims.theory_slope(dataset, str(at["case"].values)))),
    ]


SCALES = Table(
    "scales",
    "Learning-rate scale of the label term by batch size, 1 + O(1/B) in the papers",
    ["case"],
    "eta*(B) / eta*(1), label term",
    _scale_columns,
)


def _deviation_cells(at: xr.Dataset) -> list[str]:
    """Label terms over their mean field, and in standard errors from it, beyond the allowance."""
    names = ("label_term", "label_term_stderr", "label_term_allowance")
    ratio, error, granted = ((at[name] / at["label_term_mean_field"]).values for name in names)
    last = np.flatnonzero(np.isfinite(at["label_term"].values))[-1]
    worst = float(np.nanmax((np.abs(ratio - 1) - granted) / error))
    ends = [measured(float(ratio[place]), float(error[place])) for place in (0, last)]
    return [*ends, number(granted[last]), signed(worst)]


TERMS = Table(
    "terms",
    "Label terms over their mean field, and their floor",
    ["case"],
    "label term / mean field",
    [
        Column(["one sample", "largest batch", "allowance", "beyond"], _deviation_cells),
        Column("floor", "label_floor"),
    ],
)


def _output_columns(dataset: xr.Dataset) -> list[Column]:
    by_size = _by_size(dataset, lambda at: (at["output_term"] / at["label_term"]).values)
    return [*by_size, Column("leading order", "leading")]


OUTPUTS = Table(
    "outputs",
    "Output over label term A/B by batch size; leading order in outputs x depth / width at the largest",
    ["case"],
    "A/B",
    _output_columns,
)


def _outputs(dataset: xr.Dataset) -> Grid:
    """Of nets whose leading order is known at the largest batch: fully-connected ones."""
    leading = (dataset["output_term_mean_field"] / dataset["label_term_mean_field"]).isel(batch=-1)
    return OUTPUTS(dataset.assign(leading=leading).isel(case=np.flatnonzero(np.isfinite(leading.values))))


def _depth_columns(dataset: xr.Dataset) -> list[Column]:
    def column(size: float) -> Column:
        return Column(f"B = {size:g}", lambda at: number(float(at["depth_slope"].sel(theory_batch=size))))

    return [column(size) for size in dataset["theory_batch"].values]


DEPTH = Table(
    "depth",
    "Slopes in depth by the mean field, 150 to 300 layers (papers: -1.5 for every B)",
    ["label_mean"],
    "eta* of the label term",
    _depth_columns,
    key=lambda mean: f"labels of mean {mean}",
)

REPORT = Report(
    question="Does the batch size B move eta* by no more than 1 + O(1/B), for labels of mean 0?",
    answer=_answer,
    heading="MLPs of width {width}, ConvNets of {channels} channels, depth {depth}, outputs {outputs}; "
    "relu and he head unless "
    "said otherwise; {draws} draws per case and size, seed {seed}; images: {images}; means over "
    "layers, learning rate 1",
    parts=[IDENTITY, SCALES, TERMS, _outputs, DEPTH, LAW],
    findings=claims.findings,
    heavy=["label_term", "output_term"],
    words=WORDS,
)
