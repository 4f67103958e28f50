"""Residual energy against loops for three scalings, deep above looped, and the correlations of their increments."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.style import MEAN_FIELD, MEASURED, by_size, correlations, points, styled

ROWS = {"deep": "deep, own weights", "looped": "looped, one matrix"}
SCALINGS = {"none": "eps = 1", "sqrt": "eps = L$^{-1/2}$", "linear": "eps = 1/L"}


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Rows deep and looped; columns none, sqrt and linear scaling, then the heatmap of increments.

    As figures 1 and 2 of Wang et al. 2026.
    """
    figure = Figure(figsize=(10.0, 4.6))
    panels = figure.subplots(2, 4)
    for row, (model, title) in zip(panels, ROWS.items(), strict=True):
        for axes, (scaling, label) in zip(row, SCALINGS.items(), strict=False):
            _draw_energy(axes, dataset.sel(model=model, scaling=scaling))
            axes.set_title(f"{title}, {label}", fontsize=8)
        correlations(row[3], dataset.sel(model=model)["increment_correlation"].values, "step")
        row[3].set_title("correlation of increments", fontsize=8)
        row[0].set_ylabel("ln H, residual energy")
    for axes in panels[1, :3]:
        axes.set_xlabel("loops L")
    panels[0, 0].legend()
    return figure


def _draw_energy(axes: Axes, at: xr.Dataset) -> None:
    loops = at["loops"].values
    near = at["far_loops"].values <= loops[-1]
    axes.plot(at["far_loops"].values[near], at["log_energy_far"].values[near], color=MEAN_FIELD, label="mean field")
    points(axes, loops, at, "log_energy", color=MEASURED, label="drawn")
    by_size(axes, loops, "")
    top = float(np.nanmax(at["log_energy"].values))
    axes.set_ylim(-0.15, max(1.1 * top, 1.0))


if __name__ == "__main__":
    command("looped_energy", draw)
