"""ReLU and a linear map as one, where both are done without arrays between them."""

from dataclasses import dataclass, replace
from typing import Any

from meanfield.nets.chain import Chain
from meanfield.nets.maps import Linear, Map, Pointwise
from meanfield.nets.net import Net
from meanfield.simulation.maps.base import Setting
from meanfield.simulation.maps.linear import (
    LinearOperation,
    direct_convolution,
    matrix_of,
    reversed_stencil,
)
from meanfield.simulation.maps.pointwise import PointwiseOperation

RELU = Pointwise("relu")
GATED = PointwiseOperation()


@dataclass(frozen=True)
class RectifiedLinear(Linear):
    """Z = W patches(max(X, 0))."""


class RectifiedLinearOperation(LinearOperation):
    """W patches(relu(X)), and back relu'(X) patches^T(W^T U): the two maps one after the other, or at once."""

    reads = True
    rectifies = True

    def seen(self, spec: Linear, values: Any, setting: Setting) -> Any:
        return GATED.forward(RELU, values, setting)[0]

    def backward(self, spec: Linear, values: Any, kept: None, errors: Any, setting: Setting, in_place: bool) -> Any:
        direct = direct_convolution(spec, setting)
        if direct and errors.shape[2:] == values.shape[2:]:
            return direct.convolve_transpose(
                matrix_of(spec, setting), errors, reversed_stencil(spec, setting), gate=values
            )
        below = super().backward(spec, values, kept, errors, setting, in_place)
        return GATED.backward(RELU, values, None, below, setting, True)

    def tangent(self, spec: Linear, values: Any, kept: None, moved: Any, setting: Setting) -> Any:
        return super().tangent(spec, values, kept, GATED.tangent(RELU, values, None, moved, setting), setting)


def rectified(net: Net) -> Chain:
    """The same net with every ReLU that a stencil of weights follows joined to it."""
    units = tuple(replace(unit, branch=_joined(unit.branch), after=_joined(unit.after)) for unit in net.units)
    top = None if net.readout_unit is None else replace(net.readout_unit, branch=_joined(net.readout_unit.branch))
    return Chain.of(net, units=units, readout_unit=top)


def _joined(maps: tuple[Map, ...]) -> tuple[Map, ...]:
    joined: list[Map] = []
    for spec in maps:
        if isinstance(spec, Linear) and spec.is_one_stencil and joined and joined[-1] == RELU:
            joined[-1] = RectifiedLinear(spec.weights, spec.padding, spec.dilation)
        else:
            joined.append(spec)
    return tuple(joined)
