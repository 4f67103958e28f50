"""eta* against depth for every family, with fitted power laws; its local slope and those of trained nets."""

import json
from collections.abc import Sequence

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.legends import legend_under
from figures.style import FURTHER, LAW, MEAN_FIELD, MEASURED, log_values, styled
from meanfield.verification import (
    COMMON_SWEEP,
    PAPERS_EXPONENT,
    MeasuredSlope,
    fitted_law,
    local_slopes,
    measured_slopes,
    plain_families,
    scale_of,
)

COLORS = (MEAN_FIELD, *FURTHER)
# Lines that lie on each other all show: later ones are thinner.
WIDTHS = (2.8, 2.3, 1.8, 1.4, 0.9)
# The exact scale falls out of the picture where depth nears the width.
SLOPES_SHOWN = (-2.05, -0.85)
# What is below falls exponentially, and would press all else together.
SMALLEST_SHOWN = 1e-5
# Points that were fitted over the same depths stand this factor apart.
STEP = 1.06
MARKERS = "osv^DP"


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Scales of plain nets, residual nets and loops over depth, dashed their fits; local slopes of plain nets."""
    plain = plain_families(dataset)
    residual = [str(name) for name in dataset["family"].values if name not in plain]
    figure = Figure(figsize=(9.6, 8.4))
    (first, second), (third, fourth) = figure.subplots(2, 2)
    _scales(first, dataset, plain, "Plain nets, label term")
    _scales(second, dataset, residual, "Residual nets of K blocks, label term")
    _scales(third, dataset, [str(name) for name in dataset["loop"].values], "Loops, change of the stream")
    first.set_ylabel("eta*(L) / eta*(1)")
    third.set_ylabel("eta(L) / eta(1) for a fixed |dh$_L$|")
    second.set_xlabel("blocks K")
    third.set_xlabel("steps L")
    _slopes(fourth, dataset, plain)
    return figure


def _scales(axes: Axes, dataset: xr.Dataset, names: Sequence[str], title: str) -> None:
    """Lines: theory, relative to depth 1; dashed: the power law fitted over the depths of common nets, all the way."""
    depth = dataset["depth"].values
    for name, color, width in zip(names, COLORS, WIDTHS, strict=False):
        scale = scale_of(dataset, name).values
        label = name.removeprefix("residual ")
        if depth[-1] >= max(COMMON_SWEEP):
            law = fitted_law(dataset, name, COMMON_SWEEP)
            label += f": slope {law.exponent:+.2f}"
            axes.plot(depth, law.prefactor * depth**law.exponent / scale[0], "--", lw=0.8, color=color)
        axes.plot(depth, scale / scale[0], color=color, lw=width, label=label)
    log_values(axes, "depth L", along="x")
    log_values(axes)
    axes.set_title(f"{title}; dashed: fit over {COMMON_SWEEP[0]} .. {COMMON_SWEEP[-1]}", fontsize=8, loc="left")
    axes.set_ylim(bottom=max(SMALLEST_SHOWN, axes.get_ylim()[0]))
    legend_under(axes, 2, fontsize=7)


def _slopes(axes: Axes, dataset: xr.Dataset, names: Sequence[str]) -> None:
    """One line per plain family: d ln eta*_B / d ln L; dotted: all of eta*, exact; points: trained nets."""
    depth = dataset["depth"].values
    width = json.loads(dataset.attrs["architectures"])[0]["width"]
    for name, color, line in zip(names, COLORS, WIDTHS, strict=False):
        axes.plot(depth, local_slopes(depth, scale_of(dataset, name).values), color=color, lw=line, label=name)
    exact = dataset["exact_slope"]
    axes.plot(exact["exact_depth"].values, exact.values, ":", color=MEAN_FIELD, label=f"mlp, exact, width {width}")
    for place, slope in enumerate(measured_slopes()):
        _measured(axes, slope, place)
    axes.axhline(PAPERS_EXPONENT, ls="--", color=LAW, label="papers' law, -3/2")
    log_values(axes, "depth L", along="x")
    axes.set(ylabel="slope of eta*(L)", ylim=SLOPES_SHOWN)
    axes.set_title("Plain nets: local slope in theory; points: slopes of trained nets", fontsize=8, loc="left")
    legend_under(axes, 3, fontsize=7)


def _measured(axes: Axes, measured: MeasuredSlope, place: int) -> None:
    """A slope near the middle of the depths it was fitted over, its error upright and the depths across."""
    first, last = measured.depths[0], measured.depths[-1]
    middle = (first * last) ** 0.5 * STEP**place
    across = [[middle - first], [last - middle]]
    style = {"color": MEASURED, "markerfacecolor": "white", "elinewidth": 0.6, "capsize": 0.0}
    label = measured.source.removeprefix("Zhang et al. 2026, ")
    axes.errorbar(middle, measured.slope, measured.stderr, across, MARKERS[place], label=label, **style)  # type: ignore[arg-type]


if __name__ == "__main__":
    command("learning_rate_scale", draw)
