"""Label and output term by layer: drawn, exact at finite width, and at infinite width."""

from __future__ import annotations

import json

import xarray as xr
from matplotlib.figure import Figure

from figures.style import FURTHER, LAW, MEAN_FIELD, MEASURED, layer_ticks, styled

# Name, letter, colour of the measured points, colour of the exact line.
TERMS = (("label_term", "B", MEASURED, MEAN_FIELD), ("output_term", "A", FURTHER[0], FURTHER[1]))


def draw(dataset: xr.Dataset) -> Figure:
    """Upper panel: growth with the layer, log-log. Lower panel: measured over exact, with standard errors."""
    net = json.loads(dataset.attrs["architecture"])
    layer = dataset["layer"].values
    with styled():
        figure = Figure(figsize=(5.2, 6.2))
        growth, ratio = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
        growth.plot(layer, dataset["label_term_mean_field"].values, "--", color=LAW, label="B at infinite width")
        for name, letter, point, line in TERMS:
            exact, mean, stderr = (dataset[column].values for column in (f"{name}_exact", name, f"{name}_stderr"))
            growth.plot(layer, exact, color=line, label=f"{letter}, exact")
            growth.errorbar(layer, mean, stderr, fmt="o", color=point, label=f"{letter}, measured")
            ratio.errorbar(layer, mean / exact, stderr / exact, fmt="o", color=point)
        ratio.axhline(1.0, color=MEAN_FIELD)
        growth.set(xscale="log", yscale="log", ylabel="one-step second moment at learning rate 1")
        ratio.set(xlabel="layer l", ylabel="measured / exact")
        layer_ticks(ratio, int(layer[-1]))
        title = f"{net['activation']} net, width {net['width']}, {net['outputs']} outputs, {net['head']} head"
        growth.set_title(
            f"{title}\n{dataset.attrs['draws']} draws, seed {dataset.attrs['seed']}", fontsize=8, loc="left"
        )
        growth.legend()
    return figure
