"""Which weights move a value: the change that a group of parameters makes alone, while all others stay.

    S_l^(g) = mean square of the sum over parameters of group g of (dz_l / dW) A

The changes T^(g) of groups that hold every parameter once add up to T; their mean squares do not, as changes may point
against each other.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import xarray as xr
from torch import nn

from meanfield.common.estimates import summarise_each
from meanfield.common.validation import Array
from meanfield.torch.models import named, trained

NAME = "update_energy_of_group"


def grouped(model: nn.Module, groups: Any) -> dict[str, set[str]]:
    """The names of the parameters of every group, from patterns of names; no group where none are asked for.

    Raises:
        TypeError, ValueError: what is no mapping to patterns; patterns that fit no parameter that trains.
    """
    if groups is None:
        return {}
    if not isinstance(groups, Mapping):
        raise TypeError(f"groups is {groups!r}; give a mapping from labels to patterns of names of parameters")
    return {str(label): _fitting(model, patterns) for label, patterns in groups.items()}


def _fitting(model: nn.Module, patterns: Any) -> set[str]:
    listed = [patterns] if isinstance(patterns, str) else patterns
    if not isinstance(listed, Sequence) or not all(isinstance(each, str) for each in listed):
        raise TypeError(f"groups has {patterns!r}; give names of parameters, or patterns such as '*.bias'")
    names = set()
    for pattern in listed:
        fitting = {name for name in trained(model) if fnmatchcase(name, pattern)}
        if not fitting:
            raise ValueError(f"no parameter that trains fits {pattern!r}; the model has {named(trained(model))}")
        names |= fitting
    return names


def with_groups(dataset: xr.Dataset, labels: Sequence[str], energies: Array) -> xr.Dataset:
    """A dataset with S_l^(g) of draws (N, groups, layers) beside it, in the mean over draws, with standard errors."""
    means = summarise_each(energies)
    words = "mean square of the one-step change of a value by one group of parameters alone"
    numbers = {NAME: (means.mean, words), f"{NAME}_stderr": (means.stderr, f"{words}: standard error over draws")}
    variables = {
        name: (("group", "layer"), values, {"long_name": what, "units": "1"})
        for name, (values, what) in numbers.items()
    }
    return dataset.assign(variables).assign_coords(group=list(labels))
