"""Which weights move a value: the change that a group of parameters makes alone, while all others stay.

    S_l^(g) = mean square of the sum over parameters of group g of (dz_l / dW) A

The changes T^(g) of groups that hold every parameter once add up to T; their mean squares do not, as changes may point
against each other.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from torch import nn

from meanfield.torch.models import named, trained


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
