"""Local slope of the learning-rate scale against depth, beside the asymptote -3/2 and the slopes of trained nets."""

from __future__ import annotations

import json
import sys

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import draw_one
from figures.style import FURTHER, LAW, MEAN_FIELD, MEASURED, styled
from meanfield.verification.depth_laws import TRANSFER_EXPONENT, local_slopes
from meanfield.verification.published import MeasuredSlope, measured_slopes

COLORS = (MEAN_FIELD, *FURTHER)
# The exact scale falls out of the picture where depth nears the width.
SLOPES_SHOWN = (-2.05, -0.85)
# Points that were fitted over the same depths stand this factor apart.
STEP = 1.06
MARKERS = "osv^DP"


def draw(dataset: xr.Dataset) -> Figure:
    """One line per family: d ln eta*_B / d ln L of the mean field's label term; dotted: all of eta*, exact."""
    depth = dataset["depth"].values
    width = json.loads(dataset.attrs["architectures"])[0]["width"]
    with styled():
        figure = Figure(figsize=(6.4, 4.4))
        axes = figure.subplots()
        for family, color in zip(dataset["family"].values, COLORS, strict=False):
            scale = dataset["label_learning_rate_scale"].sel(family=family).values
            axes.plot(depth, local_slopes(depth, scale), color=color, label=f"{family}, label term")
        exact = dataset["exact_slope"]
        axes.plot(exact["exact_depth"].values, exact.values, ":", color=MEAN_FIELD, label=f"mlp, exact, width {width}")
        for place, found in enumerate(measured_slopes()):
            _measured(axes, found, place)
        axes.axhline(TRANSFER_EXPONENT, ls="--", color=LAW, label="papers' law, -3/2")
        axes.set(xscale="log", xlabel="depth L", ylabel="slope of eta*(L)", ylim=SLOPES_SHOWN)
        axes.set_title("Lines: local slope in theory. Points: slopes fitted to trained nets", fontsize=8, loc="left")
        axes.legend(fontsize=7, ncols=2)
    return figure


def _measured(axes: Axes, found: MeasuredSlope, place: int) -> None:
    """A slope near the middle of the depths it was fitted over, its error upright and the depths across."""
    first, last = found.depths[0], found.depths[-1]
    middle = (first * last) ** 0.5 * STEP**place
    across = [[middle - first], [last - middle]]
    style = {"color": MEASURED, "markerfacecolor": "white", "elinewidth": 0.6, "capsize": 0.0}
    label = found.source.removeprefix("P0 ")
    axes.errorbar(middle, found.slope, found.stderr, across, MARKERS[place], label=label, **style)  # type: ignore[arg-type]


if __name__ == "__main__":
    sys.exit(draw_one("learning_rate_scale", draw))
