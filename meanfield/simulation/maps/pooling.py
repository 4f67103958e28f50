"""Pooling over the sites of a sample."""

from __future__ import annotations

from typing import Any

from meanfield.nets.maps import Pooling
from meanfield.simulation.maps.base import Operation, Setting


class PoolingOperation(Operation):
    """The mean over sites, or the last of them: (D, C, R, S) -> (D, C, R, 1)."""

    remade = True
    reads = True

    def degree(self, one: Pooling) -> int:
        return 1

    def forward(self, one: Pooling, values: Any, setting: Setting) -> tuple[Any, None]:
        return self.tangent(one, values, None, values, setting), None

    def backward(self, one: Pooling, values: Any, kept: None, errors: Any, setting: Setting, in_place: bool) -> Any:
        xp, sites = setting.arrays.xp, values.shape[3]
        if one.kind == "mean":
            return xp.repeat(errors / sites, sites, axis=3)
        empty = xp.zeros((*errors.shape[:3], sites - 1), dtype=errors.dtype)
        return xp.concatenate([empty, errors], axis=3)

    def tangent(self, one: Pooling, values: Any, kept: None, moved: Any, setting: Setting) -> Any:
        return moved.mean(axis=3)[..., None] if one.kind == "mean" else moved[..., -1:].copy()
