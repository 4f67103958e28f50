"""Learning-rate scale against depth under both losses, and the ratio of the two."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.style import (
    GREEN,
    LAW,
    MEAN_FIELD,
    OLIVE,
    ORANGE,
    PURPLE,
    SKY,
    by_size,
    legend_below,
    legend_under,
    log_values,
    points,
    styled,
)

STYLES = {
    ("MLP", "he"): PURPLE,
    ("MLP", "mup"): OLIVE,
    ("ConvNet", "he"): ORANGE,
    ("ConvNet", "fan_in"): SKY,
    ("ConvNet", "mup"): GREEN,
}
HEADS = {"he": "He head", "mup": "muP head", "fan_in": "1/fan-in head"}
MARKERS = {"squared": "o", "cross_entropy": "^"}


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Left eta*, middle its ratio with (C - 1)^(-1/2), right |p - y|^2 with 1 - 1/C."""
    figure = Figure(figsize=(10.0, 3.6))
    scales, ratios, errors = figure.subplots(1, 3)
    _scales(scales, dataset)
    _ratios(ratios, dataset)
    _errors(errors, dataset)
    for axes in (scales, ratios, errors):
        by_size(axes, dataset["depth"].values, "depth L")
    legend_below(figure, scales, 4, fontsize=8)
    return figure


def _scales(axes: Axes, dataset: xr.Dataset) -> None:
    depth = dataset["depth"].values
    for (net, head), color in STYLES.items():
        for loss, marker in MARKERS.items():
            at = dataset.sel(net=net, head=head, loss=loss)
            scale = at["update_energy"].values ** -0.5
            stderr = 0.5 * scale * (at["update_energy_stderr"] / at["update_energy"]).values
            words = f"{net}, {HEADS[head]}, {loss.replace('_', '-')}"
            axes.errorbar(depth, scale, stderr, fmt=f"{marker}-", lw=0.7, color=color, label=words)
    axes.set_title("learning-rate scale under both losses", fontsize=9)
    log_values(axes, "learning-rate scale eta*")


def _ratios(axes: Axes, dataset: xr.Dataset) -> None:
    depth = dataset["depth"].values
    for (net, head), color in STYLES.items():
        at = dataset.sel(net=net, head=head)
        entropic, squared = (at.sel(loss=loss) for loss in ("cross_entropy", "squared"))
        ratio = np.sqrt(squared["update_energy"].values / entropic["update_energy"].values)
        relative = [(drawn["update_energy_stderr"] / drawn["update_energy"]).values for drawn in (entropic, squared)]
        axes.errorbar(depth, ratio, 0.5 * ratio * np.hypot(*relative), fmt="o-", lw=0.7, color=color)
    classes = int(dataset.attrs["classes"])
    axes.axhline((classes - 1) ** -0.5, color=MEAN_FIELD, label="small outputs: (C - 1)$^{-1/2}$")
    axes.set(ylabel="eta*, cross-entropy / squared")
    legend_under(axes, fontsize=8)
    axes.set_title("flat if the prefactor alone changes", fontsize=9)


def _errors(axes: Axes, dataset: xr.Dataset) -> None:
    depth = dataset["depth"].values
    for (net, head), color in STYLES.items():
        at = dataset.sel(net=net, head=head, loss="cross_entropy")
        points(axes, depth, at, "output_error", fmt="^-", lw=0.7, color=color)
    theory = dataset["output_error_mean_field"].sel(net="MLP", head="he", loss="cross_entropy").values
    axes.plot(depth, theory, color=MEAN_FIELD, label="logits of variance 1")
    uniform = 1 - 1 / int(dataset.attrs["classes"])
    axes.axhline(uniform, ls="--", color=LAW, label="papers, 1 - 1/C")
    axes.set(ylabel="|p - y|$^2$")
    axes.set_title("squared error of probabilities, cross-entropy", fontsize=9)
    legend_under(axes, fontsize=8)


if __name__ == "__main__":
    command("cross_entropy", draw)
