"""Products that the conditions of Zheng et al. 2026 constrain, against width and depth, a line for every optimizer."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.style import FURTHER, LAW, by_size, legend_below, legend_under, log_values, styled

MARKERS = "osv^D<>P*"


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Columns: initial products, products with updates, orders one and up; rows: width and depth, relative."""
    names = [str(name) for name in dataset["update_product_name"].values]
    figure = Figure(figsize=(2.1 * (len(names) + 1), 5.2))
    grid = figure.subplots(2, len(names) + 1, squeeze=False, sharey=True)
    for row, direction in zip(grid, ("width", "depth"), strict=True):
        sizes = dataset[direction].values
        initial = dataset[f"weight_product_by_{direction}"].mean("draw").transpose("weight_product_name", ...)
        for name, values, color in zip(dataset["weight_product_name"].values, initial.values, FURTHER, strict=False):
            row[0].plot(sizes, values / values[0], "o-", color=color, label=_symbols(str(name)))
        products = dataset[f"update_product_by_{direction}"].mean("draw")
        for axes, name in zip(row[1:], names, strict=True):
            at = products.sel(update_product_name=name).transpose("optimizer", direction)
            for place, (optimizer, values) in enumerate(zip(dataset["optimizer"].values, at.values, strict=True)):
                style = {"marker": MARKERS[place], "color": FURTHER[place % len(FURTHER)], "lw": 0.8}
                axes.plot(sizes, values / values[0], label=str(optimizer).replace("_", " "), **style)
            _finish(axes, sizes, direction, name)
        _finish(row[0], sizes, direction, "initially")
        log_values(row[0], "over smallest net")
    low, high = grid[0, 0].get_ylim()
    grid[0, 0].set_ylim(min(low, 0.3), max(high, 3.0))
    legend_under(grid[-1, 0], fontsize=8)
    legend_below(figure, grid[0, 1])
    return figure


def _symbols(name: str) -> str:
    """A product as the verdicts write it, a_l |W^(2)| |dW^(1)|, in symbols."""
    if "|" not in name:
        return name
    raised = name.replace("dW", r"\Delta W").replace("^(", "^{(").replace(")", ")}")
    return "${}$".format(raised.replace("_out", r"_{\mathrm{out}}").replace("| |", r"|\,|"))


def _finish(axes: Axes, sizes: np.ndarray, direction: str, name: str) -> None:
    asked = sizes[0] / sizes if direction == "depth" and name.startswith("a_l") else np.ones(len(sizes))
    axes.plot(sizes, asked, "--", color=LAW, label="papers, condition", zorder=9)
    by_size(axes, sizes, direction)
    axes.set_title(_symbols(name), fontsize=9)


if __name__ == "__main__":
    command("spectral_condition", draw)
