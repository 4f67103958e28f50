"""Learning-rate scale against batch size for several laws of labels, both terms, and the identity for mini-batches."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.style import (
    GREY,
    LABEL_TERM,
    LAW,
    MEAN_FIELD,
    MEASURED,
    OLIVE,
    ORANGE,
    OUTPUT_TERM,
    PURPLE,
    SKY,
    WINE,
    by_size,
    key,
    legend_under,
    log_values,
    points,
    styled,
)

# Cases of the first panel, in the order of their growth, and their colours.
CASES = {
    "linear MLP, rho 0, labels mean 0": PURPLE,
    "MLP, rho 0, labels mean 0": OLIVE,
    "MLP, rho 0.9, labels mean 0": ORANGE,
    "MLP, rho 0, labels mean 1": SKY,
    "MLP, rho 0.5, labels teacher": WINE,
}
SHARE = "MLP, rho 0, labels mean 0"


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Points drawn, lines theory, dashed what the papers say."""
    figure = Figure(figsize=(10.0, 4.4))
    scales, terms, sampled = figure.subplots(1, 3)
    _scales(scales, dataset)
    _terms(terms, dataset)
    _identity(sampled, dataset)
    for axes in (scales, terms, sampled):
        by_size(axes, dataset["sampled_batch" if axes is sampled else "batch"].values, "batch size B")
        legend_under(axes, fontsize=8)
    return figure


def _scales(axes: Axes, dataset: xr.Dataset) -> None:
    sizes = dataset["batch"].values
    for case, color in CASES.items():
        at = dataset.sel(case=case)
        theory = at["label_term_mean_field"].values ** -0.5
        scale = at["label_term"].values ** -0.5
        stderr = 0.5 * scale * (at["label_term_stderr"] / at["label_term"]).values
        axes.plot(sizes, theory / theory[0], color=color)
        axes.errorbar(sizes, scale / theory[0], stderr / theory[0], fmt="o", color=color, label=case)
    axes.plot(sizes, np.ones(len(sizes)), "--", color=LAW, label="papers, 1 + O(1/B)")
    key(axes, "mean field")
    axes.set_title("learning-rate scale of the label term", fontsize=9)
    log_values(axes, "eta* at B / eta* at B = 1")


def _terms(axes: Axes, dataset: xr.Dataset) -> None:
    at, sizes = dataset.sel(case=SHARE), dataset["batch"].values
    for name, color in (("label_term", LABEL_TERM), ("output_term", OUTPUT_TERM)):
        axes.plot(sizes, at[f"{name}_mean_field"].values, color=color)
        points(axes, sizes, at, name, color=color, label=name.replace("_", " "))
    axes.axhline(float(at["output_floor"]), ls=":", color=OUTPUT_TERM, label="floor of the output term")
    key(axes, "mean field")
    axes.set_title("MLP, rho 0, labels of mean 0", fontsize=9)
    log_values(axes, "term, mean over layers")


def _identity(axes: Axes, dataset: xr.Dataset) -> None:
    sizes = dataset["sampled_batch"].values
    identity = dataset["sampled_energy_identity"].values
    axes.plot(sizes, identity, color=MEAN_FIELD, label="with Cov/B (Zhang et al. 2026, eq. 25)")
    axes.plot(
        sizes, dataset["sampled_energy_limit"].values, "--", color=GREY, label="the whole population, no term in 1/B"
    )
    points(axes, sizes, dataset, "sampled_energy", color=MEASURED, label="sampled batches")
    axes.set_title("one net, at an input outside the batch", fontsize=9)
    log_values(axes, "mean square change")


if __name__ == "__main__":
    command("batch_size", draw)
