"""Finite channels and stencils of convolutional nets: corrections, added variances, slopes and prefactors."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.style import FURTHER, LAW, MEAN_FIELD, MEASURED, styled

CORRECTION = "finite_channel_correction"
SCALE = "label_learning_rate_scale"
COLORS = (MEASURED, *FURTHER)


def draw(dataset: xr.Dataset) -> Figure:
    """Corrections against L/C; C times the added variance; eta* relative to the mean field; prefactor times taps."""
    with styled():
        figure = Figure(figsize=(9.0, 6.4))
        corrections, variances, slopes, prefactors = figure.subplots(2, 2).ravel()
        _corrections(corrections, dataset)
        _variances(variances, dataset)
        _slopes(slopes, dataset)
        _prefactors(prefactors, dataset)
    return figure


def _corrections(axes: Axes, dataset: xr.Dataset) -> None:
    share = dataset["depth_over_channels"].values
    for channels, color in zip(dataset["channels"].values, COLORS, strict=False):
        at = dataset.sel(channels=channels)
        drawn, stderr = at[CORRECTION].values, at[f"{CORRECTION}_stderr"].values
        axes.errorbar(share, drawn, stderr, fmt="o", color=color, label=f"C = {channels}")
    widest = dataset.isel(channels=-1)
    axes.plot(share, widest[f"{CORRECTION}_one_site"].values, color=MEAN_FIELD, label="one site, C units: exact")
    label = "one site, C x sites units"
    axes.plot(share, widest[f"{CORRECTION}_effective_width"].values, "--", color=LAW, label=label)
    axes.set_xscale("log", base=2)
    axes.set(yscale="log", xlabel="depth over channels, L / C", ylabel="label term / mean field - 1")
    axes.legend(fontsize=7)


def _variances(axes: Axes, dataset: xr.Dataset) -> None:
    channels = dataset["width_above"].values
    for pair, color in zip(dataset["pair"].values, COLORS, strict=False):
        at = dataset.sel(pair=pair)
        drawn, stderr = (at[f"overlap_variance{end}_by_width"].values for end in ("", "_stderr"))
        axes.errorbar(channels, drawn, stderr, fmt="o", color=color, label=str(pair))
        axes.plot(channels, drawn[0] * channels[0] / channels, color=LAW, linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.set(yscale="log", xlabel="channels C of the layer", ylabel="Var(T | layers below)")
    axes.legend(title="layer,channel (lines: 1/C)", fontsize=7)


def _slopes(axes: Axes, dataset: xr.Dataset) -> None:
    depth = dataset["depth"].values
    for place, stencil in enumerate(dataset["stencil"].values):
        at = dataset.sel(stencil=stencil)
        axes.plot(depth, at[SCALE].values / at[SCALE].values[0], "o", color=MEASURED, alpha=0.5)
        limit = at[f"{SCALE}_mean_field"].values
        axes.plot(depth, limit / limit[0], color=MEAN_FIELD, label="mean field" if place == 0 else None)
    axes.plot(depth, (depth / depth[0]) ** -1.5, "--", color=LAW, label="L$^{-3/2}$")
    axes.set_xscale("log", base=2)
    axes.set(yscale="log", xlabel="depth L", ylabel=f"eta* / eta*({depth[0]}), {dataset.sizes['stencil']} stencils")
    axes.legend(fontsize=7)


def _prefactors(axes: Axes, dataset: xr.Dataset) -> None:
    first = dataset.isel(depth=0)
    drawn = first[SCALE].values
    places = np.arange(dataset.sizes["stencil"])
    axes.errorbar(places, drawn, first[f"{SCALE}_stderr"].values, fmt="o", color=MEASURED, label="drawn")
    axes.plot(places, first[f"{SCALE}_mean_field"].values, "_", color=MEAN_FIELD, markersize=14, label="mean field")
    axes.axhline(drawn[0], linestyle="--", color=LAW, label="one prefactor")
    axes.set_xticks(places, [str(name) for name in dataset["stencil"].values], rotation=60, ha="right", fontsize=7)
    axes.set(yscale="log", ylabel=f"eta* at L = {int(first['depth'])}")
    axes.legend(fontsize=7)
