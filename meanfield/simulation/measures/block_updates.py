"""What steps do to the weights and streams of nets of blocks: norms, alignments, ratios.

first updates      of every optimizer on one net: norms of weights, updates and features, alignments, orders
first directions   norms of weights, of gradients and of first directions, by role: what cells of hyperparameter
                   tables follow from
assumptions        G.1 - G.3 and claims F.1, F.2 of Zheng et al. 2026, looked at while a net trains by full batches
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from meanfield.common.validation import Array, require_choice
from meanfield.nets.net import Net
from meanfield.optimizers.base import Gradient, Optimizer, Place, times
from meanfield.optimizers.by_name import FIRST_STEPS, OPTIMIZERS, optimizer_of_role, require_optimizer
from meanfield.optimizers.linear_algebra import (
    Direction,
    dense,
    of_net,
    rms_operator_norm,
    scaled,
    spectral_norm,
)
from meanfield.simulation.arrays import PRECISIONS, on_numpy
from meanfield.simulation.maps.base import operation_of, weighted_operation_of
from meanfield.simulation.measures.base import Pieces
from meanfield.simulation.measures.blocks import (
    BlockMeasure,
    Dims,
    Hyperparameters,
    copied,
    is_linear,
    middle_weights,
    root_mean_squares,
    split_by_order,
    tabled,
)
from meanfield.simulation.passes import Forward, forward
from meanfield.simulation.training.data import drawn_batch, drawn_weights, given_data, own_loss
from meanfield.simulation.training.gradients import loss_gradients, uses_of_weights
from meanfield.simulation.training.training import Training
from meanfield.simulation.weights import given_weights


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
            if names and linear.mixes_channels:
                values, setting = passage.input_of(place), passage.settings[place]
                patches = weighted_operation_of(linear).patches(linear, values, setting)
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


# Slopes of norms need no more.
NORM_TOLERANCE = 1e-4


@dataclass(frozen=True, kw_only=True)
class FirstDirections(BlockMeasure):
    """Norms of the middle weight of every role, of its gradient and of the direction that an optimizer makes of it.

    The direction A is that of the first step, before learning rate and decay, without momentum and epsilon, as
    Zheng et al. 2026 analyse it (appendix C.1). Nothing is stepped.

    Args:
        optimizer: a name, or that of a hybrid (`optimizer_of_role`).
        hyperparameters: role -> "learning_rate", on which the direction of SSO depends, and others.
    """

    DIMS: ClassVar[Dims] = dict.fromkeys(
        ("role_weight_norm", "role_direction_norm", "role_gradient_norm", "role_gradient_element"), ("role",)
    )

    optimizer: str
    hyperparameters: Hyperparameters

    @property
    def visits(self) -> int:
        return 1

    def settled(self, net: Net) -> Self:
        require_optimizer("optimizer", self.optimizer)
        return self

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """NAME -> (draws, roles), in the order of the net's roles.

        role_weight_norm, |W|_R, and role_direction_norm, |A|_R: RMS operator norms, of biases root mean squares;
        role_gradient_norm, |G|_2, the spectral norm, and role_gradient_element, the root mean square of its elements.
        """
        weights, batch = drawn_weights(net, seed, draws), drawn_batch(net, seed, draws)
        names = {net.role_of(name): name for name in middle_weights(net)}
        methods = {role: FIRST_STEPS[optimizer_of_role(self.optimizer, role)] for role in names}
        curved = any(method.curved for method in methods.values())
        state = forward(net, given_weights(net, weights), batch.inputs)
        gradients = loss_gradients(state, own_loss(net), batch.targets, curved)
        by_role = np.array(
            [
                _norms_of(weights[name], gradients[name], methods[role], self.hyperparameters[role]["learning_rate"])
                for role, name in names.items()
            ]
        )
        return {name: by_role[..., place].T for place, name in enumerate(self.DIMS)}


def _norms_of(weights: Array, gradient: Gradient, method: Optimizer, rate: float) -> list[list[float]]:
    """The norms of every net: |W|_R, |A|_R, |G|_2 and the root mean square of G's elements."""
    norms = []
    for net, own in enumerate(weights):
        slope = of_net(gradient.slope, net)
        curvature = None if gradient.curvature is None else of_net(gradient.curvature, net)
        direction, _ = method.step(None, Gradient(slope, curvature), Place(own, rate))
        norms.append([_norm(own), _norm(direction), spectral_norm(slope, NORM_TOLERANCE), _element(slope)])
    return norms


def _norm(matrix: Direction) -> float:
    """|.|_R, of a column, which a bias is, that over its elements."""
    return _element(matrix) if matrix.shape[1] == 1 else rms_operator_norm(matrix, NORM_TOLERANCE)


def _element(matrix: Direction) -> float:
    """The root mean square of the elements."""
    return float(np.sqrt(np.mean(np.square(dense(matrix)))))


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
        initial = _matrix_norms(start, first)
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
    norms = _matrix_norms(now, state)
    travel = _matrix_norms({name: now[name] - start[name] for name in now}, state)
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


def _matrix_norms(matrices: Mapping[str, Array], state: Forward) -> Array:
    """RMS operator norms of all matrices, (D, M)."""
    return np.array([[rms_operator_norm(matrix) for matrix in matrices[name]] for name in seen_by_matrices(state)]).T


def _feature_ratios(before: Forward, after: Forward) -> Array:
    """Mean over samples of |h'| / (|h| + |h' - h|), stream by stream."""
    pairs = zip(before.values[1:], after.values[1:], strict=True)
    return np.stack([_mean_over_samples(_sizes(new) / (_sizes(old) + _sizes(new - old))) for old, new in pairs], axis=1)


def _activation_ratios(state: Forward) -> Array:
    """Mean over samples of |phi(W z)| / |W z|, for every matrix below the readout; 1 where no activation follows."""
    ratios = []
    for passage in state.passages:
        maps = passage.unit.maps
        for place, part in enumerate(maps):
            if not part.mixes_channels:
                continue
            if place + 1 == len(maps) or maps[place + 1].pointwise_activation is None:
                ratios.append(np.ones(len(state.output)))
                continue
            given, setting = passage.input_of(place + 1), passage.settings[place + 1]
            passed = operation_of(maps[place + 1]).forward(maps[place + 1], given, setting)[0]
            ratios.append(_mean_over_samples(_sizes(passed) / _sizes(given)))
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
        ratios.append(_mean_over_samples(alone / _sizes(errors @ (patches.swapaxes(1, 2) @ patches))))
    return np.stack(ratios, axis=1)


def _mean_over_samples(ratios: Array) -> Array:
    """The mean over samples (D, B, ...) of the ratios that are not 0 / 0, (D,); nan if none is left."""
    flat = ratios.reshape(len(ratios), -1)
    is_number = ~np.isnan(flat)
    with np.errstate(invalid="ignore"):
        return np.where(is_number, flat, 0.0).sum(axis=1) / is_number.sum(axis=1)


def _sizes(columns: Array) -> Array:
    """The root mean square over units, of every sample (D, n, B, ...)."""
    return np.sqrt(np.mean(np.square(columns), axis=1))
