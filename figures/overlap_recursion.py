"""Mean and mean square of the overlap of parameter directions by layer: drawn, and exact."""

import json

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures._command import command
from figures.style import FURTHER, LAW, key, layer_ticks, legend_under, log_values, points, styled

PANELS = {"overlap": "mean overlap T of two directions", "squared_overlap": "mean squared overlap"}


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Upper panel: the mean of pairs of two directions. Lower panel: the mean square, whose growth makes F grow as l^3.

    A direction's mean overlap with itself is of order one, far above those of pairs, and left out with them.
    """
    net = json.loads(dataset.attrs["architecture"])
    layer = dataset["layer"].values
    figure = Figure(figsize=(5.2, 6.2))
    for axes, (name, label) in zip(figure.subplots(2, 1, sharex=True), PANELS.items(), strict=True):
        for index, pair in enumerate(map(str, dataset["pair"].values)):
            if name == "overlap" and dataset.sizes["pair"] > 1 and len(set(pair.split(":"))) == 1:
                continue
            at, color = dataset.sel(pair=pair), FURTHER[index % len(FURTHER)]
            exact = at[f"{name}_exact"].values
            axes.plot(layer, exact, color=color)
            if name == "overlap":
                conserved = np.where(np.isfinite(exact), exact[np.isfinite(exact)][0], np.nan)
                axes.plot(layer, conserved, "--", color=LAW, lw=1.0, zorder=3)
            points(axes, layer, at, name, color=color, label=pair)
        axes.set_ylabel(label)
    log_values(axes)
    axes.set(xlabel="layer h")
    layer_ticks(axes, int(layer[-1]))
    key(axes, f"{dataset.attrs['draws']} draws", marker="o", ls="")
    key(axes, "exact")
    axes.plot([], [], "--", color=LAW, lw=1.0, label="conserved (Zhang et al. 2026)")
    legend_under(axes, 2, title="two directions, layer,unit:layer,unit")
    title = f"{net['activation']} net, width {net['width']}"
    figure.axes[0].set_title(title, fontsize=8, loc="left")
    return figure


if __name__ == "__main__":
    command("overlap_recursion", draw)
