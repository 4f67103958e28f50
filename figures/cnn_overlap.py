"""Growth of the label term (or overlap energy) with the layer, with the mean field and the sum of minima."""

import json
from typing import Any

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.style import FURTHER, LAW, MEAN_FIELD, MEASURED, layer_ticks, log_values, points, styled
from meanfield.verification import best, exponent_of, growth_exponent

TITLES = {"label_term": "label term B", "overlap_energy": "overlap energy F"}
# Growth laws need so many layers.
LEAST_DEPTH = 3


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Upper panel: growth, log-log, of the deepest net. Lower panel: ratio to the mean field.

    Both have the drawn means at the net's channels, with theory there, and brought to infinitely many channels.
    """
    deepest = dataset.isel(depth=-1)
    judged = (name for name in TITLES if {f"{name}_limit", f"{name}_law"} <= set(dataset))
    name = next(judged, "overlap_energy")
    figure = Figure(figsize=(5.6, 6.6))
    growth, ratio = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    _draw_growth(growth, deepest, name)
    _draw_ratio(ratio, deepest, name)
    growth.set_title(_caption(dataset, name), fontsize=8, loc="left")
    return figure


def _draw_growth(axes: Axes, deepest: xr.Dataset, name: str) -> None:
    layer, channels = deepest["layer"].values, _net(deepest)["channels"]
    anchor = deepest[f"{name}_law"].attrs["anchor_layer"]
    axes.plot(layer, deepest[f"{name}_mean_field"].values, color=MEAN_FIELD, label=f"{TITLES[name]}, mean field")
    axes.plot(
        layer,
        deepest[f"{name}_law"].values,
        "--",
        color=LAW,
        label=f"{TITLES[name]}, sum of minima set at layer {anchor}",
    )
    if f"{name}_limit" in deepest:
        points(axes, layer, deepest, f"{name}_limit", color=MEASURED, label=f"{TITLES[name]}, drawn, C = inf")
    if name == "label_term":
        output = best(deepest, "output_term")
        points(axes, layer, deepest, output, color=FURTHER[0], label=f"output term A, drawn, C = {channels}")
        if "output_term_finite_channels" in deepest:
            theory = deepest["output_term_finite_channels"].values
            axes.plot(layer, theory, color=FURTHER[0], lw=0.8, label=f"output term A, theory, C = {channels}")
    axes.set_xscale("log")
    log_values(axes, "one-step second moment at learning rate 1")
    axes.legend()


def _draw_ratio(axes: Axes, deepest: xr.Dataset, name: str) -> None:
    layer, mean_field = deepest["layer"].values, deepest[f"{name}_mean_field"].values
    drawn, channels = best(deepest, name), _net(deepest)["channels"]
    law = deepest[f"{name}_law"].values / mean_field
    axes.axhline(1.0, color=MEAN_FIELD)
    axes.plot(layer, law, "--", color=LAW)
    highest = law.max()
    if drawn in deepest:
        points(axes, layer, deepest, drawn, over=mean_field, color=FURTHER[1], fmt="s", label=f"drawn, C = {channels}")
        highest = max(highest, ((deepest[drawn] + deepest[f"{drawn}_stderr"]).values / mean_field).max())
    if f"{name}_finite_channels" in deepest:
        theory = deepest[f"{name}_finite_channels"].values / mean_field
        axes.plot(layer, theory, color=FURTHER[1], lw=0.8, label=f"theory, C = {channels}")
    if f"{name}_limit" in deepest:
        points(axes, layer, deepest, f"{name}_limit", over=mean_field, color=MEASURED, label="drawn, C = inf")
    axes.set(xlabel="layer l", ylabel="ratio to the mean field", ylim=(0.0, 1.05 * highest))
    axes.legend(loc="best")
    layer_ticks(axes, int(layer[-1]))


def _net(dataset: xr.Dataset) -> dict[str, Any]:
    return dict(json.loads(dataset.attrs["architecture"]))


def _caption(dataset: xr.Dataset, name: str) -> str:
    """What the figure shows, and of which nets."""
    net = _net(dataset)
    size, taps = (" x ".join(map(str, net[name])) for name in ("grid", "kernel"))
    first = f"{net['activation']} net, {net['channels']} channels, grid {size} ({net['padding']}), kernel {taps}"
    second = f"{net['readout']} readout, input {dataset.attrs['inputs']}"
    lines = [first, f"{second}, {dataset.attrs['draws']} draws, seed {dataset.attrs['seed']}"]
    deepest = dataset.isel(depth=-1)
    if f"{name}_limit" in deepest and net["depth"] >= LEAST_DEPTH:
        law = growth_exponent(deepest, f"{name}_limit")
        expected = exponent_of(deepest[f"{name}_mean_field"].values)
        shown = f"{law.exponent:.2f} +- {law.stderr:.2f} at C = inf (mean field {expected:.2f})"
        lines.insert(0, f"{TITLES[name]} grows with exponent {shown}")
    return "\n".join(lines)


if __name__ == "__main__":
    command("cnn_overlap", draw)
