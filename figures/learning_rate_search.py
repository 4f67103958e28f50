"""Slopes of tuned rates beside those of one step of the optimizer that trains, and the rates over depth, by family."""

from collections.abc import Sequence
from math import ceil
from textwrap import fill
from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures._tuned_rates import FILLS, PAPERS, RIVAL, counted, slopes_in_words, tuned_over_depth
from figures.style import (
    GREEN,
    GREY,
    OLIVE,
    ORANGE,
    PURPLE,
    SKY,
    alike,
    by_size,
    key,
    legend_below,
    log_values,
    styled,
)
from meanfield.verification import PAPERS_EXPONENT, tuned_rates

COLORS = dict(zip([*tuned_rates.GROUPS, tuned_rates.OTHERS], (GREEN, PURPLE, SKY, ORANGE, OLIVE), strict=True))
# What one step moves by 1 at the rate that a scale is.
MOVED = {"outputs": "outputs", "relative": "layers over their sizes"}
# The scale of Zhang et al. 2026, by the change of the layers.
PAPERS_SCALE = "absolute_scale"
POWERS = {PAPERS_EXPONENT: PAPERS, 0.0: RIVAL}
# Panels of families in a row, inches of a panel, and letters of a line of its title.
MOST_IN_ROW, WIDE, TALL, LETTERS = 4, 1.6, 1.6, 24
# Inches of the panel of slopes, and of the legend below all.
SLOPES_WIDE, SLOPES_TALL, LEGEND = 3.4, 3.2, 0.9
# Units of slope around what the panel of slopes shows.
AROUND = 0.2


ABOVE_PANELS = "Above panels: slopes in depth, of the tuned rate with its standard error, and of one step"


class FamilySlopes(NamedTuple):
    """A family at the depths that have a tuned rate, its number in the figure, and what it is held to."""

    number: int
    name: str
    group: str
    scale: str
    at: xr.Dataset


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Left: slopes of all families; right: a panel for each, group by group, on axes of rates of one length."""
    families = _families(dataset)
    rows = ceil(len(families) / MOST_IN_ROW)
    columns = ceil(len(families) / rows)
    figure = Figure(figsize=(SLOPES_WIDE + WIDE * columns, LEGEND + max(TALL * rows, SLOPES_TALL)))
    grid = figure.add_gridspec(rows, columns + 1, width_ratios=[SLOPES_WIDE] + [WIDE] * columns)
    slopes = figure.add_subplot(grid[:, 0])
    _slopes(slopes, families)
    slopes.set_xlabel(f"slope of one step of {dataset.attrs['optimizer'].replace('_', ' ')} in depth")
    panels = [figure.add_subplot(grid[place // columns, 1 + place % columns]) for place in range(len(families))]
    for place, (axes, family) in enumerate(zip(panels, families, strict=True)):
        tuned_over_depth(axes, family.at, family.scale, POWERS, COLORS[family.group])
        title = fill(f"{family.number}  {family.name}", LETTERS)
        axes.set_title(f"{title}\n{slopes_in_words(family.at, family.scale)}", fontsize=7)
        below = place + columns >= len(families)
        by_size(axes, dataset["depth"].values, "depth" if below else "")
        log_values(axes, "" if place % columns else "tuned rate")
        axes.tick_params(labelsize=7)
    alike(panels)
    legend_below(figure, slopes, 3, fontsize=7.5, title=ABOVE_PANELS, title_fontsize=7.5)
    return figure


def _families(dataset: xr.Dataset) -> list[FamilySlopes]:
    """Group by group."""
    dataset = dataset.assign(learns=tuned_rates.learning(dataset))
    names = [str(name) for name in dataset["family"].values]
    ordered = [name for group in COLORS for name in names if tuned_rates.group_of(name)[0] == group]
    made = []
    for number, name in enumerate(ordered, 1):
        group, of = tuned_rates.group_of(name)
        made.append(FamilySlopes(number, name, group, f"{of}_scale", tuned_rates.family_at(dataset, name)))
    return made


def _slopes(axes: Axes, families: Sequence[FamilySlopes]) -> None:
    """The slope of tuned rates over that of one step, a point for every family, open where it hardly learns."""
    ends = [0.0, PAPERS_EXPONENT]
    for family in families:
        through, color = counted(family.at), COLORS[family.group]
        law, (step, error) = tuned_rates.tuned_slope(through), tuned_rates.drawn_slope(through, family.scale)
        if np.isnan(step):
            continue
        ends += [law.exponent - law.stderr, law.exponent + law.stderr, step - error, step + error]
        learns = bool(through["learns"].all())
        axes.errorbar(step, law.exponent, law.stderr, error, fmt="o", color=color, fillstyle=FILLS[learns])
        axes.plot(tuned_rates.drawn_slope(through, PAPERS_SCALE)[0], law.exponent, "x", color=color, ms=4)
        if tuned_rates.NOISE_SCALE in through:
            in_noise = tuned_rates.drawn_slope(through, tuned_rates.NOISE_SCALE)[0]
            ends.append(in_noise)
            axes.plot(in_noise, law.exponent, "^", color=color, ms=4, fillstyle="none")
        axes.annotate(str(family.number), (step, law.exponent), (4, 3), textcoords="offset points", fontsize=7)
    line = np.array([min(ends) - AROUND, max(ends) + AROUND])
    axes.fill_between(line, line - tuned_rates.ALLOWED, line + tuned_rates.ALLOWED, color=GREY, alpha=0.2, lw=0)
    _name_marks(axes, families)
    axes.plot(line, line, color=GREY, lw=0.9, zorder=1.0, label="one step, moved onto the rates")
    key(axes, f"within {tuned_rates.ALLOWED:g} of its slope", lw=6, alpha=0.2)
    axes.axhline(PAPERS_EXPONENT, label="papers, -3/2", **PAPERS)
    axes.axhline(0.0, label="no change with depth", **RIVAL)
    axes.set(xlim=line, ylim=line, ylabel="slope of the tuned rate in depth")


def _name_marks(axes: Axes, families: Sequence[FamilySlopes]) -> None:
    """In the legend, those of all panels."""
    for group, (of, _) in (tuned_rates.GROUPS | {tuned_rates.OTHERS: (tuned_rates.OTHERWISE, ())}).items():
        if any(family.group == group for family in families):
            axes.plot([], [], "o", color=COLORS[group], label=f"{group}, by one step of the {MOVED[of]}")
    key(axes, "net hardly learns", marker="o", fillstyle="none", ls="")
    key(axes, "by one step of the layers, as in Zhang et al. 2026", marker="x", ls="")
    if any(tuned_rates.NOISE_SCALE in family.at for family in families):
        key(axes, "by layers over their sizes, AdamW's as far as in noise", marker="^", fillstyle="none", ls="", ms=4)


if __name__ == "__main__":
    command("learning_rate_search", draw)
