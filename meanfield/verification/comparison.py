"""Measured beside predicted: how many standard errors apart, and in what ratio."""

from __future__ import annotations

import xarray as xr

# Differences and errors below this, relative to the prediction, are rounding: there is nothing random to compare.
ROUNDING = 1e-9


def score(measured: xr.DataArray, stderr: xr.DataArray, predicted: xr.DataArray) -> xr.DataArray:
    """(measured - predicted) / stderr, and 0 where neither a difference nor an error is left beyond rounding."""
    difference = measured - predicted
    rounding = ROUNDING * abs(predicted)
    exact = (abs(difference) <= rounding) & (stderr <= rounding)
    return (difference / stderr.where(stderr > 0)).where(~exact, 0.0)


def compare(measured: xr.Dataset, predicted: xr.Dataset) -> xr.Dataset:
    """Differences in standard errors, and ratios, of every quantity that both datasets hold.

    Returns:
        For every shared NAME: ``NAME_zscore`` = (measured - predicted) / standard error, ``NAME_ratio`` =
        measured / predicted and ``NAME_ratio_stderr``, over the quantity's dims. No allowance for finite width is
        made here.

    Raises:
        ValueError: the datasets share no measured quantity.
    """
    shared = [name for name in predicted.data_vars if name in measured and f"{name}_stderr" in measured]
    if not shared:
        held = f"measured holds {list(measured.data_vars)}, predicted holds {list(predicted.data_vars)}"
        raise ValueError(f"nothing to compare: {held}")
    columns = {}
    for name in shared:
        error = measured[f"{name}_stderr"]
        columns[f"{name}_zscore"] = score(measured[name], error, predicted[name])
        columns[f"{name}_ratio"] = measured[name] / predicted[name]
        columns[f"{name}_ratio_stderr"] = error / predicted[name]
    return xr.Dataset(columns)
