"""From what was asked for to what was drawn and predicted: seeded runs, datasets over grids, and what is in them."""

import argparse
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.common import derived_seed
from meanfield.execution import Run
from meanfield.quantities import QUANTITIES
from sims.common.command import chosen_arrays

# Names of dims, and the coordinates on each.
Axes = dict[str, Sequence[Any]]

ENDS = ("", "_stderr", "_largest_share")


def seeded_run(options: argparse.Namespace, net: Any, measure: Any, label: str, draws: int | None = None) -> Run:
    """A run by a seed of its own, which the command's seed and the label make."""
    return Run(net, measure, options.draws if draws is None else draws, derived_seed(options.seed, label))


def attributes(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """What a dataset records of the options: these, and the arrays; `Results.keep` adds draws and seed."""
    arrays = chosen_arrays(options) if "backend" in options else {}
    return {name: getattr(options, name) for name in names} | arrays


def over(axes: Mapping[str, Sequence[Any]], rows: Sequence[Mapping[str, Any]], *inner: str) -> xr.Dataset:
    """Rows of numbers as a dataset over a grid, which the rows run through with the last axis first.

    A row that holds arrays holds them over the ``inner`` dims. Quantities of the registry have their words.
    """
    shape = [len(values) for values in axes.values()]
    variables = {}
    for name in rows[0]:
        values = np.array([row[name] for row in rows])
        dims = (*axes, *inner[: values.ndim - 1])
        variables[name] = (dims, values.reshape(*shape, *values.shape[1:]), words_of(name))
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


@dataclass(frozen=True)
class Variable:
    """What a study stores under a name: its words travel with it to the file, to tables and to figures.

    ``NAME_stderr`` and its like, ``NAME_theory`` and its like (see `COMPANIONS` and `LEVELS`) need no declaration.

    Attributes:
        name: in the dataset.
        words: of the field, such as "slope of eta* in the blocks, far up"; the dataset's ``long_name``.
        definition: what it is, exactly, where the words do not say it.
        symbol, source: as in the registry of quantities.
        units: all numbers here are dimensionless.
    """

    name: str
    words: str
    definition: str = ""
    symbol: str = ""
    source: str = ""
    units: str = "1"

    @property
    def attrs(self) -> dict[str, str]:
        said = {"definition": self.definition, "symbol": self.symbol, "source": self.source}
        return {"long_name": self.words, "units": self.units} | {name: words for name, words in said.items() if words}


# Ends of names, and what they add to the words of what they belong to.
COMPANIONS = {
    "_stderr": "standard error over draws",
    "_largest_share": "share of the largest draw in the mean",
    "_covariance": "covariance of the means over draws",
}
LEVELS = {
    "_theory": "in theory",
    "_exact": "exact expectation",
    "_mean_field": "mean field",
    "_law": "law at leading order",
}
# Coordinates that many datasets have.
COORDINATES = {
    "activation": "activation",
    "blocks": "residual blocks K",
    "block_depth": "layers of a branch k",
    "channels": "channels C",
    "depth": "depth L",
    "draw": "number of the draw",
    "layer": "layer, from 1 at the bottom",
    "layer_other": "the other layer",
    "loops": "loops L",
    "optimizer": "optimizer",
    "order": "order in the updates of a block",
    "pair": "pair of parameter directions",
    "place": "place in the net",
    "quantile": "share of the draws that lie below",
    "role": "role of weights or biases in the net",
    "scaling": "scaling of residual branches",
    "step": "step of training",
    "table": "table of hyperparameters",
    "width": "width n",
}


def words_of(name: str, declared: Mapping[str, Variable] | None = None) -> dict[str, str]:
    """Attributes of a variable: as declared, of the registry, or from those that its name is made of; else none."""
    known = declared or {}
    if name in known:
        return known[name].attrs
    if name in QUANTITIES:
        quantity = QUANTITIES[name]
        said = {field: getattr(quantity, field) for field in ("long_name", "symbol", "definition", "scaling", "source")}
        return said | {"units": "1"}
    for end, added in COMPANIONS.items():
        if end in name and (words := words_of(name.replace(end, "", 1), known)):
            return {"long_name": f"{words['long_name']}: {added}", "units": "1"}
    for end, added in LEVELS.items():
        if name.endswith(end) and (words := words_of(name.removesuffix(end), known)):
            return words | {"long_name": f"{words['long_name']}, {added}"}
    return {"long_name": COORDINATES[name]} if name in COORDINATES else {}


def described(dataset: xr.Dataset, variables: Sequence[Variable]) -> xr.Dataset:
    """The dataset with words for every variable; where neither a study nor the registry has any, it keeps its own."""
    declared = {variable.name: variable for variable in variables}
    for name in dataset.variables:
        dataset[name].attrs.update(words_of(str(name), declared))
    return dataset
