"""Gradients of the weights of a net, from the errors at the output and the features at the input of every use.

At one use a weight W has the gradient U X^T: U its errors (out, B S) and X the patches of its features (in taps, B
S), of B samples on S sites. The gradient of a tied weight is the sum over its uses; weights side by side each have
their rows of the errors; groups of channels are matrices of their own. Gradients are kept as the factors U and X
where these are fewer numbers than the matrix, unless the matrix is multiplied out without patches.

Nets of stencils go piece by piece of the nets and samples, so that values stay in the caches. A loss is a mean over
samples, so its gradients on a batch are the sum of those on its parts, each times its share of the samples: pieces
change nothing but rounding.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import iadd
from typing import Any

import numpy as np

from meanfield.nets.maps import Bias, Gain, Linear, Weight
from meanfield.nets.net import Net, uses
from meanfield.optimizers.base import Gradient
from meanfield.optimizers.linear_algebra import Direction, Factored, add_momentum, dense, is_worth_factors
from meanfield.simulation.arrays import Arrays
from meanfield.simulation.kernels.convolution import DirectConvolution, draws_side_by_side
from meanfield.simulation.maps import operation_of
from meanfield.simulation.maps.base import Setting
from meanfield.simulation.maps.weighted import direct_convolution, patches_of, rectified_net, stencil
from meanfield.simulation.maps.weightless import Masks
from meanfield.simulation.passes import Forward, Passage, Place, backward, forward, through_readout
from meanfield.simulation.training.data import Data
from meanfield.simulation.training.losses import Loss
from meanfield.simulation.weights import Weights, given_weights


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
        return _added_up(error.sum(axis=(2, 3)) for error in map(_of_vector, uses, errors))[:, :, None]
    if _by_factors(uses):
        return _factored(uses, errors, [use.patches for use in uses])
    return _added_up(product(use, error) for use, error in zip(uses, errors, strict=True))


def _curvature(uses: Sequence[Use]) -> Any:
    """The sum over samples and columns, from the second on, of the squares of (sum over uses of U X^T)."""
    errors = [use.by_column[:, :, 1:] for use in uses]
    if not isinstance(uses[0].spec, Linear):
        alone = _added_up(error.sum(axis=4) for error in map(_of_vector, uses, errors))
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
            alone = _added_up(_multiplied(use, error, x) for use, error, x in zip(uses, own, of_sample, strict=True))
            total = total + alone * alone
    return total


def _of_vector(use: Use, errors: Any) -> Any:
    """Errors (D, C, [r,] B, S) behind a bias as they are, and behind a gain times X, summed over channels."""
    if not isinstance(use.spec, Gain):
        return errors
    values = use.values.reshape(*use.values.shape[:2], *[1] * (errors.ndim - 4), *use.values.shape[2:])
    return (errors * values).sum(axis=1)[:, None]


def _added_up(parts: Iterable[Any]) -> Any:
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


Gradients = dict[str, Gradient]

# Bytes of the widest layer's values, about what the second cache of a core holds.
LAYER_BYTES = 1 << 20
# Samples below which tiles of sums become too low.
FEWEST_SAMPLES = 8


class Piecewise:
    """The passes of nets whose linear maps, but for the readout's, go without patches (`Arrays.for_training`).

    Attributes:
        together: nets in a piece at most, which lie side by side in the vectors of a tile.
        samples: samples in a piece at most, where a batch may be cut.
    """

    def __init__(self, net: Net, nets: int, arrays: Arrays) -> None:
        itemsize, channels = np.dtype(arrays.precision).itemsize, max(net.value_channels)
        self._net, self._arrays = rectified_net(net), arrays
        maps = (spec for _, _, spec in uses(net.all_units) if isinstance(spec, Linear) and spec.is_one_stencil)
        self._stencils = {weight.name for spec in maps for weight in spec.weights}
        most_together = draws_side_by_side(channels, itemsize)
        self.together = min(most_together, power_of_two(nets))
        # Whatever the number of nets, so that none of them sums over other pieces for its company.
        most = max(LAYER_BYTES // (most_together * channels * net.sites * itemsize), FEWEST_SAMPLES)
        self.samples = power_of_two(most)
        self._whole_batch = any(operation_of(part).whole_batch for unit in net.all_units for part in unit.maps)

    @staticmethod
    def serve(net: Net, arrays: Arrays) -> bool:
        """Whether these arrays, and all linear maps below the readout, can do without patches."""
        linear = [spec for unit in net.units for spec in unit.maps if isinstance(spec, Linear)]
        return arrays.convolution is not None and bool(linear) and all(spec.is_one_stencil for spec in linear)

    def sweep(
        self, weights: Mapping[str, Any], batch: Data, loss: Loss, curved: bool, masks: Masks | None = None
    ) -> tuple[Any, Gradients]:
        """Outputs (D, M, B, T) of all nets on a batch, and their gradients by name, as of the whole at once."""
        nets, groups = len(next(iter(weights.values()))), []
        for group in cuts(nets, self.together):
            own = {name: weight[group] for name, weight in weights.items()}
            own_masks = None if masks is None else masks.of_nets(group)
            groups.append(self._of_group(own, batch.of_nets(group), loss, curved, own_masks))
        outputs, parts = zip(*groups, strict=True)
        slopes = {name: _stacked([part[name].slope for part in parts]) for name in parts[0]}
        if not curved:
            return np.concatenate(outputs), {name: Gradient(slope) for name, slope in slopes.items()}
        curvatures = {name: _stacked([part[name].curvature for part in parts]) for name in parts[0]}
        return np.concatenate(outputs), {name: Gradient(slopes[name], curvatures[name]) for name in slopes}

    def _of_group(
        self, weights: Mapping[str, Any], batch: Data, loss: Loss, curved: bool, masks: Masks | None
    ) -> tuple[Any, Gradients]:
        """As `sweep`, of nets that lie side by side."""
        nets = len(next(iter(weights.values())))
        # Matrix products, as a readout's, would take another road for several nets than for one, and round differently.
        laid_out = {
            name: np.asfortranarray(matrix) if name in self._stencils else np.ascontiguousarray(matrix)
            for name, matrix in weights.items()
        }
        matrices = given_weights(self._net, laid_out)
        outputs: list[Any] = []
        total: Gradients = {}
        for samples in [slice(0, batch.samples)] if self._whole_batch else cuts(batch.samples, self.samples):
            share = (samples.stop - samples.start) / batch.samples
            output, own = self._of_piece(matrices, nets, batch.part(samples), loss, curved, share, masks)
            outputs.append(output)
            total = own if not total else {name: _summed(gradient, own[name]) for name, gradient in total.items()}
        return np.concatenate(outputs, axis=2), total

    def _of_piece(
        self, matrices: Weights, nets: int, part: Data, loss: Loss, curved: bool, share: float, masks: Masks | None
    ) -> tuple[Any, Gradients]:
        """As `sweep`, of some samples of a batch; what the passes keep is let go before the next piece."""
        inputs = np.asfortranarray(np.broadcast_to(part.inputs, (nets, *part.inputs.shape[1:])))
        state = forward(self._net, matrices, inputs, self._arrays, masks)
        return state.output, loss_gradients(state, loss, part.targets, curved, share)


def power_of_two(most: int) -> int:
    """The largest up to ``most``."""
    return 1 << (most.bit_length() - 1)


def cuts(total: int, most: int) -> Iterator[slice]:
    """Slices of so many nets or samples, each as long as a power of two up to ``most`` allows.

    Powers of two fill the vectors of a tile, and are whole rows of them.
    """
    first = 0
    while first < total:
        size = min(most, power_of_two(total - first))
        yield slice(first, first + size)
        first += size


def _summed(first: Gradient, second: Gradient) -> Gradient:
    curvature = None if first.curvature is None else _plus(first.curvature, second.curvature)
    return Gradient(_plus(first.slope, second.slope), curvature)


def _plus(total: Direction, added: Any) -> Direction:
    """As factors while these are fewer numbers, else in place."""
    if isinstance(total, Factored):
        return add_momentum(total, 1.0, added, 1.0)
    total += dense(added)
    return total


def _stacked(groups: Sequence[Any]) -> Direction:
    """The matrices of all nets, with the last axis innermost, as optimizers go through them."""
    if isinstance(groups[0], Factored):
        return Factored(*(np.concatenate([getattr(group, side) for group in groups]) for side in ("left", "right")))
    stack = np.empty((sum(map(len, groups)), *groups[0].shape[1:]), groups[0].dtype)
    return np.concatenate(groups, out=stack)
