"""Fully-connected nets by layer: drawn and exact; the finite-width correction against l/n; the slope of eta*(L)."""

import json

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from figures._command import command
from figures.style import (
    GREY,
    LABEL_TERM,
    LAW,
    MEAN_FIELD,
    MEASURED,
    OUTPUT_TERM,
    key,
    layer_ticks,
    legend_under,
    log_values,
    points,
    styled,
)
from meanfield.verification import PAPERS_EXPONENT, is_converged

# Name, letter, colours of the measured points and of the exact line.
TERMS = (("label_term", "B", LABEL_TERM, MEAN_FIELD), ("output_term", "A", OUTPUT_TERM, OUTPUT_TERM))
HEAD = "he"


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Left: terms by layer, drawn and exact, open where not converged. Middle: single nets. Right: exact alone."""
    net = json.loads(dataset.attrs["architecture"])
    figure = Figure(figsize=(13.0, 6.4))
    (growth, nets, excess), (ratio, shape, slope) = figure.subplots(2, 3, height_ratios=(3, 2))
    for below, above in ((ratio, growth), (shape, nets)):
        below.sharex(above)
    _draw_layers(growth, ratio, dataset)
    _draw_single_nets(nets, shape, dataset)
    _draw_excess(excess, dataset)
    _draw_slope(slope, dataset)
    title = f"{net['activation']} net, width {net['width']}, {net['outputs']} outputs, {net['head']} head"
    draws = f"{dataset.attrs['draws']} draws, seed {dataset.attrs['seed']}"
    growth.set_title(f"a  {title}, {draws}", fontsize=8, loc="left")
    ratio.set_title("b  drawn over exact", fontsize=8, loc="left")
    nets.set_title("c  single nets: update energy S over its exact mean", fontsize=8, loc="left")
    shape.set_title("d  logarithm of one net's update energy S", fontsize=8, loc="left")
    excess.set_title("e  finite width: exact overlap energy F", fontsize=8, loc="left")
    width = f"$10^{{{np.log10(float(dataset['outputs'].max())):.0f}}}$"
    slope.set_title(f"f  learning-rate scale, exact, width {width}, {HEAD} head", fontsize=8, loc="left")
    return figure


def _draw_layers(growth: Axes, ratio: Axes, dataset: xr.Dataset) -> None:
    layer, limit = dataset["layer"].values, dataset["label_term_mean_field"].values
    growth.axhline(1.0, ls="--", color=LAW, label="B, infinite width")
    for name, letter, color, line in TERMS:
        exact = dataset[f"{name}_exact"].values
        growth.plot(layer, exact / limit, color=line, label=f"{letter}, exact")
        growth.plot([], [], "o", color=color, label=f"{letter}, drawn")
        _points(growth, dataset, name, limit, color)
        _points(ratio, dataset, name, exact, color)
    ratio.axhline(1.0, color=MEAN_FIELD)
    log_values(growth, along="x")
    log_values(growth, "energy / infinite-width label term")
    ratio.set(xlabel="layer l", ylabel="drawn / exact")
    growth.tick_params(labelbottom=False)
    layer_ticks(ratio, int(layer[-1]))
    key(growth, "open: not converged", marker="o", mfc="white", ls="")
    handles, labels = growth.get_legend_handles_labels()
    legend_under(ratio, 3, handles=handles, labels=labels, fontsize=8)


def _draw_single_nets(nets: Axes, shape: Axes, dataset: xr.Dataset) -> None:
    """Quantiles over nets against the mean, with a log-normal median; spread and skewness of the logarithm."""
    layer, exact = dataset["layer"].values, dataset["update_energy_exact"].values
    styles = (("1 in 10 below", "v"), ("median net", "o"), ("1 in 10 above", "^"))
    for share, (label, marker) in zip(dataset["quantile"].values, styles, strict=True):
        at = dataset.sel(quantile=share)
        points(nets, layer, at, "update_energy_quantile", over=exact, fmt=marker, color=MEASURED, lw=0.8, label=label)
    spread = dataset["update_energy_log_spread"].values
    nets.plot(layer, np.exp(-(spread**2) / 2), "--", color=MEAN_FIELD, label="median if log-normal")
    nets.axhline(1.0, color=MEAN_FIELD, lw=0.8, label="exact mean")
    for name, marker in (("spread", "D"), ("skewness", "s")):
        words = f"{name} of ln S"
        points(shape, layer, dataset, f"update_energy_log_{name}", fmt=marker, color=MEASURED, lw=0.8, label=words)
    shape.axhline(0.0, ls="--", color=MEAN_FIELD, label="log-normal: skewness 0")
    log_values(nets, along="x")
    log_values(nets, "S of one net / exact mean")
    shape.set(xlabel="layer l", ylabel="sd and skewness of ln S")
    nets.tick_params(labelbottom=False)
    layer_ticks(shape, int(layer[-1]))
    entries = [nets.get_legend_handles_labels(), shape.get_legend_handles_labels()]
    handles, labels = ([*above, *below] for above, below in zip(*entries, strict=True))
    legend_under(shape, 3, handles=handles, labels=labels, fontsize=8)


def _points(axes: Axes, dataset: xr.Dataset, name: str, over: ArrayLike, color: str) -> None:
    """Filled where converged, open elsewhere."""
    scaled = dataset[[name, f"{name}_stderr"]] / xr.DataArray(over, dims="layer")
    converged = is_converged(dataset, name).values
    for kept, fill in ((converged, color), (~converged, "white")):
        at = scaled.isel(layer=kept)
        points(axes, at["layer"].values, at, name, color=color, markerfacecolor=fill, lw=0.8)


def _draw_excess(axes: Axes, dataset: xr.Dataset) -> None:
    """The correction of every width against l/n on one curve, and against it the claim: a constant over n."""
    share = dataset["depth_over_width"].values
    axes.plot(share, dataset["excess_at_share"].isel(width=-1).values, color=MEAN_FIELD, lw=0.8)
    for width, marker in zip(dataset["width"].values, "osD^", strict=False):
        at = dataset.sel(width=width)
        correction, first = at["excess_at_share"].values, at["excess_at_layer"].values[0]
        axes.plot(share, correction, marker, color=MEAN_FIELD, mfc="none", label=f"exact, n = {width}")
        axes.plot(share, np.full(len(share), first), f"{marker}--", lw=0.8, color=LAW, mfc="none", markevery=[-1])
    layer = int(dataset["fixed_layer"][0])
    axes.plot([], [], "--", color=LAW, lw=0.8, label=f"papers, C/n from layer {layer} on")
    log_values(axes, "layer over width, l/n", along="x")
    log_values(axes, "F / leading order, less 1")
    axes.legend()


def _draw_slope(axes: Axes, dataset: xr.Dataset) -> None:
    depth = dataset["share_depth"].values
    width = dataset["outputs"].values.max()
    for outputs, marker in zip(dataset["outputs"].values, "os^", strict=False):
        slopes = dataset["scale_slope"].sel(head=HEAD, outputs=outputs).values
        label = "as many outputs as units" if outputs == width else f"{outputs} output" + ("s" if outputs > 1 else "")
        axes.plot(depth, slopes, f"{marker}-", color=MEAN_FIELD, label=label)
    axes.axhline(PAPERS_EXPONENT, ls="--", lw=0.8, color=LAW, label="papers, -3/2")
    axes.axhline(-2.0, ls=":", lw=0.8, color=GREY, label="-2")
    log_values(axes, "depth L", along="x")
    axes.set_ylabel("local slope of eta*(L)")
    legend_under(axes, 2, fontsize=8)


if __name__ == "__main__":
    command("mlp_depth", draw)
