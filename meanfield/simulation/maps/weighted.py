"""Maps with weights: stencils of them, side by side, biases and gains.

ReLU and a linear map are one map where both are done without arrays between them.
"""

from dataclasses import dataclass, replace
from typing import Any

from meanfield.nets.lattice import SiteTable, neighbours, reversed_neighbours
from meanfield.nets.maps import Bias, Gain, Linear, Map, Pointwise
from meanfield.nets.net import Chain, Net
from meanfield.simulation.kernels.convolution import DirectConvolution
from meanfield.simulation.maps.base import Operation, Setting
from meanfield.simulation.maps.weightless import PointwiseOperation
from meanfield.simulation.weights import Dense, WeightMatrix


class LinearOperation(Operation):
    """W patches(X), and back patches^T(W^T U): by products with the patches, or by a `direct_convolution`."""

    def degree(self, spec: Linear) -> int:
        return 1

    def forward(self, spec: Linear, values: Any, setting: Setting) -> tuple[Any, None]:
        return self._product(spec, values, setting, self.rectifies), None

    def backward(self, spec: Linear, values: Any, kept: None, errors: Any, setting: Setting, in_place: bool) -> Any:
        if direct := direct_convolution(spec, setting):
            return direct.convolve_transpose(matrix_of(spec, setting), errors, reversed_stencil(spec, setting))
        draws, _, rows, sites = errors.shape
        flat, first = errors.reshape(*errors.shape[:2], rows * sites), 0
        pulled: Any = None
        for matrix, size in matrices_of(spec, setting).items():
            part = matrix.transpose_times(flat[:, first : first + size])
            pulled, first = part if pulled is None else pulled + part, first + size
        if spec.taps == 1:
            return pulled.reshape(draws, -1, rows, sites)
        return setting.arrays.gather_transpose(pulled, reversed_stencil(spec, setting), rows)

    def tangent(self, spec: Linear, values: Any, kept: None, moved: Any, setting: Setting) -> Any:
        return self._product(spec, moved, setting, False)

    def _product(self, spec: Linear, columns: Any, setting: Setting, rectified: bool) -> Any:
        """W patches of columns, or of what the weights see of them."""
        if direct := direct_convolution(spec, setting):
            return direct.convolve(matrix_of(spec, setting), columns, stencil(spec, setting), rectified)
        _, _, rows, sites = columns.shape
        patches = patches_of(spec, self.seen(spec, columns, setting) if rectified else columns, setting)
        products = [matrix.times(patches) for matrix in matrices_of(spec, setting)]
        image = products[0] if len(products) == 1 else setting.arrays.xp.concatenate(products, axis=1)
        return image.reshape(len(image), -1, rows, sites)  # draws may share what comes in


class BiasOperation(Operation):
    """X + b: errors and tangents pass unchanged."""

    def forward(self, spec: Bias, values: Any, setting: Setting) -> tuple[Any, None]:
        return values + _as_column(spec, values, setting), None

    def backward(self, spec: Bias, values: Any, kept: None, errors: Any, setting: Setting, in_place: bool) -> Any:
        return errors

    def tangent(self, spec: Bias, values: Any, kept: None, moved: Any, setting: Setting) -> Any:
        return moved


class GainOperation(Operation):
    """g X: errors and tangents pick up g."""

    def degree(self, spec: Gain) -> int:
        return 1

    def forward(self, spec: Gain, values: Any, setting: Setting) -> tuple[Any, None]:
        return _as_column(spec, values, setting) * values, None

    def backward(self, spec: Gain, values: Any, kept: None, errors: Any, setting: Setting, in_place: bool) -> Any:
        return _as_column(spec, errors, setting) * errors

    def tangent(self, spec: Gain, values: Any, kept: None, moved: Any, setting: Setting) -> Any:
        return _as_column(spec, moved, setting) * moved


def _as_column(spec: Bias | Gain, values: Any, setting: Setting) -> Any:
    """The numbers of a weight without rows, (D, channels, 1, 1)."""
    unit = setting.arrays.xp.ones((len(values), 1, 1), dtype=values.dtype)
    return setting.weights[spec.weight.name].times(unit)[..., None]


def direct_convolution(spec: Linear, setting: Setting) -> DirectConvolution | None:
    """What does this map without patches: for a single stencil of dense weights, where the arrays have it."""
    if setting.arrays.convolution is None or not spec.is_one_stencil:
        return None
    return setting.arrays.convolution if isinstance(setting.weights[spec.weights[0].name], Dense) else None


def matrices_of(spec: Linear, setting: Setting) -> dict[WeightMatrix, int]:
    """The matrices that stand one below the other in this map, each with its rows; weights may share one."""
    rows: dict[WeightMatrix, int] = {}
    for weight in spec.weights:
        matrix = setting.weights[weight.name]
        rows[matrix] = rows.get(matrix, 0) + weight.shape[0]
    return rows


def matrix_of(spec: Linear, setting: Setting) -> Any:
    """The numbers of the map's one weight, (D, n', n k)."""
    weight = setting.weights[spec.weights[0].name]
    assert isinstance(weight, Dense)
    return weight.matrix


def patches_of(spec: Linear, values: Any, setting: Setting) -> Any:
    """patches(X): (D, C, R, S) -> (D, C k, R S)."""
    if spec.taps == 1:
        return values.reshape(*values.shape[:2], -1)
    return setting.arrays.gather(values, stencil(spec, setting))


def stencil(spec: Linear, setting: Setting) -> SiteTable:
    """The neighbour table of a map's kernel."""
    return neighbours(setting.grid, spec.kernel, spec.padding, spec.dilation)


def reversed_stencil(spec: Linear, setting: Setting) -> SiteTable:
    """The table of the transposed shifts."""
    return reversed_neighbours(setting.grid, spec.kernel, spec.padding, spec.dilation)


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


def rectified_net(net: Net) -> Chain:
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
