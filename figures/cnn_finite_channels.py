"""Finite channels and stencils of convolutional nets: corrections, added variances, slopes and prefactors."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from figures._command import command
from figures.style import FURTHER, LAW, MEAN_FIELD, MEASURED, by_size, key, legend_under, log_values, points, styled
from meanfield.verification import PAPERS_EXPONENT, Series

CORRECTION = "finite_channel_correction"
SCALE = "label_learning_rate_scale"


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Corrections against L/C; added variance against C; slope and size of the label term's eta*, by stencil."""
    figure = Figure(figsize=(9.6, 8.2))
    (corrections, variances), (slopes, prefactors) = figure.subplots(2, 2)
    _corrections(corrections, dataset)
    _variances(variances, dataset)
    _slopes(slopes, dataset)
    _prefactors(prefactors, dataset)
    prefactors.sharey(slopes)
    for axes in (slopes, prefactors):
        axes.xaxis.set_major_locator(MaxNLocator(5))
    prefactors.tick_params(labelleft=False)
    for axes in (corrections, variances, slopes, prefactors):
        legend_under(axes, 2, fontsize=8)
    return figure


def _corrections(axes: Axes, dataset: xr.Dataset) -> None:
    share = dataset["depth_over_channels"].values
    shifts = np.geomspace(0.95, 1.05, dataset.sizes["channels"])  # so that error bars do not hide each other
    for channels, color, aside in zip(dataset["channels"].values, FURTHER, shifts, strict=False):
        at = dataset.sel(channels=channels)
        points(axes, aside * share, at, CORRECTION, color=color, label=f"drawn, C = {channels}")
        axes.axhline(float(at[CORRECTION][0]), linestyle="--", linewidth=0.8, color=color)
    key(axes, "papers, no growth with depth", ls="--", lw=0.8)
    widest = dataset.isel(channels=-1)
    exact = widest[f"{CORRECTION}_one_site"].values
    axes.plot(share, exact, color=MEAN_FIELD, label=f"one site, {int(widest['channels'])} units: exact")
    label = "one site, C x sites units"
    axes.plot(share, widest[f"{CORRECTION}_effective_width"].values, ":", color=MEAN_FIELD, label=label)
    by_size(axes, share, "depth over channels, L / C")
    axes.set_title("correction of the label term by finite channels", fontsize=9)
    log_values(axes, "label term / mean field - 1")


def _variances(axes: Axes, dataset: xr.Dataset) -> None:
    channels = dataset["width_above"].values
    law: str | None = "as 1/C from the first"
    for pair, color in zip(dataset["pair"].values, reversed(FURTHER), strict=False):
        at = dataset.sel(pair=pair)
        drawn, stderr = (at[f"overlap_variance{end}_by_width"].values for end in ("", "_stderr"))
        axes.errorbar(channels, drawn, stderr, fmt="o", color=color, label=f"directions {pair}")
        axes.plot(channels, drawn[0] * channels[0] / channels, color=LAW, linewidth=0.8, label=law)
        law = None
    by_size(axes, channels, "channels C of the layer")
    axes.set_title("variance that a layer adds to an overlap T", fontsize=9)
    log_values(axes, "Var(T | layers below)")


def _slopes(axes: Axes, dataset: xr.Dataset) -> None:
    places = np.arange(dataset.sizes["stencil"])
    scales = [Series.of(dataset, SCALE).isel(stencil=place) for place in places]
    laws = [scale.law("depth") for scale in scales]
    logs = np.log(dataset[f"{SCALE}_mean_field"].values)
    limits = [scale.slope_of("depth", of_stencil) for scale, of_stencil in zip(scales, logs, strict=True)]
    slopes, errors = [law.exponent for law in laws], [law.stderr for law in laws]
    axes.errorbar(slopes, places, xerr=errors, fmt="o", color=MEASURED, label="drawn")
    axes.plot(limits, places, "|", color=MEAN_FIELD, markersize=14, label="mean field")
    axes.axvline(PAPERS_EXPONENT, linestyle="--", color=LAW, label="papers, -3/2")
    axes.set_yticks(places, [str(name) for name in dataset["stencil"].values], fontsize=8)
    axes.invert_yaxis()
    depth = dataset["depth"].values
    axes.set(xlabel=f"slope of eta* over L = {depth[0]} .. {depth[-1]}", ylabel="stencil and grid")
    axes.set_title("slope of the label term's eta*, by stencil", fontsize=9)


def _prefactors(axes: Axes, dataset: xr.Dataset) -> None:
    first = dataset.isel(depth=0)
    drawn, stderr = (first[f"{SCALE}{end}"].values for end in ("", "_stderr"))
    places = np.arange(dataset.sizes["stencil"])
    axes.errorbar(drawn, places, xerr=stderr, fmt="o", color=MEASURED, label="drawn")
    theory = first[f"{SCALE}_mean_field"].values
    axes.plot(theory, places, "|", color=MEAN_FIELD, markersize=14, label="mean field")
    axes.axvline(drawn[0], linestyle="--", color=LAW, label="papers, one prefactor")
    axes.set_xlabel(f"eta* at L = {int(first['depth'])}")
    axes.set_title("the label term's eta* itself, by stencil", fontsize=9)


if __name__ == "__main__":
    command("cnn_finite_channels", draw)
