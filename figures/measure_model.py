"""How far one step moves the modules of a model, by groups of its parameters; beside it, its rates over its sizes."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from figures._command import command
from figures.style import FURTHER, GREY, MEASURED, aside, by_size, legend_under, log_values, styled

# Modules that are drawn, the most moved ones, and inches of each.
MOST_MODULES, ROW = 40, 0.2
# Changes so many times smaller than the largest are left of the axis, which is logarithmic where they part by as much.
SMALLEST, APART = 1e-3, 10.0
BARS = "#C8C8C8"
MARKS = "osD^v"
# What one step moves, by its own size or by 1, at the rate that is drawn.
OF = {
    "absolute": "all modules",
    "relative": "all, by their size",
    "last": "last layer, by its size",
    "outputs": "outputs",
}


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Left: modules of the largest size, from the inputs up to the outputs; right: a panel for each size."""
    axes = dataset["axis"].values.tolist() if "axis" in dataset else []
    rows = min(dataset.sizes["place"], MOST_MODULES)
    figure = Figure(figsize=(10.0 if axes else 6.4, max(3.3 * max(len(axes), 1), ROW * rows + 1.8)))
    grid = figure.add_gridspec(max(len(axes), 1), 2 if axes else 1, width_ratios=(3, 2) if axes else None)
    _modules(figure.add_subplot(grid[:, 0]), dataset)
    for number, name in enumerate(axes):
        _rates(figure.add_subplot(grid[number, 1]), dataset, str(name))
    attrs = dataset.attrs
    figure.suptitle(f"{attrs['factory']}, one step of {attrs['optimizer']}, {attrs['draws']} draws", fontsize=10)
    return figure


def _modules(axes: Axes, dataset: xr.Dataset) -> None:
    """Bars: the change of each module by its own size. Marks: what each group of parameters changes alone."""
    rate = dataset.attrs["shown_rate"]
    changes = rate * np.sqrt(dataset["place_relative_update_energy"])
    kept = np.sort(np.argsort(-changes.fillna(-1.0).values, kind="stable")[:MOST_MODULES])
    at, whole = dataset.isel(place=kept), changes.values[kept]
    errors = whole * (at["place_relative_update_energy_stderr"] / at["place_relative_update_energy"]).values / 2
    rows = np.arange(len(kept))
    look: dict[str, Any] = {"ecolor": GREY, "capsize": 1.5, "error_kw": {"lw": 0.8}}
    axes.barh(rows, whole, xerr=errors, color=BARS, height=0.75, label="all parameters", **look)
    shares = whole * np.sqrt(at["place_energy_of_group"] / at["place_update_energy"])
    least = SMALLEST * np.nanmax([*whole, 0.0])
    for number, name in enumerate(dataset["group"].values):
        color, mark = FURTHER[number % len(FURTHER)], MARKS[number // len(FURTHER) % len(MARKS)]
        moved = np.where(shares.sel(group=name) > least, shares.sel(group=name), np.nan)
        axes.plot(moved, rows, mark, color=color, label=f"{name} alone")
    _percent_axis(axes, np.concatenate([whole, shares.values.ravel()]), least)
    axes.set_yticks(rows, at["place"].values.tolist(), fontsize=8)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    shown = "" if len(kept) == len(changes) else f", {len(kept)} of {len(changes)} modules"
    axes.set_title(f"{dataset.attrs['largest']}, at {dataset.attrs['shown_rate_of']}, {rate:.2g}{shown}", fontsize=9)
    axes.set_xlabel("change of a module in one step, of its own size")
    legend_under(axes, 3, fontsize=8)


def _percent_axis(axes: Axes, changes: Any, least: float) -> None:
    """From 0 on, or logarithmic where changes are far apart, with room for a mark on either side."""
    positive = changes[np.isfinite(changes) & (changes > least)]
    if len(positive) and positive.max() > APART * positive.min():
        log_values(axes, along="x")
        axes.set_xlim(positive.min() / 1.5, 1.6 * positive.max())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))


def _rates(axes: Axes, dataset: xr.Dataset, name: str) -> None:
    """Rates over one size, others at their first number: named ones with their intervals, and the four scales."""
    others = [other for other in dataset["axis"].values.tolist() if other != name]
    first = np.all([dataset[other] == dataset[other][0] for other in others], axis=0) if others else slice(None)
    at = dataset.isel(size=first)
    sizes = at[name].values
    for of, color in zip(OF, FURTHER, strict=False):
        scale, error = (at[which].sel(of=of).values for which in ("scale", "scale_stderr"))
        power, stderr = (float(dataset[which].sel(of=of, axis=name)) for which in ("slope", "slope_stderr"))
        label = f"{OF[of]}: {power:+.2f} $\\pm$ {stderr:.2f}"
        axes.errorbar(sizes, scale, error, fmt="o-", lw=0.8, color=color, label=label)
    for place, (kind, mark, label) in enumerate(
        (("started", "s", "rate to start from"), ("carried", "D", "carried rate"))
    ):
        if at[f"{kind}_rate"].notnull().any():
            rate, low, high = (at[f"{kind}_{which}"].values for which in ("rate", "low", "high"))
            look: dict[str, Any] = {"fmt": mark, "color": MEASURED, "mfc": "white", "elinewidth": 1.0, "label": label}
            axes.errorbar(aside(sizes, place + 1, 1), rate, [rate - low, high - rate], **look)
    log_values(axes, "learning rate")
    by_size(axes, sizes, name)
    fixed = ", ".join(f"{other} {dataset[other].values[0]:g}" for other in others)
    axes.set_title(f"rates that move .., and their powers of {name}{f'; {fixed}' if fixed else ''}", fontsize=9)
    legend_under(axes, 2, fontsize=8)


if __name__ == "__main__":
    command("measure_model", draw)
