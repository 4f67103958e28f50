"""Growth of the label term (or overlap energy) with the layer, with the mean field and the sum of minima."""

import json

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.style import FURTHER, LAW, MEAN_FIELD, MEASURED, layer_ticks, log_values, points, styled

TITLES = {"label_term": "label term B", "overlap_energy": "overlap energy F"}


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Upper panel: growth, log-log, of the deepest net. Lower panel: ratio to the mean field."""
    deepest = dataset.isel(depth=-1)
    name = next((name for name in TITLES if name in deepest and f"{name}_mean_field" in deepest), "overlap_energy")
    figure = Figure(figsize=(5.2, 6.2))
    growth, ratio = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    _draw_growth(growth, deepest, name)
    _draw_ratio(ratio, deepest, name)
    growth.set_title(_caption(dataset), fontsize=8, loc="left")
    return figure


def _draw_growth(axes: Axes, deepest: xr.Dataset, name: str) -> None:
    layer = deepest["layer"].values
    anchor = deepest[f"{name}_law"].attrs["anchor_layer"]
    axes.plot(layer, deepest[f"{name}_mean_field"].values, color=MEAN_FIELD, label=f"{TITLES[name]}, mean field")
    axes.plot(layer, deepest[f"{name}_law"].values, "--", color=LAW, label=f"sum of minima, set at layer {anchor}")
    if name in deepest:
        points(axes, layer, deepest, name, color=MEASURED, label=f"{TITLES[name]}, measured")
    if name == "label_term":
        points(axes, layer, deepest, "output_term", color=FURTHER[0], label="output term A, measured")
    axes.set_xscale("log")
    log_values(axes, "one-step second moment at learning rate 1")
    axes.legend()


def _draw_ratio(axes: Axes, deepest: xr.Dataset, name: str) -> None:
    layer, theory = deepest["layer"].values, deepest[f"{name}_mean_field"].values
    axes.axhline(1.0, color=MEAN_FIELD)
    allowance = deepest["finite_width_allowance"].values
    axes.fill_between(
        layer, 1 - allowance, 1 + allowance, color=MEAN_FIELD, alpha=0.12, lw=0, label="allowance for finite width"
    )
    law = deepest[f"{name}_law"].values / theory
    highest = law.max()
    axes.plot(layer, law, "--", color=LAW)
    if name in deepest:
        highest = max(highest, ((deepest[name] + deepest[f"{name}_stderr"]).values / theory).max())
        points(axes, layer, deepest, name, over=theory, color=MEASURED)
    # A wide allowance may leave the picture; the points may neither leave it nor become small.
    top = max(1.05 * highest, min(1.05 + allowance.max(), 2 * highest))
    axes.set(xlabel="layer l", ylabel="ratio to the mean field", ylim=(0.0, top))
    axes.legend(loc="best")
    layer_ticks(axes, int(layer[-1]))


def _caption(dataset: xr.Dataset) -> str:
    net = json.loads(dataset.attrs["architecture"])
    size, taps = (" x ".join(map(str, net[name])) for name in ("grid", "kernel"))
    first = f"{net['activation']} net, {net['channels']} channels, grid {size} ({net['padding']}), kernel {taps}"
    second = f"{net['readout']} readout, input {dataset.attrs['inputs']}"
    return f"{first}\n{second}, {dataset.attrs['draws']} draws, seed {dataset.attrs['seed']}"


if __name__ == "__main__":
    command("cnn_overlap", draw)
