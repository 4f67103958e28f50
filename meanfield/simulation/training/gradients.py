"""Gradients of the weights of a net, from the errors at the output and the features at the input of every use.

The gradient of a tied weight is the sum over its uses; weights side by side each have their rows of the errors. What
a use gives is its map's to say (`meanfield.simulation.maps.weighted`).

Nets of stencils go piece by piece of the nets and samples, so that values stay in the caches. A loss is a mean over
samples, so its gradients on a batch are the sum of those on its parts, each times its share of the samples: pieces
change nothing but rounding.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from meanfield.nets.net import Net, uses
from meanfield.optimizers.base import Gradient
from meanfield.optimizers.linear_algebra import Direction, Factored, add_momentum, dense
from meanfield.simulation.arrays import Arrays
from meanfield.simulation.kernels.stencils import draws_side_by_side
from meanfield.simulation.maps.base import Use, operation_of, weighted_operation_of
from meanfield.simulation.maps.weighted import rectified_net
from meanfield.simulation.maps.weightless import Masks
from meanfield.simulation.passes import Forward, MapPlace, backward, forward, through_readout
from meanfield.simulation.training.data import Data
from meanfield.simulation.training.losses import Loss
from meanfield.simulation.weights import Weights, given_weights


class _Arriving(dict[MapPlace, Any]):
    """Errors as the backward pass brings them; ``tell`` gets all uses of a weight once the last has come."""

    def __init__(self, state: Forward, tell: Callable[[str, list[Use]], None]) -> None:
        self._passages, self._tell = state.all_passages, tell
        self._missing = dict(state.net.use_counts)
        self._waiting: dict[str, list[Use]] = defaultdict(list)

    def __setitem__(self, place: MapPlace, error: Any) -> None:
        passage, first = self._passages[place[0]], 0
        spec = passage.unit.maps[place[1]]
        for weight in spec.weights:
            last, name = first + weighted_operation_of(spec).rows(spec, weight, error), weight.name
            self._waiting[name].append(Use(spec, weight, error[:, first:last], passage, place[1]))
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
        own, errors = weighted_operation_of(uses[0].spec), [use.by_column for use in uses]
        slopes = own.gradient(uses, [error[:, :, 0] for error in errors])
        squares = None if curvature is None else own.curvature(uses, [error[:, :, 1:] for error in errors])
        by_name[name] = Gradient(slopes, squares)

    _way_back(state, columns, form)
    return {name: by_name[name] for name in state.net.weights}


def loss_gradients(
    state: Forward, loss: Loss, targets: Any, curved: bool = False, share: float = 1.0
) -> dict[str, Gradient]:
    """The gradients of a loss, optionally with its curvature, on a ``share`` of the samples of a batch."""
    given = (state.output, targets, state.arrays)
    return gradients(state, share * loss.slope(*given), share**0.5 * loss.curvature(*given) if curved else None)


Gradients = dict[str, Gradient]


def quickest(net: Net, arrays: Arrays) -> Arrays:
    """The arrays without patches, where all linear maps of the net below its readout are served without them."""
    without = arrays.for_training()
    return without if Piecewise.serve(net, without) else arrays


def laid_out(net: Net, weights: Mapping[str, Any]) -> dict[str, Any]:
    """The weights of nets that lie side by side, (D, out, in taps), as passes without patches read them."""
    maps = (spec for _, _, spec in uses(net.all_units) if spec.is_one_stencil)
    stencils = {weight.name for spec in maps for weight in spec.weights}
    # Matrix products, as a readout's, would take another road for several nets than for one, and round differently.
    return {
        name: np.asfortranarray(matrix) if name in stencils else np.ascontiguousarray(matrix)
        for name, matrix in weights.items()
    }


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
        most_together = draws_side_by_side(channels, itemsize)
        self.together = min(most_together, power_of_two(nets))
        # Whatever the number of nets, so that none of them sums over other pieces for its company.
        most = max(LAYER_BYTES // (most_together * channels * net.sites * itemsize), FEWEST_SAMPLES)
        self.samples = power_of_two(most)
        self._whole_batch = any(operation_of(part).whole_batch for unit in net.all_units for part in unit.maps)

    @staticmethod
    def serve(net: Net, arrays: Arrays) -> bool:
        """Whether these arrays, and all linear maps below the readout, can do without patches."""
        linear = [spec for unit in net.units for spec in unit.maps if spec.mixes_channels]
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
        """Sweep nets that lie side by side, as `sweep` does all."""
        nets = len(next(iter(weights.values())))
        matrices = given_weights(self._net, laid_out(self._net, weights))
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
        """Sweep some samples of a batch, as `sweep` does all; what the passes keep is let go before the next piece."""
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
    """Add, as factors while these are fewer numbers, else in place."""
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
