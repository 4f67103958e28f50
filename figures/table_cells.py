"""Powers of width and depth of every cell of hyperparameter tables that scales, as printed and as measured."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures._command import command
from figures.legends import legend_below
from figures.style import styled
from meanfield.verification import coordinate_checks
from meanfield.verification import table_cells as claims


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """A line per cell, with twice its standard error; columns: ladders; grey: nearer to the printed power than others.

    Cells that are printed without a power are shown where another half power is nearer.
    """
    cells = claims.measured_cells(dataset, *claims.run_optimizers(dataset))
    shown = [cell for cell in cells if cell.printed or not cell.stands]
    by_ladder = {name: [cell for cell in shown if cell.direction == name] for name in coordinate_checks.DIRECTIONS}
    figure = Figure(figsize=(11, 1.5 + 0.17 * max(map(len, by_ladder.values()))))
    for axes, (direction, along) in zip(figure.subplots(1, 2), by_ladder.items(), strict=True):
        places = -np.arange(len(along))
        printed, needed = (np.array([getattr(cell, name) for cell in along]) for name in ("printed", "needed"))
        errors = [2 * cell.stderr for cell in along]
        axes.barh(places, 2 * claims.NEAREST, left=printed - claims.NEAREST, color="0.85", label="nearest half power")
        axes.plot(printed, places, "k|", ms=7, label="printed")
        axes.errorbar(needed, places, xerr=errors, fmt="o", ms=3, lw=0.8, label="measured")
        axes.set_yticks(places, [cell.name for cell in along], fontsize=6)
        axes.set_title(f"cells that scale with the {direction}", fontsize=9)
        axes.set_xlabel(f"power of the {direction}", fontsize=8)
    legend_below(figure, figure.axes[0], fontsize=7)
    return figure


if __name__ == "__main__":
    command("table_cells", draw)
