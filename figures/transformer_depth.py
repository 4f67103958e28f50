"""eta* of Transformers against depth, its local slopes, correlation between tokens, and how far tangents travel."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.style import (
    GREY,
    LAW,
    MEAN_FIELD,
    MEASURED,
    NORMS,
    SCALINGS,
    alike,
    by_size,
    key,
    legend_under,
    log_values,
    points,
    styled,
)
from meanfield.verification import PAPERS_EXPONENT, Series

LABEL_SCALE = "label_learning_rate_scale"
FACTORS = {"none": "no factor", "multiplier_sqrt": "factor $L^{-1/2}$", "multiplier_linear": "factor 1/L"}
DIRECTIONS = {"shared": MEASURED, "difference": GREY}
WORDS = {"shared": "the same at all tokens", "difference": "sum to zero over tokens"}
# Points and lines by the scale of attention; only one of both is named in the legends.
NAMED = "inverse_sqrt"
POINTS: dict[str, dict[str, Any]] = {"inverse": {"fmt": "s", "markerfacecolor": "white"}, NAMED: {"fmt": "o"}}
LINES = {"inverse": ":", NAMED: "-"}
KEY = "Filled points, solid lines: attention logits q.k / size$^{1/2}$; hollow points, dotted lines: q.k / size"


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Above: eta* of post-norm and pre-norm nets, and its local slopes; below: tokens, and rho of either norm."""
    figure = Figure(figsize=(9.6, 7.4))
    above, below = figure.subplots(2, 3)
    for axes, norm in zip(above, NORMS, strict=False):
        _scales(axes, dataset.sel(norm=norm), norm)
    _slopes(above[2], dataset)
    _tokens(below[0], dataset)
    for axes, norm in zip(below[1:], NORMS, strict=True):
        _propagation(axes, dataset.sel(norm=norm, start=0), norm)
    alike(above[:2])
    alike(below[1:])
    figure.suptitle(KEY, fontsize=8)
    return figure


def _scales(axes: Axes, dataset: xr.Dataset, norm: str) -> None:
    """Points drawn, lines mean field, over the first of the nets without factor; dashed the papers' law."""
    depth, name = dataset["depth"].values, LABEL_SCALE
    for attention, look in POINTS.items():
        first = float(dataset[name].sel(attention_scale=attention, scaling="none")[0])
        for scaling, words in FACTORS.items():
            color = SCALINGS[scaling]
            at = dataset.sel(scaling=scaling, attention_scale=attention)
            axes.plot(depth, np.exp(at[f"log_{name}_mean_field"].values) / first, LINES[attention], color=color)
            label = words if attention == NAMED else None
            points(axes, depth, at, name, over=first, color=color, label=label, **look)
    axes.plot(depth, (depth / depth[0]) ** PAPERS_EXPONENT, "--", color=LAW, label="papers, -3/2")
    _name_kinds(axes, with_points=True)
    by_size(axes, depth, "depth units L")
    log_values(axes, f"eta* over that at L = {depth[0]}, no factor")
    axes.set_title(f"{norm}-norm: eta* of the label term", fontsize=8)
    legend_under(axes, 2, fontsize=7)


def _slopes(axes: Axes, dataset: xr.Dataset) -> None:
    """Lines: mean field; points: drawn where nets are wide, at the deeper of both depths; dashed the papers' law."""
    far, wide = dataset["slope_depth"].values, dataset["wide_depth"].values
    for norm, color in NORMS.items():
        for attention, look in POINTS.items():
            at = _plain(dataset, norm, attention)
            axes.plot(far, at["local_slope_mean_field"].values, LINES[attention], color=color)
            drawn = Series.of(at, LABEL_SCALE).sel(depth=wide).local_slopes("depth")
            label = f"{norm}-norm, drawn" if attention == NAMED else None
            axes.errorbar(wide[1:], drawn.slope, drawn.stderr, color=color, label=label, **look)
    axes.axhline(PAPERS_EXPONENT, ls="--", color=LAW, label="papers, -3/2")
    log_values(axes, "depth units L", along="x")
    _name_kinds(axes, with_points=True)
    axes.set_ylabel("local slope of eta*, label term")
    axes.set_title("slope up to L, no factor", fontsize=8)
    legend_under(axes, 2, fontsize=7)


def _name_kinds(axes: Axes, *, with_points: bool) -> None:
    """Entries of lines and marks of both scales of attention."""
    if with_points:
        key(axes, "mean field")
        key(axes, "drawn, q.k / size", marker="s", mfc="white", ls="")
    key(axes, "mean field, q.k / size" if with_points else "q.k / size", ls=":")


def _plain(dataset: xr.Dataset, norm: str, attention: str) -> xr.Dataset:
    """One net without a factor on its branches."""
    return dataset.sel(norm=norm, attention_scale=attention, scaling="none")


def _tokens(axes: Axes, dataset: xr.Dataset) -> None:
    """Drawn, and thin what the mean field says."""
    layer, name = dataset["layer"].values, "token_correlation"
    for norm, color in NORMS.items():
        for attention, style in LINES.items():
            at = _plain(dataset, norm, attention)
            named = attention == NAMED
            label = f"{norm}-norm, drawn" if named else None
            axes.plot(layer, at[name].values, style, color=color, lw=2.5, label=label)
            theory = "mean field" if named and norm == "pre" else None
            axes.plot(layer, at[f"{name}_mean_field"].values, style, color=MEAN_FIELD, lw=0.7, label=theory)
    _name_kinds(axes, with_points=False)
    by_size(axes, layer, "layer l")
    axes.set(ylabel="correlation between tokens", ylim=(0.0, 1.05))
    axes.set_title("tokens grow alike, no factor", fontsize=8)
    legend_under(axes, 2, fontsize=7)


def _propagation(axes: Axes, dataset: xr.Dataset, norm: str) -> None:
    """rho from the input on, drawn: tangents that tokens share, and those that sum to zero over tokens."""
    layer = dataset["layer"].values
    for attention, style in LINES.items():
        for direction, color in DIRECTIONS.items():
            rho = dataset["tangent_propagation"].sel(attention_scale=attention, direction=direction)
            axes.plot(layer, rho.values, style, color=color, label=WORDS[direction] if attention == NAMED else None)
    _name_kinds(axes, with_points=False)
    by_size(axes, layer, "layer l")
    log_values(axes, "rho: square over that at the input")
    axes.set_title(f"{norm}-norm: changes of the stream, no factor", fontsize=8)
    legend_under(axes, 1, fontsize=7)


if __name__ == "__main__":
    command("transformer_depth", draw)
