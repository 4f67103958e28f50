"""The datasets of all points of a sweep as one, with the swept parameters as leading dims."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from sims.sweep.plan import label


def combined(sweep: Mapping[str, list[Any]], datasets: Sequence[xr.Dataset]) -> xr.Dataset:
    """One dataset over the grid: what points lack (layers of deeper nets, say) is NaN.

    A parameter whose name a simulation's own dims or variables have taken stands as NAME_swept.
    """
    names_taken = {name for dataset in datasets for name in (*dataset.variables, *dataset.dims)}
    names = {name: f"{name}_swept" if name in names_taken else name for name in sweep}
    commands = np.array([dataset.attrs["command"] for dataset in datasets])
    labelled = [_labelled(dataset, datasets) for dataset in datasets]
    nested: list[Any] = labelled
    for values in reversed(list(sweep.values())):
        nested = [nested[start : start + len(values)] for start in range(0, len(nested), len(values))]
    dims = list(names.values())
    points = xr.combine_nested(
        nested[0], concat_dim=dims, data_vars="all", join="outer", combine_attrs="drop_conflicts"
    )
    points = points.assign_coords({names[name]: _coordinate(name, values) for name, values in sweep.items()})
    points["command"] = (dims, commands.reshape([len(values) for values in sweep.values()]))
    points["command"].attrs["long_name"] = "command that makes the point"
    return points.transpose(*dims, ...)


def _labelled(dataset: xr.Dataset, datasets: Sequence[xr.Dataset]) -> xr.Dataset:
    """Bare dims that differ in length between points get numbers, from 0, to be joined by."""
    ragged = {
        str(dim): np.arange(length)
        for dim, length in dataset.sizes.items()
        if dim not in dataset.coords and any(compared.sizes.get(dim, length) != length for compared in datasets)
    }
    return dataset.assign_coords(ragged)


def _coordinate(name: str, values: list[Any]) -> list[Any]:
    """Numbers as they are, all else as words, seeds too: files hold no integers beyond 64 bits."""
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    return values if numbers and name != "seed" else [label(value) for value in values]
