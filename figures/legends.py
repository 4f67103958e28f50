"""One legend for all panels of a figure."""

from __future__ import annotations

from math import ceil
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure


def legend_below(figure: Figure, axes: Axes, columns: int | None = None, **options: Any) -> None:
    """The legend of these axes' lines, if any, below all panels: in the fewest rows, of equal length, that fit.

    At most so many ``columns``; by default as many as there are lines.
    """
    handles, labels = axes.get_legend_handles_labels()
    if not (entries := len(labels)):
        return
    for rows in range(ceil(entries / (columns or entries)), entries + 1):
        legend = figure.legend(handles, labels, loc="outside lower center", ncols=ceil(entries / rows), **options)
        if rows == entries or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()
