"""Gradients of the weights of a net, from the errors at the output and the features at the input of every use.

At one use a weight W has the gradient U X^T: U its errors (out, B S) and X the patches of its features (in taps, B S),
of B samples on S sites. The gradient of a tied weight is the sum over its uses; weights side by side each have their
rows of the errors; groups of channels are matrices of their own. Gradients are kept as the factors U and X where these
are fewer numbers than the matrix, unless the matrix is multiplied out without patches.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import iadd
from typing import Any

from meanfield.nets.maps import Bias, Gain, Linear, Weight
from meanfield.optimizers.base import Gradient
from meanfield.optimizers.linear_algebra.factored import Factored, is_worth_factors
from meanfield.simulation.arrays.convolution import DirectConvolution
from meanfield.simulation.maps import operation_of
from meanfield.simulation.maps.base import Setting
from meanfield.simulation.maps.linear import direct_convolution, patches_of, stencil
from meanfield.simulation.passes import Forward, Passage, Place, backward, through_readout
from meanfield.simulation.training.losses import Loss


@dataclass(frozen=True)
class Use:
    """A weight at one of its places: its map, its rows of the errors there, (D, out, r B, S), and what comes in."""

    spec: Linear | Bias | Gain
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
        features = operation_of(self.spec).seen(self.spec, self.values, self.setting)
        return patches_of(self.spec, features, self.setting)  # type: ignore[arg-type]  # biases have none

    @cached_property
    def direct(self) -> DirectConvolution | None:
        """What multiplies out without patches, if something does."""
        return None if isinstance(self.spec, Bias | Gain) else direct_convolution(self.spec, self.setting)

    @property
    def by_column(self) -> Any:
        """The errors as (D, out, r, B, S)."""
        return self.setting.by_sample(self.errors)


class _Arriving(dict[Place, Any]):
    """Errors as the backward pass brings them; ``tell`` gets all uses of a weight once the last has come."""

    def __init__(self, state: Forward, tell: Callable[[str, list[Use]], None]) -> None:
        self._passages, self._setting, self._tell = state.all_passages, state.setting, tell
        self._missing = dict(state.net.use_counts)
        self._waiting: dict[str, list[Use]] = defaultdict(list)

    def __setitem__(self, place: Place, error: Any) -> None:
        passage, first = self._passages[place[0]], 0
        spec = passage.unit.maps[place[1]]
        assert isinstance(spec, Linear | Bias | Gain)
        for weight in spec.weights:
            rows = error.shape[1] if isinstance(spec, Gain) else weight.shape[0]
            last, name = first + rows, weight.name
            self._waiting[name].append(Use(spec, weight, error[:, first:last], passage, place[1], self._setting))
            first, self._missing[name] = last, self._missing[name] - 1
            if not self._missing[name]:
                self._tell(name, self._waiting.pop(name)[::-1])


def _way_back(state: Forward, error: Any, tell: Callable[[str, list[Use]], None]) -> None:
    """Send errors (D, M, r B, T) at the outputs down, and tell the uses of every weight, the lowest first."""
    arriving = _Arriving(state, tell)
    top, _ = through_readout(state, error, arriving)
    backward(state, top, len(state.net.units), arriving)


def uses_of_weights(state: Forward, error: Any) -> dict[str, list[Use]]:
    """The uses of every weight by name, with what errors (D, M, r B, T) at the outputs become there."""
    by_name: dict[str, list[Use]] = {}
    _way_back(state, error, by_name.__setitem__)
    return {name: by_name[name] for name in state.net.weights}


def gradients(state: Forward, slope: Any, curvature: Any = None) -> dict[str, Gradient]:
    """Gradients of all weights by name, as stacks of D matrices (out, in taps), biases as columns (out, 1).

    Each is formed while its errors are still in the caches.

    Args:
        state: the forward pass.
        slope: dL/dout, (D, M, B, T).
        curvature: columns (D, M, r B, T) that make up d^2 L / dout^2, if the curvature is wanted: the diagonal of the
            Gauss-Newton matrix, sum over samples and columns of (sum over uses of U X^T)^2, element by element.
    """
    columns = slope if curvature is None else state.arrays.xp.concatenate([slope, curvature], axis=2)
    by_name: dict[str, Gradient] = {}

    def form(name: str, uses: list[Use]) -> None:
        by_name[name] = Gradient(_slope(uses), None if curvature is None else _curvature(uses))

    _way_back(state, columns, form)
    return {name: by_name[name] for name in state.net.weights}


def loss_gradients(
    state: Forward, loss: Loss, targets: Any, curved: bool = False, share: float = 1.0
) -> dict[str, Gradient]:
    """Those of a loss, optionally with its curvature, on a ``share`` of the samples of a batch."""
    given = (state.output, targets, state.arrays)
    return gradients(state, share * loss.slope(*given), share**0.5 * loss.curvature(*given) if curved else None)


def _slope(uses: Sequence[Use]) -> Any:
    """The sum over uses of U X^T, from the first column of errors."""
    errors = [use.by_column[:, :, 0] for use in uses]
    if not isinstance(uses[0].spec, Linear):
        return _sum(error.sum(axis=(2, 3)) for error in map(_of_vector, uses, errors))[:, :, None]
    if _by_factors(uses):
        return _factored(uses, errors, [use.patches for use in uses])
    return _sum(product(use, error) for use, error in zip(uses, errors, strict=True))


def _curvature(uses: Sequence[Use]) -> Any:
    """The sum over samples and columns, from the second on, of the squares of (sum over uses of U X^T)."""
    errors = [use.by_column[:, :, 1:] for use in uses]
    if not isinstance(uses[0].spec, Linear):
        alone = _sum(error.sum(axis=4) for error in map(_of_vector, uses, errors))
        return (alone * alone).sum(axis=(2, 3))[:, :, None]
    patches = [use.patches for use in uses]
    if len(uses) == 1 and errors[0].shape[4] == 1:  # one place a sample: the square of a product is that of its factors
        squares = [(errors[0] * errors[0]).sum(axis=2)], [patches[0] * patches[0]]
        return _factored(uses, *squares) if _by_factors(uses) else _multiplied(uses[0], squares[0][0], squares[1][0])
    total: Any = 0
    for sample in range(errors[0].shape[3]):
        of_sample = [
            x.reshape(*x.shape[:2], -1, error.shape[4])[:, :, sample] for x, error in zip(patches, errors, strict=True)
        ]
        for column in range(errors[0].shape[2]):
            own = (error[:, :, column, sample] for error in errors)
            alone = _sum(_multiplied(use, error, x) for use, error, x in zip(uses, own, of_sample, strict=True))
            total = total + alone * alone
    return total


def _of_vector(use: Use, errors: Any) -> Any:
    """Errors (D, C, [r,] B, S) behind a bias as they are, and behind a gain times X, summed over channels."""
    if not isinstance(use.spec, Gain):
        return errors
    values = use.values.reshape(*use.values.shape[:2], *[1] * (errors.ndim - 4), *use.values.shape[2:])
    return (errors * values).sum(axis=1)[:, None]


def _sum(parts: Iterable[Any]) -> Any:
    """Of fresh arrays, in the memory of the first."""
    return reduce(iadd, parts)


def _by_factors(uses: Sequence[Use]) -> bool:
    """Whether U and X of all uses are fewer numbers than the weight, and patches are made at all."""
    if uses[0].direct:
        return False
    weight, places = uses[0].weight, uses[0].setting.samples * uses[0].errors.shape[3]
    return weight.groups == 1 and is_worth_factors((weight.shape[0], weight.fan_in), len(uses) * places)


def _factored(uses: Sequence[Use], errors: Sequence[Any], patches: Sequence[Any]) -> Factored:
    xp, nets = uses[0].setting.arrays.xp, len(errors[0])
    sides = [[x.reshape(*x.shape[:2], -1) for x in side] for side in (errors, patches)]
    left, right = (side[0] if len(side) == 1 else xp.concatenate(side, axis=2) for side in sides)
    return Factored(left, right if len(right) == nets else xp.broadcast_to(right, (nets, *right.shape[1:])))


def product(use: Use, errors: Any) -> Any:
    """U X^T of one use, (D, out, in taps), for errors (D, out, B, S)."""
    if direct := use.direct:
        table = stencil(use.spec, use.setting)  # type: ignore[arg-type]  # biases have none
        return direct.weight_gradient(errors, use.values, table, operation_of(use.spec).rectifies)
    return _multiplied(use, errors, use.patches)


def _multiplied(use: Use, errors: Any, patches: Any) -> Any:
    """Errors (D, out, ...) times patches (D, in taps, ...), summed over places.

    With several groups, their matrices lie one below the other.
    """
    groups = use.weight.groups
    rows = errors.reshape(len(errors), groups, errors.shape[1] // groups, -1)
    below = patches.reshape(len(patches), groups, patches.shape[1] // groups, -1)
    return (rows @ below.swapaxes(2, 3)).reshape(len(rows), errors.shape[1], -1)
