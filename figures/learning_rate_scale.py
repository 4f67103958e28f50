"""eta* against depth for every family, with fitted power laws; its local slope and those of trained nets."""

import json

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.style import FURTHER, LAW, MEAN_FIELD, MEASURED, key, legend_under, log_values, styled
from meanfield.common import fit_power_law
from meanfield.verification import COMMON_SWEEP, PAPERS_EXPONENT, MeasuredSlope, measured_slopes, spline_slopes

# How names of residual nets begin.
RESIDUAL = "residual "
# Names of residual scalings, in words.
WORDS = {"multiplier_sqrt": "times $K^{-1/2}$,", "multiplier_linear": "times 1/K,", "init": "variance 1/K,"}
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
    scales, families = dataset["label_learning_rate_scale"], list(map(str, dataset["family"].values))
    plain = scales.sel(family=[name for name in families if not name.startswith(RESIDUAL)])
    residual = scales.sel(family=[name for name in families if name.startswith(RESIDUAL)])
    figure = Figure(figsize=(9.6, 8.4))
    (first, second), (third, fourth) = figure.subplots(2, 2)
    _scales(first, plain, "Plain nets, label term, mean field")
    _scales(second, residual, "Residual nets of K blocks, label term, mean field")
    _scales(third, dataset["stream_learning_rate_scale"], "Loops and stacks, change of the stream, mean field")
    first.set_ylabel("eta*(L) / eta*(1)")
    third.set_ylabel("eta(L) / eta(1) for a fixed |dh$_L$|")
    second.set(xlabel="blocks K", ylabel="eta*(K) / eta*(1)")
    third.set_xlabel("steps L")
    _slopes(fourth, dataset, plain)
    return figure


def _scales(axes: Axes, scales: xr.DataArray, title: str) -> None:
    """Lines: theory, relative to depth 1; dashed: the power law fitted over the depths of common nets, all the way."""
    depth, names = scales["depth"].values, scales[scales.dims[0]].values
    for name, of_name, color, width in zip(names, scales, FURTHER, WIDTHS, strict=False):
        scale, label = of_name.values, str(name).removeprefix(RESIDUAL)
        for scaling, words in WORDS.items():
            label = label.replace(scaling, words)
        if depth[-1] >= max(COMMON_SWEEP):
            law = fit_power_law(COMMON_SWEEP, of_name.sel(depth=list(COMMON_SWEEP)).values)
            label += f": slope {law.exponent:+.2f}"
            axes.plot(depth, law.prefactor * depth**law.exponent / scale[0], "--", lw=0.8, color=color)
        axes.plot(depth, scale / scale[0], color=color, lw=width, label=label)
    if depth[-1] >= max(COMMON_SWEEP):
        key(axes, f"power law, fitted over {COMMON_SWEEP[0]} .. {COMMON_SWEEP[-1]}", ls="--", lw=0.8)
    log_values(axes, "depth L", along="x")
    log_values(axes)
    axes.set_title(title, fontsize=8, loc="left")
    axes.set_ylim(bottom=max(SMALLEST_SHOWN, axes.get_ylim()[0]))
    legend_under(axes, 2, fontsize=7)


def _slopes(axes: Axes, dataset: xr.Dataset, plain: xr.DataArray) -> None:
    """One line per plain family: d ln eta*_B / d ln L; dotted: all of eta*, exact; points: trained nets."""
    depth = dataset["depth"].values
    width = json.loads(dataset.attrs["architectures"])[0]["width"]
    slopes = spline_slopes(depth, plain.values)
    for name, of_name, color, line in zip(plain["family"].values, slopes, FURTHER, WIDTHS, strict=False):
        axes.plot(depth, of_name, color=color, lw=line, label=str(name))
    exact = dataset["exact_slope"]
    axes.plot(exact["exact_depth"].values, exact.values, ":", color=MEAN_FIELD, label=f"mlp, exact, width {width}")
    for place, slope in enumerate(measured_slopes()):
        _measured(axes, slope, place)
    axes.axhline(PAPERS_EXPONENT, ls="--", color=LAW, label="papers' law, -3/2")
    log_values(axes, "depth L", along="x")
    axes.set(ylabel="slope of eta*(L)", ylim=SLOPES_SHOWN)
    axes.set_title("Plain nets: local slope in theory; black: trained nets (Zhang et al. 2026)", fontsize=8, loc="left")
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
