"""Residual energy against loops for three scalings, deep above looped, and the correlations of their increments."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.style import LAW, MEAN_FIELD, MEASURED, by_size, correlations, legend_below, points, styled

ROWS = {"deep": "deep, own weights", "looped": "looped, one matrix"}
SCALINGS = {"none": "eps = 1", "sqrt": "eps = L$^{-1/2}$", "linear": "eps = 1/L"}


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Rows deep and looped; columns none, sqrt and linear scaling, then the heatmap of increments.

    As figures 1 and 2 of Wang et al. 2026. Both panels of a scaling share their axis.
    """
    figure = Figure(figsize=(10.0, 5.2))
    panels = figure.subplots(2, 4)
    for above, below in panels[:, :3].T:
        below.sharey(above)
    for row, (model, title) in zip(panels, ROWS.items(), strict=True):
        for axes, (scaling, label) in zip(row, SCALINGS.items(), strict=False):
            _draw_energy(axes, dataset.sel(model=model, scaling=scaling))
            axes.set_title(f"{title}, {label}", fontsize=8)
        correlations(row[3], dataset.sel(model=model)["increment_correlation"].values, "step")
        row[3].set_title(f"increments of two steps, {title}", fontsize=8)
        row[0].set_ylabel("ln H, residual energy")
    looped = dataset.sel(model="looped", scaling="sqrt")
    loops, first = looped["loops"].values, float(looped["log_energy_far"][0])
    panels[1, 1].plot(loops, first + np.log(loops / loops[0]), "--", color=LAW, label="H as L (Wang et al. 2026)")
    for above, below in panels[:, :3].T:
        above.set_ylim(bottom=-0.15, top=max(1.0, above.get_ylim()[1]))
        below.set_xlabel("steps or loops L")
    legend_below(figure, panels[1, 1])
    return figure


def _draw_energy(axes: Axes, at: xr.Dataset) -> None:
    loops = at["loops"].values
    near = at["far_loops"].values <= loops[-1]
    axes.plot(at["far_loops"].values[near], at["log_energy_far"].values[near], color=MEAN_FIELD, label="mean field")
    points(axes, loops, at, "log_energy", color=MEASURED, label="drawn")
    by_size(axes, loops, "")


if __name__ == "__main__":
    command("looped_energy", draw)
