"""The first update of every optimizer on one net: norms of weights, updates and features, alignments, orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.maps import Linear
from meanfield.nets.net import Net
from meanfield.optimizers.base import times
from meanfield.optimizers.linear_algebra.factored import Direction, scaled
from meanfield.optimizers.linear_algebra.spectrum import rms_operator_norm
from meanfield.simulation.maps.linear import patches_of
from meanfield.simulation.measures.blocks.orders import LINEAR, split_by_order
from meanfield.simulation.measures.blocks.training import Hyperparameters, copied, root_mean_squares, tabled
from meanfield.simulation.passes import Forward, forward
from meanfield.simulation.training.draws import drawn_batch, drawn_weights
from meanfield.simulation.training.training import Training
from meanfield.simulation.weights.matrices import given_weights

Found = dict[str, Array]


def draw_first_updates(
    net: Net,
    *,
    seed: int,
    draws: range,
    hyperparameters: Mapping[str, Hyperparameters],
    norms: bool = True,
) -> Found:
    """What one step of every optimizer, without momentum or epsilon, does to nets that are drawn once for all of them.

    Args:
        hyperparameters: optimizer -> role -> names and numbers.
        norms: whether to take norms of matrices, most of the work.

    Returns:
        NAME -> (draws, ...), O optimizers, M = L k + 2 matrices:
        feature_norm (L + 1,), |h_l|_R before the step, and feature_update_norm (O, L + 1), |Delta h_l|_R;
        order_norm (O, k + 1), |epsilon_j(L)|_R, in linear nets;
        weight_norm (M,) and update_norm (O, M), RMS operator norms, with bias_norm (L k + 1,) and
        bias_update_norm (O, L k + 1) where there are biases;
        weight_alignment (M,) and update_alignment (O, M): |A z|_R / (|A|_R |z|_R), A the matrix or its update and z
        what it read before the step, which P1's claims F.1 and F.2 say are of order one.
    """
    start, batch = drawn_weights(net, seed, draws), drawn_batch(net, seed, draws)
    first = forward(net, given_weights(net, start), batch.inputs)
    found: Found = {"feature_norm": root_mean_squares(first.values[1:])}
    if norms:
        found |= norms_and_alignments(start, seen_by_matrices(first), "weight")
        found |= _bias_norms(net, start, "bias_norm")
    trainings = (
        tabled(net, copied(start), batch, name, given, momentum=False) for name, given in hyperparameters.items()
    )
    stepped = [_stepped(training, first, start, norms) for training in trainings]
    return found | {name: np.stack([one[name] for one in stepped], axis=1) for name in stepped[0]}


def _stepped(training: Training, first: Forward, start: Mapping[str, Array], norms: bool) -> Found:
    """One optimizer's step from ``start``."""
    net, directions = training.net, training.step()
    training.require_floats()
    pairs = zip(training.look().values[1:], first.values[1:], strict=True)
    found: Found = {"feature_update_norm": root_mean_squares([now - then for now, then in pairs])}
    if all(isinstance(one, LINEAR) for unit in net.units for one in unit.maps):
        _, orders = split_by_order(net, start, training.weights, training.data.inputs)
        found["order_norm"] = root_mean_squares(orders[-1])
    if not norms:
        return found
    moves = {name: [scaled(one, training.rate(name)) for one in ones] for name, ones in directions.items()}
    found |= norms_and_alignments(moves, seen_by_matrices(first), "update")
    changes = {name: training.weights[name] - start[name] for name in start}
    return found | _bias_norms(net, changes, "bias_update_norm")


def _bias_norms(net: Net, values: Mapping[str, Array], name: str) -> Found:
    biases = [values[key] for key, weight in net.weights.items() if len(weight.shape) == 1]
    return {name: root_mean_squares(biases)} if biases else {}


def seen_by_matrices(state: Forward) -> dict[str, Array]:
    """What every matrix reads at its first use, as patches (D, in taps, B S), in the order of the net."""
    found: dict[str, Array] = {}
    for passage in (*state.passages, *([] if state.readout is None else [state.readout])):
        for place, one in enumerate(passage.unit.maps):
            if isinstance(one, Linear):
                for weight in one.weights:
                    if weight.name not in found:
                        patches = patches_of(one, passage.input_of(place, state.setting), state.setting)
                        found[weight.name] = np.broadcast_to(patches, (len(state.output), *patches.shape[1:]))
    return found


def norms_and_alignments(
    moved: Mapping[str, Sequence[Direction] | Array], seen: Mapping[str, Array], name: str
) -> Found:
    """NAME_norm and NAME_alignment, (D, M), of the matrices that ``seen`` lists."""
    norms = np.array([[rms_operator_norm(one) for one in moved[key]] for key in seen]).T
    gains = np.stack([_gains(moved[key], z) for key, z in seen.items()], axis=1)
    return {f"{name}_norm": norms, f"{name}_alignment": gains / norms}


def _gains(ones: Sequence[Direction] | Array, seen: Array) -> Array:
    """|A z|_R / |z|_R of every net."""
    images = [times(matrix, z) for matrix, z in zip(ones, seen, strict=True)]
    return np.array([np.sqrt(np.mean(a**2) / np.mean(z**2)) for a, z in zip(images, seen, strict=True)])
