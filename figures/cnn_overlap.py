"""eta* against depth, and growth of the label term (or overlap energy) with the layer, beside theory and the papers."""

import json
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.style import (
    LAW,
    MEAN_FIELD,
    MEASURED,
    OUTPUT_TERM,
    PURPLE,
    SKY,
    WHOLE_UPDATE,
    alike,
    by_size,
    key,
    layer_ticks,
    legend_under,
    log_values,
    points,
    styled,
)
from meanfield.verification import LABEL_SCALE, PAPERS_EXPONENT, best, exponent_of, growth_exponent

TITLES = {"label_term": "label term B", "overlap_energy": "overlap energy F"}
SCALE = "learning_rate_scale"
# The head of Zhang et al. 2026 among the settings of a run.
PAPERS_HEAD = "pooled, 10, fan_in"
# Growth laws need so many layers.
LEAST_DEPTH = 3


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Left: eta* by depth, and over L^(-3/2). Right: growth by layer in the deepest net, and over the mean field.

    Terms are drawn means at the net's channels, with theory there, and brought to infinitely many channels. Nets of one
    depth alone have no left column.
    """
    deepest = dataset.isel(depth=-1)
    judged = (name for name in TITLES if {f"{name}_limit", f"{name}_law"} <= set(dataset))
    name = next(judged, "overlap_energy")
    has_depths = dataset.sizes["depth"] > 1
    figure = Figure(figsize=(10.4 if has_depths else 5.6, 7.0))
    panels = figure.subplots(2, 2 if has_depths else 1, squeeze=False, height_ratios=(2, 1))
    growth, ratio = panels[:, -1]
    _draw_growth(growth, deepest, name)
    _draw_ratio(ratio, deepest, name)
    entries = zip(growth.get_legend_handles_labels(), ratio.get_legend_handles_labels(), strict=True)
    handles, labels = ([*above, *below] for above, below in entries)
    legend_under(ratio, 2, handles=handles, labels=labels, fontsize=7)
    ratio.sharex(growth)
    layer_ticks(ratio, int(deepest["layer"][-1]))
    if has_depths:
        scales, flat = panels[:, 0]
        _draw_scales(scales, flat, dataset)
    panels[0, 0].set_title(_caption(dataset, name), fontsize=8, loc="left")
    return figure


def _draw_scales(scales: Axes, flat: Axes, dataset: xr.Dataset) -> None:
    """eta* of the whole update, under the paper's head too, and of the label term; below over the papers' law, flat if
    they are right."""
    depth, channels = dataset["depth"].values, _net(dataset)["channels"]
    law = (depth / depth[0]) ** PAPERS_EXPONENT
    parts = {SCALE: ("whole update", WHOLE_UPDATE), LABEL_SCALE: ("label term", MEASURED)}
    for name, (words, color) in parts.items():
        limit, drawn = f"{name}_limit", best(dataset, name)
        drawn, where = (limit, "inf") if limit in dataset else (drawn, str(channels))
        levels = (f"{name}_{level}" for level in (("mean_field",) if limit in dataset else ("finite_channels",)))
        theory = next((dataset[level].values for level in levels if level in dataset), None)
        first = float((theory if theory is not None else dataset[drawn].values)[0])
        for axes, over in ((scales, 1.0), (flat, law)):
            label = f"{words}, drawn, C = {where}" if axes is scales else None
            points(axes, depth, dataset, drawn, over=first * over, color=color, label=label)
            if theory is not None:
                axes.plot(depth, theory / first / over, color=color)
    if PAPERS_HEAD in dataset.get("setting", ()):
        papers, name = dataset.sel(setting=PAPERS_HEAD), f"setting_{SCALE}"
        theory = papers[f"{name}_finite_channels"].values
        known = np.isfinite(theory).all()
        first = float(theory[0] if known else papers[name].values[0])
        for axes, over in ((scales, 1.0), (flat, law)):
            label = f"whole update, paper's head, C = {channels}" if axes is scales else None
            points(axes, depth, papers, name, over=first * over, color=SKY, fmt="D", label=label)
            if known:
                axes.plot(depth, theory / first / over, color=SKY)
    scales.plot(depth, law, "--", color=LAW, label="papers, $L^{-3/2}$")
    flat.plot(depth, np.ones(len(depth)), "--", color=LAW)
    key(scales, "theory")
    by_size(scales, depth, "")
    by_size(flat, depth, "depth L")
    log_values(scales, f"eta*(L) / eta*({depth[0]})")
    log_values(flat, "over the papers' law")
    alike([flat], least=0.5)
    handles, labels = scales.get_legend_handles_labels()
    legend_under(flat, 2, handles=handles, labels=labels, fontsize=7)


def _draw_growth(axes: Axes, deepest: xr.Dataset, name: str) -> None:
    layer, channels = deepest["layer"].values, _net(deepest)["channels"]
    anchor, term = deepest[f"{name}_law"].attrs["anchor_layer"], TITLES[name]
    axes.plot(layer, deepest[f"{name}_mean_field"].values, color=MEAN_FIELD, label=f"{term}, mean field")
    law = deepest[f"{name}_law"].values
    axes.plot(layer, law, "--", color=LAW, label=f"{term}, papers' sum of minima, set at layer {anchor}")
    if f"{name}_limit" in deepest:
        points(axes, layer, deepest, f"{name}_limit", color=MEASURED, label=f"{term}, drawn, C = inf")
    if name == "label_term":
        output = best(deepest, "output_term")
        points(axes, layer, deepest, output, color=OUTPUT_TERM, label=f"output term A, drawn, C = {channels}")
        if "output_term_finite_channels" in deepest:
            theory = deepest["output_term_finite_channels"].values
            axes.plot(layer, theory, color=OUTPUT_TERM, lw=0.8, label=f"output term A, theory, C = {channels}")
    axes.set_xscale("log")
    log_values(axes, "one-step second moment at learning rate 1")


def _draw_ratio(axes: Axes, deepest: xr.Dataset, name: str) -> None:
    layer, mean_field = deepest["layer"].values, deepest[f"{name}_mean_field"].values
    drawn, channels = best(deepest, name), _net(deepest)["channels"]
    law = deepest[f"{name}_law"].values / mean_field
    axes.axhline(1.0, color=MEAN_FIELD)
    axes.plot(layer, law, "--", color=LAW)
    highest = law.max()
    if drawn in deepest:
        points(
            axes,
            layer,
            deepest,
            drawn,
            over=mean_field,
            color=PURPLE,
            fmt="s",
            label=f"{TITLES[name]}, drawn, C = {channels}",
        )
        highest = max(highest, ((deepest[drawn] + deepest[f"{drawn}_stderr"]).values / mean_field).max())
    if f"{name}_finite_channels" in deepest:
        theory = deepest[f"{name}_finite_channels"].values / mean_field
        axes.plot(layer, theory, color=PURPLE, lw=0.8, label=f"{TITLES[name]}, theory, C = {channels}")
    if f"{name}_limit" in deepest:
        points(axes, layer, deepest, f"{name}_limit", over=mean_field, color=MEASURED)
    axes.set(xlabel="layer l", ylabel=f"{TITLES[name]} / mean field", ylim=(0.0, 1.05 * highest), xscale="log")


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
