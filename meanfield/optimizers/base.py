"""What all optimizers take and give: a state, the gradient of one matrix and where it stands, for a direction.

The direction A is meant without the learning rate and without weight decay: Delta W = -eta (A + lambda W) (P1 C.1).
Optimizers are frozen settings; a step returns a new state and changes nothing that it was given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from meanfield.optimizers.factored import Factored

Array = NDArray[np.float64]
Direction = Array | Factored

# Numbers that elementwise work takes at a time, few enough for what it makes in between to stay in a core's cache: in
# matrices of 1024 x 1024 fresh memory would cost more than the arithmetic.
AT_A_TIME = 1 << 15


@dataclass(frozen=True)
class Gradient:
    """Gradient of the loss with respect to one matrix, and the diagonal of its Hessian, both by factors.

    In nets of linear or ReLU layers the output is linear in every single weight, so that the diagonal of the Hessian is
    exactly sum_b l''_b (df_b/dW_ij)^2.
    """

    slope: Factored
    curvature: Factored | None = None


@dataclass(frozen=True)
class Place:
    """Where a step is made: the matrix as it stands, its learning rate and its epsilon."""

    weights: Array
    learning_rate: float = 1.0
    epsilon: float = 0.0


class Optimizer(Protocol):
    """One optimizer with its settings."""

    def step(self, state: Any, gradient: Gradient, place: Place) -> tuple[Direction, Any]:
        """The direction A and the state after it; the state before the first step is None."""
        ...


def scaled(direction: Direction, factor: float) -> Direction:
    """factor times a matrix, kept as it is kept."""
    return direction.times(factor) if isinstance(direction, Factored) else factor * direction


def times(direction: Direction, columns: Array) -> Array:
    """A matrix times columns."""
    if isinstance(direction, Factored):
        return direction.left @ (direction.right.T @ columns)
    return direction @ columns


def dense(direction: Direction) -> Array:
    return direction.dense() if isinstance(direction, Factored) else direction


def row_slices(shape: tuple[int, int]) -> Iterator[slice]:
    """The rows of a matrix, as many at a time as elementwise work is quick with."""
    rows = max(1, AT_A_TIME // max(shape[1], 1))
    return (slice(start, start + rows) for start in range(0, shape[0], rows))


def move(weights: Array, direction: Direction, rate: float) -> None:
    """weights -= rate * direction, in place."""
    for rows in row_slices((len(weights), weights.shape[1])):
        if isinstance(direction, Factored):
            weights[rows] -= (rate * direction.left[rows]) @ direction.right.T
        else:
            weights[rows] -= rate * direction[rows]
