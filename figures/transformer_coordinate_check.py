"""Coordinate checks of GPT-like nets: |h_L| after the last step against width and depth, as in figure 1 (a, b)."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.style import TABLES, alike, by_size, key, legend_below, log_values, styled

TITLES = {"standard": "standard", "one": "k = 1 table", "many": "k $\\geq$ 2 table"}
NORMALISED = {"layer": "LayerNorm", "rms": "RMS norm", "none": "no normalisation"}
DIRECTIONS = ("width", "depth")
MARKERS = "os^vDP*X<"
# Features above so many are beyond the panels.
HIGHEST = 1e3


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """A row per normalisation, a column per ladder; colors: tables; markers: optimizers; dashed: before training.

    Axes are equally long, a decade or more, so that what is flat looks flat.

    Of errors, which are those of means over draws, most are smaller than the marks.
    """
    norms = list(map(str, dataset["normalisation"].values))
    figure = Figure(figsize=(7.0, 1.3 + 2.2 * len(norms)))
    grid = figure.subplots(len(norms), len(DIRECTIONS), squeeze=False, sharex="col", sharey="row")
    for row, norm in zip(grid, norms, strict=True):
        for axes, direction in zip(row, DIRECTIONS, strict=True):
            at = dataset[f"feature_norm_by_{direction}"].sel(normalisation=norm, place="last")
            _panel(axes, at.transpose(direction, "draw", ...), direction)
            log_values(axes, "$|h_L|$" if direction == DIRECTIONS[0] else "")
            axes.set_title(NORMALISED[norm], fontsize=9)
    for axes, direction in zip(grid[-1], DIRECTIONS, strict=True):
        by_size(axes, dataset[direction].values, {"width": "width", "depth": "blocks"}[direction])
    alike(grid[:, 0], least=1.0)
    legend_below(figure, grid[0, 0], 4, fontsize=8)
    return figure


def _panel(axes: Axes, features: xr.DataArray, direction: str) -> None:
    sizes = features[direction].values
    tables = [name for name in TITLES if name in features["table"].values]
    for optimizer, marker in zip(map(str, features["optimizer"].values), MARKERS, strict=False):
        for table in tables:
            at = features.sel(optimizer=optimizer, table=table)
            values = at.isel(step=-1).transpose(direction, "draw").values
            mean, stderr = values.mean(axis=1), values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
            shown = mean < HIGHEST
            label = f"{TITLES[table]}, {optimizer.replace('_', ' ')}"
            look: dict[str, Any] = {"ms": 4, "lw": 1.0, "color": TABLES[table], "label": label}
            axes.errorbar(sizes[shown], mean[shown], stderr[shown], fmt=f"{marker}-", **look)
            if optimizer == str(features["optimizer"].values[0]):
                begun = at.isel(step=0).mean("draw").values
                axes.plot(sizes, np.where(begun < HIGHEST, begun, np.nan), "--", color=TABLES[table], lw=0.8)
    key(axes, "before training", ls="--", lw=0.8)


if __name__ == "__main__":
    command("transformer_coordinate_check", draw)
