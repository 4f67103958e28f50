"""Change of a loop's stream under one update against loops, for each residual scaling, and against width."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures._command import command
from figures.style import (
    GREEN,
    LAW,
    MEAN_FIELD,
    MEASURED,
    PURPLE,
    alike,
    by_size,
    legend_below,
    log_values,
    points,
    styled,
)

COLORS = {"isotropic": MEASURED, "aligned": GREEN, "gradient": PURPLE}
LABELS = {"isotropic": "random signs", "aligned": "signs of the gradient", "gradient": "the gradient"}


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Panels by alpha: points drawn, line the recursion, dashed (eps L)^2, relative to the first; then by width."""
    loops, width = dataset["loops"].values, dataset["width"].values
    figure = Figure(figsize=(10.6, 3.2))
    *panels, last = figure.subplots(1, dataset.sizes["alpha"] + 1)
    for axes, alpha in zip(panels, dataset["alpha"].values, strict=True):
        at = dataset.sel(alpha=alpha)
        theory = np.exp(at["log_update_energy_mean_field"].values)
        axes.plot(loops, theory / theory[0], color=MEAN_FIELD, label="recursion for random signs")
        axes.plot(loops, (loops / loops[0]) ** (2 * (1 - alpha)), "--", color=LAW, label="papers, (eps L)$^2$")
        for update, color in COLORS.items():
            drawn = at.sel(update=update)
            first = float(drawn["update_energy"][0])
            points(axes, loops, drawn, "update_energy", over=first, color=color, label=f"{LABELS[update]}, drawn")
        by_size(axes, loops, "loops L")
        log_values(axes)
        axes.set_title(f"$\\alpha$ = {alpha:g}", fontsize=9)
    for update, color in COLORS.items():
        energy = dataset.sel(update=update)["by_width"].values
        last.plot(width, energy / energy[0], "o-", color=color)
    by_size(last, width, "width N")
    log_values(last)
    last.set_title("$\\alpha$ = 1, by width", fontsize=9)
    panels[0].set_ylabel(f"|dh$_L$|$^2$ / N over that at L = {loops[0]}")
    last.set_ylabel(f"the same over that at N = {width[0]}")
    for axes in (*panels, last):
        alike([axes], least=1.0)  # so that what is flat looks flat
    legend_below(figure, panels[0])
    return figure


if __name__ == "__main__":
    command("looped_update", draw)
