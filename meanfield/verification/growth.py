"""Growth of a term with the layer: its exponent over the deeper half of a net, drawn and in theory."""

import numpy as np
import xarray as xr

from meanfield.common.estimates import PowerLaw, log_slope
from meanfield.common.validation import Array

# No law: of means that few draws have left below 0.
NO_LAW = PowerLaw(np.nan, np.nan, np.nan)


def growth_exponent(dataset: xr.Dataset, name: str) -> PowerLaw:
    """Log-log slope over the deeper half of the layers, with correlated errors; NaN where a mean is not positive."""
    deep = deeper_half(dataset.sizes["layer"])
    layer, mean = dataset["layer"].values[deep], dataset[name].values[deep]
    return log_slope(layer, mean, dataset[f"{name}_covariance"].values[deep, deep]) if np.all(mean > 0) else NO_LAW


def exponent_of(growth: Array) -> float:
    """The same slope of a law or prediction over layers 1 .. L."""
    deep = deeper_half(len(growth))
    return float(np.polyfit(np.log(np.arange(1, len(growth) + 1)[deep]), np.log(growth[deep]), 1)[0])


def first_deep_layer(depth: int) -> int:
    """First layer of the deeper half."""
    return max(depth // 2, 1)


def deeper_half(depth: int) -> slice:
    """The places of its layers."""
    return slice(first_deep_layer(depth) - 1, depth)
