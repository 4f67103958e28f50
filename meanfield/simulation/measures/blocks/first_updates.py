"""The first update of every optimizer on one net: norms of weights, updates and features, alignments, orders."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.maps import Linear
from meanfield.nets.net import Net
from meanfield.optimizers.base import times
from meanfield.optimizers.linear_algebra.factored import Direction, scaled
from meanfield.optimizers.linear_algebra.spectrum import rms_operator_norm
from meanfield.simulation.maps.linear import patches_of
from meanfield.simulation.measures.base import Pieces
from meanfield.simulation.measures.blocks.base import BlockMeasure, Dims
from meanfield.simulation.measures.blocks.orders import is_linear, split_by_order
from meanfield.simulation.measures.blocks.training import Hyperparameters, copied, root_mean_squares, tabled
from meanfield.simulation.passes import Forward, forward
from meanfield.simulation.training.draws import drawn_batch, drawn_weights
from meanfield.simulation.training.training import Training
from meanfield.simulation.weights.matrices import given_weights


@dataclass(frozen=True, kw_only=True)
class FirstUpdates(BlockMeasure):
    """What steps of every optimizer, without momentum or epsilon, do to nets that are drawn once for all of them.

    Args:
        hyperparameters: optimizer -> role -> names and numbers.
        steps: how many; updates are what all of them change together. The norms of one step of any optimizer but SGD
            are known without a draw.
    """

    DIMS: ClassVar[Dims] = {
        "feature_norm": ("block",),
        "feature_update_norm": ("optimizer", "block"),
        "order_norm": ("optimizer", "order"),
        "weight_norm": ("matrix",),
        "update_norm": ("optimizer", "matrix"),
        "weight_alignment": ("matrix",),
        "update_alignment": ("optimizer", "matrix"),
        "bias_norm": ("bias",),
        "bias_update_norm": ("optimizer", "bias"),
    }

    hyperparameters: Mapping[str, Hyperparameters]
    steps: int = 1

    @property
    def visits(self) -> int:
        return self.steps * len(self.hyperparameters)

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """NAME -> (draws, ...), O optimizers, M = L k + 2 matrices.

        feature_norm (L + 1,), |h_l|_R before the step, and feature_update_norm (O, L + 1), |Delta h_l|_R;
        order_norm (O, k + 1), |epsilon_j(L)|_R, in linear nets;
        weight_norm (M,) and update_norm (O, M), RMS operator norms, with bias_norm (L k + 1,) and
        bias_update_norm (O, L k + 1) where there are biases;
        weight_alignment (M,) and update_alignment (O, M): |A z|_R / (|A|_R |z|_R), A the matrix or its update and z
        what it read before the step, which are of order one by claims F.1 and F.2 of Zheng et al. 2026.
        """
        start, batch = drawn_weights(net, seed, draws), drawn_batch(net, seed, draws)
        first = forward(net, given_weights(net, start), batch.inputs)
        before = {"feature_norm": root_mean_squares(first.values[1:])}
        before |= norms_and_alignments(start, seen_by_matrices(first), "weight") | _bias_norms(net, start, "bias_norm")
        tables = self.hyperparameters.items()
        trainings = (tabled(net, copied(start), batch, name, table, momentum=False) for name, table in tables)
        stepped = [_stepped(training, first, start, self.steps) for training in trainings]
        return before | {name: np.stack([step[name] for step in stepped], axis=1) for name in stepped[0]}


def _stepped(training: Training, first: Forward, start: Mapping[str, Array], steps: int) -> Pieces:
    """One optimizer's steps from ``start``."""
    net, directions = training.net, training.step()
    for _ in range(1, steps):
        training.require_floats()
        training.step()
    training.require_floats()
    pairs = zip(training.look().values[1:], first.values[1:], strict=True)
    norms = {"feature_update_norm": root_mean_squares([now - then for now, then in pairs])}
    if is_linear(net):
        _, orders = split_by_order(net, start, training.weights, training.data.inputs)
        norms["order_norm"] = root_mean_squares(orders[-1])
    changes = {name: training.weights[name] - start[name] for name in start}
    moves: Mapping[str, Sequence[Direction] | Array] = changes
    if steps == 1:  # of low rank, which makes its norm cheap
        moves = {name: [scaled(part, training.rate(name)) for part in parts] for name, parts in directions.items()}
    norms |= norms_and_alignments(moves, seen_by_matrices(first), "update")
    return norms | _bias_norms(net, changes, "bias_update_norm")


def _bias_norms(net: Net, values: Mapping[str, Array], name: str) -> Pieces:
    biases = [values[key] for key, weight in net.weights.items() if len(weight.shape) == 1]
    return {name: root_mean_squares(biases)} if biases else {}


def seen_by_matrices(state: Forward) -> dict[str, Array]:
    """What every matrix reads at its first use, as patches (D, in taps, B S), in the order of the net."""
    read: dict[str, Array] = {}
    for passage in state.all_passages:
        for place, linear in enumerate(passage.unit.maps):
            names = [weight.name for weight in linear.weights if weight.name not in read]
            if names and isinstance(linear, Linear):
                patches = patches_of(linear, passage.input_of(place, state.setting), state.setting)
                read |= dict.fromkeys(names, np.broadcast_to(patches, (len(state.output), *patches.shape[1:])))
    return read


def norms_and_alignments(
    moved: Mapping[str, Sequence[Direction] | Array], read: Mapping[str, Array], name: str
) -> Pieces:
    """NAME_norm and NAME_alignment, (D, M), of the matrices that ``read`` lists."""
    norms = np.array([[rms_operator_norm(matrix) for matrix in moved[key]] for key in read]).T
    gains = np.stack([_gains(moved[key], z) for key, z in read.items()], axis=1)
    return {f"{name}_norm": norms, f"{name}_alignment": gains / norms}


def _gains(matrices: Sequence[Direction] | Array, read: Array) -> Array:
    """|A z|_R / |z|_R of every net."""
    images = [times(matrix, z) for matrix, z in zip(matrices, read, strict=True)]
    return np.array([np.sqrt(np.mean(a**2) / np.mean(z**2)) for a, z in zip(images, read, strict=True)])
