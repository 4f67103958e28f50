"""Products that P1's conditions constrain against width and depth, every optimizer a line, beside what is asked."""

from __future__ import annotations

import sys

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from figures._command import draw_one
from figures.legends import legend_below
from figures.style import FURTHER, LAW, MEAN_FIELD, MEASURED, styled

MARKERS = "osv^D<>P*"
COLORS = (MEASURED, MEAN_FIELD, *FURTHER)


def draw(dataset: xr.Dataset) -> Figure:
    """Columns: initial products, products with updates, orders one and up; rows: width and depth, relative."""
    names = [str(name) for name in dataset["update_product_name"].values]
    with styled():
        figure = Figure(figsize=(2.2 * (len(names) + 1), 4.6))
        grid = figure.subplots(2, len(names) + 1, squeeze=False)
        for row, direction in zip(grid, ("width", "depth"), strict=True):
            sizes = dataset[direction].values
            initial = dataset[f"weight_product_by_{direction}"].mean("draw").transpose("weight_product_name", ...)
            for name, values, color in zip(dataset["weight_product_name"].values, initial.values, COLORS, strict=False):
                row[0].plot(sizes, values / values[0], "o-", color=color, label=str(name))
            found = dataset[f"update_product_by_{direction}"].mean("draw")
            for axes, name in zip(row[1:], names, strict=True):
                at = found.sel(update_product_name=name).transpose("optimizer", direction)
                for place, (optimizer, values) in enumerate(zip(dataset["optimizer"].values, at.values, strict=True)):
                    style = {"marker": MARKERS[place], "color": COLORS[place % len(COLORS)], "lw": 0.8}
                    axes.plot(sizes, values / values[0], label=str(optimizer), **style)
                _finish(axes, sizes, direction, name)
            _finish(row[0], sizes, direction, "initially")
            row[0].set_ylabel("product, smallest net = 1")
        grid[0, 0].legend(fontsize=6)
        legend_below(figure, grid[0, 1])
    return figure


def _finish(axes: Axes, sizes: np.ndarray, direction: str, name: str) -> None:
    asked = sizes[0] / sizes if direction == "depth" and name.startswith("a_l") else np.ones(len(sizes))
    axes.plot(sizes, asked, "--", color=LAW, label="condition", zorder=9)
    axes.set_xscale("log", base=2)
    axes.set(yscale="log", xlabel=direction)
    axes.set_title(name, fontsize=8)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 0.3), max(high, 3.0))
    axes.yaxis.set_minor_formatter(NullFormatter())


if __name__ == "__main__":
    sys.exit(draw_one("spectral_condition", draw))
