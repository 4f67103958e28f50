"""Nets that train under hyperparameter tables: how far their streams go, and by which orders of the updates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from meanfield.common.arrays import Array
from meanfield.common.validation import require_choice
from meanfield.nets.net import Net
from meanfield.optimizers.by_name import FIRST_STEPS, OPTIMIZERS
from meanfield.simulation.measures.base import Pieces
from meanfield.simulation.measures.blocks.base import BlockMeasure, Dims
from meanfield.simulation.measures.blocks.orders import split_by_order
from meanfield.simulation.training.data import Data
from meanfield.simulation.training.draws import drawn_batch, drawn_weights, own_loss
from meanfield.simulation.training.training import TINY, Training

# Role -> "learning_rate", and if wanted "weight_decay" and "adamw_epsilon", "shampoo_epsilon" or "soap_epsilon", as
# `meanfield.parameterizations.transfer_hyperparameters` gives them.
Hyperparameters = Mapping[str, Mapping[str, float]]


def tabled(
    net: Net, weights: dict[str, Array], data: Data, optimizer: str, hyperparameters: Hyperparameters, momentum: bool
) -> Training:
    """Training of given weights, full batch, by an optimizer's name and the hyperparameters of every role.

    With ``momentum`` the optimizer is as it is run in practice; without, as Zheng et al. 2026 analyse it, without
    momentum or epsilon. Optimizers of matrices leave biases to AdamW.
    """
    methods = OPTIMIZERS if momentum else FIRST_STEPS
    method = methods[optimizer]

    def settings(name: str) -> dict[str, float]:
        role = net.role_of(name)
        by = "adamw" if role.endswith("_bias") and not method.elementwise else optimizer
        given = hyperparameters[role]
        epsilon = given.get(f"{by}_epsilon", TINY) if momentum else 0.0
        return {name: given[name] for name in ("learning_rate", "weight_decay") if name in given} | {"epsilon": epsilon}

    return Training(net, weights, data, own_loss(net), method, settings, for_biases=methods["adamw"])


@dataclass(frozen=True, kw_only=True)
class OneOptimizer(BlockMeasure):
    """What measures under one optimizer and one table share."""

    optimizer: str
    hyperparameters: Hyperparameters
    momentum: bool

    def settled(self, net: Net) -> Self:
        require_choice("optimizer", self.optimizer, OPTIMIZERS)
        return self

    def begun(self, net: Net, seed: int, draws: range) -> Training:
        """Nets of these draws before their first step."""
        weights, data = drawn_weights(net, seed, draws), drawn_batch(net, seed, draws)
        return tabled(net, weights, data, self.optimizer, self.hyperparameters, self.momentum)


@dataclass(frozen=True, kw_only=True)
class TrainedStreams(OneOptimizer):
    """Sizes of the stream and of its change over so many steps of training.

    Its dataset has ``step`` 0, before the first step.
    """

    DIMS: ClassVar[Dims] = dict.fromkeys(("feature_norm", "feature_update_norm"), ("step", "block"))

    steps: int

    @property
    def visits(self) -> int:
        return self.steps

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """Root mean squares over units and samples of h_l and of h_l - h_l at the start, (draws, steps + 1, L + 1).

        h_l is the value of unit l + 1. Nets that leave the range of floats are nan from there on.
        """
        training = self.begun(net, seed, draws)
        start = training.look().values[1:]
        sizes, changes = [root_mean_squares(start)], [np.zeros((len(draws), len(start)))]
        with np.errstate(all="ignore"):  # where training diverges, the numbers say so by not being finite
            for _ in range(self.steps):
                training.step()
                streams = training.look().values[1:]
                sizes.append(root_mean_squares(streams))
                changes.append(root_mean_squares([now - before for now, before in zip(streams, start, strict=True)]))
        return {"feature_norm": np.stack(sizes, axis=1), "feature_update_norm": np.stack(changes, axis=1)}


def root_mean_squares(values: Sequence[Array]) -> Array:
    """|a|_R over all numbers of every net's array, (D, arrays)."""
    return np.stack([root_mean_square(array) for array in values], axis=1)


def root_mean_square(values: Array) -> Array:
    """|a|_R over all numbers of every net, (D,), of (D, ...)."""
    return np.sqrt(np.mean(np.square(values).reshape(len(values), -1), axis=1))


@dataclass(frozen=True, kw_only=True)
class UpdateOrders(OneOptimizer):
    """The change of the stream since the start, split by the order of the updates in it, after some of the steps."""

    DIMS: ClassVar[Dims] = {"order_norm": ("step", "order"), "feature_update_norm": ("step",)}

    steps: Sequence[int]

    @property
    def visits(self) -> int:
        return max(self.steps)

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """|epsilon_j(L)|_R, (draws, steps, k + 1), and |Delta h_L|_R, (draws, steps).

        Raises:
            OverflowError: a net leaves the range of floats.
        """
        orders, changes = [], []
        training = self.begun(net, seed, draws)
        start = copied(training.weights)
        with np.errstate(all="ignore"):  # an error is raised instead
            for step in range(1, max(self.steps) + 1):
                training.step()
                training.require_floats()
                if step in self.steps:
                    first, terms = split_by_order(net, start, training.weights, training.data.inputs)
                    orders.append(root_mean_squares(terms[-1]))
                    changes.append(root_mean_square(first + sum(terms[-1])))
        return {"order_norm": np.stack(orders, axis=1), "feature_update_norm": np.stack(changes, axis=1)}


def copied(weights: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values.copy() for name, values in weights.items()}
