"""What cells of hyperparameter tables follow from: norms of weights, of gradients and of first directions, by role."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.net import Net
from meanfield.optimizers.base import Gradient, Optimizer, Place
from meanfield.optimizers.by_name import FIRST_STEPS, optimizer_of_role, require_optimizer
from meanfield.optimizers.linear_algebra.factored import Direction, Factored, dense
from meanfield.optimizers.linear_algebra.spectrum import rms_operator_norm, spectral_norm
from meanfield.simulation.measures.base import Pieces
from meanfield.simulation.measures.blocks.base import BlockMeasure, Dims
from meanfield.simulation.measures.blocks.training import Hyperparameters, middle_weights
from meanfield.simulation.passes import forward
from meanfield.simulation.training.draws import drawn_batch, drawn_weights, own_loss
from meanfield.simulation.training.gradients import loss_gradients
from meanfield.simulation.weights.matrices import given_weights

# Slopes of norms need no more.
TOLERANCE = 1e-4


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
    """Of every net: |W|_R, |A|_R, |G|_2 and the root mean square of G's elements."""
    norms = []
    for net, own in enumerate(weights):
        slope = _of_net(gradient.slope, net)
        curvature = None if gradient.curvature is None else _of_net(gradient.curvature, net)
        direction, _ = method.step(None, Gradient(slope, curvature), Place(own, rate))
        norms.append([_norm(own), _norm(direction), spectral_norm(slope, TOLERANCE), _element(slope)])
    return norms


def _of_net(stack: Direction, net: int) -> Direction:
    return stack.of_net(net) if isinstance(stack, Factored) else stack[net]


def _norm(matrix: Direction) -> float:
    """|.|_R, of a column, which a bias is, that over its elements."""
    return _element(matrix) if matrix.shape[1] == 1 else rms_operator_norm(matrix, TOLERANCE)


def _element(matrix: Direction) -> float:
    """The root mean square of the elements."""
    return float(np.sqrt(np.mean(np.square(dense(matrix)))))
