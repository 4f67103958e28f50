"""Zero against circular padding: the boundary layer by site, and the energy that is left by depth."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from figures._command import command
from figures.style import FURTHER, LAW, MEAN_FIELD, MEASURED, legend_under, log_values, styled

COLORS = (MEAN_FIELD, *FURTHER, MEASURED)
# Shares of a site by which points of different layers stand aside, so that their errors do not hide each other.
ASIDE = (-0.15, 0.0, 0.15)


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Label term by site over the circular one; ratios by layer in the nets drawn; F far beyond, over l / (N + 1)^2."""
    figure = Figure(figsize=(11.0, 4.2))
    profile, drawn, far = figure.subplots(1, 3)
    _profile(profile, dataset)
    _drawn(drawn, dataset)
    _far(far, dataset)
    return figure


def _profile(axes: Axes, dataset: xr.Dataset) -> None:
    zero, circular = (dataset.sel(padding=padding) for padding in ("zero", "circular"))
    last = dataset.sizes["layer"]
    layers = [int(layer) for layer in np.unique(np.geomspace(1, last, 3).round())]
    for layer, color, aside in zip(layers, COLORS, ASIDE, strict=False):
        ours, theirs = (side.sel(layer=layer) for side in (zero, circular))
        # Drawn over drawn: what finite width does to both paddings alike falls out.
        reference = float(theirs["label_term_by_site"].mean())
        site = np.arange(1, dataset.sizes["site"] + 1)
        theory = ours["label_term_by_site_mean_field"] / theirs["label_term_by_site_mean_field"].mean()
        axes.plot(site, theory, color=color, label=f"layer {layer}")
        value, error = (ours[f"label_term_by_site{end}"].values / reference for end in ("", "_stderr"))
        axes.errorbar(site + aside, value, error, fmt="o", markersize=2.5, elinewidth=0.8, capsize=0.0, color=color)
    sites = dataset.attrs["profile_sites"]
    axes.set(xlabel=f"site of {sites}", ylabel="label term, zero / circular")
    axes.set_title(f"by site, {last} layers; points drawn, lines mean field", fontsize=9)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend_under(axes, 3, fontsize=8)


def _drawn(axes: Axes, dataset: xr.Dataset) -> None:
    layer = dataset["layer"].values
    for grid, color in zip(map(str, dataset["grid"].values), COLORS, strict=False):
        at = dataset.sel(grid=grid)
        zero, circular = (at["label_term"].sel(padding=padding).values for padding in ("zero", "circular"))
        errors = np.hypot(*(at["label_term_stderr"] / at["label_term"]).values)
        axes.errorbar(layer, zero / circular, errors * zero / circular, fmt="o", color=color, label=f"{grid} sites")
        theory = at["label_term_mean_field"]
        ratio = (theory.sel(padding="zero") / theory.sel(padding="circular")).values
        axes.plot(layer, ratio, color=color)
        decay = float(at["transport_eigenvalue"]) ** (layer - layer[-1])
        axes.plot(layer, ratio[-1] * decay, ":", color=LAW)
    axes.set_xlabel("layer l")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_title("mean over sites; dotted: $\\lambda^l$", fontsize=9)
    log_values(axes, "label term, zero / circular")
    legend_under(axes, 3, fontsize=8)


def _far(axes: Axes, dataset: xr.Dataset) -> None:
    at = dataset.sel(family="1D ReLU").dropna("sites", how="all", subset=["far_eigenvalue"])
    for sites, color in zip(map(int, at["sites"].values), COLORS, strict=False):
        axes.plot(*_curve(at, sites), color=color, label=f"{sites} sites")
    longest = int(at["sites"][-1])
    axes.plot(*_curve(dataset.sel(family="1D linear"), longest), "--", color=MEASURED, label=f"{longest}, linear")
    time = np.linspace(0.02, 1.3, 50)
    # lambda^(2 l) of a long line, lambda = 1 - (pi / (N + 1))^2 / 3
    axes.plot(time, np.exp(-2 * np.pi**2 / 3 * time), ":", color=LAW, label="$\\lambda^{2 l}$")
    axes.set_ylim(1e-4, 1.5)
    log_values(axes, "l / (N + 1)$^2$", along="x")
    axes.set_title("far beyond, mean field, ReLU", fontsize=9)
    log_values(axes, "overlap energy, zero / circular")
    legend_under(axes, 3, fontsize=8)


def _curve(at: xr.Dataset, sites: int) -> tuple[np.ndarray, np.ndarray]:
    """l / (N + 1)^2, and the ratio zero / circular."""
    of_line = at.sel(sites=sites)
    return of_line["far_layer"].values / (sites + 1) ** 2, of_line["far_ratio"].values


if __name__ == "__main__":
    command("cnn_padding", draw)
