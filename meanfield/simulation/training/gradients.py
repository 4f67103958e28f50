"""Gradients of the weights of a net, by the errors behind and the features before every place that holds one.

At one use a weight W has the gradient U X^T: U its errors (out, B S) and X the patches of its features (in taps, B S),
of B samples on S sites. A weight of several uses, tied, has the sum of theirs; several weights side by side share out
the rows of the errors; groups of channels are matrices of their own. Gradients are kept by the factors U and X where
these are fewer numbers than the matrix.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from meanfield.nets.maps import Bias, Linear, Weight, weights_of
from meanfield.optimizers.base import Gradient
from meanfield.optimizers.factored import Factored, is_worth_factors
from meanfield.simulation.maps.base import Setting
from meanfield.simulation.maps.linear import patches_of
from meanfield.simulation.passes import Forward, Passage, Place, backward, through_readout


@dataclass(frozen=True)
class Use:
    """A weight at one of its places: its map, its rows of the errors there, (D, out, r B, S), and what comes in."""

    one: Linear | Bias
    weight: Weight
    errors: Any
    passage: Passage
    place: int
    setting: Setting

    @property
    def values(self) -> Any:
        """What comes in, (D, C, B, S), of one net where all share it."""
        return self.passage.input_of(self.place, self.setting)

    @property
    def patches(self) -> Any:
        """X (D, in taps, B S) of what comes in."""
        return patches_of(self.one, self.values, self.setting)  # type: ignore[arg-type]  # biases have none

    @property
    def by_column(self) -> Any:
        """The errors as (D, out, r, B, S)."""
        return self.setting.by_sample(self.errors)


def uses_of_weights(state: Forward, error: Any) -> dict[str, list[Use]]:
    """Where every weight is used, by name, with the errors that those at the outputs, (D, M, r B, T), make there."""
    errors: dict[Place, Any] = {}
    top, _ = through_readout(state, error, errors)
    backward(state, top, len(state.net.units), errors)
    passages = [*state.passages, *([] if state.readout is None else [state.readout])]
    found: dict[str, list[Use]] = defaultdict(list)
    for number, place in sorted(errors):
        passage, first = passages[number], 0
        one = passage.unit.maps[place]
        assert isinstance(one, Linear | Bias)
        for weight in weights_of(one):
            last = first + weight.shape[0]
            rows = errors[number, place][:, first:last]
            found[weight.name].append(Use(one, weight, rows, passage, place, state.setting))
            first = last
    return found


def gradients(state: Forward, slope: Any, curvature: Any = None) -> dict[str, Gradient]:
    """Gradients of all weights by name, as stacks of D matrices (out, in taps), biases as columns (out, 1).

    Args:
        state: the forward pass.
        slope: dL/dout, (D, M, B, T).
        curvature: columns (D, M, r B, T) that make up d^2 L / dout^2, if the curvature is wanted: the diagonal of the
            Gauss-Newton matrix, sum over samples and columns of (sum over uses of U X^T)^2, element by element.
    """
    columns = slope if curvature is None else state.arrays.xp.concatenate([slope, curvature], axis=2)
    found = {}
    for name, uses in uses_of_weights(state, columns).items():
        squares = None if curvature is None else _curvature(uses)
        found[name] = Gradient(_slope(uses), squares)
    return found


def _slope(uses: Sequence[Use]) -> Any:
    """The sum over uses of U X^T, from the first column of errors."""
    errors = [use.by_column[:, :, 0] for use in uses]
    if isinstance(uses[0].one, Bias):
        return _sum(error.sum(axis=(2, 3)) for error in errors)[:, :, None]
    if _by_factors(uses):
        return _factored(uses, errors, [use.patches for use in uses])
    return _sum(product(use, error) for use, error in zip(uses, errors, strict=True))


def _curvature(uses: Sequence[Use]) -> Any:
    """The sum over samples and columns, from the second on, of the squares of (sum over uses of U X^T)."""
    errors = [use.by_column[:, :, 1:] for use in uses]
    if isinstance(uses[0].one, Bias):
        alone = _sum(error.sum(axis=4) for error in errors)
        return (alone * alone).sum(axis=(2, 3))[:, :, None]
    patches = [use.patches for use in uses]
    if len(uses) == 1 and errors[0].shape[4] == 1:  # one place a sample: the square of a product is that of its factors
        squares = [(errors[0] * errors[0]).sum(axis=2)], [patches[0] * patches[0]]
        return _factored(uses, *squares) if _by_factors(uses) else _multiplied(uses[0], squares[0][0], squares[1][0])
    total: Any = 0
    for sample in range(errors[0].shape[3]):
        seen = [
            x.reshape(*x.shape[:2], -1, error.shape[4])[:, :, sample] for x, error in zip(patches, errors, strict=True)
        ]
        for column in range(errors[0].shape[2]):
            own = (error[:, :, column, sample] for error in errors)
            alone = _sum(_multiplied(use, error, x) for use, error, x in zip(uses, own, seen, strict=True))
            total = total + alone * alone
    return total


def _sum(parts: Iterable[Any]) -> Any:
    """Of fresh arrays, in the memory of the first."""
    iterator = iter(parts)
    total = next(iterator)
    for part in iterator:
        total += part
    return total


def _by_factors(uses: Sequence[Use]) -> bool:
    """Whether U and X of all uses side by side are fewer numbers than the weight."""
    weight, places = uses[0].weight, uses[0].setting.samples * uses[0].errors.shape[3]
    shape = weight.shape[0], prod(weight.shape[1:])
    return weight.groups == 1 and is_worth_factors(shape, len(uses) * places)


def _factored(uses: Sequence[Use], errors: Sequence[Any], patches: Sequence[Any]) -> Factored:
    xp, nets = uses[0].setting.arrays.xp, len(errors[0])
    sides = [[x.reshape(*x.shape[:2], -1) for x in side] for side in (errors, patches)]
    left, right = (side[0] if len(side) == 1 else xp.concatenate(side, axis=2) for side in sides)
    return Factored(left, right if len(right) == nets else xp.broadcast_to(right, (nets, *right.shape[1:])))


def product(use: Use, errors: Any) -> Any:
    """U X^T of one use, (D, out, in taps), for errors (D, out, B, S): gradients are multiplied out here alone."""
    return _multiplied(use, errors, use.patches)


def _multiplied(use: Use, errors: Any, patches: Any) -> Any:
    """Errors (D, out, ...) times patches (D, in taps, ...), summed over places.

    With several groups, their matrices lie one below the other.
    """
    groups = use.weight.groups
    rows = errors.reshape(len(errors), groups, errors.shape[1] // groups, -1)
    below = patches.reshape(len(patches), groups, patches.shape[1] // groups, -1)
    return (rows @ below.swapaxes(2, 3)).reshape(len(rows), errors.shape[1], -1)
