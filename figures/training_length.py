"""Tuned rates over the number of steps, and a scale of one step over them against the batch, optimizer by optimizer."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.style import FURTHER, alike, by_size, key, legend_below, log_values, styled

OUTPUTS = "outputs_scale"
# By the schedule of the rate.
LOOKS: dict[str, dict[str, Any]] = {"constant": {"ls": "-"}, "warmup_cosine": {"ls": "--", "fillstyle": "none"}}
WORDS = {"constant": "constant rate", "warmup_cosine": "peak of warmup and cosine"}


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Above: geometric means over batches of the tuned rate; below: of the outputs' scale over it, over steps.

    Crosses stand on means of which a net hardly learns. Axes are equally long, so that equal exponents look alike.
    """
    optimizers = [str(name) for name in dataset["optimizer"].values]
    figure = Figure(figsize=(max(2.4 * len(optimizers), 4.8), 5.6))
    panels = figure.subplots(2, len(optimizers), squeeze=False)
    log_rate, error = dataset["tuned_rate_log10"], dataset["tuned_rate_log10_stderr"]
    of_scale = dataset[f"{OUTPUTS}_stderr"] / (dataset[OUTPUTS] * np.log(10))
    ratio = xr.DataArray(np.log10(dataset[OUTPUTS])) - log_rate
    for column, name in enumerate(optimizers):
        at = {"optimizer": name}
        learns = dataset["learns"].sel(at)
        _means(panels[0, column], log_rate.sel(at), error.sel(at), 0.0, learns, "steps")
        _means(panels[1, column], ratio.sel(at), error.sel(at), of_scale.sel(at), learns, "batch_size")
        panels[0, column].set_title(name, fontsize=9)
    for row, words in enumerate(("tuned rate", "outputs' scale / tuned rate")):
        panels[row, 0].set_ylabel(words)
        alike(panels[row])
    for schedule in map(str, dataset["schedule"].values):
        key(panels[0, 0], WORDS[schedule], marker="o", **LOOKS[schedule])
    key(panels[0, 0], "a net of the mean hardly learns", marker="x", ls="")
    legend_below(figure, panels[0, 0])
    return figure


def _means(
    axes: Axes,
    logs: xr.DataArray,
    errors: xr.DataArray,
    shared: xr.DataArray | float,
    learns: xr.DataArray,
    along: str,
) -> None:
    """Means of all nets of a family and a schedule that have a tuned rate, with their standard errors.

    The nets of a mean have an error in common, the ``shared`` one.
    """
    (other,) = {"steps", "batch_size"} - {along}
    tuned = logs.notnull()
    counts = tuned.sum(other)
    log, spread = logs.mean(other), ((errors**2).sum(other) / counts**2 + shared**2) ** 0.5
    hardly = (tuned & ~learns).any(other)
    for family, color in zip(logs["family"].values, FURTHER, strict=False):
        for schedule in map(str, logs["schedule"].values):
            at = {"family": family, "schedule": schedule}
            middle, size = 10.0 ** log.sel(at).values, logs[along].values
            sides = (10.0 ** (log + side * spread).sel(at).values for side in (-1, 1))
            bars = [np.abs(side - middle) for side in sides]
            label = str(family) if schedule == logs["schedule"].values[0] else None
            axes.errorbar(size, middle, bars, marker="o", color=color, label=label, **LOOKS[schedule])
            crossed = hardly.sel(at).values
            axes.plot(size[crossed], middle[crossed], "x", color=color, ms=8)
    by_size(axes, logs[along].values, {"steps": "steps $T$", "batch_size": "batch $B$"}[along])
    log_values(axes)


if __name__ == "__main__":
    command("training_length", draw)
