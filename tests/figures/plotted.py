"""Which numbers of a dataset every line, point and heatmap of a figure shows: found by their values."""

import re
from collections import defaultdict

import numpy as np

from sims.common.tables import label
from tests.sims.printed import named

# Rows of a variable up to which factors are tried.
MOST_NUMBERS = 200
NUMBERS = r"[-+]?\d[\d.,]*(e[-+]?\d+)?"
DRAWN = r"\+-|\\pm"
# Along what figures average, and how far numbers that are computed in another order are off.
DRAWS = ("draw", "seed")
ROUNDING = 1e-9


def plotted(figure, dataset):
    """Lines "title; axis | legend: variable [values of named coordinates]", of all panels of a figure from the left.

    "named" stands for a value that the words of the panel name; "mean of" and the like for what is made of a variable
    (`_derived`); "computed" for numbers that are neither; "zeros" for what many variables hold. Numbers are # in words
    that say what was drawn.
    """
    known, derived = _places(dataset), _derived(dataset)
    dataset, lines = dataset.assign(derived), {}

    def places_of(value):
        return known.get(float(value), {}) | _close(value, derived)

    for panel, words, values in _artists(figure):
        title, legend = (re.sub(NUMBERS, "#", text) if re.search(DRAWN, text) else text for text in (panel, words))
        lines[f"{title} | {legend or '-'}: {_source(values, places_of, dataset, f'{panel} {words}')}"] = None
    return list(lines)


def _artists(figure):
    """Panel, label and numbers of everything drawn that has two numbers or more."""
    for axes in figure.axes:
        bars = {container[0]: container for container in axes.containers if len(container) == 3}
        ends = {cap for container in bars.values() for cap in container[1]}
        lines = [(bars.get(line, line).get_label(), line.get_ydata()) for line in axes.lines if line not in ends]
        images = [("heatmap", image.get_array().ravel()) for image in axes.images]
        title = " ".join(filter(None, (axes.get_title(), axes.get_title("left"))))
        panel = "; ".join(filter(None, (title, axes.get_ylabel()))).replace("\n", " ")
        for words, values in (*lines, *images):
            values = np.asarray(values, dtype=float)
            if len(values := values[np.isfinite(values)]) > 1:
                yield panel, "" if words.startswith("_") else words, values


def _derived(dataset):
    """Means over draws, rates of their decimal logarithms, and scales eta* of energies, as figures show them."""
    derived = {}
    for name, variable in sorted(dataset.data_vars.items()):
        for dim in set(DRAWS) & set(variable.dims):
            derived[f"mean of {name}"] = variable.mean(dim, skipna=False)
            derived[f"root mean square of {name}"] = (variable**2).mean(dim, skipna=False) ** 0.5
            derived[f"geometric mean of {name}"] = np.exp(np.log(variable.where(variable > 0)).mean(dim, skipna=False))
        if name.endswith("log10"):
            derived[f"power of 10 of {name}"] = 10.0**variable
        if name.endswith(("_term", "_energy", "_mean_field")):
            derived[f"inverse root of {name}"] = variable.where(variable > 0) ** -0.5
    return derived


def _places(dataset):
    """value -> variable -> the places where it stands, as indices."""
    places = defaultdict(lambda: defaultdict(list))
    for name, variable in sorted(dataset.data_vars.items()):
        if variable.dtype.kind == "f" and variable.ndim:
            for index, value in np.ndenumerate(variable.values):
                places[float(value)][name].append(index)
    return places


def _source(values, places_of, dataset, context):
    """The variable that holds all of the values, or is proportional to them, and where along named coordinates."""
    if not values.any():
        return "zeros"
    holders = [places_of(value) for value in values]
    names = [name for name in holders[0] if all(name in holder for holder in holders)]
    found = [_described(dataset[name], [holder[name] for holder in holders], context) for name in names]
    if not any(found):
        found = [f"in proportion to {words}" for words in _proportional(values, dataset, context)]
    return " or ".join(filter(None, found)) or "computed"


def _close(value, derived):
    """Derived variable -> the places where it has this value."""
    places = {name: np.argwhere(np.isclose(among.values, value, ROUNDING, 0)) for name, among in derived.items()}
    return {name: list(map(tuple, found)) for name, found in places.items() if len(found)}


def _proportional(values, dataset, context):
    """Of every variable with rows, along unnamed coordinates, of which one is these values times a factor."""
    if not values.all() or np.ptp(values) <= ROUNDING * np.abs(values).max():
        return
    for name, variable in sorted(dataset.data_vars.items()):
        if name.startswith(("geometric mean of", "root mean square of")):
            continue
        along = [dim for dim in variable.dims if variable.sizes[dim] == len(values) and not _is_named(variable, dim)]
        if variable.dtype.kind != "f" or not along or variable.size > MOST_NUMBERS * len(values):
            continue
        rows = variable.transpose(..., along[-1])
        for index in np.ndindex(rows.shape[:-1]):
            for own in (rows.values[index], np.exp(np.clip(rows.values[index], -700, 700))):
                ratio = own / values
                if np.isfinite(ratio).all() and ratio.any() and np.ptp(ratio) <= ROUNDING * np.abs(ratio).max():
                    yield _described(rows, [[(*index, place)] for place in range(len(values))], context)


def _is_named(variable, dim):
    return variable[dim].dtype.kind in "UTO"


def _described(variable, places, context):
    """Its name, and its coordinates along every dimension on which all values share one place."""
    parts = []
    for axis, dim in enumerate(variable.dims):
        shared = set.intersection(*({place[axis] for place in of_value} for of_value in places))
        if not shared or len(shared) == variable.sizes[dim] or dim not in variable.coords:
            continue
        values = [label(variable[dim].values[index]) for index in sorted(shared)]
        parts.append("named" if named(context, values) else f"{dim} {' '.join(values)}")
    return f"{variable.name} [{'; '.join(parts)}]" if parts else variable.name
