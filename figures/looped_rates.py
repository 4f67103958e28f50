"""Loss of looped Transformers over learning rates, a curve for every number of loops, with stars at tuned rates."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.style import legend_below, log_values, shades, styled

TITLES = {"sqrt": "branches times $(2L)^{-1/2}$", "linear": "branches times $1/(2L)$"}
# Losses above so many times the least are beyond the panel: training was unstable.
HIGHEST = 1.25


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """A panel for each residual scaling, as in figure 3 of Wang et al. 2026."""
    figure = Figure(figsize=(6.4, 3.6))
    panels = figure.subplots(1, len(TITLES), sharey=True)
    least = float(dataset["final_loss"].mean("seed", skipna=False).min())
    for axes, (scaling, title) in zip(panels, TITLES.items(), strict=True):
        _curves(axes, dataset.sel(scaling=scaling))
        axes.set_title(title, fontsize=9)
        axes.set_ylim(0.99 * least, HIGHEST * least)
        log_values(axes, "learning rate", along="x")
    panels[0].set_ylabel("training loss")
    panels[0].plot([], [], "*", color="0.4", ms=9, label="tuned rate")
    legend_below(figure, panels[0])
    return figure


def _curves(axes: Axes, at: xr.Dataset) -> None:
    """Means over seeds with standard errors at the rates where no seed has diverged."""
    for loops, shade in zip(at["loops"].values, shades(at.sizes["loops"]), strict=True):
        losses = at["final_loss"].sel(loops=loops)
        every = losses.isel(rate=np.flatnonzero(np.isfinite(losses.values).all(axis=-1)))
        mean, error = every.mean("seed").values, every.std("seed", ddof=1).values / every.sizes["seed"] ** 0.5
        rates = every["rate"].values
        axes.errorbar(
            rates,
            mean,
            error,
            color=shade,
            fmt="o-",
            ms=2.5,
            lw=1.0,
            label=f"{loops} loop" + ("s" if loops > 1 else ""),
        )
        best = float(at["tuned_rate_log10"].sel(loops=loops))
        axes.plot(10.0**best, np.interp(best, np.log10(rates), mean), "*", color=shade, ms=9)


if __name__ == "__main__":
    command("looped_rates", draw)
