"""Mean overlap of parameter directions by depth unit of a residual net: drawn, and its law under its bound."""

import json
from collections.abc import Iterable

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.style import FURTHER, LAW, key, layer_ticks, points, styled

LABELS = ("mean overlap T, same unit of the stream", "mean overlap T, two units of the stream")


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Upper panel: pairs of directions of one unit, the law r T of Zhang et al. 2026, its bound. Lower: of two units.

    Means of two units are of order 1/n, from the gates at which they meet, too small to be seen with the others.
    """
    net = json.loads(dataset.attrs["architecture"])
    one_unit = dataset["on_one_unit"].values == 1
    at_birth = (dataset["overlap"] - dataset["overlap_excess"]) / dataset["growth"]
    figure = Figure(figsize=(5.2, 6.2))
    upper, lower = figure.subplots(2, 1, sharex=True)
    for index in np.flatnonzero(one_unit):
        bound = at_birth[index] * dataset["growth_bound"][index]
        upper.plot(dataset["layer"].values, bound.values, "--", color=LAW, zorder=1)
    upper.plot([], [], "--", color=LAW, label="bound (Zhang et al. 2026)")
    for axes in (upper, lower):
        key(axes, "law (Zhang et al. 2026)")
        key(axes, f"{dataset.attrs['draws']} draws", marker="o", ls="")
    _pairs(upper, dataset, np.flatnonzero(one_unit), at_birth * dataset["growth"])
    _pairs(lower, dataset, np.flatnonzero(~one_unit), dataset["overlap_law"])
    for axes, label in zip((upper, lower), LABELS, strict=True):
        axes.set(ylabel=label)
        if axes.has_data():
            axes.legend(title="directions: depth unit, unit")
    lower.set(xlabel="depth unit: stem, blocks, tail")
    layer_ticks(lower, int(dataset["layer"][-1]))
    title = "{activation} net, {depth} blocks of width {width}, scaling {scaling}".format_map(net)
    upper.set_title(title, fontsize=8, loc="left")
    return figure


def _pairs(axes: Axes, dataset: xr.Dataset, places: Iterable[int], law: xr.DataArray) -> None:
    """Points with errors, and their law in the same colour."""
    layer = dataset["layer"].values
    for index in places:
        at, color = dataset.isel(pair=index), FURTHER[index % len(FURTHER)]
        axes.plot(layer, law.isel(pair=index).values, color=color)
        points(axes, layer, at, "overlap", color=color, label=str(at["pair"].values))


if __name__ == "__main__":
    command("residual_overlap", draw)
