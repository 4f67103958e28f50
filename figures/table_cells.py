"""How far a slope moves where one cell of a hyperparameter table stays at its standard value."""

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
    """A line per cell, with twice its standard error; columns: ladders; grey: less than what counts as a move.

    Arrows at the right edge: with the cell kept some nets leave the range of floats.
    """
    moves = claims.moves(dataset, *claims.run_optimizers(dataset))
    by_ladder = {name: [move for move in moves if move.direction == name] for name in coordinate_checks.DIRECTIONS}
    any_lost = any(np.isinf(move.change) for move in moves)
    tallest = max(map(len, by_ladder.values()))
    figure = Figure(figsize=(11, 1.5 + 0.17 * tallest))
    for axes, (direction, moves) in zip(figure.subplots(1, 2), by_ladder.items(), strict=True):
        places = -np.arange(len(moves))
        shown = [abs(move.change) for move in moves]
        errors = [2 * move.stderr for move in moves]
        axes.axvspan(0, claims.MOVED, color="0.85", label="no move")
        axes.errorbar(shown, places, xerr=errors, fmt="o", ms=3, lw=0.8, label="move of a slope")
        if any_lost:
            lost = places[np.isinf(shown)]
            at_the_edge = {"transform": axes.get_yaxis_transform(), "clip_on": False, "in_layout": False}
            axes.plot(np.ones(len(lost)), lost, "C3>", ms=4, label="nets leave the floats", **at_the_edge)
        axes.set_xscale("symlog", linthresh=claims.MOVED)
        axes.set_xlim(left=0)
        axes.set_yticks(places, [move.cell for move in moves], fontsize=6)
        axes.set_title(f"cells that scale with the {direction}", fontsize=9)
        axes.set_xlabel(f"change of a slope in {direction}, absolute", fontsize=8)
    legend_below(figure, figure.axes[0], fontsize=7)
    return figure


if __name__ == "__main__":
    command("table_cells", draw)
