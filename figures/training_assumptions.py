"""P1's figures 10 - 13 and the alignments: every ratio over training, a line for every size."""

from __future__ import annotations

import sys

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import draw_one
from figures.style import styled

COLUMNS = {
    "weight_travel_ratio": "G.1: $|W_t| / (|W_0| + |W_t - W_0|)$",
    "feature_travel_ratio": "G.1: $|h_t| / (|h_0| + |h_t - h_0|)$",
    "activation_ratio": "G.2: $|\\phi(Wz)| / |Wz|$",
    "sample_update_ratio": "G.3: $|\\Delta W^{(i)} z^{(i)}| / (B |\\Delta W z^{(i)}|)$",
    "weight_alignment": "F.1: $|Wz| / (|W| |z|)$",
    "update_alignment": "F.2: $|\\Delta W z| / (|\\Delta W| |z|)$",
}
LADDERS = {"width": "width", "depth": "depth", "batch": "batch size"}
STYLES = {"input": "--", "blocks": "-"}


def draw(dataset: xr.Dataset) -> Figure:
    """A column per ratio, a row per ladder; blocks solid, the input layer dashed; means over draws."""
    with styled():
        figure = Figure(figsize=(2.6 * len(COLUMNS), 6.6))
        grid = figure.subplots(len(LADDERS), len(COLUMNS), squeeze=False, sharex=True)
        for axes_row, (ladder, title) in zip(grid, LADDERS.items(), strict=True):
            for axes, (name, head) in zip(axes_row, COLUMNS.items(), strict=True):
                _panel(axes, dataset[f"{name}_by_{ladder}"], ladder)
                if ladder == "width":
                    axes.set_title(head, fontsize=8)
                if ladder == "batch":
                    axes.set_xlabel("step")
            axes_row[0].set_ylabel(f"by {title}")
            axes_row[-1].legend(fontsize=6, title=f"{title} (dashed: input)", title_fontsize=6)
    return figure


def _panel(axes: Axes, found: xr.DataArray, ladder: str) -> None:
    sizes, steps = found[ladder].values, found["step"].values
    colors = matplotlib.colormaps["viridis"](np.linspace(0, 0.9, len(sizes)))
    for place, style in STYLES.items():
        for size, color in zip(sizes, colors, strict=True):
            draws = found.sel({ladder: size, "place": place}).transpose("draw", "step").values
            error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
            label = str(size) if place == "blocks" else None
            axes.errorbar(steps, draws.mean(axis=0), error, ls=style, marker="o", ms=2, color=color, lw=1, label=label)
    axes.set_xscale("log")
    axes.set_ylim(0, 1.05)


if __name__ == "__main__":
    sys.exit(draw_one("training_assumptions", draw))
