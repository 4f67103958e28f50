"""Changes of datasets that the controls of several papers make."""

import numpy as np
import xarray as xr

SCALE = "label_learning_rate_scale"
# Relative errors of numbers that are made up here.
ERROR = 1e-3
MANY_DRAWS = 64


def put(dataset, name, values, **where):
    """The dataset with these values of NAME, and small errors if it has any, at a place."""
    changed = {name: dataset[name].astype(float).copy()}
    changed[name].loc[where] = np.asarray(values)
    if f"{name}_stderr" in dataset:
        changed[f"{name}_stderr"] = dataset[f"{name}_stderr"].copy()
        changed[f"{name}_stderr"].loc[where] = ERROR * np.abs(np.asarray(values))
    if f"{name}_covariance" in dataset:
        changed[f"{name}_covariance"] = dataset[f"{name}_covariance"].copy()
        changed[f"{name}_covariance"].loc[where] = np.diag(np.square(ERROR * np.asarray(values)))
    if f"{name}_largest_share" in dataset:
        changed[f"{name}_largest_share"] = 0 * dataset[f"{name}_largest_share"]
    return dataset.assign(changed)


def off_by_a_power(dataset, name):
    """Values that go as the size itself, in every draw nearly alike."""
    direction = name.rsplit("_", 1)[1]
    draws = 1 + ERROR * np.cos(dataset["draw"])
    return dataset.assign({name: 0 * dataset[name] + dataset[direction] * draws})


def many_draws(dataset):
    """The same draws again and again, and something small that differs between them."""
    draws = MANY_DRAWS
    repeated = dataset.isel(draw=np.arange(draws) % dataset.sizes["draw"]).assign_attrs(draws=draws)
    return repeated, ERROR**2 * xr.DataArray(np.linspace(-1, 1, draws), dims="draw")
