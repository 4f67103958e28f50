"""One schema for what is measured and what is predicted: xarray datasets whose variables the registry defines.

xarray is loaded where the first of them is made: processes that draw make none, and save a quarter of their start.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from meanfield.common.estimates import DrawStatistic, Estimate, Means
from meanfield.common.validation import require_choice, takes
from meanfield.quantities.registry import QUANTITIES, SHARES

if TYPE_CHECKING:
    import xarray as xr

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
    architecture: Spec, values: Mapping[str, Any], attrs: Mapping[str, Any], coords: Coordinates | None = None
) -> xr.Dataset:
    """Predicted quantities by registry name; each carries ``attrs`` too, so that it keeps them when merged."""
    for name in values:
        require_choice("a quantity", name, QUANTITIES)
    variables = {name: _variable(name, value, attrs) for name, value in values.items()}
    return _dataset(architecture, variables, attrs, coords)


def plain_dataset(
    architecture: Spec, values: Mapping[str, Any], attrs: Mapping[str, Any], coords: Coordinates | None = None
) -> xr.Dataset:
    """Quantities by registry name as they are, without errors."""
    variables = {name: _variable(name, value) for name, value in values.items()}
    return _dataset(architecture, variables, attrs, coords)


def measured_dataset(
    architecture: Spec,
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
    return _dataset(architecture, variables, attrs, coords)


def _variable(name: str, value: Any, attrs: Mapping[str, Any] | None = None) -> xr.Variable:
    quantity = QUANTITIES[name]
    said = {field: getattr(quantity, field) for field in ("long_name", "symbol", "definition", "scaling", "source")}
    return _array(np.asarray(value, dtype=float), quantity.dims, said | {"units": "1"} | dict(attrs or {}))


def _array(values: Any, dims: Sequence[str], attrs: Mapping[str, Any]) -> xr.Variable:
    """Without coordinates: arrays that have their own are aligned one by one, which took half of a small run."""
    import xarray as xr

    return xr.Variable(dims, values, attrs)


def _dataset(
    architecture: Spec, variables: Mapping[str, xr.Variable], attrs: Mapping[str, Any], coords: Coordinates | None
) -> xr.Dataset:
    import xarray as xr

    spec = {"architecture": json.dumps(architecture.describe())}
    sizes = {dim: size for variable in variables.values() for dim, size in variable.sizes.items()}
    return xr.Dataset(variables, dict(coords or {}) | _counted(sizes, architecture.first_layer), spec | dict(attrs))


def _counted(sizes: Mapping[Any, int], first_layer: int) -> dict[str, Any]:
    """Coordinates of the dims that count, and of quantiles."""
    firsts = dict.fromkeys(LAYERS, first_layer) | dict.fromkeys(STEPS, 1)
    coords: dict[str, Any] = {
        dim: np.arange(first, first + sizes[dim]) for dim, first in firsts.items() if dim in sizes
    }
    return coords | ({"quantile": list(SHARES)} if "quantile" in sizes else {})
