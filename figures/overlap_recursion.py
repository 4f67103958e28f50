"""Mean and mean square of the overlap of parameter directions by layer: drawn, and exact."""

import json

import xarray as xr
from matplotlib.figure import Figure

from figures._command import command
from figures.style import FURTHER, LAW, MEAN_FIELD, MEASURED, layer_ticks, log_values, points, styled

COLORS = (MEASURED, MEAN_FIELD, LAW, *FURTHER)
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
            at, color = dataset.sel(pair=pair), COLORS[index % len(COLORS)]
            axes.plot(layer, at[f"{name}_exact"].values, color=color)
            points(axes, layer, at, name, color=color, label=pair)
        axes.set_ylabel(label)
    log_values(axes)
    axes.set(xlabel="layer h")
    layer_ticks(axes, int(layer[-1]))
    figure.axes[1].legend(title="directions layer,unit:layer,unit")
    title = f"{net['activation']} net, width {net['width']}; points: {dataset.attrs['draws']} draws, lines: exact"
    figure.axes[0].set_title(title, fontsize=8, loc="left")
    return figure


if __name__ == "__main__":
    command("overlap_recursion", draw)
