"""What P1's assumptions G.1 - G.3 and claims F.1, F.2 say of a net, looked at while it trains by full batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from meanfield.nets.block_net import BlockNet
from meanfield.optimizers.base import Direction, scaled
from meanfield.optimizers.factored import Factored
from meanfield.optimizers.spectrum import rms_operator_norm
from meanfield.simulation.block_passes import Batch, Pass, draw_parameters, loss
from meanfield.simulation.block_training import Hyperparameters, Training
from meanfield.simulation.first_updates import norms_and_alignments

Array = NDArray[np.float64]
Found = dict[str, Array]


def draw_training_assumptions(
    net: BlockNet,
    *,
    seed: int,
    draws: range,
    weights: str,
    inputs: Array,
    labels: Array,
    hyperparameters: Hyperparameters,
    steps: Sequence[int],
) -> Found:
    """Gradient descent without momentum on one batch, the same for all draws, looked at around some of its steps.

    A step t takes W to W + Delta W and, on sample i, h_l to h_l + Delta h_l; |.|_R of a matrix is its RMS operator
    norm, of a vector its root mean square. Means over samples are of the ratios of every sample, but of those that no
    unit passes on, whose ratios are 0 / 0.

    Args:
        inputs: (d_0, B). labels: (B,), +-1, under which the logistic loss is the binary cross-entropy.
        steps: those to look at, ascending, from 1.

    Returns:
        NAME -> (draws, steps, ...), M = L k + 2 matrices and L k + 1 activations:
        training_loss (), before the step;
        weight_step_ratio (M,), |W + Delta W|_R / (|W|_R + |Delta W|_R), and feature_step_ratio (L + 1,), the same of
        h_l, mean over samples; weight_travel_ratio and feature_travel_ratio, Delta now the change from the start to
        after the step;
        activation_ratio (L k + 1,), |phi(W z)|_R / |W z|_R before the step, mean over samples;
        sample_update_ratio (M,), |Delta W^(i) z^(i)|_R / (B |Delta W z^(i)|_R), mean over samples;
        weight_alignment and update_alignment (M,), |A z|_R / (|A|_R |z|_R) for A = W and Delta W.

    Raises:
        OverflowError: a net leaves the range of floats.

    Source: P1 appendices F.2, G.1, G.2.
    """
    batch = Batch(inputs, labels)
    with np.errstate(over="ignore", invalid="ignore"):
        found = [_one(net, seed, draw, batch, hyperparameters, steps) for draw in draws]
    return {name: np.stack([one[name] for one in found]) for name in found[0]}


def _one(
    net: BlockNet, seed: int, draw: int, batch: Batch, hyperparameters: Hyperparameters, steps: Sequence[int]
) -> Found:
    training = Training(net, draw_parameters(net, seed, draw), batch, "sgd", hyperparameters, momentum=False)
    start, first = training.parameters.copy().matrices, training.look()
    initial = _norms(start)
    looks = []
    for step in range(1, max(steps) + 1):
        if step in steps:
            looks.append(_look(training, start, initial, first))
        else:
            training.step()
    return {name: np.stack([look[name] for look in looks]) for name in looks[0]}


def _look(training: Training, start: Sequence[Array], initial: Array, first: Pass) -> Found:
    """Makes one step, and gives what it does."""
    net, seen, before = training.net, training.look(), training.parameters.copy().matrices
    directions = training.step()
    now, after = training.parameters.matrices, training.look()
    if not np.isfinite(after.streams[-1]).all():
        raise OverflowError("streams leave the range of floats; take a smaller learning rate, width or depth")
    rates = [training.hyperparameters[role]["learning_rate"] for role in net.roles]
    moves = [scaled(direction, -rate) for direction, rate in zip(directions, rates, strict=True)]
    own = norms_and_alignments(before, seen.inputs, "weight")
    moved = norms_and_alignments(moves, seen.inputs, "update")
    norms = _norms(now)
    travel = _norms([new - old for new, old in zip(now, start, strict=True)])
    samples = [_sample_ratio(move, z) for move, z in zip(moves, seen.inputs, strict=True)]
    return {
        "training_loss": np.array(loss(seen.output, training.batch.labels)),
        "weight_step_ratio": norms / (own["weight_norm"] + moved["update_norm"]),
        "weight_travel_ratio": norms / (initial + travel),
        "feature_step_ratio": _feature_ratios(seen, after),
        "feature_travel_ratio": _feature_ratios(first, after),
        "activation_ratio": _activation_ratios(net, before, seen),
        "sample_update_ratio": np.array(samples),
        "weight_alignment": own["weight_alignment"],
        "update_alignment": moved["update_alignment"],
    }


def _norms(matrices: Sequence[Array]) -> Array:
    return np.array([rms_operator_norm(matrix) for matrix in matrices])


def _feature_ratios(before: Pass, after: Pass) -> Array:
    """Mean over samples of |h'| / (|h| + |h' - h|), stream by stream."""
    pairs = zip(before.streams, after.streams, strict=True)
    return np.array([_mean(_sizes(new) / (_sizes(old) + _sizes(new - old))) for old, new in pairs])


def _activation_ratios(net: BlockNet, matrices: Sequence[Array], seen: Pass) -> Array:
    """Mean over samples of |phi(W z)| / |W z|, for every matrix that an activation follows."""
    if net.activation == "linear":
        return np.ones(len(matrices) - 1)
    given = [matrix @ z for matrix, z in zip(matrices[:-1], seen.inputs[:-1], strict=True)]
    return np.array([_mean(_sizes(one * gate) / _sizes(one)) for one, gate in zip(given, seen.gates, strict=True)])


def _sample_ratio(move: Direction, seen: Array) -> float:
    """Mean over samples of |Delta W^(i) z_i| / (B |Delta W z_i|): column i of the factors makes Delta W^(i) / B."""
    assert isinstance(move, Factored)  # as gradients are, sample by sample
    alone = _sizes(move.left) * np.abs((move.right * seen).sum(axis=0))
    return _mean(alone / _sizes(move.left @ (move.right.T @ seen)))


def _mean(ratios: Array) -> float:
    """Over samples, of ratios that are not 0 / 0; nan if none is left."""
    known = ratios[~np.isnan(ratios)]
    return float(known.mean()) if known.size else np.nan


def _sizes(columns: Array) -> Array:
    """The root mean square of every column."""
    return np.sqrt(np.mean(np.square(columns), axis=0))
