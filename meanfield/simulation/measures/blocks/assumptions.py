"""Assumptions G.1 - G.3 and claims F.1, F.2 of Zheng et al. 2026, looked at while a net trains by full batches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from meanfield.common.arrays import Array
from meanfield.common.validation import require_choice
from meanfield.nets.maps import Linear, Pointwise
from meanfield.nets.net import Net
from meanfield.optimizers.by_name import OPTIMIZERS
from meanfield.optimizers.linear_algebra.factored import scaled
from meanfield.optimizers.linear_algebra.spectrum import rms_operator_norm
from meanfield.simulation.arrays.arrays import PRECISIONS, on_numpy
from meanfield.simulation.maps import operation_of
from meanfield.simulation.measures.base import Pieces
from meanfield.simulation.measures.blocks.base import BlockMeasure, Dims
from meanfield.simulation.measures.blocks.first_updates import norms_and_alignments, seen_by_matrices
from meanfield.simulation.measures.blocks.training import Hyperparameters, copied, tabled
from meanfield.simulation.passes import Forward
from meanfield.simulation.training.data import given_data
from meanfield.simulation.training.draws import drawn_weights, own_loss
from meanfield.simulation.training.gradients import uses_of_weights
from meanfield.simulation.training.training import Training


@dataclass(frozen=True, kw_only=True)
class TrainingAssumptions(BlockMeasure):
    """Training on one batch, the same for all draws, looked at around some of its steps.

    Gradient descent ("sgd") has no momentum, as in the paper; other optimizers are as they are run in practice.

    A step t takes W to W + Delta W and, on sample i, h_l to h_l + Delta h_l; |.|_R of a matrix is its RMS operator
    norm, of a vector its root mean square. Means over samples are of the ratios of single samples; those that no unit
    passes on, whose ratios are 0 / 0, are left out.

    Args:
        inputs: (d_0, B). labels: (B,), +-1, under which the logistic loss is the binary cross-entropy.
        precision: of weights and passes, "float64" or "float32", of which draw i is the same net, rounded.
        steps: those to look at, ascending, from 1.

    Source: Zheng et al. 2026, appendices F.2, G.1, G.2.
    """

    DIMS: ClassVar[Dims] = {
        "training_loss": ("step",),
        "weight_step_ratio": ("step", "matrix"),
        "weight_travel_ratio": ("step", "matrix"),
        "feature_step_ratio": ("step", "block"),
        "feature_travel_ratio": ("step", "block"),
        "activation_ratio": ("step", "activation"),
        "sample_update_ratio": ("step", "matrix"),
        "weight_alignment": ("step", "matrix"),
        "update_alignment": ("step", "matrix"),
    }

    hyperparameters: Hyperparameters
    steps: Sequence[int]
    inputs: Array
    labels: Array
    optimizer: str = "sgd"
    precision: str = "float64"

    def settled(self, net: Net) -> Self:
        require_choice("optimizer", self.optimizer, OPTIMIZERS)
        require_choice("precision", self.precision, PRECISIONS)
        return self

    @property
    def visits(self) -> int:
        return max(self.steps)

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """NAME -> (draws, steps, ...), M = L k + 2 matrices and L k + 1 activations.

        training_loss (), before the step;
        weight_step_ratio (M,), |W + Delta W|_R / (|W|_R + |Delta W|_R), and feature_step_ratio (L + 1,), the same of
        h_l, mean over samples; weight_travel_ratio and feature_travel_ratio, Delta now the change from the start to
        after the step;
        activation_ratio (L k + 1,), |phi(W z)|_R / |W z|_R before the step, mean over samples;
        sample_update_ratio (M,), |Delta W^(i) z^(i)|_R / (B |Delta W z^(i)|_R), mean over samples, under gradient
        descent alone: no other update is a sum over samples;
        weight_alignment and update_alignment (M,), |A z|_R / (|A|_R |z|_R) for A = W and Delta W.

        Raises:
            OverflowError: a net leaves the range of floats.
        """
        arrays, is_descent = on_numpy(self.precision), self.optimizer == "sgd"
        data = given_data(net, self.inputs.T, self.labels, own_loss(net), arrays)
        weights = drawn_weights(net, seed, draws, arrays)
        training = tabled(net, weights, data, self.optimizer, self.hyperparameters, not is_descent, arrays)
        start, first = copied(training.weights), training.look()
        initial = _norms(start, first)
        looks = []
        with np.errstate(over="ignore", invalid="ignore"):
            for step in range(1, max(self.steps) + 1):
                if step in self.steps:
                    looks.append(_look(training, start, initial, first, is_descent))
                else:
                    training.step()
                training.require_floats()
        return {name: np.stack([look[name] for look in looks], axis=1) for name in looks[0]}


def _look(training: Training, start: Mapping[str, Array], initial: Array, first: Forward, is_descent: bool) -> Pieces:
    """Makes one step, and gives what it does."""
    state, before = training.look(), copied(training.weights)
    losses, activations = training.losses(), _activation_ratios(state)
    samples = {"sample_update_ratio": _sample_ratios(training)} if is_descent else {}
    directions = training.step()
    training.require_floats()
    now, after = training.weights, training.look()
    if not np.isfinite(after.values[-1]).all():
        raise OverflowError("streams leave the range of floats; take a smaller learning rate, width or depth")
    moves = {name: [scaled(part, -training.rate(name)) for part in parts] for name, parts in directions.items()}
    own = norms_and_alignments(before, seen_by_matrices(state), "weight")
    moved = norms_and_alignments(moves, seen_by_matrices(state), "update")
    norms = _norms(now, state)
    travel = _norms({name: now[name] - start[name] for name in now}, state)
    return {
        "training_loss": losses,
        "weight_step_ratio": norms / (own["weight_norm"] + moved["update_norm"]),
        "weight_travel_ratio": norms / (initial + travel),
        "feature_step_ratio": _feature_ratios(state, after),
        "feature_travel_ratio": _feature_ratios(first, after),
        "activation_ratio": activations,
        "weight_alignment": own["weight_alignment"],
        "update_alignment": moved["update_alignment"],
    } | samples


def _norms(matrices: Mapping[str, Array], state: Forward) -> Array:
    """RMS operator norms of all matrices, (D, M)."""
    return np.array([[rms_operator_norm(matrix) for matrix in matrices[name]] for name in seen_by_matrices(state)]).T


def _feature_ratios(before: Forward, after: Forward) -> Array:
    """Mean over samples of |h'| / (|h| + |h' - h|), stream by stream."""
    pairs = zip(before.values[1:], after.values[1:], strict=True)
    return np.stack([_mean(_sizes(new) / (_sizes(old) + _sizes(new - old))) for old, new in pairs], axis=1)


def _activation_ratios(state: Forward) -> Array:
    """Mean over samples of |phi(W z)| / |W z|, for every matrix below the readout; 1 where no activation follows."""
    ratios = []
    for passage in state.passages:
        maps = passage.unit.maps
        for place, part in enumerate(maps):
            if not isinstance(part, Linear):
                continue
            if place + 1 == len(maps) or not isinstance(maps[place + 1], Pointwise):
                ratios.append(np.ones(len(state.output)))
                continue
            given = passage.input_of(place + 1, state.setting)
            passed = operation_of(maps[place + 1]).forward(maps[place + 1], given, state.setting)[0]
            ratios.append(_mean(_sizes(passed) / _sizes(given)))
    return np.stack(ratios, axis=1)


def _sample_ratios(training: Training) -> Array:
    """Mean over samples of |Delta W^(i) z_i| / (B |Delta W z_i|) under the gradient: column i of its factors U and X
    makes Delta W^(i) / B, so that this is |u_i| |x_i|^2 / |U X^T x_i|.
    """
    ratios = []
    for uses in uses_of_weights(training.look(), training.slope()).values():
        (use,) = uses
        errors, patches = use.by_column[:, :, 0, :, 0], use.patches
        alone = _sizes(errors) * (patches * patches).sum(axis=1)
        ratios.append(_mean(alone / _sizes(errors @ (patches.swapaxes(1, 2) @ patches))))
    return np.stack(ratios, axis=1)


def _mean(ratios: Array) -> Array:
    """Over samples (D, B, ...), of ratios that are not 0 / 0, (D,); nan if none is left."""
    flat = ratios.reshape(len(ratios), -1)
    is_number = ~np.isnan(flat)
    with np.errstate(invalid="ignore"):
        return np.where(is_number, flat, 0.0).sum(axis=1) / is_number.sum(axis=1)


def _sizes(columns: Array) -> Array:
    """The root mean square over units, of every sample (D, n, B, ...)."""
    return np.sqrt(np.mean(np.square(columns), axis=1))
