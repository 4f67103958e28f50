"""What all optimizers take and give: a state, the gradient of one weight and where it stands, for a direction.

The direction A comes without learning rate and weight decay: Delta W = -eta (A + lambda W) (Zheng et al. 2026, C.1).
Optimizers are frozen settings; a step returns a new state and changes nothing that it was given. Those of which
``takes_stacks`` is true also take stacks of matrices, one for each of several nets side by side; the others one
matrix.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from meanfield.common.array_libraries import is_on_host
from meanfield.common.validation import Array, not_negative, require_count, require_flag, require_positive
from meanfield.optimizers.linear_algebra import AT_A_TIME, Direction, Factored

Block = tuple[slice, ...]


@dataclass(frozen=True)
class Gradient:
    """Gradient of the loss with respect to one weight, and the diagonal of its Gauss-Newton matrix.

    In nets of linear or ReLU layers, each weight of which is used once, the output is linear in every single weight,
    so that this diagonal is that of the Hessian: sum_b l''_b (df_b/dW_ij)^2.
    """

    slope: Direction
    curvature: Direction | None = None


@dataclass(frozen=True)
class Place:
    """Where a step is made: the matrix as it stands, its learning rate and its epsilon."""

    weights: Array
    learning_rate: float = 1.0
    epsilon: float = 0.0


class NoStep(ValueError):
    """There is no step of this size from here."""


class Optimizer(ABC):
    """One optimizer with its settings.

    Attributes:
        elementwise: whether it steps every element by itself, and so serves biases too.
        takes_stacks: whether it steps stacks of matrices at once; elementwise ones do.
        takes_epsilon: whether it divides by the size of gradients, to which an epsilon is added.
        curved: whether it needs the curvature of the loss.
        draws_labels: whether it takes that at labels drawn for the outputs, not summed over all outputs.
    """

    elementwise: ClassVar[bool] = False
    takes_epsilon: ClassVar[bool] = False
    curved: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            what = f"{name} of {type(self).__name__}"
            if name in ("momentum", "beta1", "beta2", "beta3"):
                if not_negative(what, value) >= 1:
                    raise ValueError(f"{what} is {value}; it must be below 1, or no past is ever forgotten: 0 for none")
            elif name == "newton_schulz_steps":
                if value is not None:
                    require_count(what, value, why="iterations; None takes singular values")
            elif name in ("rho", "tolerance"):
                require_positive(what, value, why="steps divide by it, or end within it")
            else:
                require_flag(what, value)

    @property
    def takes_stacks(self) -> bool:
        return self.elementwise

    @property
    def draws_labels(self) -> bool:
        return False

    @abstractmethod
    def step(self, state: Any, gradient: Gradient, place: Place) -> tuple[Direction, Any]:
        """The direction A and the state after it; the state before the first step is None.

        Raises:
            NoStep: the optimizer keeps to a condition that a step of this learning rate cannot meet.
        """


def times(direction: Direction, columns: Array) -> Array:
    """A matrix times columns."""
    if isinstance(direction, Factored):
        return direction.left @ (direction.right.swapaxes(-1, -2) @ columns)
    return direction @ columns


def fresh(direction: Direction, block: Block) -> Array:
    """A block of a matrix, to be written over at will."""
    return direction[block] if isinstance(direction, Factored) else direction[block].copy()


def blocks(like: Direction) -> Iterator[Block]:
    """Blocks of a matrix or stack, of the size at which elementwise work is quick: several matrices, or rows of one.

    On a device the whole is one block.
    """
    *stack, rows, columns = like.shape
    most = AT_A_TIME
    if not is_on_host(like.left if isinstance(like, Factored) else like):
        most = rows * columns * (stack[0] if stack else 1)
    height, together = max(1, most // max(columns, 1)), max(1, most // max(rows * columns, 1))
    for first in range(0, rows, height):
        part = slice(first, first + height)
        if not stack:
            yield (part,)
            continue
        for net in range(0, stack[0], together):
            yield slice(net, net + together), part


def move(weights: Array, direction: Direction, rate: Any) -> None:
    """weights -= rate * direction, in place; the rate is a number, or (D, 1, 1) of a stack."""
    for block in blocks(weights):
        own = rate[block[0]] if getattr(rate, "ndim", 0) else rate
        if isinstance(direction, Factored):
            weights[block] -= Factored(own * direction.left[block], direction.right[block[:-1]]).dense()
        else:
            weights[block] -= own * direction[block]
