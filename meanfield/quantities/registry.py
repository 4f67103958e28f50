"""The registry: every quantity that a dataset may hold, defined once, and the datasets that hold them.

All quantities are dimensionless and reported at learning rate 1. ``scaling`` says how a quantity grows with the
channels n, the depth L and the layer l in nets with a "he" head, at leading order. One schema serves what is measured
and what is predicted: xarray datasets whose variables are quantities of the registry.

What draws of a first step say of the four rates at which it moves a net by 1.

S_l        mean square of the change of value l
S_l / c_l  the same over the mean square of value l itself, of the same draw
S_out      mean square of the change of the outputs
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

from meanfield.common.estimates import DrawStatistic, Estimate, Means, inverse_root, quantiles, summarise
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
            variables[f"{name}_{end}"] = xr.Variable(dims, numbers.reshape(shape), label)
        if isinstance(estimate, Estimate) and dims == ("layer",):
            label = {"long_name": f"{words}: covariance of the means over draws"}
            variables[f"{name}_covariance"] = xr.Variable((*dims, "layer_other"), estimate.covariance, label)
    return _dataset(net, variables, attrs, coords)


def _variable(name: str, value: Any, attrs: Mapping[str, Any] | None = None) -> xr.Variable:
    """A quantity without coordinates: arrays with their own are aligned one by one, half of a small run."""
    quantity = QUANTITIES[name]
    said = {field: getattr(quantity, field) for field in ("long_name", "symbol", "definition", "scaling", "source")}
    return xr.Variable(quantity.dims, np.asarray(value, dtype=float), said | {"units": "1"} | dict(attrs or {}))


def _dataset(
    net: Spec, variables: Mapping[str, xr.Variable], attrs: Mapping[str, Any], coords: Coordinates | None
) -> xr.Dataset:
    """The dataset with the coordinates of the dims that count, and of quantiles."""
    spec = {"architecture": json.dumps(net.describe())}
    sizes = {dim: size for variable in variables.values() for dim, size in variable.sizes.items()}
    firsts = dict.fromkeys(LAYERS, net.first_layer) | dict.fromkeys(STEPS, 1)
    counted: dict[Any, Any] = {
        dim: np.arange(first, first + sizes[dim]) for dim, first in firsts.items() if dim in sizes
    }
    if "quantile" in sizes:
        counted["quantile"] = list(SHARES)
    return xr.Dataset(variables, dict(coords or {}) | counted, spec | dict(attrs))


Estimates = dict[str, Estimate | DrawStatistic]


def update_estimates(values: Mapping[str, Array]) -> Estimates:
    """All that `scale_estimates` and `energy_quantiles` say, with the means over draws of S_l and of its mean over l.

    Args:
        values: update_energy and what `scale_estimates` takes.
    """
    energy = values["update_energy"]
    mean = summarise(energy.mean(axis=1, keepdims=True))
    means: Estimates = {
        "update_energy": summarise(energy),
        "mean_update_energy": mean,
        "learning_rate_scale": inverse_root(mean),
    }
    return means | energy_quantiles(energy) | scale_estimates(values)


def scale_estimates(values: Mapping[str, Array]) -> Estimates:
    """What draws of relative_update_energy (N, L) and output_update_energy (N, 1) say, with their scales.

    Where some l has no S_l / c_l (NaN), means over l leave it out. The last layer is the last l, but where
    last_update_energy (N,) is given beside, which is the S_l / c_l of another.
    """
    relative, outputs = values["relative_update_energy"], values["output_update_energy"]
    last = values.get("last_update_energy", relative[:, -1])
    absent = np.isnan(relative).any(axis=0)
    there = relative[:, ~absent] if absent.any() else relative
    of_scales = {"relative": there.mean(axis=1), "last": last, "output": outputs[:, 0]}
    estimates: Estimates = {
        "relative_update_energy": summarise(relative),
        "output_update_energy": summarise(outputs),
        "relative_update_energy_quantile": quantiles(relative, np.array(SHARES)),
        "output_update_energy_quantile": quantiles(outputs[:, 0], np.array(SHARES)),
    }
    for name, energy in of_scales.items():
        estimates |= _scale_estimates(f"{name}_learning_rate_scale", energy)
    return estimates


def _scale_estimates(name: str, energies: Array) -> Estimates:
    """The rate at which the mean of energies (N,) is 1, and quantiles of those at which each is."""
    return {name: inverse_root(summarise(energies[:, None])), f"{name}_quantile": _scale_quantiles(energies)}


def energy_quantiles(energy: Array) -> Estimates:
    """Of S_l over draws (N, L), and of the rate at which its mean over the layers of a draw is 1."""
    return {
        "update_energy_quantile": quantiles(energy, np.array(SHARES)),
        "learning_rate_scale_quantile": _scale_quantiles(energy.mean(axis=1)),
    }


def _scale_quantiles(energies: Array) -> DrawStatistic:
    """Of the rates at which energies (N,) are 1, infinite where nothing moves."""
    with np.errstate(divide="ignore"):
        return quantiles(energies**-0.5, np.array(SHARES))


def relative(energies: Array, c: Array) -> Array:
    """S_l / c_l, 0 where nothing moves."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(energies > 0, energies / c, 0.0)
