"""The best base value of every table of losses that Zheng et al. 2026 print, against width and depth."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures._command import command
from figures.style import TABLES, alike, by_size, key, legend_below, styled

RULES = {
    "standard": ("standard parameterization", "s"),
    "many": ("condition 3.1 (k $\\geq$ 2)", "o"),
    "one": ("condition B.1 (k = 1)", "^"),
}


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """A panel for every setting and direction; full marks have neighbours on both sides, open ones are at an end.

    Axes are equally long, so that flat lines look flat.
    """
    panels = list(dict.fromkeys(zip(dataset["setting"].values, dataset["direction"].values, strict=True)))
    figure = Figure(figsize=(10.0, 2.4 * -(-len(panels) // 4)))
    grid = figure.subplots(-(-len(panels) // 4), 4, squeeze=False).ravel()
    for axes, (setting, direction) in zip(grid, panels, strict=False):
        chosen = dataset["table"].values[(dataset["setting"] == setting) & (dataset["direction"] == direction)]
        for at in (dataset.sel(table=place) for place in chosen):
            rule = str(at["parameterization"].values)
            (words, marker), color = RULES[rule], TABLES[rule]
            within = np.isfinite(at["ladder"].values)
            sizes, best, error = (at[name].values[within] for name in ("ladder", "optimum", "optimum_stderr"))
            look = {"color": color, "marker": marker, "lw": 1, "mfc": "white"}
            axes.errorbar(sizes, best, np.nan_to_num(error), **look)
            inside = at["bracketed"].values[within] > 0
            axes.plot(sizes[inside], best[inside], marker, color=color, zorder=4, label=words)
            by_size(axes, sizes, str(direction))
        axes.set_title(str(setting), fontsize=9)
    for axes in grid[len(panels) :]:
        axes.remove()
    alike(grid[: len(panels)])
    figure.supylabel("log2 of the best base value: a unit is an octave", fontsize=9)
    in_depth = next(axes for axes, (setting, way) in zip(grid, panels, strict=False) if way == "depth")
    key(in_depth, "open: the best is at an end of the grid", marker="o", mfc="white", ls="")
    legend_below(figure, in_depth)
    return figure


if __name__ == "__main__":
    command("reported_losses", draw)
