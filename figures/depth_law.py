"""A law in the size of a net with theory, claim and rival; below, its local slopes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.style import FURTHER, LAW, MEAN_FIELD, MEASURED, by_size, legend_below, log_values, points, styled
from meanfield.common import local_slopes
from meanfield.verification import drawn_series

LABEL_SCALE = "label_learning_rate_scale"
# Claim and rival: colour and line.
SIDES = {"claim": (LAW, "--"), "rival": (FURTHER[0], ":")}
LEVELS = {"exact": (MEAN_FIELD, "-"), "mean_field": (FURTHER[3], "-.")}
LIMIT = (FURTHER[1], (0, (1, 4)))


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Above: means over draws, theory, and claimed laws through the drawn ones; below: slopes between two sizes."""
    figure = Figure(figsize=(6.4, 6.4))
    law, slopes = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    _law(law, dataset)
    _slopes(slopes, dataset)
    attrs, net = dataset.attrs, json.loads(dataset.attrs["architecture"])
    step = "" if attrs["optimizer"] == "sgd" else f", first step of {attrs['optimizer']}"
    data = f", medians on {Path(attrs['data']).name}" if attrs.get("data") else ""
    law.set_title(f"{net['family']}, {attrs['draws']} draws of each size, seed {attrs['seed']}{step}{data}", fontsize=9)
    legend_below(figure, law, 3, fontsize=8)
    return figure


def _law(axes: Axes, dataset: xr.Dataset) -> None:
    attrs, drawn = dataset.attrs, drawn_series(dataset)
    for name, label, look in _shown(dataset):
        at = dataset.sel(size=drawn_series(dataset, name).value["size"])
        points(axes, at["size"].values, at, name, color=MEASURED, label=f"{label}, drawn", **look)
        for level, (color, line) in LEVELS.items():
            if f"{name}_{level}" in dataset:
                said = f"{label}, {level.replace('_', ' ')}"
                axes.plot(dataset["size"].values, dataset[f"{name}_{level}"].values, line, color=color, label=said)
    for side, (color, line) in SIDES.items():
        if f"{side}_law" in dataset:
            law = dataset[f"{side}_law"]
            logs = np.log(drawn.value.values / law.sel(size=drawn.value["size"]).values)
            level = np.exp(np.average(logs, weights=drawn.relative_error.values**-2))
            axes.plot(law["size"], level * law, line, color=color, label=f"{side}: {_as_formula(law.attrs['law'])}")
    log_values(axes, attrs["quantity_in_words"].replace("lambda_max", r"$\lambda_{\max}$"))
    axes.tick_params(labelbottom=False)


def _shown(dataset: xr.Dataset) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The quantity, and the label term's, hollow, where that alone has theory: name, words and look of the points."""
    name = dataset.attrs["quantity"]
    yield name, dataset.attrs["quantity_in_words"].replace("lambda_max", r"$\lambda_{\max}$"), {}
    if not dataset.attrs["theory"] and f"{LABEL_SCALE}_mean_field" in dataset:
        yield LABEL_SCALE, "label term", {"markerfacecolor": "white", "elinewidth": 0.6}


def _slopes(axes: Axes, dataset: xr.Dataset) -> None:
    """Each between two sizes, at their geometric mean."""
    limit = dataset.attrs["limit_exponent"]
    for name, _, look in _shown(dataset):
        drawn = drawn_series(dataset, name)
        local = drawn.local_slopes("size")
        axes.errorbar(local.size, local.slope, local.stderr, fmt="o", color=MEASURED, **look)
        for level, (color, line) in LEVELS.items():
            if f"{name}_{level}" in dataset:
                _line(axes, dataset[f"{name}_{level}"], line, color)
    for side, (color, line) in SIDES.items():
        if f"{side}_law" in dataset:
            _line(axes, dataset[f"{side}_law"], line, color)
    if not np.isnan(limit):
        color, dots = LIMIT
        axes.axhline(limit, ls=dots, color=color)
        axes.figure.axes[0].plot([], [], ls=dots, color=color, label="limit of the slope, in theory")
    axes.set_ylabel("local slope")
    by_size(axes, dataset["size"].values, dataset.attrs["along"].replace("_", " "))


def _line(axes: Axes, law: xr.DataArray, line: str, color: str) -> None:
    """The slopes of a law where there are numbers that floats hold."""
    held = law[np.isfinite(law.values) & (law.values > 0)]
    if held.size > 1:
        slopes = local_slopes(held["size"].values, held.values)
        axes.plot(slopes.size, slopes.slope, line, color=color)


def _as_formula(words: str) -> str:
    """A power as a formula, the name of a function as it is."""
    base, caret, power = words.partition("^")
    return f"{base.replace('_', ' ')}$^{{{power}}}$" if caret else words.replace("_", " ")


if __name__ == "__main__":
    command("depth_law", draw)
