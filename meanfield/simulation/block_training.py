"""Steps of any optimizer on a `BlockNet`, and what they do to its streams and its matrices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meanfield.nets.block_net import BlockNet
from meanfield.optimizers import ELEMENTWISE, FIRST_STEPS, OPTIMIZERS
from meanfield.optimizers.base import Direction, Gradient, Place, move
from meanfield.simulation.block_passes import Batch, Parameters, Pass, draw_batch, draw_parameters, forward, gradients
from meanfield.simulation.update_orders import split_by_order

Array = NDArray[np.float64]
Hyperparameters = Mapping[str, Mapping[str, float]]

# An epsilon that no table names, and the one of optimizers that biases are left to: far below any gradient.
TINY = 1e-16

# Gradients beyond this have squares, of which optimizers are made, near the end of the floats.
LARGEST = 1e150


@dataclass
class Training:
    """One net, its batch, its optimizer and how far it has come; full-batch steps on one batch.

    Attributes:
        hyperparameters: role -> "learning_rate", and if wanted "weight_decay" and "adamw_epsilon" or
            "shampoo_epsilon", as `meanfield.parameterizations.resolve` gives them.
        momentum: whether the optimizer is run as it is in practice, or as P1 analyses it: without momentum or epsilon.
    """

    net: BlockNet
    parameters: Parameters
    batch: Batch
    optimizer: str
    hyperparameters: Hyperparameters
    momentum: bool = True
    states: dict[int, Any] = field(default_factory=dict)
    _seen: Pass | None = None

    def look(self) -> Pass:
        """The forward pass of the net as it stands, made once."""
        if self._seen is None:
            self._seen = forward(self.net, self.parameters, self.batch.inputs)
        return self._seen

    def step(self) -> list[Direction]:
        """Delta W = -eta (A + lambda W) in every matrix and bias (P1 C.1); returns the A of the matrices.

        Raises:
            OverflowError: gradients so large that their squares leave the range of floats, or not finite.
        """
        slopes, bias_slopes = gradients(self.net, self.parameters, self.batch, self.look())
        sizes = [np.abs(one.slope.left).max() * np.abs(one.slope.right).max() for one in slopes]
        if not max(sizes) < LARGEST or not np.isfinite(sizes).all():
            raise OverflowError("gradients leave the range of floats; take a smaller learning rate, width or depth")
        self._seen = None
        roles = self.net.roles
        directions = [
            self._move(index, role, matrix, slope, self.optimizer)
            for index, (role, matrix, slope) in enumerate(zip(roles, self.parameters.matrices, slopes, strict=True))
        ]
        of_biases = self.optimizer if self.optimizer in ELEMENTWISE else "adamw"
        for index, (bias, slope) in enumerate(zip(self.parameters.biases, bias_slopes, strict=True)):
            self._move(-1 - index, f"{roles[index]}_bias", bias, slope, of_biases)
        return directions

    def _move(self, key: int, role: str, weights: Array, slope: Gradient, optimizer: str) -> Direction:
        settings = self.hyperparameters[role]
        rate, decay = settings["learning_rate"], settings.get("weight_decay", 0.0)
        epsilon = settings.get(f"{optimizer}_epsilon", TINY) if self.momentum else 0.0
        method = (OPTIMIZERS if self.momentum else FIRST_STEPS)[optimizer]
        direction, self.states[key] = method.step(self.states.get(key), slope, Place(weights, rate, epsilon))
        if decay:
            weights *= 1 - rate * decay
        move(weights, direction, rate)
        return direction


def begin(
    net: BlockNet, seed: int, draw: int, optimizer: str, hyperparameters: Hyperparameters, momentum: bool
) -> Training:
    """A net of one draw before its first step."""
    parameters, batch = draw_parameters(net, seed, draw), draw_batch(net, seed, draw)
    return Training(net, parameters, batch, optimizer, hyperparameters, momentum)


def draw_trained_streams(
    net: BlockNet,
    *,
    seed: int,
    draws: range,
    weights: str,
    optimizer: str,
    hyperparameters: Hyperparameters,
    momentum: bool,
    steps: int,
) -> dict[str, Array]:
    """Root mean squares over units and samples of h_l and of h_l - h_l at the start, (draws, steps + 1, L + 1).

    Nets that leave the range of floats are nan from there on.
    """

    def one(draw: int) -> Iterator[tuple[list[float], list[float]]]:
        training = begin(net, seed, draw, optimizer, hyperparameters, momentum)
        start = training.look().streams
        yield [root_mean_square(h) for h in start], [0.0] * len(start)
        for step in range(steps):
            try:
                training.step()
            except OverflowError:
                gone = [np.nan] * len(start)
                yield from [(gone, gone)] * (steps - step)
                return
            streams = training.look().streams
            changes = [root_mean_square(now - before) for now, before in zip(streams, start, strict=True)]
            yield [root_mean_square(h) for h in streams], changes

    with np.errstate(all="ignore"):  # what a table lets diverge is told by numbers that are not finite
        found = np.array([list(one(draw)) for draw in draws])
    return {"feature_norm": found[:, :, 0], "feature_update_norm": found[:, :, 1]}


def root_mean_square(values: Array) -> float:
    """|a|_R over all numbers of an array."""
    return float(np.sqrt(np.mean(np.square(values))))


def draw_update_orders(
    net: BlockNet,
    *,
    seed: int,
    draws: range,
    weights: str,
    optimizer: str,
    hyperparameters: Hyperparameters,
    momentum: bool,
    steps: Sequence[int],
) -> dict[str, Array]:
    """|epsilon_j(L)|_R, (draws, steps, k + 1), and |Delta h_L|_R, (draws, steps), of the change since the start.

    Raises:
        OverflowError: a net leaves the range of floats, as `Training.step` has it.
    """
    orders, changes = [], []
    with np.errstate(all="ignore"):  # told by the error
        for draw in draws:
            training = begin(net, seed, draw, optimizer, hyperparameters, momentum)
            start, inputs = training.parameters.copy(), training.batch.inputs
            for step in range(1, max(steps) + 1):
                training.step()
                if step in steps:
                    first, terms = split_by_order(net, start, training.parameters, inputs)
                    orders.append([root_mean_square(term) for term in terms[:, -1]])
                    changes.append(root_mean_square(first + terms[:, -1].sum(axis=0)))
    shape = (len(draws), len(steps))
    return {"order_norm": np.reshape(orders, (*shape, -1)), "feature_update_norm": np.reshape(changes, shape)}
