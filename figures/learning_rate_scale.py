"""Local slope of the learning-rate scale against depth, beside the asymptote -3/2."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.style import FURTHER, LAW, MEAN_FIELD, MEASURED, styled


def draw(dataset: xr.Dataset) -> Figure:
    """One line per family: d ln eta*_B / d ln L of the mean field's label term."""
    depth = dataset["depth"].values
    with styled():
        figure = Figure(figsize=(5.2, 3.6))
        axes = figure.subplots()
        for family, color in zip(dataset["family"].values, (MEASURED, MEAN_FIELD, *FURTHER), strict=False):
            scale = dataset["label_learning_rate_scale"].sel(family=family).values
            axes.plot(depth, np.gradient(np.log(scale), np.log(depth)), color=color, label=str(family))
        axes.axhline(-1.5, ls="--", color=LAW, label="papers, -3/2")
        axes.set(xscale="log", xlabel="depth L", ylabel="local slope of eta*(L)")
        axes.set_title("Label term's learning-rate scale, mean field, white input", fontsize=8, loc="left")
        axes.legend()
    return figure
