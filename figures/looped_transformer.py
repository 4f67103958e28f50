"""Residual energy of Transformers in their first training steps against loops, and the correlations of increments."""

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.style import MEAN_FIELD, by_size, correlations, legend_below, log_values, shades, styled

ROWS = {"deep": "deep, own weights", "looped": "looped, one block"}
SCALINGS = {"none": "eps = 1", "sqrt": "eps = (2L)$^{-1/2}$", "linear": "eps = 1/(2L)"}


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Rows deep and looped; columns none, sqrt and linear scaling, a curve for every update; then the heatmap.

    As figures 1 and 2 of Wang et al. 2026. All energies share one axis.
    """
    figure = Figure(figsize=(10.0, 5.6))
    panels = figure.subplots(2, 4)
    for axes in panels[:, :3].flat:
        axes.sharey(panels[0, 0])
    for row, (model, title) in zip(panels, ROWS.items(), strict=True):
        for axes, (scaling, label) in zip(row, SCALINGS.items(), strict=False):
            _draw_energy(axes, dataset.sel(model=model, scaling=scaling))
            axes.set_title(f"{title}, {label}", fontsize=8)
        correlations(row[3], dataset["increment_correlation"].sel(model=model, state="before").values, "loop")
        row[3].set_title(f"increments of two, {title}, at first", fontsize=8)
        row[0].set_ylabel("H, residual energy")
    for axes in panels[1, :3]:
        axes.set_xlabel("blocks or loops L")
    for axes in panels[:, 1:3].flat:
        axes.tick_params(labelleft=False)
    legend_below(figure, panels[0, 0])
    return figure


def _draw_energy(axes: Axes, at: xr.Dataset) -> None:
    loops, last = at["loops"].values, int(at["update"][-1])
    for update, shade in zip(at["update"].values, shades(last + 1), strict=True):
        label = f"after {update} updates" if update in (0, last // 2, last) else None
        value, stderr = (at[name].sel(update=update).values for name in ("residual_energy", "residual_energy_stderr"))
        axes.errorbar(loops, value, stderr, fmt="o-", color=shade, linewidth=0.8, markersize=2.5, label=label)
    theory = at["residual_energy_mean_field"].values
    axes.plot(loops, theory, "--", color=MEAN_FIELD, label="mean field, before training")
    by_size(axes, loops, "")
    log_values(axes)


if __name__ == "__main__":
    command("looped_transformer", draw)
