"""Zero against circular padding: eta* over depth, the boundary layer by site, and the energy that is left by depth."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from figures._command import command
from figures.style import FURTHER, GREY, LAW, by_size, key, legend_under, log_values, shades, styled
from meanfield.verification import LABEL_SCALE

# Shares of a site by which points of different layers stand aside, so that their errors do not hide each other.
ASIDE = (-0.15, 0.0, 0.15)


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Zero over circular padding: eta* by depth; label term by site, and by layer; F far beyond, over l / (N + 1)^2."""
    figure = Figure(figsize=(9.6, 8.4))
    (scales, profile), (drawn, far) = figure.subplots(2, 2)
    _scales(scales, dataset)
    _profile(profile, dataset)
    _drawn(drawn, dataset)
    _far(far, dataset)
    return figure


def _scales(axes: Axes, dataset: xr.Dataset) -> None:
    """eta* of the label term, zero over circular padding: flat where padding leaves the exponent."""
    depth = dataset["depth"].values
    for grid, color in zip(map(str, dataset["grid"].values), FURTHER, strict=False):
        zero, circular = (dataset.sel(grid=grid, padding=padding) for padding in ("zero", "circular"))
        drawn = (zero[LABEL_SCALE] / circular[LABEL_SCALE]).values
        theory = (zero[f"{LABEL_SCALE}_mean_field"] / circular[f"{LABEL_SCALE}_mean_field"]).values
        errors = np.hypot(*((of[f"{LABEL_SCALE}_stderr"] / of[LABEL_SCALE]).values for of in (zero, circular)))
        axes.errorbar(depth, drawn, errors * drawn, fmt="o", color=color, label=f"{grid} sites")
        axes.plot(depth, theory, color=color)
        axes.plot(depth, np.full(len(depth), theory[0]), "--", lw=0.8, color=LAW)
    key(axes, "mean field")
    axes.plot([], [], "--", lw=0.8, color=LAW, label="papers, one exponent")
    by_size(axes, depth, "depth L")
    axes.set_title("learning-rate scale: flat if the exponent stays", fontsize=9)
    log_values(axes, "eta* of the label term, zero / circular")
    legend_under(axes, 3, fontsize=8)


def _profile(axes: Axes, dataset: xr.Dataset) -> None:
    zero, circular = (dataset.sel(padding=padding) for padding in ("zero", "circular"))
    last = dataset.sizes["layer"]
    layers = [int(layer) for layer in np.unique(np.geomspace(1, last, 3).round())]
    for layer, color, aside in zip(layers, shades(len(layers)), ASIDE, strict=False):
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
    key(axes, "drawn", marker="o", ms=2.5, ls="")
    key(axes, "mean field")
    axes.set_title(f"label term by site, {last} layers", fontsize=9)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend_under(axes, 3, fontsize=8)


def _drawn(axes: Axes, dataset: xr.Dataset) -> None:
    layer = dataset["layer"].values
    for grid, color in zip(map(str, dataset["grid"].values), FURTHER, strict=False):
        at = dataset.sel(grid=grid)
        zero, circular = (at["label_term"].sel(padding=padding).values for padding in ("zero", "circular"))
        errors = np.hypot(*(at["label_term_stderr"] / at["label_term"]).values)
        axes.errorbar(layer, zero / circular, errors * zero / circular, fmt="o", color=color, label=f"{grid} sites")
        theory = at["label_term_mean_field"]
        ratio = (theory.sel(padding="zero") / theory.sel(padding="circular")).values
        axes.plot(layer, ratio, color=color)
        decay = float(at["transport_eigenvalue"]) ** (layer - layer[-1])
        axes.plot(layer, ratio[-1] * decay, ":", color=GREY)
    axes.set_xlabel("layer l")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    key(axes, "mean field")
    key(axes, "as $\\lambda^l$", ls=":")
    axes.set_title("label term, mean over sites, by layer", fontsize=9)
    log_values(axes, "label term, zero / circular")
    legend_under(axes, 3, fontsize=8)


def _far(axes: Axes, dataset: xr.Dataset) -> None:
    at = dataset.sel(family="1D ReLU").dropna("sites", how="all", subset=["far_eigenvalue"])
    for sites, color in zip(map(int, at["sites"].values), shades(at.sizes["sites"]), strict=True):
        axes.plot(*_curve(at, sites), color=color, label=f"{sites} sites")
    longest = int(at["sites"][-1])
    axes.plot(*_curve(dataset.sel(family="1D linear"), longest), "--", color=GREY, label=f"{longest}, linear net")
    time = np.linspace(0.02, 1.3, 50)
    # lambda^(2 l) of a long line, lambda = 1 - (pi / (N + 1))^2 / 3
    axes.plot(time, np.exp(-2 * np.pi**2 / 3 * time), ":", color=GREY, label="$\\lambda^{2 l}$")
    axes.set_ylim(1e-4, 1.5)
    log_values(axes, "layer l / (N + 1)$^2$ for N sites", along="x")
    axes.set_title("far beyond these depths, mean field of ReLU nets", fontsize=9)
    log_values(axes, "overlap energy, zero / circular")
    legend_under(axes, 3, fontsize=8)


def _curve(at: xr.Dataset, sites: int) -> tuple[np.ndarray, np.ndarray]:
    """l / (N + 1)^2, and the ratio zero / circular."""
    of_line = at.sel(sites=sites)
    return of_line["far_layer"].values / (sites + 1) ** 2, of_line["far_ratio"].values


if __name__ == "__main__":
    command("cnn_padding", draw)
