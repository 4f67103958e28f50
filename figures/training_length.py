"""Tuned rates over the number of steps, and a scale of one step over them against the batch, optimizer by optimizer."""

from itertools import product

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.style import (
    FURTHER,
    GREY,
    alike,
    aside,
    by_size,
    key,
    legend_below,
    log_values,
    points_of_logs,
    styled,
)

OUTPUTS = "outputs_scale"
# Lines by the schedule of the rate.
LINES = {"constant": "-", "warmup_cosine": "--"}
WORDS = {"constant": "constant rate", "warmup_cosine": "peak of warmup and cosine"}
# What is along the axis, and the exponents in it that are asked about, by optimizer.
LABELS = {"steps": "steps $T$", "batch_size": "batch $B$"}
ASKED = {"steps": {"sgd": 0.0, "adamw": -0.2}, "batch_size": {"sgd": 0.0}}


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Above: geometric means over batches of the tuned rate; below: of the outputs' scale over it, over steps.

    Axes are equally long, so that equal exponents look alike.
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
        above, below = panels[:, column]
        _means(above, log_rate.sel(at), error.sel(at), 0.0, learns, "steps")
        _means(below, ratio.sel(at), error.sel(at), of_scale.sel(at), learns, "batch_size")
        above.set_title(name, fontsize=9)
    for row, words in enumerate(("tuned rate", "outputs' scale / tuned rate")):
        panels[row, 0].set_ylabel(words)
        alike(panels[row])
    for schedule in map(str, dataset["schedule"].values):
        key(panels[0, 0], WORDS[schedule], ls=LINES[schedule])
    key(panels[0, 0], "all nets of the mean learn", marker="o", ls="")
    key(panels[0, 0], "some hardly learn", marker="o", fillstyle="none", ls="")
    key(panels[0, 0], "exponent asked about: 0, of adamw -0.2", ls=":")
    legend_below(figure, panels[0, 0], 3, fontsize=8)
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
    hardly, sizes = (tuned & ~learns).any(other), logs[along].values
    families, schedules = (list(map(str, logs[name].values)) for name in ("family", "schedule"))
    series = list(product(zip(families, FURTHER, strict=False), schedules))
    for place, ((family, color), schedule) in enumerate(series):
        of_series = {"family": family, "schedule": schedule}
        middle, error, open_marks = (values.sel(of_series).values for values in (log, spread, hardly))
        stands_at, label = aside(sizes, place, len(series)), family if schedule == schedules[0] else None
        points_of_logs(axes, stands_at, middle, error, fmt=LINES[schedule], color=color, label=label)
        for where, fill in ((~open_marks, color), (open_marks, "white")):
            axes.plot(stands_at[where], 10.0 ** middle[where], "o", color=color, mfc=fill)
    optimizer = str(logs["optimizer"].values)
    if optimizer in ASKED[along] and log.notnull().any():
        line = ASKED[along][optimizer] * np.log10(sizes)
        axes.plot(sizes, 10.0 ** (line - line.mean() + float(log.mean())), ":", color=GREY, zorder=1.0)
    by_size(axes, sizes, LABELS[along])
    log_values(axes)


if __name__ == "__main__":
    command("training_length", draw)
