"""Linear maps: stencils of weights, side by side."""

from __future__ import annotations

from typing import Any

from meanfield.nets.lattice import Table, neighbours, reversed_neighbours
from meanfield.nets.maps import Linear
from meanfield.simulation.arrays.convolution import DirectConvolution
from meanfield.simulation.maps.base import Operation, Setting
from meanfield.simulation.weights.matrices import Dense


class LinearOperation(Operation):
    """W patches(X), and back patches^T(W^T U): by products with the patches, or without them where arrays can and W is
    all at hand.
    """

    def degree(self, one: Linear) -> int:
        return 1

    def forward(self, one: Linear, values: Any, setting: Setting) -> tuple[Any, None]:
        return self.tangent(one, values, None, values, setting), None

    def backward(self, one: Linear, values: Any, kept: None, errors: Any, setting: Setting, in_place: bool) -> Any:
        if direct := direct_convolution(one, setting):
            return direct.convolve_transpose(matrix_of(one, setting), errors, reversed_stencil(one, setting))
        draws, channels, rows, sites = errors.shape
        flat = errors.reshape(draws, channels, rows * sites)
        pulled: Any = None
        first = 0
        for weight in one.weights:
            last = first + weight.shape[0]
            part = setting.weights[weight.name].transpose_times(flat[:, first:last])
            pulled, first = part if pulled is None else pulled + part, last
        if one.taps == 1:
            return pulled.reshape(draws, -1, rows, sites)
        return setting.arrays.gather_transpose(pulled, reversed_stencil(one, setting), rows)

    def tangent(self, one: Linear, values: Any, kept: None, moved: Any, setting: Setting) -> Any:
        if direct := direct_convolution(one, setting):
            return direct.convolve(matrix_of(one, setting), moved, stencil(one, setting))
        _, _, rows, sites = moved.shape
        patches = patches_of(one, moved, setting)
        products = [setting.weights[weight.name].times(patches) for weight in one.weights]
        whole = products[0] if len(products) == 1 else setting.arrays.xp.concatenate(products, axis=1)
        return whole.reshape(len(whole), -1, rows, sites)  # draws may share what comes in


def direct_convolution(one: Linear, setting: Setting) -> DirectConvolution | None:
    """What does this map without patches: for one stencil, all of whose numbers are at hand, where arrays can."""
    if setting.arrays.convolution is None or not one.is_one_stencil:
        return None
    return setting.arrays.convolution if isinstance(setting.weights[one.weights[0].name], Dense) else None


def matrix_of(one: Linear, setting: Setting) -> Any:
    """The numbers of the map's one weight, (D, n', n k)."""
    weight = setting.weights[one.weights[0].name]
    assert isinstance(weight, Dense)
    return weight.matrix


def patches_of(one: Linear, values: Any, setting: Setting) -> Any:
    """patches(X): (D, C, R, S) -> (D, C k, R S)."""
    if one.taps == 1:
        return values.reshape(*values.shape[:2], -1)
    return setting.arrays.gather(values, stencil(one, setting))


def stencil(one: Linear, setting: Setting) -> Table:
    """The neighbour table of a map's kernel."""
    return neighbours(setting.grid, one.kernel, one.padding, one.dilation)


def reversed_stencil(one: Linear, setting: Setting) -> Table:
    """The table of the transposed shifts."""
    return reversed_neighbours(setting.grid, one.kernel, one.padding, one.dilation)
