"""ReLU and a linear map as one, where both are done without arrays between them."""

from __future__ import annotations

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
    stencil,
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

    def forward(self, one: Linear, values: Any, setting: Setting) -> tuple[Any, None]:
        if direct := direct_convolution(one, setting):
            return direct.convolve(matrix_of(one, setting), values, stencil(one, setting), rectified=True), None
        return super().forward(one, self.seen(one, values, setting), setting)

    def seen(self, one: Linear, values: Any, setting: Setting) -> Any:
        return GATED.forward(RELU, values, setting)[0]

    def backward(self, one: Linear, values: Any, kept: None, errors: Any, setting: Setting, in_place: bool) -> Any:
        direct = direct_convolution(one, setting)
        if direct and errors.shape[2:] == values.shape[2:]:
            return direct.convolve_transpose(
                matrix_of(one, setting), errors, reversed_stencil(one, setting), gate=values
            )
        below = super().backward(one, values, kept, errors, setting, in_place)
        return GATED.backward(RELU, values, None, below, setting, True)

    def tangent(self, one: Linear, values: Any, kept: None, moved: Any, setting: Setting) -> Any:
        return super().tangent(one, values, kept, GATED.tangent(RELU, values, None, moved, setting), setting)


def rectified(net: Net) -> Chain:
    """The same net with every ReLU that a stencil of weights follows joined to it."""
    units = tuple(replace(unit, branch=_joined(unit.branch), after=_joined(unit.after)) for unit in net.units)
    top = net.readout_unit
    return Chain(
        units=units,
        readout_unit=None if top is None else replace(top, branch=_joined(top.branch)),
        input_channels=net.first_channels,
        grid=net.grid,
        inputs=net.inputs,
        input_law=net.input_law,
    )


def _joined(maps: tuple[Map, ...]) -> tuple[Map, ...]:
    found: list[Map] = []
    for one in maps:
        if isinstance(one, Linear) and one.is_one_stencil and found and found[-1] == RELU:
            found[-1] = RectifiedLinear(one.weights, one.padding, one.dilation)
        else:
            found.append(one)
    return tuple(found)
