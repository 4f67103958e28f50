"""What moved weights do to the outputs of their maps: the gradient's own step, or any other move of theirs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from meanfield.nets.maps import Bias, Linear, Weight, weights_of
from meanfield.simulation.maps import operation_of
from meanfield.simulation.maps.base import Setting
from meanfield.simulation.maps.linear import patches_of, stencil
from meanfield.simulation.passes import Forward, Place, backward, tangent, through_readout
from meanfield.simulation.weights import WeightMatrix


def gradient_changes(state: Forward, output_error: Any) -> Iterator[Any]:
    """T_1 .. T_D, (D, C, r B, S), under plain gradients of every column r of errors (D, outputs, r B, sites)."""
    top, _ = through_readout(state, output_error)
    units = len(state.net.units)
    moves = GradientMoves(state, backward(state, top, units))
    return tangent(state, moves, units, top.shape[2] // state.setting.samples)


class GradientMoves:
    """Weights moved by +1 times the gradient of every error column: W by sum over its uses of U X^T.

    At a use the output moves by sum_uses U (X^T X_here), by Gram matrices of the features or by the gradient itself,
    whichever is less work. A weight of one use is moved when it is asked for, a tied one at all of its uses at once.
    """

    def __init__(self, state: Forward, errors: dict[Place, Any]) -> None:
        self._state, self._errors = state, errors
        self._uses: dict[tuple[Weight, ...], list[Place]] = defaultdict(list)
        for place in sorted(errors):
            self._uses[weights_of(self._map(place))].append(place)
        self._made: dict[Place, Any] = {}

    def of(self, place: Place) -> Any:
        if place not in self._made:
            places = self._uses[weights_of(self._map(place))]
            self._made |= dict(zip(places, self._moved(places), strict=True))
        return self._made.pop(place)

    def _map(self, place: Place) -> Any:
        return self._state.net.units[place[0]].maps[place[1]]

    def _moved(self, places: list[Place]) -> list[Any]:
        one, setting = self._map(places[0]), self._state.setting
        errors = [self._errors[place] for place in places]
        if isinstance(one, Bias):
            total = sum(setting.by_sample(error).sum(axis=(3, 4)) for error in errors)[..., None, None]
            shapes = [setting.by_sample(error).shape for error in errors]
            ones = setting.arrays.xp.ones((1, 1, 1, *shapes[0][3:]), dtype=errors[0].dtype)
            return [(total * ones).reshape(error.shape) for error in errors]
        features = [self._state.passages[number].input_of(place, setting) for number, place in places]
        if len(places) == 1:
            return [own_update(one, errors[0], features[0], setting)]
        return _tied_updates([self._map(place) for place in places], errors, features, setting)


class MatrixMoves:
    """Weights moved by given matrices, by name: Delta W X at every use."""

    def __init__(self, state: Forward, moves: dict[str, WeightMatrix]) -> None:
        net, setting = state.net, state.setting
        self._state, self._setting = state, Setting(net.grid, setting.samples, moves, setting.arrays)

    def of(self, place: Place) -> Any:
        number, position = place
        passage = self._state.passages[number]
        values = passage.input_of(position, self._state.setting)
        one = passage.unit.maps[position]
        if isinstance(one, Bias):
            return operation_of(one).forward(one, 0 * values, self._setting)[0]
        return operation_of(one).forward(one, values, self._setting)[0]


def own_update(one: Linear, error: Any, features: Any, setting: Setting) -> Any:
    """U (X^T X), X the patches of the features: as U times the Gram matrix or as (U X^T) X, the cheaper."""
    places = setting.samples * features.shape[3]
    if (groups := one.weights[0].groups) > 1:
        return _by_groups(one, groups, error, features, setting)
    if places == 1:  # the Gram matrix is a number, and errors may lie in memory as they like
        return error * site_gram(one, features, setting)[..., None]
    rows = error.reshape(len(error), -1, places)
    gram, explicit = own_update_operations(places, features.shape[1], one.taps, rows.shape[1])
    if gram <= explicit:
        update = rows @ site_gram(one, features, setting)
    else:
        patches = patches_of(one, features, setting)
        update = (rows @ patches.swapaxes(1, 2)) @ patches
    return update.reshape(error.shape)


def own_update_operations(places: int, channels: int, taps: int, rows: int) -> tuple[int, int]:
    """Operation counts of U (X^T X) and of (U X^T) X, for U with ``rows`` rows and X from ``channels`` channels."""
    gram = (2 * channels + taps + 2 * rows) * places**2
    explicit = 4 * rows * channels * taps * places
    return gram, explicit


def site_gram(one: Linear, features: Any, setting: Setting) -> Any:
    """X^T X over all site pairs of the batch, (D, B S, B S), without forming X = patches(features)."""
    draws, channels, samples, sites = features.shape
    flat = features.reshape(draws, channels, samples * sites)
    # Of a matrix and its own transpose NumPy makes one half, and mirrors it in up to four times the product's time.
    gram = flat.swapaxes(1, 2) @ flat.copy()
    if one.taps == 1:
        return gram
    return setting.arrays.sum_over_shifts(gram, stencil(one, setting), samples)


def _by_groups(one: Linear, groups: int, error: Any, features: Any, setting: Setting) -> Any:
    """`own_update` of every group by itself."""
    (weight,) = one.weights
    rows, below = weight.shape[0] // groups, weight.shape[1]
    alone = Linear((Weight(weight.name, (rows, *weight.shape[1:]), weight.variance),), one.padding, one.dilation)
    parts = [
        own_update(alone, error[:, g * rows : (g + 1) * rows], features[:, g * below : (g + 1) * below], setting)
        for g in range(groups)
    ]
    return setting.arrays.xp.concatenate(parts, axis=1)


def _tied_updates(maps: list[Any], errors: list[Any], features: list[Any], setting: Setting) -> list[Any]:
    """sum_uses U (X^T X_here) at every use of one weight, all at once."""
    xp = setting.arrays.xp
    patches = xp.concatenate([patches_of(one, x, setting) for one, x in zip(maps, features, strict=True)], axis=2)
    draws, channels, places = len(patches), errors[0].shape[1], patches.shape[2] // len(maps)
    columns = xp.concatenate([error.reshape(draws, channels, -1, places) for error in errors], axis=3)
    rows = columns.reshape(draws, -1, patches.shape[2])
    if (rows.shape[1] + patches.shape[1]) * patches.shape[2] <= 2 * rows.shape[1] * patches.shape[1]:
        moved = rows @ (patches.swapaxes(1, 2) @ patches.copy())
    else:
        moved = (rows @ patches.swapaxes(1, 2)) @ patches
    by_use = moved.reshape(draws, channels, -1, len(maps), places)
    return [xp.ascontiguousarray(by_use[:, :, :, use]).reshape(error.shape) for use, error in enumerate(errors)]
