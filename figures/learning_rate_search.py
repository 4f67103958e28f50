"""Tuned rates over depth with fits, and the losses over rates that they are the minima of."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.style import (
    FURTHER,
    NORMS,
    SCALINGS,
    alike,
    by_size,
    key,
    legend_below,
    legend_under,
    log_values,
    shades,
    styled,
)
from meanfield.verification import tuned_rates

# A panel for each kind of net: those whose names begin so.
PANELS = {"plain": ("mlp", "cnn"), "residual": ("residual",), "Transformers": ("transformer",), "loops": ("loop",)}
# Families whose colour other figures have; others have one by their place in the panel.
COLORS = {
    "transformer pre": NORMS["pre"],
    "transformer post": NORMS["post"],
    "loop linear": SCALINGS["multiplier_linear"],
    "loop sqrt": SCALINGS["multiplier_sqrt"],
}


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Above: tuned rates with errors and fitted lines, one-step slopes dashed; below: losses of one family a panel.

    Axes of rates are equally long, so that equal slopes look alike.
    """
    kinds = {kind: _families(dataset, starts) for kind, starts in PANELS.items()}
    kinds = {kind: families for kind, families in kinds.items() if families}
    figure = Figure(figsize=(max(2.4 * len(kinds), 3.2), 6.2))
    panels = figure.subplots(2, len(kinds), squeeze=False)
    for column, (kind, families) in enumerate(kinds.items()):
        _optima(panels[0, column], dataset, families)
        panels[0, column].set_title(kind, fontsize=9)
        _curves(panels[1, column], dataset.sel(family=families[0]))
    alike(panels[0])
    key(panels[1, 0], "tuned rate, and power law fitted to it", marker="o")
    key(panels[1, 0], "slope of the one-step scale", ls="--")
    key(panels[1, 0], "2 / $\\lambda_{max}$, nothing tuned", marker="o", fillstyle="none", ls="")
    legend_below(figure, panels[1, 0])
    return figure


def _families(dataset: xr.Dataset, starts: tuple[str, ...]) -> list[str]:
    return [str(family) for family in dataset["family"].values if str(family).startswith(starts)]


def _optima(axes: Axes, dataset: xr.Dataset, families: list[str]) -> None:
    """Tuned rates, fitted lines; one-step scales through the middle of the points, dashed; stable rates, rings."""
    for family, by_place in zip(families, FURTHER, strict=False):
        color = COLORS.get(family, by_place)
        at = tuned_rates.family_at(dataset, family)
        depth, rate = at["depth"].values, 10.0 ** at["tuned_rate_log10"].values
        below, above = (np.abs(rate * 10.0 ** (side * at["tuned_rate_log10_stderr"].values) - rate) for side in (-1, 1))
        law = tuned_rates.tuned_slope(at)
        name = family if np.isnan(law.exponent) else f"{family}: {law.exponent:.2f} $\\pm$ {law.stderr:.2f}"
        axes.errorbar(depth, rate, [below, above], fmt="o", color=color, label=name)
        axes.plot(depth, at["stable_rate"].values, "o", color=color, fillstyle="none")
        if depth.size > 1:
            axes.plot(depth, law.prefactor * depth**law.exponent, color=color)
            scale = np.log(at["one_step_scale"].values)
            axes.plot(depth, np.exp(scale - scale.mean() + np.log(rate).mean()), "--", color=color)
    by_size(axes, dataset["depth"].values, "depth")
    log_values(axes, "learning rate")
    legend_under(axes, 1, fontsize=7, title="family: slope of the tuned rate", title_fontsize=7)


def _curves(axes: Axes, at: xr.Dataset) -> None:
    """Geometric mean over seeds of the loss, at the rates where no seed has diverged, for every depth.

    The axis ends above the losses of the least rates, where nets hardly train.
    """
    untrained = []
    for depth, shade in zip(at["depth"].values, shades(at.sizes["depth"]), strict=True):
        losses = at["final_loss"].sel(depth=depth)
        every = losses.isel(rate=np.flatnonzero(np.isfinite(losses.values).all(axis=-1)))
        curve = np.exp(np.log(every.values).mean(axis=-1))
        untrained += list(curve[:1])
        axes.plot(every["rate"].values, curve, color=shade, label=f"depth {depth}")
    log_values(axes, "learning rate", along="x")
    axes.set_ylabel("training loss")
    axes.set_title(str(at["family"].values), fontsize=8)
    if untrained:
        axes.set_ylim(0.0, 1.1 * max(untrained))


if __name__ == "__main__":
    command("learning_rate_search", draw)
