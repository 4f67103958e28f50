"""What every line and point of a figure stands over, whose errors its bars are, and how it looks."""

import re

import numpy as np
from matplotlib.colors import to_hex

from figures.style import FURTHER, GREY, LAW, MEAN_FIELD, MEASURED
from tests.figures.plotted import DRAWN, NUMBERS, ROUNDING, _derived, _is_named, _places

COLORS = {MEASURED: "black", MEAN_FIELD: "blue", LAW: "vermilion", GREY: "grey"}
COLORS |= dict(zip(FURTHER, ("green", "purple", "orange", "sky", "wine", "olive"), strict=True))
LINES = {"-": "line", "--": "dashed", ":": "dotted", "-.": "dash-dotted"}
# A value's error is that of the mean it is made of, times what the derivative of a root or an inverse root asks for.
FACTORS = {"": 1.0, "half of ": 0.5, "twice ": 2.0}
# So many numbers stand in full; of more, the first, the middle and the last one.
MOST_SHOWN = 5


def looks(figure, dataset):
    """Lines "title; axis | legend: over what, error bars, colour and mark", of all panels of a figure from the left.

    "over depth" is what stands over the coordinate at which the dataset has it, point by point. Numbers that are not
    found in the dataset stand as they are, with those they stand over; "drawn" where they have errors.
    """
    known = _Numbers(dataset)
    found = {}
    for axes in figure.axes:
        title = " ".join(filter(None, (axes.get_title(), axes.get_title("left"))))
        panel = "; ".join(filter(None, (title, axes.get_ylabel()))).replace("\n", " ")
        panel = re.sub(NUMBERS, "#", panel) if re.search(DRAWN, panel) else panel
        if axes.lines:
            label = axes.get_xlabel().replace("\n", " ") or "-"
            found[f"{panel} | axes: {label} ({axes.get_xscale()}, {axes.get_yscale()})"] = None
        bars = {container[0]: container for container in axes.containers if len(container) == 3}
        ends = {cap for container in bars.values() for cap in container[1]}
        for line in (line for line in axes.lines if line not in ends):
            words = bars.get(line, line).get_label()
            words = re.sub(NUMBERS, "#", words) if re.search(DRAWN, words) else words
            words = "-" if words.startswith("_") else words
            told = _over(axes, line, known, line in bars), _errors(bars.get(line), line, known), _look(line)
            found[f"{panel} | {words}: {', '.join(filter(None, told))}"] = None
    return list(found)


class _Numbers:
    """The numbers of a dataset and of what figures make of them, and their errors."""

    def __init__(self, dataset):
        derived = _derived(dataset)
        self.places = _places(dataset)
        self.dataset = dataset.assign(derived)
        self.made = list(derived)
        names = [name for name in dataset.data_vars if f"{name}_stderr" in dataset]
        values = {name: dataset[name].values.ravel() for name in names}
        self.errors = {name: dataset[f"{name}_stderr"].values.ravel() for name in names}
        for name, made in _spreads(dataset):
            values[name], self.errors[name] = (part.values.ravel() for part in made)
        with np.errstate(all="ignore"):
            self.shares = {name: np.abs(error / values[name]) for name, error in self.errors.items()}

    def holders(self, value):
        """Variable -> the places where it has this value."""
        exact = self.places.get(float(value), {})
        near = {name: np.argwhere(np.isclose(self.dataset[name].values, value, ROUNDING, 0)) for name in self.made}
        return exact | {name: list(map(tuple, found)) for name, found in near.items() if len(found)}

    def along(self, x, y):
        """The coordinates that x are where a variable has y; in proportion to y, that of as many places in order."""
        holders = [self.holders(value) for value in y]
        dims = set()
        for name in set.intersection(*map(set, holders)):
            variable = self.dataset[name]
            for axis, dim in enumerate(variable.dims):
                if dim not in variable.coords or _is_named(variable, dim):
                    continue
                coordinate = variable[dim].values
                met = (
                    any(coordinate[place[axis]] == at for place in of[name]) for at, of in zip(x, holders, strict=True)
                )
                if all(met):
                    dims.add(dim)
        return sorted(dims)

    def coordinates(self, x):
        """Those that x are all of, in their order."""
        numeric = {dim: self.dataset[dim].values for dim in self.dataset.coords if self.dataset[dim].dtype.kind in "if"}
        exact = sorted(dim for dim, values in numeric.items() if np.array_equal(np.ravel(values), x))
        return exact or sorted(set.intersection(*(set(self.holders(value)) for value in x)))[:2]


def _spreads(dataset):
    """Means over draws or seeds, plain and geometric, with their standard errors."""
    for name, variable in dataset.data_vars.items():
        for dim in {"draw", "seed"} & set(variable.dims) if variable.dtype.kind == "f" else ():
            root = variable.sizes[dim] ** 0.5
            finite = variable.where(np.isfinite(variable))
            yield f"mean of {name}", (finite.mean(dim), finite.std(dim, ddof=1) / root)
            logs = np.log(finite.where(finite > 0))
            error = logs.std(dim, ddof=1) / root
            yield f"geometric mean of {name}", (np.exp(logs.mean(dim)), error * np.exp(logs.mean(dim)))


def _over(axes, line, known, is_drawn):
    x, y = (np.asarray(values, dtype=float) for values in line.get_data())
    if line.get_transform() == axes.get_yaxis_transform():
        return f"across at {y[0]:.3g}"
    if line.get_transform() == axes.get_xaxis_transform():
        return f"upright at {x[0]:.3g}" if len(set(np.round(x, 12))) == 1 else "upright"
    kept = np.isfinite(x) & np.isfinite(y)
    x, y = x[kept], y[kept]
    if not len(x):
        return "nothing"
    if dims := known.along(x, y):
        return f"over {' or '.join(dims)}"
    over = " or ".join(known.coordinates(x)) or _numbers(x)
    return f"drawn over {over}" if is_drawn else f"{_numbers(y, 2)}{_slope(x, y)} over {over}"


def _slope(x, y):
    """That of a power law, if it is one."""
    if len(x) < 2 or not (np.all(x > 0) and np.all(y > 0)) or not np.all(np.diff(x)):
        return ""
    slopes = np.diff(np.log(y)) / np.diff(np.log(x))
    return f" as x^{slopes[0]:.2f}" if np.ptp(slopes) < 1e-6 * np.abs(slopes).max() else ""


def _numbers(values, digits=3):
    shown = values if len(values) <= MOST_SHOWN else values[[0, len(values) // 2, -1]]
    shown = np.where(np.abs(shown) < 1e-12, 0.0, shown)  # what is rounding depends on the machine
    return " ".join(f"{value:.{digits}g}" for value in shown) + (
        "" if len(values) <= MOST_SHOWN else f" ({len(values)})"
    )


def _errors(container, line, known):
    """Whose standard errors the bars are, upright and across, as they are or in proportion to what they belong to."""
    if container is None:
        return ""
    upright, across = (_errors_along(container, line, known, along) for along in (1, 0))
    return ", ".join(filter(None, (upright, across and f"across {across}"))) or "no errors"


def _errors_along(container, line, known, along):
    """The same of the bars along x, 0, or y, 1; nothing where none has a length."""
    at = np.asarray(line.get_data()[along], dtype=float)
    for bars in container[2]:
        ends = [np.asarray(segment) for segment in bars.get_segments()]
        lengths = np.array([np.ptp(end[:, along]) / 2 if len(end) else np.nan for end in ends])
        if len(lengths) != len(at) or not np.nansum(lengths):
            continue
        kept = np.isfinite(lengths) & np.isfinite(at) & (at != 0) & (lengths > 0)
        if not kept.any():
            return ""
        lengths, shares = lengths[kept], lengths[kept] / np.abs(at[kept])
        own = [name for name, errors in known.errors.items() if _among(lengths, errors)]
        if own:
            return f"+- errors of {' or '.join(own[:3])}"
        for words, factor in FACTORS.items():
            of = [name for name, errors in known.shares.items() if _among(shares / factor, errors)]
            if of:
                return f"+- {words}relative errors of {' or '.join(of[:3])}"
        return f"+- {100 * shares[0]:.1g} % at first"
    return ""


def _among(values, numbers):
    """Whether all of the values are among the numbers; lengths on a page are differences, and round as such."""
    return bool(np.isclose(values[:, None], numbers[None], 1e-6, 0).any(axis=1).all())


def _look(line):
    """Colour, mark and kind of line in words."""
    color = to_hex(line.get_color()).upper()
    marker = line.get_marker()
    kinds = [LINES.get(line.get_linestyle(), ""), f"mark {marker}" if marker not in ("None", "", None) else ""]
    return " ".join(filter(None, (COLORS.get(color, color), *kinds)))
