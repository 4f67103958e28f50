"""Tuned base rates over width and depth by table, in octaves of the base model's, within and without half an octave."""

from itertools import product

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.style import GREY, TABLES, aside, by_size, key, legend_below, styled

# Branches of two layers: the table for them, that for one, and none.
LABELS = {"many": "condition 3.1 (muP)", "one": "condition B.1 (muP)", "standard": "standard (SP)"}
DIRECTIONS = ("width", "depth")
NETS = {"residual": "residual nets", "gpt": "GPTs"}
# Octaves by which a base rate that stays may move.
STAYS = 0.5


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """A row for width and one for depth; a column for every kind of net and optimizer."""
    columns = list(product(*(map(str, dataset[dim].values) for dim in ("family", "optimizer"))))
    figure = Figure(figsize=(1.2 + 2.1 * len(columns), 4.4))
    grid = figure.subplots(len(DIRECTIONS), len(columns), squeeze=False, sharey=True)
    for row, direction in zip(grid, DIRECTIONS, strict=True):
        for axes, (family, optimizer) in zip(row, columns, strict=True):
            _panel(axes, dataset.sel(family=family, optimizer=optimizer), direction)
        row[0].set_ylabel("octaves (factors of 2)")
    for axes, (family, optimizer) in zip(grid[0], columns, strict=True):
        axes.set_title(f"{NETS[family]}\n{optimizer.replace('_', ' ')}", fontsize=9)
    key(grid[1, 0], "within half an octave", lw=6, alpha=0.25)
    key(grid[1, 0], "has not learned", marker="o", mfc="none", ls="")
    legend_below(figure, grid[1, 0], 3, fontsize=8)
    figure.suptitle("Tuned base rate over that of the base model", fontsize=9)
    return figure


def _panel(axes: Axes, at: xr.Dataset, direction: str) -> None:
    """A line for every table, from the base model on; over the width tables for one and for more layers are one."""
    axes.axhspan(-STAYS, STAYS, color=GREY, alpha=0.25, lw=0)
    sizes = at[direction].values
    shown = set(at["table"].values) - ({"one"} if direction == "width" and "many" in at["table"].values else set())
    tables = [table for table in LABELS if table in shown]
    for place, table in enumerate(tables):
        of_table = at.sel(table=table)
        name = f"tuned_rate_log10_by_{direction}"
        rates, errors = (of_table[end].values / np.log10(2) for end in (name, f"{name}_stderr"))
        moves, stderr = rates - rates[0], np.hypot(errors, errors[0])
        stderr[0] = 0.0
        losses = of_table[f"tuned_loss_by_{direction}"].clip(max=of_table["chance_loss"]).mean("draw", skipna=False)
        stands_at = aside(sizes, place, len(tables))
        axes.errorbar(stands_at, moves, stderr, color=TABLES[table], fmt="-", lw=1.0, label=LABELS[table])
        learned = (losses < of_table["learned_loss"]).values
        for where, fill in ((learned, TABLES[table]), (~learned, "none")):
            if where.any():
                axes.plot(stands_at[where], moves[where], "o", color=TABLES[table], mfc=fill)
    by_size(axes, sizes, direction)


if __name__ == "__main__":
    command("hyperparameter_transfer", draw)
