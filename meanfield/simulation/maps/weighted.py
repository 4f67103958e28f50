"""Maps with weights, and how these move: stencils of them, side by side, biases and gains.

A weight W moves by its gradient, the sum over its uses of U X^T, U its errors (out, B S) and X the patches of its
features (in taps, B S), of B samples on S sites. So the output of a use moves by sum_uses U (X^T X_here): by Gram
matrices of the features or by the gradient itself, whichever is less work. Gradients are kept as the factors U and X
where these are fewer numbers than the matrix, unless the matrix is multiplied out without patches.

ReLU and a linear map are one map where both are done without arrays between them.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from operator import iadd
from typing import Any

from meanfield.nets.lattice import SiteTable, neighbours, reversed_neighbours
from meanfield.nets.maps import Bias, Gain, Linear, Map, Pointwise, Weight
from meanfield.nets.net import Chain, Net, Unit
from meanfield.optimizers.linear_algebra import Factored, is_worth_factors
from meanfield.simulation.kernels.stencils import DirectConvolution
from meanfield.simulation.maps.base import Multiplier, Setting, Use, WeightedOperation, operation
from meanfield.simulation.maps.weightless import PointwiseOperation
from meanfield.simulation.weights import Dense, WeightMatrix


@operation(Linear)
class LinearOperation(WeightedOperation):
    """W patches(X), and back patches^T(W^T U): by products with the patches, or by a `direct_convolution`."""

    splits_by_order = True
    by_rows = True

    def degree(self, spec: Linear) -> int:
        return 1

    def forward(self, spec: Linear, values: Any, setting: Setting) -> tuple[Any, None]:
        return self._product(spec, values, setting, self.rectifies), None

    def backward(self, spec: Linear, values: Any, kept: None, errors: Any, setting: Setting, in_place: bool) -> Any:
        if direct := direct_convolution(spec, setting):
            shifts = stencil(spec, setting, reversed_neighbours)
            return direct.convolve_transpose(matrix_of(spec, setting), errors, shifts)
        draws, _, rows, sites = errors.shape
        flat, first = errors.reshape(*errors.shape[:2], rows * sites), 0
        pulled: Any = None
        for matrix, size in matrices_of(spec, setting).items():
            part = matrix.transpose_times(flat[:, first : first + size])
            pulled, first = part if pulled is None else pulled + part, first + size
        if spec.stays:
            return pulled.reshape(draws, -1, rows, sites)
        return setting.arrays.gather_transpose(pulled, stencil(spec, setting, reversed_neighbours), rows)

    def tangent(self, spec: Linear, values: Any, kept: None, moved: Any, setting: Setting) -> Any:
        return self._product(spec, moved, setting, False)

    def by_order(self, spec: Linear, terms: list[Any], way: Setting, change: Setting) -> list[Any]:
        kept = super().by_order(spec, terms, way, change)
        changed = super().by_order(spec, terms, change, change)
        return [kept[0], *(up + own for up, own in zip(kept[1:], changed[:-1], strict=True)), changed[-1]]

    def patches(self, spec: Linear, values: Any, setting: Setting) -> Any:
        return patches_of(spec, values, setting)

    def moves(self, specs: Sequence[Linear], errors: Sequence[Any], seen: Iterable[Any], setting: Setting) -> list[Any]:
        """sum_uses U (X^T X_here) at every use."""
        features = list(seen)
        if specs[0].weights[0].groups > 1:
            return self._moves_by_group(specs, errors, features, setting)
        if len(specs) == 1:
            return [own_update(specs[0], errors[0], features[0], setting)]
        return _tied_updates(specs, errors, features, setting)

    def _moves_by_group(
        self, specs: Sequence[Linear], errors: Sequence[Any], features: Sequence[Any], setting: Setting
    ) -> list[Any]:
        """`moves` of every group by itself."""
        (weight,) = specs[0].weights
        rows, below = weight.group_rows, weight.shape[1]
        alone = Weight(weight.name, (rows, *weight.shape[1:]), weight.variance)
        own_specs, by_group = [replace(spec, weights=(alone,)) for spec in specs], []
        for group in range(weight.groups):
            own = [error[:, group * rows : (group + 1) * rows] for error in errors]
            seen = (values[:, group * below : (group + 1) * below] for values in features)
            by_group.append(self.moves(own_specs, own, seen, setting))
        return [setting.arrays.xp.concatenate(parts, axis=1) for parts in zip(*by_group, strict=True)]

    def kernel(self, spec: Linear, features: Any, setting: Setting) -> Any:
        """X^T X x identity over the channels above, X the patches that a channel's group sees."""
        draws, _, samples, _ = features.shape
        rows, first = sum(weight.shape[0] for weight in spec.weights), 0
        pairs = samples * prod(spec.grid_above(setting.grid))
        kernel = setting.arrays.xp.zeros((draws, rows, rows, pairs, pairs), dtype=setting.arrays.precision)
        for weight in spec.weights:
            size = features.shape[1] // weight.groups
            for group in range(weight.groups):
                gram = site_gram(spec, features[:, group * size : (group + 1) * size], setting)
                for channel in range(first, first + weight.group_rows):
                    kernel[:, channel, channel] = gram
                first += weight.group_rows
        return kernel

    def gradient(self, uses: Sequence[Use], errors: Sequence[Any]) -> Any:
        if _by_factors(uses):
            return _factored(uses, errors, [use.patches for use in uses])
        return _added_up(self._gradient_of_use(use, error) for use, error in zip(uses, errors, strict=True))

    def moved_by(self, use: Use, change: Multiplier) -> Any:
        if direct := direct_convolution(use.spec, use.setting):
            matrix = use.setting.arrays.moved(change.matrix)  # SSO steps in double precision
            return direct.convolve(matrix, use.values, stencil(use.spec, use.setting), self.rectifies)
        moved, errors = change.times(use.patches), use.errors
        return moved.reshape(*moved.shape[:2], use.setting.samples, errors.shape[3])

    def _gradient_of_use(self, use: Use, errors: Any) -> Any:
        """U X^T of one use, (D, out, in taps), for errors (D, out, B, S)."""
        if direct := direct_convolution(use.spec, use.setting):
            return direct.weight_gradient(errors, use.values, stencil(use.spec, use.setting), self.rectifies)
        return _multiplied(use, errors, use.patches)

    def curvature(self, uses: Sequence[Use], errors: Sequence[Any]) -> Any:
        return _squared_gradients(uses, errors)

    def _product(self, spec: Linear, columns: Any, setting: Setting, rectified: bool) -> Any:
        """W patches of columns, or of what the weights see of them."""
        if direct := direct_convolution(spec, setting):
            return direct.convolve(matrix_of(spec, setting), columns, stencil(spec, setting), rectified)
        patches = patches_of(spec, self.seen(spec, columns, setting) if rectified else columns, setting)
        products = [matrix.times(patches) for matrix in matrices_of(spec, setting)]
        image = products[0] if len(products) == 1 else setting.arrays.xp.concatenate(products, axis=1)
        return image.reshape(*image.shape[:2], columns.shape[2], -1)  # draws may share what comes in


class VectorOperation(WeightedOperation):
    """One with a weight without rows, each element of which acts element by element."""

    @abstractmethod
    def alone(self, use: Use, errors: Any) -> Any:
        """Errors (D, C, [r,] B, S) times what the weight multiplies, (D, elements, [r,] B, S): gradients by place."""

    @abstractmethod
    def sizes_alone(self, use: Use, errors: Any) -> Any:
        """The sizes of the products in `alone`, (D, elements, B, S), for errors (D, C, B, S)."""

    def gradient(self, uses: Sequence[Use], errors: Sequence[Any]) -> Any:
        return _added_up(error.sum(axis=(2, 3)) for error in map(self.alone, uses, errors))[:, :, None]

    def gradient_terms(self, uses: Sequence[Use], errors: Sequence[Any]) -> Any:
        """The sum of the sizes of what `gradient` adds up, in its shape."""
        return _added_up(sizes.sum(axis=(2, 3)) for sizes in map(self.sizes_alone, uses, errors))[:, :, None]

    def moved_by(self, use: Use, change: Multiplier) -> Any:
        """The change of every element times what it multiplies."""
        by_element = change.times(use.setting.arrays.xp.ones((1, 1, 1), dtype=use.errors.dtype))[..., None]
        return self.moved_elements(by_element, use)

    @abstractmethod
    def moved_elements(self, by_element: Any, use: Use) -> Any:
        """`moved_by` of a change (D, elements, 1, 1)."""

    def curvature(self, uses: Sequence[Use], errors: Sequence[Any]) -> Any:
        alone = _added_up(error.sum(axis=4) for error in map(self.alone, uses, errors))
        return (alone * alone).sum(axis=(2, 3))[:, :, None]


@operation(Bias)
class BiasOperation(VectorOperation):
    """X + b: errors and tangents pass unchanged."""

    splits_by_order = True

    def forward(self, spec: Bias, values: Any, setting: Setting) -> tuple[Any, None]:
        return values + _as_column(spec, values, setting), None

    def backward(self, spec: Bias, values: Any, kept: None, errors: Any, setting: Setting, in_place: bool) -> Any:
        return errors

    def tangent(self, spec: Bias, values: Any, kept: None, moved: Any, setting: Setting) -> Any:
        return moved

    def by_order(self, spec: Bias, terms: list[Any], way: Setting, change: Setting) -> list[Any]:
        kept, moved, *others = terms
        return [self.forward(spec, kept, way)[0], self.forward(spec, moved, change)[0], *others]

    def patches(self, spec: Bias, values: Any, setting: Setting) -> Any:
        return setting.arrays.xp.ones((len(values), 1, values.shape[2] * values.shape[3]), dtype=values.dtype)

    def moves(self, specs: Sequence[Bias], errors: Sequence[Any], seen: Iterable[Any], setting: Setting) -> list[Any]:
        total = sum(setting.by_sample(error).sum(axis=(3, 4)) for error in errors)[..., None, None]
        ones = setting.arrays.xp.ones((1, 1, 1, *setting.by_sample(errors[0]).shape[3:]), dtype=errors[0].dtype)
        return [(total * ones).reshape(error.shape) for error in errors]

    def kernel(self, spec: Bias, features: Any, setting: Setting) -> Any:
        draws, channels, samples, sites = features.shape
        shape, own = (draws, channels, channels, samples * sites, samples * sites), range(channels)
        kernel = setting.arrays.xp.zeros(shape, dtype=setting.arrays.precision)
        kernel[:, own, own] = 1.0
        return kernel

    def alone(self, use: Use, errors: Any) -> Any:
        return errors

    def sizes_alone(self, use: Use, errors: Any) -> Any:
        return use.setting.arrays.xp.abs(errors)

    def moved_elements(self, by_element: Any, use: Use) -> Any:
        shape = (*by_element.shape[:2], use.setting.samples, use.errors.shape[3])
        return use.setting.arrays.xp.broadcast_to(by_element, shape).copy(order=use.setting.arrays.order)


@operation(Gain)
class GainOperation(VectorOperation):
    """g X: errors and tangents pick up g."""

    no_matrix = "gains are no matrices, and are moved by gradients alone; leave them out of the net"

    def degree(self, spec: Gain) -> int:
        return 1

    def forward(self, spec: Gain, values: Any, setting: Setting) -> tuple[Any, None]:
        return _as_column(spec, values, setting) * values, None

    def backward(self, spec: Gain, values: Any, kept: None, errors: Any, setting: Setting, in_place: bool) -> Any:
        return _as_column(spec, errors, setting) * errors

    def tangent(self, spec: Gain, values: Any, kept: None, moved: Any, setting: Setting) -> Any:
        return _as_column(spec, moved, setting) * moved

    def moves(self, specs: Sequence[Gain], errors: Sequence[Any], seen: Iterable[Any], setting: Setting) -> list[Any]:
        """(sum_uses sum U X) X_here at every use, of sums over channels, samples and sites."""
        columns, apart = [setting.by_sample(error) for error in errors], [values[:, :, None] for values in seen]
        sums = ((own * x).sum(axis=(1, 3, 4)) for own, x in zip(columns, apart, strict=True))
        total = sum(sums)[:, None, :, None, None]
        return [(total * x).reshape(error.shape) for x, error in zip(apart, errors, strict=True)]

    def kernel(self, spec: Gain, features: Any, setting: Setting) -> Any:
        """x x^T over all channels and places."""
        flat = features.reshape(*features.shape[:2], -1)
        return flat[:, :, None, None] * flat[:, None, :, :, None]

    def rows(self, spec: Gain, weight: Weight, error: Any) -> int:
        return int(error.shape[1])

    def alone(self, use: Use, errors: Any) -> Any:
        values = use.values.reshape(*use.values.shape[:2], *[1] * (errors.ndim - 4), *use.values.shape[2:])
        return (errors * values).sum(axis=1)[:, None]

    def sizes_alone(self, use: Use, errors: Any) -> Any:
        return use.setting.arrays.xp.abs(errors * use.values).sum(axis=1)[:, None]

    def moved_elements(self, by_element: Any, use: Use) -> Any:
        return by_element * use.values


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
    """patches(X): (D, C, R, S) -> (D, C k, R S')."""
    if spec.stays:
        return values.reshape(*values.shape[:2], -1)
    return setting.arrays.gather(values, stencil(spec, setting))


def stencil(spec: Linear, setting: Setting, table: Callable[..., SiteTable] = neighbours) -> SiteTable:
    """The table of neighbours of a map's kernel, or the one of the transposed shifts (`reversed_neighbours`)."""
    kernel = spec.kernel or (1,) * len(setting.grid)
    return table(setting.grid, kernel, spec.padding, spec.dilation, spec.stride)


def own_update(spec: Linear, error: Any, features: Any, setting: Setting) -> Any:
    """U (X^T X), X the patches of the features: as U times the Gram matrix or as (U X^T) X, the cheaper."""
    places = setting.samples * error.shape[3]
    if places == 1:  # the Gram matrix is a number, whatever the memory order of the errors
        return error * site_gram(spec, features, setting)[..., None]
    draws, channels, rows_of_sites, sites = error.shape
    columns = rows_of_sites * sites // places
    gram, explicit = own_update_operations(places, features.shape[1], spec.taps, channels * columns)
    if gram <= explicit and setting.arrays.normals is None and error.strides[1] == error.itemsize:
        # As errors of lazily revealed weights lie: channels innermost, which the product from the left leaves so.
        by_column = error.reshape(draws, channels, columns, places).transpose(0, 2, 3, 1)
        update = (site_gram(spec, features, setting)[:, None] @ by_column).transpose(0, 3, 1, 2)
        return update.reshape(error.shape)
    rows = error.reshape(draws, -1, places)
    if gram <= explicit:
        update = rows @ site_gram(spec, features, setting)
    else:
        patches = patches_of(spec, features, setting)
        update = (rows @ patches.swapaxes(1, 2)) @ patches
    return update.reshape(error.shape)


def own_update_operations(places: int, channels: int, taps: int, rows: int) -> tuple[int, int]:
    """Operation counts of U (X^T X) and of (U X^T) X, for U with ``rows`` rows and X from ``channels`` channels."""
    gram = (2 * channels + taps + 2 * rows) * places**2
    explicit = 4 * rows * channels * taps * places
    return gram, explicit


def site_gram(spec: Linear, features: Any, setting: Setting) -> Any:
    """X^T X over all site pairs of the batch, (D, B S', B S'); without a stride X = patches(features) is not formed."""
    draws, channels, samples, sites = features.shape
    strided = max(spec.stride, default=1) > 1  # of all pairs of sites few would be needed
    flat = patches_of(spec, features, setting) if strided else features.reshape(draws, channels, samples * sites)
    # Without the copy NumPy makes one half of the product and mirrors it, in up to four times the product's time.
    gram = flat.swapaxes(1, 2) @ flat.copy()
    if strided or spec.taps == 1:
        return gram
    return setting.arrays.sum_over_shifts(gram, stencil(spec, setting), samples)


def _tied_updates(maps: Sequence[Any], errors: Sequence[Any], features: list[Any], setting: Setting) -> list[Any]:
    """sum_uses U (X^T X_here) at every use of a tied weight, all at once."""
    xp = setting.arrays.xp
    patches = side_by_side([patches_of(spec, x, setting) for spec, x in zip(maps, features, strict=True)], setting)
    draws, channels, places = len(patches), errors[0].shape[1], patches.shape[2] // len(maps)
    columns = xp.concatenate([error.reshape(draws, channels, -1, places) for error in errors], axis=3)
    rows = columns.reshape(draws, -1, patches.shape[2])
    if (rows.shape[1] + patches.shape[1]) * patches.shape[2] <= 2 * rows.shape[1] * patches.shape[1]:
        moved = rows @ (patches.swapaxes(1, 2) @ patches.copy())
    else:
        moved = (rows @ patches.swapaxes(1, 2)) @ patches
    return by_use(moved.reshape(draws, channels, -1, len(maps), places), errors[0].shape[2:], setting)


def by_use(moved: Any, rows_and_sites: tuple[int, ...], setting: Setting) -> list[Any]:
    """(D, C', r, uses, B S) as an array (D, C', r B, S) for every use, each in a piece of memory."""
    uses_first = setting.arrays.xp.ascontiguousarray(moved.transpose(3, 0, 1, 2, 4))
    shaped = uses_first.reshape(len(uses_first), *moved.shape[:2], *rows_and_sites)
    return [shaped[use] for use in range(len(shaped))]


def side_by_side(parts: list[Any], setting: Setting) -> Any:
    return parts[0] if len(parts) == 1 else setting.arrays.xp.concatenate(parts, axis=2)


def _squared_gradients(uses: Sequence[Use], errors: Sequence[Any]) -> Any:
    """The sum over samples and columns of the squares of (sum over uses of U X^T), for errors (D, out, r, B, S)."""
    patches = [use.patches for use in uses]
    if len(uses) == 1 and errors[0].shape[4] == 1:  # one place a sample: a product's square is that of its factors
        left, right = (errors[0] * errors[0]).sum(axis=2), patches[0] * patches[0]
        return _factored(uses, [left], [right]) if _by_factors(uses) else _multiplied(uses[0], left, right)
    total: Any = 0
    for sample in range(errors[0].shape[3]):
        of_sample = [
            x.reshape(*x.shape[:2], -1, error.shape[4])[:, :, sample] for x, error in zip(patches, errors, strict=True)
        ]
        for column in range(errors[0].shape[2]):
            own = (error[:, :, column, sample] for error in errors)
            alone = _added_up(_multiplied(use, error, x) for use, error, x in zip(uses, own, of_sample, strict=True))
            total = total + alone * alone
    return total


def _added_up(parts: Iterable[Any]) -> Any:
    """The sum of fresh arrays, in the memory of the first."""
    return reduce(iadd, parts)


def _by_factors(uses: Sequence[Use]) -> bool:
    """Whether U and X of all uses are fewer numbers than the weight, and patches are made at all."""
    if direct_convolution(uses[0].spec, uses[0].setting):
        return False
    weight, places = uses[0].weight, uses[0].setting.samples * uses[0].errors.shape[3]
    return weight.groups == 1 and is_worth_factors((weight.shape[0], weight.fan_in), len(uses) * places)


def _factored(uses: Sequence[Use], errors: Sequence[Any], patches: Sequence[Any]) -> Factored:
    xp, nets = uses[0].setting.arrays.xp, len(errors[0])
    sides = [[x.reshape(*x.shape[:2], -1) for x in side] for side in (errors, patches)]
    left, right = (side[0] if len(side) == 1 else xp.concatenate(side, axis=2) for side in sides)
    return Factored(left, right if len(right) == nets else xp.broadcast_to(right, (nets, *right.shape[1:])))


def _multiplied(use: Use, errors: Any, patches: Any) -> Any:
    """Errors (D, out, ...) times patches (D, in taps, ...), summed over places.

    With several groups, their matrices lie one below the other.
    """
    groups = use.weight.groups
    rows = errors.reshape(len(errors), groups, errors.shape[1] // groups, -1)
    below = patches.reshape(len(patches), groups, patches.shape[1] // groups, -1)
    return (rows @ below.swapaxes(2, 3)).reshape(len(rows), errors.shape[1], -1)


RELU = Pointwise("relu")
GATED = PointwiseOperation()


@dataclass(frozen=True)
class RectifiedLinear(Linear):
    """Z = W patches(max(X, 0))."""


@operation(RectifiedLinear)
class RectifiedLinearOperation(LinearOperation):
    """W patches(relu(X)), and back relu'(X) patches^T(W^T U): the two maps one after the other, or at once."""

    reads = True
    rectifies = True

    def seen(self, spec: Linear, values: Any, setting: Setting) -> Any:
        return GATED.forward(RELU, values, setting)[0]

    def backward(self, spec: Linear, values: Any, kept: None, errors: Any, setting: Setting, in_place: bool) -> Any:
        direct = direct_convolution(spec, setting)
        if direct and errors.shape[2] == values.shape[2]:
            return direct.convolve_transpose(
                matrix_of(spec, setting), errors, stencil(spec, setting, reversed_neighbours), gate=values
            )
        below = super().backward(spec, values, kept, errors, setting, in_place)
        return GATED.backward(RELU, values, None, below, setting, True)

    def tangent(self, spec: Linear, values: Any, kept: None, moved: Any, setting: Setting) -> Any:
        return super().tangent(spec, values, kept, GATED.tangent(RELU, values, None, moved, setting), setting)


def rectified_net(net: Net) -> Chain:
    """The same net with every ReLU that a stencil of weights follows joined to it."""
    top = None if net.readout_unit is None else _joined_in(net.readout_unit)
    return Chain.of(net, units=tuple(map(_joined_in, net.units)), readout_unit=top)


def _joined_in(unit: Unit) -> Unit:
    branch, shortcut, after = map(_joined, (unit.branch, unit.shortcut, unit.after))
    return replace(unit, branch=branch, shortcut=shortcut, after=after)


def _joined(maps: tuple[Any, ...]) -> tuple[Map, ...]:
    joined: list[Map] = []
    for spec in maps:
        if spec.is_one_stencil and joined and joined[-1] == RELU:
            joined[-1] = RectifiedLinear(spec.weights, spec.padding, spec.dilation, spec.stride)
        else:
            joined.append(spec)
    return tuple(joined)
