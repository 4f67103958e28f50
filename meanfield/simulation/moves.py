"""How moves of the weights change the outputs of their maps: the gradient's own step, or any other move."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from dataclasses import replace
from typing import Any

from meanfield.nets.maps import Bias, Gain, Linear, Weight
from meanfield.nets.net import uses
from meanfield.simulation.maps import operation_of
from meanfield.simulation.maps.base import Setting
from meanfield.simulation.maps.weighted import patches_of, stencil
from meanfield.simulation.passes import Forward, Place, backward, tangent, through_readout


class WeightMoves(ABC):
    """The changes that moved weights make at their places; a weight is moved at all its uses when first asked for."""

    def __init__(self, state: Forward, places: Iterable[Place]) -> None:
        self._state = state
        self._uses: dict[tuple[Weight, ...], list[Place]] = defaultdict(list)
        for place in places:
            self._uses[self._map(place).weights].append(place)
        self._made: dict[Place, Any] = {}

    def of(self, place: Place) -> Any:
        if place not in self._made:
            places = self._uses[self._map(place).weights]
            self._made |= dict(zip(places, self._moved(places), strict=True))
        return self._made.pop(place)

    def _map(self, place: Place) -> Any:
        return self._state.net.units[place[0]].maps[place[1]]

    def _input(self, place: Place) -> Any:
        spec, values = self._map(place), self._state.passages[place[0]].input_of(place[1], self._state.setting)
        return operation_of(spec).seen(spec, values, self._state.setting)

    @abstractmethod
    def _moved(self, places: list[Place]) -> list[Any]:
        """Delta W X at all uses of one weight, or of one stack of them."""


class GradientMoves(WeightMoves):
    """Weights moved by +1 times the gradient of every error column: W by sum over its uses of U X^T.

    At a use the output moves by sum_uses U (X^T X_here), by Gram matrices of the features or by the gradient itself,
    whichever is less work. The ``errors`` are used up: each is let go once its weight has moved.
    """

    def __init__(self, state: Forward, errors: MutableMapping[Place, Any]) -> None:
        super().__init__(state, sorted(errors))
        self._errors = errors

    def _moved(self, places: list[Place]) -> list[Any]:
        spec, setting = self._map(places[0]), self._state.setting
        errors = [self._errors.pop(place) for place in places]
        if isinstance(spec, Bias):
            total = sum(setting.by_sample(error).sum(axis=(3, 4)) for error in errors)[..., None, None]
            shapes = [setting.by_sample(error).shape for error in errors]
            ones = setting.arrays.xp.ones((1, 1, 1, *shapes[0][3:]), dtype=errors[0].dtype)
            return [(total * ones).reshape(error.shape) for error in errors]
        features = [self._input(place) for place in places]
        if isinstance(spec, Gain):
            return _gain_updates(errors, features, setting)
        return _updates([self._map(place) for place in places], errors, features, setting)


def gradient_changes(state: Forward, output_error: Any) -> Iterator[Any]:
    """T_1 .. T_D, (D, C, r B, S), under plain gradients of every column r of errors (D, outputs, r B, sites)."""
    top, _ = through_readout(state, output_error)
    units = len(state.net.units)
    moves = GradientMoves(state, backward(state, top, units))
    return tangent(state, moves, units, top.shape[2] // state.setting.samples)


# Delta W X (D, rows, places B S) for the weights of these places, stacked as they are, given X of all places.
MatrixProduct = Callable[[list[Place], Any], Any]


class MatrixMoves(WeightMoves):
    """Weights moved by matrices: Delta W X at every use, all uses of a weight in one product.

    ``product`` is called once for every weight, or stack of them, with its places and their patches side by side,
    (D, columns, places B S); a bias has a row of ones.
    """

    def __init__(self, state: Forward, product: MatrixProduct) -> None:
        places = [(number, place, holder) for number, place, holder in uses(state.net.units)]
        if any(isinstance(holder, Gain) for *_, holder in places):
            raise ValueError("gains are no matrices, and are moved by gradients alone; leave them out of the net")
        super().__init__(state, [(number, place) for number, place, _ in places])
        self._product = product

    def _moved(self, places: list[Place]) -> list[Any]:
        setting, inputs = self._state.setting, [self._input(place) for place in places]
        maps = [self._map(place) for place in places]
        patches = _side_by_side([_seen(spec, x, setting) for spec, x in zip(maps, inputs, strict=True)], setting)
        moved = self._product(places, patches)
        return _by_use(moved.reshape(*moved.shape[:2], 1, len(places), -1), inputs[0].shape[2:], setting)


def _seen(spec: Any, values: Any, setting: Setting) -> Any:
    """Patches (D, C k, B S) of a linear map's input, and ones (D, 1, B S) of a bias's."""
    if isinstance(spec, Bias):
        return setting.arrays.xp.ones((len(values), 1, values.shape[2] * values.shape[3]), dtype=values.dtype)
    return patches_of(spec, values, setting)


def _gain_updates(errors: list[Any], features: list[Any], setting: Setting) -> list[Any]:
    """(sum_uses sum U X) X_here at every use of one gain, of sums over channels, samples and sites."""
    columns = [setting.by_sample(error) for error in errors]
    apart = [values[:, :, None] for values in features]
    total = sum((own * x).sum(axis=(1, 3, 4)) for own, x in zip(columns, apart, strict=True))[:, None, :, None, None]
    return [(total * x).reshape(error.shape) for x, error in zip(apart, errors, strict=True)]


def _updates(maps: list[Any], errors: list[Any], features: list[Any], setting: Setting) -> list[Any]:
    """sum_uses U (X^T X_here) at every use of one weight."""
    if maps[0].weights[0].groups > 1:
        return _by_groups(maps, errors, features, setting)
    if len(maps) == 1:
        return [own_update(maps[0], errors[0], features[0], setting)]
    return _tied_updates(maps, errors, features, setting)


def own_update(spec: Linear, error: Any, features: Any, setting: Setting) -> Any:
    """U (X^T X), X the patches of the features: as U times the Gram matrix or as (U X^T) X, the cheaper."""
    places = setting.samples * features.shape[3]
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
    """X^T X over all site pairs of the batch, (D, B S, B S), without forming X = patches(features)."""
    draws, channels, samples, sites = features.shape
    flat = features.reshape(draws, channels, samples * sites)
    # Without the copy NumPy makes one half of the product and mirrors it, in up to four times the product's time.
    gram = flat.swapaxes(1, 2) @ flat.copy()
    if spec.taps == 1:
        return gram
    return setting.arrays.sum_over_shifts(gram, stencil(spec, setting), samples)


def _by_groups(maps: list[Any], errors: list[Any], features: list[Any], setting: Setting) -> list[Any]:
    """`_updates` of every group by itself."""
    (weight,) = maps[0].weights
    rows, below = weight.group_rows, weight.shape[1]
    alone = Weight(weight.name, (rows, *weight.shape[1:]), weight.variance)
    by_group = []
    for group in range(weight.groups):
        own = [error[:, group * rows : (group + 1) * rows] for error in errors]
        features_of_group = [values[:, group * below : (group + 1) * below] for values in features]
        by_group.append(_updates([replace(spec, weights=(alone,)) for spec in maps], own, features_of_group, setting))
    return [setting.arrays.xp.concatenate(parts, axis=1) for parts in zip(*by_group, strict=True)]


def _tied_updates(maps: list[Any], errors: list[Any], features: list[Any], setting: Setting) -> list[Any]:
    """The same for a tied weight, all uses at once."""
    xp = setting.arrays.xp
    patches = _side_by_side([patches_of(spec, x, setting) for spec, x in zip(maps, features, strict=True)], setting)
    draws, channels, places = len(patches), errors[0].shape[1], patches.shape[2] // len(maps)
    columns = xp.concatenate([error.reshape(draws, channels, -1, places) for error in errors], axis=3)
    rows = columns.reshape(draws, -1, patches.shape[2])
    if (rows.shape[1] + patches.shape[1]) * patches.shape[2] <= 2 * rows.shape[1] * patches.shape[1]:
        moved = rows @ (patches.swapaxes(1, 2) @ patches.copy())
    else:
        moved = (rows @ patches.swapaxes(1, 2)) @ patches
    return _by_use(moved.reshape(draws, channels, -1, len(maps), places), errors[0].shape[2:], setting)


def _by_use(moved: Any, rows_and_sites: tuple[int, ...], setting: Setting) -> list[Any]:
    """(D, C', r, uses, B S) as an array (D, C', r B, S) for every use, each in a piece of memory."""
    uses_first = setting.arrays.xp.ascontiguousarray(moved.transpose(3, 0, 1, 2, 4))
    shaped = uses_first.reshape(len(uses_first), *moved.shape[:2], *rows_and_sites)
    return [shaped[use] for use in range(len(shaped))]


def _side_by_side(parts: list[Any], setting: Setting) -> Any:
    return parts[0] if len(parts) == 1 else setting.arrays.xp.concatenate(parts, axis=2)
