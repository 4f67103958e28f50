"""Biases."""

from __future__ import annotations

from typing import Any

from meanfield.nets.maps import Bias
from meanfield.simulation.maps.base import Operation, Setting


class BiasOperation(Operation):
    """X + b: errors and tangents pass unchanged."""

    def forward(self, one: Bias, values: Any, setting: Setting) -> tuple[Any, None]:
        column = setting.weights[one.weight.name].times(setting.arrays.xp.ones((len(values), 1, 1), dtype=values.dtype))
        return values + column[..., None], None

    def backward(self, one: Bias, values: Any, kept: None, errors: Any, setting: Setting, in_place: bool) -> Any:
        return errors

    def tangent(self, one: Bias, values: Any, kept: None, moved: Any, setting: Setting) -> Any:
        return moved
