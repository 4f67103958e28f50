"""From what was asked for to what was drawn and predicted: checked sizes, seeded runs, and datasets over grids."""

import argparse
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.common import derived_seed, require_counts
from meanfield.execution import Run
from sims.common.command import chosen_arrays

# Names of dims, and the coordinates on each.
Axes = dict[str, Sequence[Any]]

ENDS = ("", "_stderr", "_largest_share")
NUMBERS = {2: "two", 3: "three"}


def ladder(
    option: str, given: Any, least: int, purpose: str, *, why: str = "", maximum: int | None = None
) -> list[int]:
    """The sizes in order, each once; ValueError where there are fewer than the ``purpose`` needs."""
    sizes = sorted(set(require_counts(option, given, maximum=maximum, why=why)))
    if len(sizes) < least:
        held = "is one number" if len(sizes) == 1 else f"has {len(sizes)} numbers"
        raise ValueError(f"{option} {sizes} {held}; {purpose} needs {NUMBERS[least]} or more")
    return sizes


def seeded_run(options: argparse.Namespace, net: Any, measure: Any, label: str, draws: int | None = None) -> Run:
    """A run by a seed of its own, which the command's seed and the label make."""
    return Run(net, measure, options.draws if draws is None else draws, derived_seed(options.seed, label))


def attributes(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """What a dataset records of the options: these, and the arrays; `Results.keep` adds draws and seed."""
    arrays = chosen_arrays(options) if "backend" in options else {}
    return {name: getattr(options, name) for name in names} | arrays


def over(axes: Mapping[str, Sequence[Any]], rows: Sequence[Mapping[str, Any]], *inner: str) -> xr.Dataset:
    """Rows of numbers as a dataset over a grid, which the rows run through with the last axis first.

    A row that holds arrays holds them over the ``inner`` dims.
    """
    shape = [len(values) for values in axes.values()]
    variables = {}
    for name in rows[0]:
        values = np.array([row[name] for row in rows])
        dims = (*axes, *inner[: values.ndim - 1])
        variables[name] = (dims, values.reshape(*shape, *values.shape[1:]))
    return xr.Dataset(variables, {name: list(values) for name, values in axes.items()})


def taken(measured: xr.Dataset, *names: str, ends: Iterable[str] = ENDS) -> dict[str, Any]:
    """The values of these variables with their standard errors and largest shares, as a row of `over`."""
    return {name + end: measured[name + end].values for name in names for end in ends}


def layer_means(measured: xr.Dataset, *names: str) -> dict[str, float]:
    """Means over layers with their errors, from the covariance between layers, and the largest of the shares."""
    means = {}
    for name in names:
        means[name] = float(measured[name].mean())
        means[f"{name}_stderr"] = float(measured[f"{name}_covariance"].values.mean() ** 0.5)
        means[f"{name}_largest_share"] = float(measured[f"{name}_largest_share"].max())
    return means


def suffixed(dataset: xr.Dataset, end: str, names: Iterable[str] | None = None) -> xr.Dataset:
    """These variables, or all of them, renamed NAME_end."""
    variables = dataset if names is None else dataset[list(names)]
    return variables.rename({name: f"{name}_{end}" for name in variables.data_vars})


def labels_in_mean_field(net: Any, **options: Any) -> xr.Dataset:
    """`predict` at level "mean_field" for a report that quotes no rate of the whole update, which it would warn of."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the mean field of the whole update", mf.PremiseWarning)
        return mf.predict(net, level="mean_field", **options)


def predictions(net: Any, levels: Iterable[str], inputs: Any = None) -> list[xr.Dataset]:
    """One dataset per level, its variables renamed NAME_level."""
    return [suffixed(mf.predict(net, level=level, inputs=inputs), level) for level in levels]
