"""Learning-rate scale against the number of blocks, by branch depth and scaling."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures._command import command
from figures.style import LAW, SCALINGS, by_size, key, legend_below, log_values, points, styled

NAME = "label_learning_rate_scale"
LABELS = {
    "init": "variance 1/K",
    "multiplier_sqrt": "multiplier $K^{-1/2}$",
    "multiplier_linear": "multiplier 1/K",
    "none": "no scaling",
}


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """One panel per branch depth, ReLU: points drawn, lines mean field, relative to the first one; papers dashed."""
    blocks = dataset["blocks"].values
    figure = Figure(figsize=(7.4, 3.4))
    panels = np.atleast_1d(figure.subplots(1, dataset.sizes["block_depth"], sharey=True))
    for axes, k in zip(panels, dataset["block_depth"].values, strict=True):
        for scaling, words in LABELS.items():
            color = SCALINGS[scaling]
            at = dataset.sel(activation="relu", block_depth=k, scaling=scaling)
            theory = np.exp(at[f"log_{NAME}_theory"].values)
            axes.plot(blocks, theory / theory[0], color=color)
            points(axes, blocks, at, NAME, over=theory[0], color=color, label=words)
        axes.plot(blocks, (blocks / blocks[0]) ** -1.5, "--", color=LAW, label="papers, -3/2")
        by_size(axes, blocks, "blocks K")
        axes.set_title(f"branches of k = {k}", fontsize=9)
    smallest = (blocks[-1] / blocks[0]) ** -2.2
    panels[0].set_ylim(smallest, 1 / smallest**0.6)
    log_values(panels[0], f"eta*(K) / eta*({blocks[0]}), label term")
    key(panels[0], "mean field")
    key(panels[0], "drawn", marker="o", ls="")
    figure.suptitle("K blocks and no layer below them: a stem stops every rise", fontsize=9)
    legend_below(figure, panels[0])
    return figure


if __name__ == "__main__":
    command("residual_depth", draw)
