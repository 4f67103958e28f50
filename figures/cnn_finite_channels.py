"""Finite channels and stencils of convolutional nets: corrections, added variances, slopes and prefactors."""

from __future__ import annotations

import sys

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import draw_one
from figures.style import FURTHER, LAW, MEAN_FIELD, MEASURED, styled
from meanfield.verification.stencil_slopes import PAPERS_EXPONENT, drawn_slope, mean_field_slope

CORRECTION = "finite_channel_correction"
SCALE = "label_learning_rate_scale"
COLORS = (MEASURED, *FURTHER)


def draw(dataset: xr.Dataset) -> Figure:
    """Corrections against L/C; added variance against C; slope and size of the label term's eta*, by stencil."""
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
    beside = np.geomspace(0.95, 1.05, dataset.sizes["channels"])  # so that error bars do not hide each other
    for channels, color, aside in zip(dataset["channels"].values, COLORS, beside, strict=False):
        at = dataset.sel(channels=channels)
        drawn, stderr = at[CORRECTION].values, at[f"{CORRECTION}_stderr"].values
        axes.errorbar(aside * share, drawn, stderr, fmt="o", color=color, label=f"C = {channels}")
    widest = dataset.isel(channels=-1)
    axes.plot(
        share,
        widest[f"{CORRECTION}_one_site"].values,
        color=MEAN_FIELD,
        label=f"one site, C = {int(widest['channels'])} units: exact",
    )
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
    axes.legend(title="layer,channel of both (lines: 1/C)", fontsize=7, title_fontsize=7, loc="upper right", ncols=2)


def _slopes(axes: Axes, dataset: xr.Dataset) -> None:
    rows = [dataset.isel(stencil=place) for place in range(dataset.sizes["stencil"])]
    laws = [drawn_slope(at) for at in rows]
    places = np.arange(len(rows))
    slopes, errors = [law.exponent for law in laws], [law.stderr for law in laws]
    axes.errorbar(places, slopes, errors, fmt="o", color=MEASURED, label="drawn")
    limit = [mean_field_slope(at) for at in rows]
    axes.plot(places, limit, "_", color=MEAN_FIELD, markersize=14, label="mean field")
    axes.axhline(PAPERS_EXPONENT, linestyle="--", color=LAW, label="-3/2")
    _name_stencils(axes, dataset)
    depth = dataset["depth"].values
    axes.set(ylabel=f"slope of eta* over L = {depth[0]} .. {depth[-1]}")
    axes.legend(fontsize=7)


def _name_stencils(axes: Axes, dataset: xr.Dataset) -> None:
    names = [str(name) for name in dataset["stencil"].values]
    axes.set_xticks(np.arange(len(names)), names, rotation=60, ha="right", fontsize=7)


def _prefactors(axes: Axes, dataset: xr.Dataset) -> None:
    first = dataset.isel(depth=0)
    drawn = first[SCALE].values
    places = np.arange(dataset.sizes["stencil"])
    axes.errorbar(places, drawn, first[f"{SCALE}_stderr"].values, fmt="o", color=MEASURED, label="drawn")
    axes.plot(places, first[f"{SCALE}_mean_field"].values, "_", color=MEAN_FIELD, markersize=14, label="mean field")
    axes.axhline(drawn[0], linestyle="--", color=LAW, label="one prefactor")
    _name_stencils(axes, dataset)
    axes.set(yscale="log", ylabel=f"eta* at L = {int(first['depth'])}")
    axes.legend(fontsize=7)


if __name__ == "__main__":
    sys.exit(draw_one("cnn_finite_channels", draw))
