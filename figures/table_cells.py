"""Powers of width and depth of every cell of hyperparameter tables that scales, as printed and as measured."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures._command import command
from figures.style import legend_below, styled

# Printed powers are halves and wholes: so far from one of them no other is nearer.
NEAREST = 0.25


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """A line per cell, with twice its standard error; columns: ladders; grey: nearer to the printed power than others.

    Cells that are printed without a power are shown where another half power is nearer.
    """
    shown = {direction: _shown(dataset, direction) for direction in ("width", "depth")}
    figure = Figure(figsize=(11, 1.5 + 0.17 * max(cells.sizes["cell"] for cells in shown.values())))
    for axes, (direction, cells) in zip(figure.subplots(1, 2), shown.items(), strict=True):
        places = -np.arange(cells.sizes["cell"])
        names = (f"{name}_of_{direction}" for name in ("printed_power", "needed_power", "needed_power_stderr"))
        printed, needed, stderr = (cells[name].values for name in names)
        axes.barh(places, 2 * NEAREST, left=printed - NEAREST, color="0.85", label="nearest half power")
        axes.plot(printed, places, "k|", ms=7, label="printed")
        axes.errorbar(needed, places, xerr=2 * stderr, fmt="o", ms=3, lw=0.8, label="measured")
        axes.set_yticks(places, cells["cell"].values, fontsize=6)
        axes.set_title(f"cells that scale with the {direction}", fontsize=9)
        axes.set_xlabel(f"power of the {direction}", fontsize=8)
    legend_below(figure, figure.axes[0], fontsize=7)
    return figure


def _shown(dataset: xr.Dataset, direction: str) -> xr.Dataset:
    """The cells that scale along a ladder, as printed or as measured."""
    printed, needed = (dataset[f"{name}_power_of_{direction}"] for name in ("printed", "needed"))
    stands = abs(printed - needed) < NEAREST
    return dataset.isel(cell=np.flatnonzero((printed != 0) | ~stands))


if __name__ == "__main__":
    command("table_cells", draw)
