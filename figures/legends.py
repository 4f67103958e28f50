"""Legends that cover nothing: one below all panels of a figure, or one under a panel."""

from math import ceil
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import ScaledTranslation

# Inches that the labels of a horizontal axis take.
LABELS = 0.45


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


def legend_under(axes: Axes, columns: int = 1, **options: Any) -> None:
    """The legend of these axes below their horizontal axis, where it covers no point and no line."""
    below = axes.transAxes + ScaledTranslation(0.0, -LABELS, axes.figure.dpi_scale_trans)
    place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "bbox_transform": below}
    axes.legend(**place, ncols=columns, borderaxespad=0.0, **options)
