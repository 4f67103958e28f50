"""One legend for all panels of a figure."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure


def legend_below(figure: Figure, axes: Axes, columns: int | None = None, **options: Any) -> None:
    """The legend of these axes' lines below all panels, in so many columns (default: one row), or as many as fit."""
    handles, labels = axes.get_legend_handles_labels()
    for count in range(columns or len(labels), 0, -1):
        legend = figure.legend(handles, labels, loc="outside lower center", ncols=count, **options)
        if count == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()
