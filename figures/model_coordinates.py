"""Coordinate checks of PyTorch models: values and their changes against width and depth, a panel for every step.

It draws the dataset of `meanfield.torch.coordinate_check`, saved by its user, as no simulation makes it.
"""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command_of_file
from figures.style import FURTHER, GREY, aside, by_size, key, legend_under, log_values, styled

# Places: colours of their own, and marks that stay apart in print.
LOOKS = {
    "first": (FURTHER[0], "o", "read by the first block"),
    "middle": (FURTHER[1], "s", "behind half of the blocks"),
    "last": (FURTHER[2], "^", "behind the last block"),
    "outputs": (FURTHER[4], "D", "outputs"),
}
# Panels of changes, of the steps that are drawn: the first, the last, and some between.
MOST_STEPS = 3
# Decades of an axis at least, on which what is flat looks flat.
LEAST_DECADES = 1.5


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """A row for each ladder; panels: values before the first step, then changes behind steps, with slopes below.

    Points are geometric means over draws with their standard errors; dashed is what stays flat from the least size on.
    """
    directions = [along for along in ("width", "depth") if along in dataset.sizes]
    steps = _steps(dataset)
    figure = Figure(figsize=(1.0 + 2.75 * (len(steps) + 1), 0.6 + 3.9 * len(directions)))
    grid = figure.subplots(len(directions), len(steps) + 1, squeeze=False)
    for row, along in zip(grid, directions, strict=True):
        for axes, after in zip(row, (0, *steps), strict=True):
            _panel(axes, dataset, along, after)
        _of_one_length(row)
    return figure
