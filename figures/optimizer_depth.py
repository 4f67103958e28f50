"""eta* of one step of every optimizer against depth, family by family; against width; and what drops out of it."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.style import FURTHER, GREY, alike, by_size, key, legend_below, log_values, points, styled

NAME = "label_learning_rate_scale"
TITLES = {
    "init": "variance 1/K, k = 1",
    "multiplier_sqrt": "times $K^{-1/2}$, k = 1",
    "multiplier_linear": "times 1/K, k = 1",
    "init_k2": "variance 1/K, k = 2",
    "multiplier_linear_k2": "times 1/K, k = 2",
}
SETTINGS = {"labels": "labels\nof mean 3", "loss": "cross-\nentropy", "outputs": "8\noutputs", "head": "muP\nhead"}
MARKS = "os^Dv<>"
COLUMNS = 4


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """A panel for every family, relative to the smallest net: points drawn, lines mean field; width; settings."""
    families = [str(family) for family in dataset["family"].values] if "family" in dataset.coords else []
    plain = ["plain"] if "depth" in dataset.coords else []
    count = len(families) + len(plain) + 2
    rows = -(-count // COLUMNS)
    figure = Figure(figsize=(9.6, 2.9 * rows + 0.5))
    panels = list(np.ravel(figure.subplots(rows, COLUMNS)))
    for spare in panels[count:]:
        spare.remove()
    places = iter(panels)
    for _ in plain:
        _scales(next(places), dataset, "plain_", "depth", "layers L", "Plain nets")
    for family in families:
        _scales(next(places), dataset.sel(family=family), "", "blocks", "blocks K", TITLES[family])
    by_width = next(places)
    _scales(by_width, dataset, "width_", "width", "width n", "Plain nets, 4 layers")
    alike(panels[: count - 1])
    _settings(next(places), dataset)
    key(by_width, "mean field")
    key(by_width, "drawn", marker="o", ls="")
    legend_below(figure, by_width)
    return figure


def _scales(axes: Axes, dataset: xr.Dataset, prefix: str, along: str, label: str, title: str) -> None:
    """Relative to theory at the smallest size."""
    sizes = dataset[along].values
    for place, name in enumerate(map(str, dataset["optimizer"].values)):
        at = dataset.sel(optimizer=name)
        theory = np.exp(at[f"log_{prefix}{NAME}_mean_field"].values)
        axes.plot(sizes, theory / theory[0], color=FURTHER[place % len(FURTHER)])
        look = {"fmt": MARKS[place], "color": FURTHER[place % len(FURTHER)], "label": name}
        points(axes, sizes, at, f"{prefix}{NAME}", over=theory[0], **look)
    by_size(axes, sizes, label)
    log_values(axes, f"eta* / eta*({sizes[0]})")
    axes.set_title(title, fontsize=9)


def _settings(axes: Axes, dataset: xr.Dataset) -> None:
    """eta* over that of the base, by what differs from it."""
    base = dataset.sel(setting="base")["setting_learning_rate_scale"]
    names = list(map(str, dataset["optimizer"].values))
    for place, name in enumerate(names):
        at = dataset.sel(optimizer=name, setting=list(SETTINGS))
        x = np.arange(len(SETTINGS)) + 0.15 * (place - (len(names) - 1) / 2)
        look = {"fmt": MARKS[place], "color": FURTHER[place % len(FURTHER)]}
        points(axes, x, at, "setting_learning_rate_scale", over=float(base.sel(optimizer=name)), **look)
    axes.axhline(1.0, color=GREY, lw=0.8)
    axes.set_xticks(range(len(SETTINGS)), list(SETTINGS.values()), fontsize=7)
    log_values(axes, "eta* / eta* of the base")
    axes.set_title("What drops out", fontsize=9)


if __name__ == "__main__":
    command("optimizer_depth", draw)
