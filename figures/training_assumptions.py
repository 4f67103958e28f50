"""Assumptions of Zheng et al. 2026 on training (figures 10 - 13): ratios at the last step by width, depth and batch."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.style import GREEN, ORANGE, SKY, by_size, key, legend_below, styled

PANELS = {
    "weight_travel_ratio": "G.1: $|W_t| / (|W_0| + |W_t - W_0|)$",
    "feature_travel_ratio": "G.1: $|h_t| / (|h_0| + |h_t - h_0|)$",
    "activation_ratio": "G.2: $|\\phi(Wz)| / |Wz|$",
    "sample_update_ratio": "G.3: $|\\Delta W^{(i)} z^{(i)}| / (B |\\Delta W z^{(i)}|)$",
    "weight_alignment": "F.1: $|Wz| / (|W| |z|)$",
    "update_alignment": "F.2: $|\\Delta W z| / (|\\Delta W| |z|)$",
}
LADDERS = {"width": ("by width", SKY), "depth": ("by depth", ORANGE), "batch": ("by batch size", GREEN)}
PLACES = {"last block, layer 2": ("-", "last block"), "input": ("--", "input")}
FAINT = 0.35


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """A panel per ratio: means over draws, points with errors at the last step, faint without at the first."""
    ladders = {ladder: style for ladder, style in LADDERS.items() if ladder in dataset.coords}
    ratios = np.unique(np.concatenate([_relative(dataset, ladder) for ladder in ladders]))
    figure = Figure(figsize=(9.6, 6.2))
    panels = figure.subplots(2, 3).ravel()
    for axes, (name, title) in zip(panels, PANELS.items(), strict=True):
        if f"{name}_by_depth" not in dataset:
            axes.set_axis_off()
            continue
        for ladder, (words, color) in ladders.items():
            _lines(axes, dataset, f"{name}_by_{ladder}", ladder, words, color)
        by_size(axes, ratios, "size over the smallest")
        axes.set_ylim(0.0, max(1.05, axes.get_ylim()[1]))
        axes.set_title(title, fontsize=9)
    first, last = (int(dataset["step"][end]) for end in (0, -1))
    figure.supylabel(f"ratio at step {last}", fontsize=9)
    for style, layer in PLACES.values():
        key(panels[0], f"faint: at step {first}, {layer}", ls=style, lw=1, alpha=FAINT)
    legend_below(figure, panels[0])
    return figure


def _relative(dataset: xr.Dataset, ladder: str) -> np.ndarray:
    return dataset[ladder].values / dataset[ladder].values[0]


def _lines(axes: Axes, dataset: xr.Dataset, name: str, ladder: str, words: str, color: str) -> None:
    """Solid: the second layer of the last block; dashed: the input layer."""
    sizes = _relative(dataset, ladder)
    for place, (style, layer) in PLACES.items():
        draws = dataset[name].sel(place=place).transpose("draw", "step", ladder).values
        means, error = draws.mean(axis=0), draws[:, -1].std(axis=0, ddof=1) / np.sqrt(len(draws))
        axes.plot(sizes, means[0], style, lw=1, color=color, alpha=FAINT)
        axes.errorbar(sizes, means[-1], error, ls=style, marker="o", ms=3, lw=1, color=color, label=f"{words}, {layer}")


if __name__ == "__main__":
    command("training_assumptions", draw)
