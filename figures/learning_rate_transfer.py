"""Carried learning rates: by how many decades each rule misses the tuned rate, and the training loss that costs."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.style import FURTHER, LAW, MEAN_FIELD, MEASURED, by_size, legend_below, styled

# Colour and line of every rule; those that rest on 2 / lambda_max share a colour, and so do the controls.
LOOKS = {
    "unchanged": (MEASURED, "--", "unchanged"),
    "wrong_sign": (MEASURED, ":", "wrong sign"),
    "three_halves": (LAW, "-", "$L^{-3/2}$"),
    "power_law": (FURTHER[2], "-", "family's power"),
    "finite_depth": (MEAN_FIELD, "-", "finite depth"),
    "auto": (MEAN_FIELD, ":", "library's choice"),
    "path_sum": (FURTHER[1], "-", "PathSum"),
    "one_step": (FURTHER[5], "-", "one step, as on data"),
    "step_outputs": (FURTHER[4], "-", "one step: outputs"),
    "step_relative": (FURTHER[4], "--", "one step: relative"),
    "step_absolute": (FURTHER[4], "-.", "one step: layers"),
    "starting": (FURTHER[4], ":", "one step, nothing tuned"),
    "two_anchors": (FURTHER[3], "-", "two anchors"),
    "stable_ratio": (FURTHER[0], "-", "ratio of 2/$\\lambda_{max}$"),
    "stable_rate": (FURTHER[0], ":", "2/$\\lambda_{max}$, nothing tuned"),
}
# Rules stand beside each other at every size, by this factor.
STEP = 1.012


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """A column for each family; above, decades missed; below, cost in loss against the rate tuned at the same size."""
    families = list(map(str, dataset["family"].values))
    figure = Figure(figsize=(max(5.0, 1.0 + 2.3 * len(families)), 5.6))
    grid = figure.subplots(2, len(families), squeeze=False, sharex=True, sharey="row")
    missed = dataset["decades_off"], dataset["decades_off_stderr"]
    loss = dataset["loss"].clip(max=dataset.attrs["chance_loss"])
    costs = loss - loss.sel(rule="tuned", drop=True)
    cost = costs.mean("draw"), costs.std("draw", ddof=1) / costs.sizes["draw"] ** 0.5
    trained = dataset["size"].values[1:]
    for column, family in enumerate(families):
        for axes, (mean, stderr) in zip(grid[:, column], (missed, cost), strict=True):
            _panel(axes, mean.sel(family=family, size=trained), stderr.sel(family=family, size=trained))
        grid[0, column].set_title(family, fontsize=9)
        by_size(grid[1, column], trained, dataset.attrs["across"])
    grid[0, 0].set_ylabel("miss of the tuned rate, decades")
    grid[1, 0].set_ylabel("cost in training loss")
    legend_below(figure, grid[0, 0], 5, fontsize=8)
    return figure


def _panel(axes: Axes, mean: xr.DataArray, stderr: xr.DataArray) -> None:
    axes.axhline(0.0, color=MEASURED, lw=0.6, label="rate tuned at this size")
    shown = [rule for rule in LOOKS if rule in mean["rule"].values]
    for place, rule in enumerate(shown):
        color, line, label = LOOKS[rule]
        values, errors = mean.sel(rule=rule).values, stderr.sel(rule=rule).values
        aside = mean["size"].values * STEP ** (place - len(shown) / 2)
        look = {"color": color, "ls": line, "ms": 2.5, "lw": 1.0, "label": label}
        axes.errorbar(aside, values, np.nan_to_num(errors), fmt="o", **look)  # type: ignore[arg-type]


if __name__ == "__main__":
    command("learning_rate_transfer", draw)
