"""One schema for what is measured and what is predicted: xarray datasets whose variables the registry defines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from meanfield.architectures import Sequential
from meanfield.estimates import Estimate
from meanfield.quantities import QUANTITIES

Coordinates = Mapping[str, Sequence[Any]]


def predicted_dataset(
    architecture: Sequential, values: Mapping[str, Any], attrs: Mapping[str, Any], coords: Coordinates | None = None
) -> xr.Dataset:
    """Predicted quantities by registry name; each carries ``attrs`` too, so that it keeps them when merged."""
    variables = {name: _variable(name, value).assign_attrs(attrs) for name, value in values.items()}
    return _with_layers(xr.Dataset(variables, coords, attrs=_spec(architecture) | dict(attrs)))


def measured_dataset(
    architecture: Sequential,
    estimates: Mapping[str, Estimate],
    attrs: Mapping[str, Any],
    coords: Coordinates | None = None,
) -> xr.Dataset:
    """Measured quantities: NAME, NAME_stderr, NAME_largest_share and, per layer, NAME_covariance of the means."""
    sizes = {"layer": len(architecture.unit_ends)} | {dim: len(values) for dim, values in (coords or {}).items()}
    variables: dict[str, xr.DataArray] = {}
    for name, estimate in estimates.items():
        shape = tuple(sizes[dim] for dim in QUANTITIES[name].dims)
        variables[name] = _variable(name, estimate.mean.reshape(shape))
        variables[f"{name}_stderr"] = _companion(name, "standard error over draws", estimate.stderr.reshape(shape))
        share = estimate.largest_share.reshape(shape)
        variables[f"{name}_largest_share"] = _companion(name, "share of the largest draw in the mean", share)
        if QUANTITIES[name].dims == ("layer",):
            label = {"long_name": f"{QUANTITIES[name].long_name}: covariance of the means over draws"}
            variables[f"{name}_covariance"] = xr.DataArray(
                estimate.covariance, dims=("layer", "layer_other"), attrs=label
            )
    return _with_layers(xr.Dataset(variables, coords, attrs=_spec(architecture) | dict(attrs)))


def _spec(architecture: Sequential) -> dict[str, str]:
    return {"architecture": json.dumps(architecture.describe())}


def _variable(name: str, value: Any) -> xr.DataArray:
    quantity = QUANTITIES[name]
    attrs = {
        "long_name": quantity.long_name,
        "symbol": quantity.symbol,
        "definition": quantity.definition,
        "scaling": quantity.scaling,
        "source": quantity.source,
        "units": "1",
    }
    return xr.DataArray(np.asarray(value, dtype=float), dims=quantity.dims, attrs=attrs)


def _companion(name: str, what: str, value: Any) -> xr.DataArray:
    quantity = QUANTITIES[name]
    return xr.DataArray(value, dims=quantity.dims, attrs={"long_name": f"{quantity.long_name}: {what}", "units": "1"})


def _with_layers(dataset: xr.Dataset) -> xr.Dataset:
    coords = {dim: np.arange(1, dataset.sizes[dim] + 1) for dim in ("layer", "layer_other") if dim in dataset.sizes}
    return dataset.assign_coords(coords)
