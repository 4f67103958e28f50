"""Activations and gates, element by element."""

from typing import Any

from meanfield.nets.activations import ACTIVATIONS
from meanfield.nets.maps import Gate, Pointwise
from meanfield.simulation.maps.base import Operation, Setting


class PointwiseOperation(Operation):
    """sigma(X); errors and tangents pick up sigma'(X)."""

    remade = True
    reads = True

    def degree(self, spec: Pointwise) -> int | None:
        return 1 if ACTIVATIONS[spec.activation].homogeneous else None

    def forward(self, spec: Pointwise, values: Any, setting: Setting) -> tuple[Any, None]:
        return ACTIVATIONS[spec.activation].function(values, setting.arrays.pointwise), None

    def backward(self, spec: Pointwise, values: Any, kept: None, errors: Any, setting: Setting, in_place: bool) -> Any:
        return _gated(spec, values, errors, setting, errors if in_place else None)

    def tangent(self, spec: Pointwise, values: Any, kept: None, moved: Any, setting: Setting) -> Any:
        return _gated(spec, values, moved, setting)


def _gated(spec: Pointwise, values: Any, columns: Any, setting: Setting, out: Any = None) -> Any:
    """sigma'(X) times every column, written to ``out``, if given."""
    gate = ACTIVATIONS[spec.activation].gate(values, setting.arrays.pointwise)
    if columns.shape == values.shape:
        return setting.arrays.xp.multiply(gate, columns, out=out)
    target = None if out is None else setting.by_sample(out)
    return setting.arrays.xp.multiply(gate[:, :, None], setting.by_sample(columns), out=target).reshape(columns.shape)


class GateOperation(Operation):
    """sigma(X_1) X_2 of the two halves of the channels; sigma(X_1) is kept."""

    reads = True

    def degree(self, spec: Gate) -> int | None:
        return 2 if ACTIVATIONS[spec.activation].homogeneous else None

    def kept(self, spec: Gate, below: int, sites: int) -> int:
        return below // 2

    def forward(self, spec: Gate, values: Any, setting: Setting) -> tuple[Any, Any]:
        gating, gated = _halves(values)
        activated = ACTIVATIONS[spec.activation].function(gating, setting.arrays.pointwise)
        return activated * gated, activated

    def backward(self, spec: Gate, values: Any, kept: Any, errors: Any, setting: Setting, in_place: bool) -> Any:
        of_gating, of_gated = _slopes(spec, values, kept, setting)
        columns = setting.by_sample(errors)
        both = setting.arrays.xp.concatenate([columns * of_gating, columns * of_gated], axis=1)
        return both.reshape(len(errors), -1, *errors.shape[2:])

    def tangent(self, spec: Gate, values: Any, kept: Any, moved: Any, setting: Setting) -> Any:
        of_gating, of_gated = _slopes(spec, values, kept, setting)
        first, second = _halves(setting.by_sample(moved))
        return (first * of_gating + second * of_gated).reshape(len(moved), -1, *moved.shape[2:])


def _halves(values: Any) -> tuple[Any, Any]:
    middle = values.shape[1] // 2
    return values[:, :middle], values[:, middle:]


def _slopes(spec: Gate, values: Any, activated: Any, setting: Setting) -> tuple[Any, Any]:
    """Derivatives of the product by its two halves, with an axis for columns: sigma'(X_1) X_2 and sigma(X_1)."""
    gating, gated = _halves(values)
    slope = ACTIVATIONS[spec.activation].gate(gating, setting.arrays.pointwise)
    return (slope * gated)[:, :, None], activated[:, :, None]
