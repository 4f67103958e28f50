"""The registry: every quantity that a dataset may hold, defined once, and the datasets that hold them.

All quantities are dimensionless and reported at learning rate 1. ``scaling`` says how a quantity grows with the
channels n, the depth L and the layer l in nets with a "he" head, at leading order. One schema serves what is measured
and what is predicted: xarray datasets whose variables are quantities of the registry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import xarray as xr
from scipy.special import logsumexp

from meanfield.common.estimates import DrawStatistic, Estimate, Means
from meanfield.common.validation import Array, require_choice, takes
from meanfield.quantities.glossary import BLOCKS, CURVATURE, LOOPS, NETS, SINGLE_DRAWS, TRAINING

# A dataset's quantiles are at these shares p of the drawn nets: the middle net is typical, four in five nets lie
# between the outer two.
SHARES = (0.1, 0.5, 0.9)

_TITLE = re.compile(r"(\w+) = (.+?)(?: \[([\w ]+)\])?")
_LABEL = re.compile(r" (scaling|source|unpredicted): ")


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """One variable of a dataset: its public name, the papers' letter, its dims, meaning, scaling and source.

    ``unpredicted`` says why `predict` gives it at no level, and where its theory is; empty if it does.
    """

    name: str
    symbol: str
    dims: tuple[str, ...]
    definition: str
    scaling: str
    source: str
    unpredicted: str = ""

    @property
    def long_name(self) -> str:
        return self.name.replace("_", " ")


def _entries(glossary: str, **shared: str) -> list[Quantity]:
    """The quantities of a glossary, with fields that all of them share."""
    return [_entry(entry, shared) for entry in re.split(r"\n(?=\w)", glossary.strip())]


def _entry(entry: str, shared: dict[str, str]) -> Quantity:
    title, text = entry.split("\n", 1)
    matched = _TITLE.fullmatch(title)
    if matched is None:
        raise ValueError(f"the glossary has the title {title!r}; write: name = symbol [dims]")
    name, symbol, dims = matched.groups(default="")
    definition, *labelled = _LABEL.split(" ".join(text.split()))
    fields = shared | dict(zip(labelled[::2], labelled[1::2], strict=True))
    return Quantity(name=name, symbol=symbol, dims=tuple(dims.split()), definition=definition, **fields)


def _logarithm(quantity: Quantity) -> Quantity:
    """The natural logarithm of a quantity, for depths at which the quantity itself leaves the range of a float."""
    name, symbol, definition = f"log_{quantity.name}", f"ln {quantity.symbol}", f"logarithm of: {quantity.definition}"
    scaling = f"logarithm of: {quantity.scaling}"
    return replace(quantity, name=name, symbol=symbol, definition=definition, scaling=scaling, unpredicted="")


def _adjusted(quantity: Quantity) -> Quantity:
    """The same mean with less error, where energies with exactly known means were measured beside it."""
    name, symbol = f"adjusted_{quantity.name}", f"{quantity.symbol} (adjusted)"
    definition = f"{quantity.definition}; less what energies with known means tell of each draw, at the same mean"
    said = f"is an estimate of the {quantity.long_name}, which is predicted"
    source = f"{quantity.source}; docs/theory.md section 6"
    return replace(quantity, name=name, symbol=symbol, definition=definition, source=source, unpredicted=said)


_ADJUSTED = (
    *("label_term", "output_term", "overlap_energy", "update_energy"),
    *("mean_update_energy", "learning_rate_scale", "label_learning_rate_scale"),
)
_ONE_STEP = _entries(NETS) + _entries(LOOPS)
_BLOCKS = _entries(
    BLOCKS,
    unpredicted="the paper gives exponents alone, which `meanfield.theory.laws` derives and simulations measure",
)
_SINGLE_DRAWS = _entries(
    SINGLE_DRAWS, unpredicted="of single draws; the exact level has their second moment, `predict(..., spread=True)`"
)
_TRAINING = _entries(TRAINING, unpredicted="what many steps do has no theory here; `meanfield.train` measures it")
_CURVATURE = _entries(CURVATURE, unpredicted="`meanfield.stable_rate` predicts it, for given inputs")
_CONTROLLED = [_adjusted(quantity) for quantity in _ONE_STEP if quantity.name in _ADJUSTED]
_ALL = (
    *(*_ONE_STEP, *map(_logarithm, _ONE_STEP), *_CONTROLLED),
    *(*_BLOCKS, *_SINGLE_DRAWS, *_TRAINING, *_CURVATURE),
)
QUANTITIES = {quantity.name: quantity for quantity in _ALL}


Coordinates = Mapping[str, Sequence[Any]]

# Dims that count: layers from the number of a net's first, steps from 1.
LAYERS, STEPS = ("layer", "layer_other"), ("step", "step_other")


class Spec(Protocol):
    """What a network is, as plain values, and how its layers are counted."""

    @property
    def first_layer(self) -> int: ...

    def describe(self) -> dict[str, Any]: ...


@takes(object, Mapping, Mapping)
def predicted_dataset(
    net: Spec, values: Mapping[str, Any], attrs: Mapping[str, Any], coords: Coordinates | None = None
) -> xr.Dataset:
    """Predicted quantities by registry name; each carries ``attrs`` too, so that it keeps them when merged."""
    for name in values:
        require_choice("a quantity", name, QUANTITIES)
    variables = {name: _variable(name, value, attrs) for name, value in values.items()}
    return _dataset(net, variables, attrs, coords)


def with_logarithms(logs: Mapping[str, Any]) -> dict[str, Array]:
    """Quantities from their natural logarithms, infinite where they overflow, and those as log_NAME."""
    with np.errstate(over="ignore", under="ignore"):
        plain = {name: np.exp(log) for name, log in logs.items()}
    return plain | {f"log_{name}": log for name, log in logs.items()}


def log_mean(logs: Array) -> Array:
    """ln of the mean over the last axis of what has these logarithms."""
    if logs.shape[-1] == 1:
        return logs[..., 0]
    return np.asarray(logsumexp(logs, axis=-1) - np.log(logs.shape[-1]))


def plain_dataset(
    net: Spec, values: Mapping[str, Any], attrs: Mapping[str, Any], coords: Coordinates | None = None
) -> xr.Dataset:
    """Quantities by registry name as they are, without errors."""
    variables = {name: _variable(name, value) for name, value in values.items()}
    return _dataset(net, variables, attrs, coords)


def measured_dataset(
    net: Spec,
    estimates: Mapping[str, Estimate | Means | DrawStatistic],
    attrs: Mapping[str, Any],
    coords: Coordinates | None = None,
) -> xr.Dataset:
    """Measured quantities: NAME and NAME_stderr; of means over draws NAME_largest_share, by layer NAME_covariance."""
    variables: dict[str, xr.Variable] = {}
    for name, estimate in estimates.items():
        dims, words = QUANTITIES[name].dims, QUANTITIES[name].long_name
        value = estimate.value if isinstance(estimate, DrawStatistic) else estimate.mean
        shape = value.shape if dims else ()  # scalars may come as one value
        variables[name] = _variable(name, value.reshape(shape))
        companions = {"stderr": ("standard error over draws", estimate.stderr)}
        if not isinstance(estimate, DrawStatistic):
            companions["largest_share"] = ("share of the largest draw in the mean", estimate.largest_share)
        for end, (what, numbers) in companions.items():
            label = {"long_name": f"{words}: {what}", "units": "1"}
            variables[f"{name}_{end}"] = _array(numbers.reshape(shape), dims, label)
        if isinstance(estimate, Estimate) and dims == ("layer",):
            label = {"long_name": f"{words}: covariance of the means over draws"}
            variables[f"{name}_covariance"] = _array(estimate.covariance, (*dims, "layer_other"), label)
    return _dataset(net, variables, attrs, coords)


def _variable(name: str, value: Any, attrs: Mapping[str, Any] | None = None) -> xr.Variable:
    quantity = QUANTITIES[name]
    said = {field: getattr(quantity, field) for field in ("long_name", "symbol", "definition", "scaling", "source")}
    return _array(np.asarray(value, dtype=float), quantity.dims, said | {"units": "1"} | dict(attrs or {}))


def _array(values: Any, dims: Sequence[str], attrs: Mapping[str, Any]) -> xr.Variable:
    """Make a variable without coordinates: arrays with their own are aligned one by one, half of a small run."""
    return xr.Variable(dims, values, attrs)


def _dataset(
    net: Spec, variables: Mapping[str, xr.Variable], attrs: Mapping[str, Any], coords: Coordinates | None
) -> xr.Dataset:
    spec = {"architecture": json.dumps(net.describe())}
    sizes = {dim: size for variable in variables.values() for dim, size in variable.sizes.items()}
    return xr.Dataset(variables, dict(coords or {}) | _counted(sizes, net.first_layer), spec | dict(attrs))


def _counted(sizes: Mapping[Any, int], first_layer: int) -> dict[str, Any]:
    """Coordinates of the dims that count, and of quantiles."""
    firsts = dict.fromkeys(LAYERS, first_layer) | dict.fromkeys(STEPS, 1)
    coords: dict[str, Any] = {
        dim: np.arange(first, first + sizes[dim]) for dim, first in firsts.items() if dim in sizes
    }
    return coords | ({"quantile": list(SHARES)} if "quantile" in sizes else {})
