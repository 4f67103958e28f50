"""Pooling over the sites of a sample."""

from typing import Any

from meanfield.nets.maps import Pooling
from meanfield.simulation.maps.base import Operation, Setting


class PoolingOperation(Operation):
    """The mean over sites, or the last of them: (D, C, R, S) -> (D, C, R, 1)."""

    def forward(self, spec: Pooling, values: Any, setting: Setting) -> tuple[Any, int]:
        return self.tangent(spec, values, 0, values, setting), values.shape[3]

    def degree(self, spec: Pooling) -> int:
        return 1

    def backward(self, spec: Pooling, values: Any, kept: int, errors: Any, setting: Setting, in_place: bool) -> Any:
        xp, sites = setting.arrays.xp, kept
        if spec.kind == "mean":
            order = setting.arrays.order
            spread = xp.empty((*errors.shape[:3], sites), errors.dtype, order=order)
            spread[...] = xp.asarray(errors / sites, order=order)
            return spread
        empty = xp.zeros((*errors.shape[:3], sites - 1), dtype=errors.dtype)
        return xp.concatenate([empty, errors], axis=3)

    def tangent(self, spec: Pooling, values: Any, kept: int, moved: Any, setting: Setting) -> Any:
        pooled = moved.mean(axis=3)[..., None] if spec.kind == "mean" else moved[..., -1:].copy()
        # Matrix products of other layouts take another road for one net than for several, and round differently.
        return setting.arrays.xp.ascontiguousarray(pooled)
