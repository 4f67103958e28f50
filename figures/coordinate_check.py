"""Coordinate checks as users of mu-parameterization draw them: size against width and depth, a line for every step."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.style import GREY, by_size, key, legend_below, log_values, shades, styled

TITLES = {"standard": "standard", "one": "k = 1 table", "many": "k $\\geq$ 2 table"}
DIRECTIONS = ("width", "depth")
# The range of |Delta h_L| that is shown: without a table features grow by tens of powers of ten, under one by less.
LOWEST, HIGHEST = 1e-2, 1e3


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """A row per optimizer; columns: tables by width, then by depth; lines |Delta h_L| by step, dashed |h_L| at first.

    Panels of the tables share their axis of |Delta h_L|, to be compared along rows and columns, and so do those without
    a table, where arrows stand for what is above it.
    """
    optimizers = list(map(str, dataset["optimizer"].values))
    tables = [table for table in TITLES if table in dataset["table"].values]
    columns = [(direction, table) for direction in DIRECTIONS for table in tables]
    figure = Figure(figsize=(2.2 + 1.3 * len(columns), 1.3 + 1.25 * len(optimizers)))
    grid = figure.subplots(len(optimizers), len(columns), squeeze=False, sharex="col")
    for row, optimizer in zip(grid, optimizers, strict=True):
        for axes, (direction, table) in zip(row, columns, strict=True):
            _panel(axes, dataset.sel(optimizer=optimizer, table=table, place="last"), direction)
            log_values(axes)
            axes.set_ylim(*_limits(dataset, [name for name in tables if _shares(name, table)]))
            # One column of numbers for the panels in its row that share them.
            before = tables[: tables.index(table)]
            axes.tick_params(labelleft=not any(_shares(name, table) for name in before))
        row[0].set_ylabel(optimizer.replace("_", " "))
    for top, bottom, (direction, table) in zip(grid[0], grid[-1], columns, strict=True):
        top.set_title(TITLES[table], fontsize=9)
        by_size(bottom, dataset[direction].values, direction)
    if any(line.get_marker() == "^" and len(line.get_xdata()) for axes in grid.flat for line in axes.lines):
        key(grid[0, 0], f"above {HIGHEST:g}", marker="^", ms=3, ls="")
    legend_below(figure, grid[0, 0], 6, fontsize=8)
    figure.supylabel("$|\\Delta h_L|$ since the start, root mean square", fontsize=9)
    return figure


def _shares(left: str, right: str) -> bool:
    return (left == "standard") == (right == "standard")


def _limits(dataset: xr.Dataset, tables: list[str]) -> tuple[float, float]:
    """Around everything that panels show: means over draws, as far as they lie between the outermost values."""
    at = dataset.sel(table=tables, place="last")
    means = [at[f"feature_update_norm_by_{direction}"].isel(step=slice(1, None)) for direction in DIRECTIONS]
    means += [at[f"feature_norm_by_{direction}"].sel(step=0) for direction in DIRECTIONS]
    values = np.concatenate([mean.mean("draw", skipna=False).values.ravel() for mean in means])
    in_range = values[(values > LOWEST) & (values < HIGHEST)]
    return 0.5 * in_range.min(), HIGHEST if np.any(~(values < HIGHEST)) else 2.0 * in_range.max()


def _panel(axes: Axes, at: xr.Dataset, direction: str) -> None:
    sizes, steps = at[direction].values, at["step"].values[1:]
    updates = at[f"feature_update_norm_by_{direction}"]
    for step, color in zip(steps, shades(len(steps)), strict=True):
        values = updates.sel(step=step).mean("draw", skipna=False).values
        finite = np.where(np.isfinite(values), values, np.nan)
        axes.plot(sizes, finite, "o-", ms=2, lw=0.9, color=color, label=f"step {step}")
        beyond = ~(values < HIGHEST)
        axes.plot(sizes[beyond], np.full(beyond.sum(), 0.6 * HIGHEST), "^", ms=3, color=color)
    start = at[f"feature_norm_by_{direction}"].sel(step=0).mean("draw").values
    axes.plot(sizes, start, "--", color=GREY, lw=0.9, label="$|h_L|$ at the start")
    axes.tick_params(labelsize=7)


if __name__ == "__main__":
    command("coordinate_check", draw)
