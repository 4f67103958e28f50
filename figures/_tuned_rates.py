"""Tuned rates over a size beside what is said of their slope: one step of the optimizer that trains, and powers."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from figures.style import GREY, LAW, points_of_logs
from meanfield.verification import tuned_rates

# Powers that are held against one step are thin, below all points.
PAPERS: dict[str, Any] = {"color": LAW, "ls": "--", "lw": 0.9, "zorder": 1.0}
RIVAL: dict[str, Any] = {"color": GREY, "ls": ":", "lw": 1.2, "zorder": 1.0}
STEP: dict[str, Any] = {"fmt": "-", "lw": 1.3, "capsize": 0.0, "elinewidth": 0.8}
FILLS = {True: "full", False: "none"}


def counted(at: xr.Dataset) -> xr.Dataset:
    """A family at the depths through which its slopes go, those that it ``learns`` at."""
    return tuned_rates.counted(at, at["learns"])


def tuned_over_depth(
    axes: Axes,
    at: xr.Dataset,
    scale: str,
    powers: Mapping[float, dict[str, Any]],
    color: str,
    color_of_step: str = "",
) -> None:
    """Points: tuned rates, open where a net hardly learns; lines: one step, and powers, by their exponents.

    Lines are moved up or down onto the points, in the mean over the depths that count. That of one step has the
    standard errors of its medians.
    """
    depth, through = at["depth"].values, counted(at)
    if depth.size > 1:
        height, middle = float(through["tuned_rate_log10"].mean()), float(np.log10(through["depth"].values).mean())
        for exponent, look in powers.items():
            axes.plot(depth, 10.0 ** (height + exponent * (np.log10(depth) - middle)), **look)
        moved = np.log10(at[scale].values) + height - np.log10(through[scale].values).mean()
        errors = at[f"{scale}_stderr"].values / (at[scale].values * np.log(10))
        points_of_logs(axes, depth, moved, errors, color=color_of_step or color, **STEP)
    for learns, fill in FILLS.items():
        points = at.isel(depth=np.flatnonzero(at["learns"].values == learns))
        if points.sizes["depth"]:
            logs, errors = (points[name].values for name in ("tuned_rate_log10", "tuned_rate_log10_stderr"))
            points_of_logs(axes, points["depth"].values, logs, errors, color=color, fillstyle=fill, zorder=3.0)


def slopes_in_words(at: xr.Dataset, scale: str, digits: int = 2) -> str:
    """That of the tuned rates with its error, and that of one step."""
    law, step = tuned_rates.tuned_slope(counted(at)), tuned_rates.drawn_slope(counted(at), scale)[0]
    if np.isnan(step):
        return "no slope"
    slope, error, of_step = (f"{value:z.{digits}f}" for value in (law.exponent, law.stderr, step))
    return f"{slope} $\\pm$ {error}, step {of_step}"
