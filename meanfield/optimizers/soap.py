"""SOAP: AdamW in the eigenbasis of Shampoo's second moments (Zheng et al. 2026, C.10)."""

from dataclasses import dataclass

import numpy as np

from meanfield.common.arrays import Array
from meanfield.optimizers.base import Gradient, Optimizer, Place
from meanfield.optimizers.linear_algebra.factored import Direction, Factored, add_momentum, rounding
from meanfield.optimizers.shampoo import second_moments


@dataclass(frozen=True)
class Moments:
    """M in the basis of the weights, roots of L and R, and AdamW's second moment, slot by slot of the eigenbasis."""

    mean: Direction
    left: Array
    right: Array
    second: Array
    steps: int


@dataclass(frozen=True)
class SOAP(Optimizer):
    """A = Q_L AdamW(Q_L^T G Q_R) Q_R^T, Q_L and Q_R the eigenvectors of L and R; U V^T without momentum and epsilon.

    Outside the span of past gradients the rotated gradient is zero, and so is AdamW of it: only eigenvectors of nonzero
    eigenvalues are kept, in descending order. The basis is taken anew at every step; the momentum turns with it, and
    the second moment keeps its slots, as in the published program.

    Two things are as Zheng et al. 2026 write them, and not as that program (of Vyas et al. 2024) has them. L and R hold
    the gradient of the step itself before the basis is taken; the program steps in the basis of the step before, and
    updates L and R behind it. And the first step is made; the program only begins L and R with its gradient.

    Where gradients are of low rank, a turned basis has slots with a momentum and without a squared gradient: there the
    step is the momentum over epsilon, so that a small epsilon makes steps as large as 1/epsilon.
    """

    beta1: float = 0.95
    beta2: float = 0.95
    beta3: float = 0.95

    def step(self, state: Moments | None, gradient: Gradient, place: Place) -> tuple[Factored, Moments]:
        before = (state.mean, state.left, state.right, state.steps) if state else (None, None, None, 0)
        left, right = second_moments(before[1], before[2], gradient.slope, self.beta3)
        mean = add_momentum(before[0], self.beta1, gradient.slope, 1 - self.beta1)
        bases = left / np.linalg.norm(left, axis=0), right / np.linalg.norm(right, axis=0)
        old = state.second if state else np.zeros((0, 0), left.dtype)
        second = self.beta2 * _padded(old, left.shape[1], right.shape[1])
        rotated = _rotated(gradient.slope, *bases)
        used = second[: rotated.shape[0], : rotated.shape[1]]
        used += (1 - self.beta2) * rotated**2
        steps = before[3] + 1
        size = np.sqrt(used / (1 - self.beta2**steps)) + place.epsilon
        numerator = _rotated(mean, *bases) / (1 - self.beta1**steps)
        quotient = np.divide(numerator, size, out=np.zeros_like(size), where=size > 0)
        return Factored(bases[0] @ quotient, bases[1]), Moments(mean, left, right, second, steps)


def _rotated(matrix: Direction, left: Array, right: Array) -> Array:
    """Q_L^T matrix Q_R, with zeros in place of rounding errors: AdamW would turn those into ones."""
    if isinstance(matrix, Factored):
        turned = (left.T @ matrix.left) @ (right.T @ matrix.right).T
    else:
        turned = left.T @ matrix @ right
    turned[np.abs(turned) < rounding(turned) * np.abs(turned).max(initial=0.0)] = 0.0
    return turned


def _padded(slots: Array, rows: int, columns: int) -> Array:
    """The slots with room for new eigenvectors, which start from nothing."""
    shape = max(rows, slots.shape[0]), max(columns, slots.shape[1])
    room = np.zeros(shape, slots.dtype)
    room[: slots.shape[0], : slots.shape[1]] = slots
    return room
