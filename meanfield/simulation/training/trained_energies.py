"""Residual energies of a stream while its net trains: H_l = H_0 + B_l + C_l (Wang et al. 2026, eq. 2), step by step.

The stream h_0 .. h_U is that of `meanfield.simulation.walk`. After every step of the optimizer, with R_l = h_l - h_0
and N the numbers of a stream,

    H_l = |h_l|^2 / N,   B_l = (2 / N) <h_0, R_l>,   C_l = |R_l|^2 / N.

Post-norm streams, with maps behind their joins, are no sum of h_0 and what units add. They have H_l without the split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from meanfield.common.arrays import Array
from meanfield.common.estimates import summarise_each
from meanfield.common.seeds import streams_by_purpose, streams_of_draws
from meanfield.common.validation import require_choice, require_count, require_flag, require_positive
from meanfield.nets.inputs.batches import require_classes
from meanfield.nets.net import Net
from meanfield.nets.regularisation import require_normalisable
from meanfield.nets.units import Unit
from meanfield.optimizers.base import Optimizer
from meanfield.optimizers.elementwise import AdamW
from meanfield.quantities.datasets import measured_dataset
from meanfield.simulation.arrays.arrays import PRECISIONS, Arrays, on_numpy
from meanfield.simulation.cost import passes_bytes, step_operations, weight_bytes
from meanfield.simulation.inputs import draw_inputs
from meanfield.simulation.measures.base import Cost, Measure, Pieces
from meanfield.simulation.measures.residual_energy import energy
from meanfield.simulation.training.data import Data
from meanfield.simulation.training.draws import drawn_weights
from meanfield.simulation.training.losses import CrossEntropy
from meanfield.simulation.training.trained_losses import WEIGHT_ARRAYS
from meanfield.simulation.training.training import Training
from meanfield.simulation.walk import require_residual_stream, units_below

if TYPE_CHECKING:
    import xarray as xr

# Draws side by side share what a step costs besides arithmetic: at most so many, of so many operations a step in all.
MOST_TOGETHER, OPERATIONS_TOGETHER = 4, 8e9
# Of nets so small that what 16 of them hold stays in the caches, 16 take half the time of 4.
MOST_OF_SMALL, OPERATIONS_OF_SMALL = 16, 2e8
# AdamW without weight decay, as the draws train here.
ADAM = AdamW()


@dataclass(frozen=True, kw_only=True)
class TrainedResidualEnergies(Measure):
    """The residual energy H_l = H_0 + B_l + C_l of every unit of a stream after 0, 1 .. of the first training steps.

    Every draw has weights, a batch of inputs and classes of its own, by the net's laws, and trains on that one batch
    under cross-entropy, without weight decay. Classes are uniform at every output. Of nets that take one-hot tokens and
    have outputs at every token, the class at a token is the next token; behind the last token a fresh one is drawn.

    Args:
        optimizer: an elementwise one: Adam is AdamW() without decay.
        rate, epsilon: its learning rate, of all weights, and its epsilon.
        steps: how many are taken, S.
        correlations: whether to measure how the increments of all pairs of units overlap, too.
        precision: "float64" or "float32", of weights, values and gradients; energies are summed in double precision.

    Gives over ``update`` = 0 .. S, the steps taken, and ``step`` = 1 .. U, the units of the stream:
    trained_residual_energy, trained_cross_term, trained_correlation_term and trained_stream_change; over ``update``
    trained_initial_energy and trained_loss; with ``correlations`` trained_increment_correlation over pairs of units.
    Each comes with NAME_stderr and NAME_largest_share. Post-norm streams have no trained_cross_term, no
    trained_correlation_term and no ``correlations``.

    Raises:
        TypeError, ValueError: a net that is no stream, correlations of a post-norm stream, an optimizer of whole
            matrices, numbers out of range.
        OverflowError: a net leaves the range of floats while it trains.

    Source: Wang et al. 2026, eq. 2, section 3.1.
    """

    weights: ClassVar[str] = "dense"  # type: ignore[misc]
    remedy: ClassVar[str] = "width, tokens, depth or workers"

    optimizer: Optimizer = ADAM
    rate: float = 1e-3
    epsilon: float = 1e-8
    steps: int = 10
    correlations: bool = False
    precision: str = "float64"

    def settled(self, net: Net) -> Self:
        require_choice("precision", self.precision, PRECISIONS)
        require_flag("correlations", self.correlations)
        if not (isinstance(self.optimizer, Optimizer) and self.optimizer.elementwise):
            raise TypeError(
                f"optimizer is {self.optimizer!r}; give an elementwise one of meanfield.optimizers, such as AdamW(), "
                "as draws train side by side"
            )
        require_normalisable(net)
        require_classes("cross_entropy", net.output_shape[1])
        require_residual_stream(net, maps_behind=not self.correlations)
        return replace(
            self,
            rate=require_positive("rate", self.rate, why="it is a learning rate"),
            epsilon=require_positive("epsilon", self.epsilon, why="it is added to the size of gradients"),
            steps=require_count("steps", self.steps, why="steps of training"),
        )

    def cost(self, net: Net) -> Cost:
        held = WEIGHT_ARRAYS * weight_bytes(net, self.precision)
        held += 2 * passes_bytes(net, net.inputs, 1, self.precision)  # the first pass is kept
        of_step = step_operations(net, net.inputs)
        most = MOST_OF_SMALL if of_step <= OPERATIONS_OF_SMALL else MOST_TOGETHER
        together = int(max(1, min(most, OPERATIONS_TOGETHER // of_step)))
        return Cost((self.steps + 1) * of_step, held, together)

    def multiple(self, net: Net) -> int:
        """Those side by side, so that no chunk ends between them."""
        return self.together(net)

    def result_bytes(self, net: Net, draws: int) -> int:
        return 8 * draws * (self.steps + 1) * self.correlations * len(net.units) ** 2

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """Numbers (D, S + 1, U) and (D, S + 1) of every draw, with ``correlations`` also (D, S + 1, U, U).

        Raises:
            OverflowError: a net leaves the range of floats.
        """
        training, first = self._begun(net, seed, draws), units_below(net)
        adds = not any(unit.after for unit in net.units[first:])
        by_update = []
        with np.errstate(all="ignore"):  # an error is raised instead
            before = streams = _streams(training, first)
            for update in range(self.steps + 1):
                if update:
                    training.step()
                    training.require_floats()
                    streams = _streams(training, first)
                numbers = _energies(streams, before) | {"trained_loss": training.losses()}
                if adds:
                    numbers |= _split(streams)
                if self.correlations:
                    numbers["trained_increment_correlation"] = _overlaps(streams, net.units[first:])
                by_update.append(numbers)
        return {name: np.stack([numbers[name] for numbers in by_update], axis=1) for name in by_update[0]}

    def _begun(self, net: Net, seed: int, draws: range) -> Training:
        arrays = replace(on_numpy(self.precision), lenient=True)
        inputs = draw_inputs(net, streams_by_purpose(seed, draws))
        data = Data(arrays.moved(inputs), _classes(net, seed, draws, inputs, arrays))
        settings = {"learning_rate": self.rate, "epsilon": self.epsilon}
        weights = drawn_weights(net, seed, draws, arrays)
        return Training(net, weights, data, CrossEntropy(), self.optimizer, lambda _: settings, arrays=arrays)

    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        estimates = {name: summarise_each(value) for name, value in values.items()}
        how = {"optimizer": repr(self.optimizer), "rate": self.rate, "precision": self.precision}
        return measured_dataset(net, estimates, dict(attrs) | how, {"update": range(self.steps + 1)})

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"optimizer": repr(self.optimizer)}


def _classes(net: Net, seed: int, draws: range, inputs: Array, arrays: Arrays) -> Any:
    """Classes (D, 1, B, T) at all outputs: uniform, or the next token."""
    _, classes, *grid = net.output_shape
    shape = (net.inputs, int(np.prod(grid)))
    sources = streams_of_draws(seed, "labels", draws).generators()
    drawn = np.stack([source.integers(classes, size=shape) for source in sources])
    if net.input_law == "tokens" and shape[1] == net.sites:
        drawn[..., :-1] = inputs.argmax(axis=1)[..., 1:]
    return arrays.xp.asarray(drawn[:, None])


def _streams(training: Training, first: int) -> list[Array]:
    """The stream h_0 .. h_U of every draw in double precision, each (D, N)."""
    values = training.look().values[first:]
    return [np.asarray(value.reshape(len(value), -1), dtype=np.float64) for value in values]


def _energies(streams: Sequence[Array], before: Sequence[Array]) -> dict[str, Array]:
    """H_l and |h_l - h_l before|^2 / N, (D, U), and H_0, (D,), of the stream h_0 .. h_U."""
    start, *rest = streams
    changed = [stream - earlier for stream, earlier in zip(rest, before[1:], strict=True)]
    return {
        "trained_initial_energy": energy(start),
        "trained_residual_energy": np.stack([energy(stream) for stream in rest], axis=1),
        "trained_stream_change": np.stack([energy(change) for change in changed], axis=1),
    }


def _split(streams: Sequence[Array]) -> dict[str, Array]:
    """B_l and C_l, (D, U), of the stream h_0 .. h_U."""
    start, *rest = streams
    moved = [stream - start for stream in rest]
    return {
        "trained_cross_term": np.stack([2 * np.vecdot(start, total) / start.shape[1] for total in moved], axis=1),
        "trained_correlation_term": np.stack([energy(total) for total in moved], axis=1),
    }


def _overlaps(streams: Sequence[Array], units: Sequence[Unit]) -> Array:
    """<r_s, r_t> / N of the increments of all pairs of units, (D, U, U)."""
    pairs = zip(streams[1:], streams[:-1], units, strict=True)
    increments = np.stack([(above - below) / unit.multiplier for above, below, unit in pairs], axis=1)
    return np.asarray(increments @ increments.swapaxes(1, 2) / increments.shape[2])
