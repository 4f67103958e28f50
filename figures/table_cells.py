"""Powers of width and depth of every cell of hyperparameter tables that scales, as printed and as measured."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures._command import command
from figures.style import LAW, MEASURED, legend_below, styled

# Printed powers are halves and wholes: so far from one of them no other is nearer.
NEAREST = 0.25
BAR: dict[str, Any] = {"color": "0.85", "label": "nearer to the printed power than to other half powers"}
POINT: dict[str, Any] = {
    "fmt": "o",
    "ms": 3,
    "lw": 0.8,
    "color": MEASURED,
    "label": "measured, two standard errors",
}


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """A line per cell, with twice its standard error; columns: ladders; grey: nearer to the printed power than others.

    Cells that are printed without a power are shown where another half power is nearer.
    """
    shown = {direction: _shown(dataset, direction) for direction in ("width", "depth")}
    most = max(cells.sizes["cell"] for cells in shown.values())
    figure = Figure(figsize=(11, 1.5 + 0.17 * most))
    for axes, (direction, cells) in zip(figure.subplots(1, 2), shown.items(), strict=True):
        places = -np.arange(cells.sizes["cell"])
        names = (f"{name}_of_{direction}" for name in ("printed_power", "needed_power", "needed_power_stderr"))
        printed, needed, stderr = (cells[name].values for name in names)
        axes.barh(places, 2 * NEAREST, left=printed - NEAREST, **BAR)
        axes.plot(printed, places, "|", color=LAW, ms=9, mew=2, label="printed")
        axes.errorbar(needed, places, xerr=2 * stderr, **POINT)
        axes.set_yticks(places, [str(cell).replace("_", " ") for cell in cells["cell"].values], fontsize=6)
        axes.set_ylim(0.5 - most, 0.5)
        axes.tick_params(axis="x", top=True, labeltop=True)
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
