"""Coordinate checks as users of mu-parameterization draw them: size against width, a line for every step."""

from __future__ import annotations

import sys

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import draw_one
from figures.style import LAW, styled

TITLES = {"standard": "standard", "one": "k = 1 table", "many": "k $\\geq$ 2 table"}
DIRECTIONS = ("width", "depth")


def draw(dataset: xr.Dataset) -> Figure:
    """Two rows per optimizer, width and depth; a column per table; lines |Delta h_L| by step, dashed |h_L| at first."""
    optimizers = list(map(str, dataset["optimizer"].values))
    with styled():
        figure = Figure(figsize=(8.5, 2.5 * 2 * len(optimizers)))
        grid = figure.subplots(2 * len(optimizers), len(TITLES), squeeze=False)
        for row, axes_row in enumerate(grid):
            optimizer, direction = optimizers[row // 2], DIRECTIONS[row % 2]
            at = dataset.sel(optimizer=optimizer)
            for axes, (table, title) in zip(axes_row, TITLES.items(), strict=True):
                _panel(axes, at.sel(table=table), direction)
                axes.set_title(f"{optimizer}, {title}")
            axes_row[0].set_ylabel("$|\\Delta h_L|$ (root mean square)")
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=6)
    return figure


def _panel(axes: Axes, at: xr.Dataset, direction: str) -> None:
    sizes, steps = at[direction].values, at["step"].values[1:]
    colors = matplotlib.colormaps["viridis"](np.linspace(0, 0.9, len(steps)))
    updates = at[f"feature_update_norm_by_{direction}"]
    for step, color in zip(steps, colors, strict=True):
        values = updates.sel(step=step).mean("draw", skipna=False).values
        axes.plot(sizes, np.where(np.isfinite(values), values, np.nan), "o-", color=color, label=f"step {step}")
    start = at[f"feature_norm_by_{direction}"].sel(step=0).mean("draw").values
    axes.plot(sizes, start, "--", color=LAW, label="$|h_L|$ at the start")
    axes.set_xscale("log", base=2)
    axes.set(yscale="log", xlabel=direction)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 0.03), max(high, 3.0))


if __name__ == "__main__":
    sys.exit(draw_one("coordinate_check", draw))
