"""Tuned rates of Transformers over loops or blocks beside those of one step, and the losses that they minimise."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures._tuned_rates import PAPERS, RIVAL, STEP, slopes_in_words, tuned_over_depth
from figures.style import MEAN_FIELD, MEASURED, by_size, key, legend_below, log_values, shades, styled
from meanfield.verification import tuned_rates

TITLES = {"sqrt": "branches times $(2L)^{-1/2}$", "linear": "branches times $1/(2L)$"}
# Slopes of tuned rates by Wang et al. 2026: L^(alpha - 1), under branches times L^(-alpha).
CLAIMED = {"sqrt": -0.5, "linear": 0.0}
# The scale of one step that tuned rates are held to, and what is counted: of a block that is applied over and over by
# the change of the layers, of blocks with weights of their own by the same relative to the layers.
COUNTED = {"shared": ("absolute_scale", "loop"), "own": ("relative_scale", "block")}
ABOVE_PANELS = "Above: slopes in $L$, of the tuned rate with its standard error, and of one step"
# Losses above so many times the least are beyond the panel: training was unstable.
HIGHEST = 1.25


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """A column for each residual scaling: above, rates; below, losses, as in figure 3 of Wang et al. 2026."""
    learns = dataset["tuned_loss"].mean("draw", skipna=False) < dataset["learned_loss"]
    scale, unit = COUNTED[dataset.attrs["blocks"]]
    families = dataset.assign(learns=learns).rename(scaling="family", loops="depth")
    figure = Figure(figsize=(6.4, 6.4))
    rates, losses = figure.subplots(2, len(TITLES), sharey="row")
    for axes, (scaling, title) in zip(rates, TITLES.items(), strict=True):
        at = tuned_rates.family_at(families, scaling)
        powers = {slope: PAPERS if of == scaling else RIVAL for of, slope in CLAIMED.items()}
        tuned_over_depth(axes, at, scale, powers, MEASURED, MEAN_FIELD)
        axes.set_title(f"{title}\n{slopes_in_words(at, scale, 3)}", fontsize=9)
        by_size(axes, dataset["loops"].values, f"{unit}s $L$")
        log_values(axes)
    least = float(dataset["final_loss"].mean("seed", skipna=False).min())
    for axes, scaling in zip(losses, TITLES, strict=True):
        _curves(axes, dataset.sel(scaling=scaling), unit)
        axes.set_ylim(0.99 * least, HIGHEST * least)
        log_values(axes, "learning rate", along="x")
    rates[0].set_ylabel("tuned rate")
    losses[0].set_ylabel("training loss")
    _legend(losses[0], dataset.attrs["optimizer"])
    legend_below(figure, losses[0], 3, fontsize=8, title=ABOVE_PANELS, title_fontsize=8)
    return figure


def _curves(axes: Axes, at: xr.Dataset, unit: str) -> None:
    """Means over seeds with standard errors at the rates where no seed has diverged, with stars at tuned rates."""
    for loops, shade in zip(at["loops"].values, shades(at.sizes["loops"]), strict=True):
        losses = at["final_loss"].sel(loops=loops)
        every = losses.isel(rate=np.flatnonzero(np.isfinite(losses.values).all(axis=-1)))
        mean, error = every.mean("seed").values, every.std("seed", ddof=1).values / every.sizes["seed"] ** 0.5
        rates, label = every["rate"].values, f"{loops} {unit}" + ("s" if loops > 1 else "")
        axes.errorbar(rates, mean, error, color=shade, fmt="o-", ms=2.5, lw=1.0, label=label)
        best = float(at["tuned_rate_log10"].sel(loops=loops))
        axes.plot(10.0**best, np.interp(best, np.log10(rates), mean), "*", color=shade, ms=9)


def _legend(axes: Axes, optimizer: str) -> None:
    """What is drawn in all panels."""
    key(axes, "tuned rate", color=MEASURED, marker="o", ls="")
    key(axes, "nets have hardly learned", color=MEASURED, marker="o", fillstyle="none", ls="")
    key(
        axes,
        f"one step of {optimizer.replace('_', ' ')}, moved onto the rates",
        color=MEAN_FIELD,
        ls="-",
        lw=STEP["lw"],
    )
    axes.plot([], [], label="Wang et al. 2026, $L^{\\alpha-1}$", **PAPERS)
    axes.plot([], [], label="that of the other factor", **RIVAL)
    key(axes, "tuned rate on the losses", marker="*", ms=9, ls="")


if __name__ == "__main__":
    command("looped_rates", draw)
