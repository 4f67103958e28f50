"""The first update of every optimizer on one net: norms of weights, updates and features, alignments, orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from meanfield.nets.block_net import BlockNet
from meanfield.optimizers.base import Direction, scaled, times
from meanfield.optimizers.spectrum import rms_operator_norm
from meanfield.simulation.block_passes import Batch, Parameters, draw_batch, draw_parameters, forward
from meanfield.simulation.block_training import Hyperparameters, Training, root_mean_square
from meanfield.simulation.update_orders import split_by_order

Array = NDArray[np.float64]
Found = dict[str, Array]


def draw_first_updates(
    net: BlockNet,
    *,
    seed: int,
    draws: range,
    weights: str,
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
    found = [_one(net, draw_parameters(net, seed, d), draw_batch(net, seed, d), hyperparameters, norms) for d in draws]
    return {name: np.stack([one[name] for one in found]) for name in found[0]}


def _one(net: BlockNet, start: Parameters, batch: Batch, of: Mapping[str, Hyperparameters], norms: bool) -> Found:
    made = forward(net, start, batch.inputs)
    found: Found = {"feature_norm": np.array([root_mean_square(h) for h in made.streams])}
    if norms:
        found |= norms_and_alignments(start.matrices, made.inputs, "weight")
        if net.biases:
            found["bias_norm"] = np.array([root_mean_square(bias) for bias in start.biases])
    stepped = [_stepped(net, start, batch, name, given, norms) for name, given in of.items()]
    return found | {name: np.stack([one[name] for one in stepped]) for name in stepped[0]}


def _stepped(net: BlockNet, start: Parameters, batch: Batch, name: str, given: Hyperparameters, norms: bool) -> Found:
    """One optimizer's step from ``start``, which is left as it is."""
    training = Training(net, start.copy(), batch, name, given, momentum=False)
    directions = training.step()
    before = forward(net, start, batch.inputs)
    after = forward(net, training.parameters, batch.inputs).streams
    changes = [root_mean_square(now - then) for now, then in zip(after, before.streams, strict=True)]
    found: Found = {"feature_update_norm": np.array(changes)}
    if net.activation == "linear":
        _, orders = split_by_order(net, start, training.parameters, batch.inputs)
        found["order_norm"] = np.array([root_mean_square(order) for order in orders[:, -1]])
    if not norms:
        return found
    rates = [given[role]["learning_rate"] for role in net.roles]
    moves = [scaled(direction, rate) for direction, rate in zip(directions, rates, strict=True)]
    found |= norms_and_alignments(moves, before.inputs, "update")
    if net.biases:
        pairs = zip(training.parameters.biases, start.biases, strict=True)
        sizes = np.array([root_mean_square(now - then) for now, then in pairs])
        found["bias_update_norm"] = sizes
    return found


def norms_and_alignments(matrices: Sequence[Direction], seen: Sequence[Array], name: str) -> Found:
    norms = np.array([rms_operator_norm(matrix) for matrix in matrices])
    images = zip(matrices, seen, strict=True)
    gains = np.array([root_mean_square(times(matrix, z)) / root_mean_square(z) for matrix, z in images])
    return {f"{name}_norm": norms, f"{name}_alignment": gains / norms}
