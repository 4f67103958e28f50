"""One look for all figures: colour-blind-safe colours, quiet axes, fixed sizes; used as a context."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import ceil, floor, log10
from typing import Any

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import Formatter, Locator, MaxNLocator, NullFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation
from numpy.typing import ArrayLike, NDArray

from meanfield.common import require_choice

# Okabe and Ito's palette, and two colours of Tol's. Black is measured, blue theory, vermilion a published law; where
# panels show several series, each has one of the further colours, and its theory is a line of the same colour.
MEASURED = "#000000"
MEAN_FIELD = "#0072B2"
LAW = "#D55E00"
GREEN, PURPLE, ORANGE, SKY, WINE, OLIVE = "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#999933"
FURTHER = (GREEN, PURPLE, ORANGE, SKY, WINE, OLIVE)
# What lines and marks of several colours have in common stands in the legend in grey, and so does what no paper says.
GREY = "#707070"
# What has one colour in every figure: parts of the update, residual scalings, tables of hyperparameters, norms.
LABEL_TERM, OUTPUT_TERM, WHOLE_UPDATE = MEASURED, GREEN, ORANGE
SCALINGS = {"none": PURPLE, "init": SKY, "multiplier_sqrt": ORANGE, "multiplier_linear": GREEN}
TABLES = {"standard": ORANGE, "one": GREEN, "many": PURPLE}
NORMS = {"post": WINE, "pre": OLIVE}

_STYLE = {
    "figure.dpi": 150,
    "savefig.dpi": 150,
    "figure.constrained_layout.use": True,
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "lines.markersize": 4.0,
    "errorbar.capsize": 2.0,
    "svg.hashsalt": "meanfield",
}

# Series that stand beside each other do so by this share of their axis.
ASIDE = 0.02
# Ticks of axes of sizes, and of logarithmic axes of values: how many at most, how many at least, and at which digits.
MOST_SIZES, MOST_POWERS, LEAST_TICKS = 6, 6, 3
DIGITS = ((1,), (1, 3), (1, 2, 5), (1, 2, 3, 5, 7), tuple(range(1, 10)))

# What a style changes of it: for screens, and for two-column pages.
STYLES: dict[str, dict[str, Any]] = {
    "light": {},
    "print": {"font.family": "serif", "axes.grid": False, "savefig.dpi": 300, "lines.linewidth": 1.0},
}

_chosen = ContextVar("style", default="light")


@contextmanager
def styled() -> Iterator[None]:
    """The context in which figures are drawn; `@styled()` draws a whole function in it."""
    with matplotlib.rc_context(_STYLE | STYLES[_chosen.get()]):  # type: ignore[arg-type]
        yield


@contextmanager
def chosen_style(name: str) -> Iterator[None]:
    """Within, `styled` means this style; ValueError naming the choices if there is none of that name."""
    require_choice("style", name, STYLES)
    token = _chosen.set(name)
    try:
        yield
    finally:
        _chosen.reset(token)


def points(axes: Axes, x: ArrayLike, drawn: xr.Dataset, name: str, *, over: ArrayLike = 1.0, **look: Any) -> None:
    """A measured variable as points with their standard errors, over a scale."""
    value, stderr = (drawn[column].values / over for column in (name, f"{name}_stderr"))
    axes.errorbar(x, value, stderr, **{"fmt": "o", **look})


def points_of_logs(axes: Axes, x: ArrayLike, logs: ArrayLike, errors: ArrayLike, **look: Any) -> None:
    """Decimal logarithms with their standard errors, as the numbers that they are of."""
    middle, spread = 10.0 ** np.asarray(logs), np.asarray(errors)
    below, above = (np.abs(middle * 10.0 ** (side * spread) - middle) for side in (-1, 1))
    axes.errorbar(x, middle, [below, above], **{"fmt": "o", **look})


def aside(sizes: ArrayLike, place: int, count: int) -> NDArray[np.float64]:
    """Where one of so many series stands on a logarithmic axis of sizes, so that no error bar covers another."""
    run = np.asarray(sizes, dtype=float)
    return run * (run[-1] / run[0]) ** (ASIDE * (place - (count - 1) / 2))


def shades(count: int) -> NDArray[np.float64]:
    """Colours of what stands in an order, as sizes and steps do: dark at first, bright at last."""
    return np.asarray(matplotlib.colormaps["viridis"](np.linspace(0.0, 0.9, count)))


def key(axes: Axes, label: str, **look: Any) -> None:
    """An entry of the legend, in grey, for what lines or marks of several colours have in common."""
    axes.plot([], [], label=label, **{"color": GREY, **look})


def alike(panels: Iterable[Axes], least: float = 0.0) -> None:
    """Vertical axes of one length, each around what it shows: lines that rise alike look alike, and flat ones flat.

    On logarithmic axes the length is a factor; it is ``least``, in decades or units, or more. Panels that show nothing
    stay as they are.
    """
    panels = [axes for axes in panels if axes.get_yscale() != "log" or min(axes.get_ylim()) > 0]
    if not panels:
        return
    logs = [axes.get_yscale() == "log" for axes in panels]
    ends = [np.log10(axes.get_ylim()) if log else axes.get_ylim() for axes, log in zip(panels, logs, strict=True)]
    half = max(least, *(high - low for low, high in ends)) / 2
    for axes, log, (low, high) in zip(panels, logs, ends, strict=True):
        span = (low + high) / 2 - half, (low + high) / 2 + half
        axes.set_ylim(*(10.0**end if log else end for end in span))


def correlations(axes: Axes, matrix: ArrayLike, place: str) -> None:
    """A heatmap of the correlations of all pairs of places, counted from 1, with its scale of colours."""
    last = len(np.asarray(matrix))
    image = axes.imshow(matrix, origin="lower", vmin=0.0, vmax=1.0, cmap="viridis", extent=(0.5, last + 0.5) * 2)
    axes.grid(False)
    axes.set(xlabel=place, ylabel=place)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(4, integer=True))
    axes.figure.colorbar(image, ax=axes, shrink=0.8, label="correlation")


def layer_ticks(axes: Axes, last: int) -> None:
    """Whole layer numbers on a logarithmic axis from 1 to ``last``."""
    _at(axes, [int(tick) for tick in np.unique(np.geomspace(1, last, 6).round())])


def by_size(axes: Axes, sizes: ArrayLike, label: str) -> None:
    """A logarithmic axis of sizes that were run: ticks at these, as many as there is room for."""
    run = np.asarray(sizes, dtype=float)
    kept = [run[0]]
    for size in run[1:]:
        if size >= kept[-1] * (run[-1] / run[0]) ** (1 / MOST_SIZES):
            kept.append(size)
    axes.set(xscale="log", xlabel=label)
    _at(axes, kept)


def _at(axes: Axes, ticks: Sequence[float]) -> None:
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())


def log_values(axes: Axes, label: str = "", *, along: str = "y") -> None:
    """A logarithmic axis of values, with several labelled ticks whatever its range."""
    axes.set(**{f"{along}scale": "log"})
    axis = getattr(axes, f"{along}axis")
    axis.set_major_locator(LogTicks())
    axis.set_major_formatter(LogLabels())
    axis.set_minor_formatter(NullFormatter())
    if label:
        axis.set_label_text(label)


class LogTicks(Locator):
    """Ticks of a logarithmic axis: powers of ten, more digits until there are three, even steps on a short axis."""

    def __call__(self) -> list[float]:
        return self.tick_values(*self.axis.get_view_interval())  # type: ignore[union-attr]

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Those between the ends of a view."""
        low, high = sorted((vmin, vmax))
        first, last = floor(log10(low)), ceil(log10(high))
        stride = ceil((last - first) / MOST_POWERS)
        powers = range(first - first % stride, last + 1, stride)
        for digits in DIGITS:
            ticks = [digit * 10.0**power for power in powers for digit in digits]
            if len(inside := [tick for tick in ticks if low <= tick <= high]) >= LEAST_TICKS:
                return inside
        return [tick for tick in MaxNLocator(LEAST_TICKS + 1).tick_values(low, high) if low <= tick <= high]


class LogLabels(Formatter):
    """Ticks as people write numbers, with powers of ten only where one of them is very small or very large."""

    def __call__(self, value: float, pos: int | None = None) -> str:
        return f"{value:g}"

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """All of an axis alike."""
        if all(1e-3 <= value < 1e4 for value in values):
            return [self(value) for value in values]
        return [_power(value) for value in values]


def _power(value: float) -> str:
    mantissa, exponent = f"{value:.0e}".split("e")
    power = f"10^{{{int(exponent)}}}"
    return f"${power}$" if mantissa == "1" else f"${mantissa} \\times {power}$"


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
