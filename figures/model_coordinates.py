"""Coordinate checks of PyTorch models: values and their changes against width and depth, a panel for every step.

It draws the dataset of `meanfield.torch.coordinate_check`, saved by its user, as no simulation makes it.
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command_of_saved
from figures.style import FURTHER, GREY, alike, aside, by_size, key, legend_under, log_values, styled

# Places: colours of their own, and marks that stay apart in print.
LOOKS = {
    "first": (FURTHER[0], "o", "first block reads"),
    "middle": (FURTHER[1], "s", "half of blocks"),
    "last": (FURTHER[2], "^", "last block"),
    "outputs": (FURTHER[4], "D", "outputs"),
}
VERDICTS = {"CONFIRMED": "flat", "REFUTED": "not flat", "INCONCLUSIVE": "undecided"}
# Below this exponent what is confirmed falls, as outputs may before the first step.
MAY_FALL = -0.25
# Panels of changes, of the steps that are drawn: the first, the last, and some between.
MOST_STEPS = 3
# Decades of an axis at least, on which what is flat looks flat.
LEAST_DECADES = 1.5


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """A row for each ladder; panels: values before the first step, then changes after steps, with slopes below.

    Points are geometric means over draws with their standard errors; dashed is what stays flat from the least size on.
    """
    directions = [along for along in ("width", "depth") if along in dataset.sizes]
    last = int(dataset["step"].values[-1])
    steps = [0, *np.unique(np.linspace(1, last, min(MOST_STEPS, last)).round().astype(int)).tolist()]
    figure = Figure(figsize=(0.5 + 2.6 * len(steps), 0.4 + 3.6 * len(directions)))
    grid = figure.subplots(len(directions), len(steps), squeeze=False)
    for row, along in zip(grid, directions, strict=True):
        for axes, step in zip(row, steps, strict=True):
            _panel(axes, dataset, along, step)
        alike(row, least=LEAST_DECADES)
        row[0].set_ylabel("root mean square")
    said = VERDICTS[dataset.attrs["verdict"]]
    figure.suptitle(f"{dataset.attrs['family']} under {dataset.attrs['optimizer']}: {said}", fontsize=10)
    return figure


def _panel(axes: Axes, dataset: xr.Dataset, along: str, step: int) -> None:
    """Values before the first step, or changes after one."""
    sizes, measured = dataset[along].values, "feature_update_norm" if step else "feature_norm"
    rows = {place: _row(dataset, along, step, place) for place in map(str, dataset["place"].values)}
    moving = {place: row for place, row in rows.items() if row is not None}
    for number, (place, row) in enumerate(moving.items()):
        color, marker, name = LOOKS[place]
        values = dataset[f"{measured}_by_{along}"].sel(place=place, step=step).transpose(along, "draw")
        logs = np.log(values.where(values > 0).values)
        middle, error = np.exp(logs.mean(axis=1)), logs.std(axis=1, ddof=1) / np.sqrt(logs.shape[1])
        label = f"{name}: {_slope(row)}"
        look: dict[str, Any] = {"fmt": f"{marker}-", "ms": 3.5, "lw": 1.0, "color": color, "label": label}
        axes.errorbar(aside(sizes, number, len(moving)), middle, middle * error, **look)
        axes.plot(sizes[[0, -1]], middle[[0, 0]], "--", color=GREY, lw=0.7, zorder=1)
    key(axes, "as at the least size", ls="--", lw=0.7)
    log_values(axes)
    by_size(axes, sizes, along)
    axes.set_title(f"change after step {step}" if step else "values before the first step", fontsize=9)
    legend_under(axes, fontsize=7)


def _row(dataset: xr.Dataset, along: str, step: int, place: str) -> xr.Dataset | None:
    """What was found of a slope; None where there is none, as nothing moves."""
    rows = dataset[["slope", "slope_stderr", "verdict"]]
    wanted = (rows["along"] == along) & (rows["of"] == ("change" if step else "value"))
    places = np.flatnonzero(wanted & (rows["at"] == place) & (rows["after"] == step))
    return rows.isel(row=int(places[0])) if len(places) else None


def _slope(row: xr.Dataset) -> str:
    said = VERDICTS[str(row["verdict"].values)]
    if said == "flat" and row["slope"] < MAY_FALL:
        said = "may fall"
    if row["slope"].isnull():
        return said
    return f"${float(row['slope']):+.2f} \\pm {float(row['slope_stderr']):.2f}$, {said}"


if __name__ == "__main__":
    command_of_saved("model_coordinates", "meanfield.torch.coordinate_check", draw)
