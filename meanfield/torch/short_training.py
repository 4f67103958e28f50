"""A few steps of training of a PyTorch model, and how large values in it are, and their changes since it began.

    value     |z_t|         root mean square over all elements, after t steps
    change    |z_t - z_0|   the same of the change since then

of four values z, on the one batch that every step takes: of what the first block reads ("first"), of what comes behind
half of the blocks ("middle") and behind the last ("last"), and of the outputs.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from meanfield.common.validation import Array
from meanfield.torch.models import trained
from meanfield.torch.parts import blocks, chosen, has_weights, head, leaves
from meanfield.torch.passes import LossNotFinite, Pass, Task, gradients, mean_square, value_of
from meanfield.torch.steps import require_all_stepped, require_one_gradient

FIRST, MIDDLE, LAST, OUTPUTS = PLACES = ("first", "middle", "last", "outputs")


@dataclass(frozen=True)
class Moves:
    """Of one model, over steps from 0, NaN behind the last of which the loss is finite.

    Attributes:
        values, changes: place -> sizes of values, and of their changes.
        losses: before each step.
    """

    values: dict[str, Array]
    changes: dict[str, Array]
    losses: Array


def moves(model: nn.Module, task: Task, optimizers: Sequence[torch.optim.Optimizer], steps: int, modules: Any) -> Moves:
    """Train a model by its optimizers, all of which step at once.

    Raises:
        TypeError, ValueError: as `passes.gradients` and `parts.chosen`; parameters that no optimizer has; modules that
            are not called in every step.
    """
    require_all_stepped(trained(model), optimizers)
    require_one_gradient(optimizers)
    watched = _Watched(model, modules)
    start: dict[str, torch.Tensor] = {}
    losses, rows = np.full(steps + 1, np.nan), np.full((2, len(PLACES), steps + 1), np.nan)
    for step in range(steps + 1):
        try:
            slopes, made = gradients(model, task, watched.names, watched.hooked)
        except LossNotFinite:
            if step == 0:
                raise
            break
        losses[step] = made.loss.item()
        seen = watched.compared(made)
        start = start or seen
        if seen.keys() != start.keys() or any(seen[place].shape != start[place].shape for place in start):
            raise ValueError("the model calls other modules in some steps than in others; give modules that all call")
        for place, value in seen.items():
            sizes = mean_square(value), mean_square(value.double() - start[place].double())
            rows[:, PLACES.index(place), step] = [float(size) ** 0.5 for size in sizes]
        for name, parameter in trained(model).items() if step < steps else ():
            parameter.grad = slopes[name]
        for optimizer in optimizers if step < steps else ():
            optimizer.step()
    values, changes = ({place: sizes[PLACES.index(place)] for place in start} for sizes in rows)
    return Moves(values, changes, losses)


class _Watched:
    """The modules whose values count, and what they have read and made in the last pass."""

    def __init__(self, model: nn.Module, modules: Any) -> None:
        listed = chosen(model, modules) or blocks(model)
        self._model, self._are_leaves = model, not listed
        self._own = set(listed or (name for name in leaves(model) if has_weights(model.get_submodule(name))))
        self.names = self._own | set(leaves(model))
        self._calls: list[tuple[str, torch.Tensor | None, torch.Tensor]] = []

    def hooked(self, model: nn.Module, hooks: ExitStack) -> None:
        """Keep, from now on, what modules read and make, in the order in which their calls end."""
        self._calls, reads = [], list[torch.Tensor | None]()

        def begun(_module: nn.Module, inputs: Any) -> None:
            reads.append(_copied(inputs))

        def ended(name: str, made: Any) -> None:
            read, value = reads.pop(), _copied(made)
            if value is not None:
                self._calls.append((name, read, value))

        for name in self._own:
            module = model.get_submodule(name)
            hooks.callback(module.register_forward_pre_hook(begun).remove)
            hooks.callback(module.register_forward_hook(lambda _module, _inputs, made, n=name: ended(n, made)).remove)

    def compared(self, made: Pass) -> dict[str, torch.Tensor]:
        """The values of the last pass, by place; half of the blocks are some where their number is even."""
        top = head(self._model, made) if self._are_leaves else None
        calls = [call for call in self._calls if call[0] != top]
        values = {OUTPUTS: made.outputs}
        if calls:
            read = calls[0][1]
            values |= {LAST: calls[-1][2]} | ({FIRST: read} if read is not None else {})
        if calls and len(calls) % 2 == 0:
            values[MIDDLE] = calls[len(calls) // 2 - 1][2]
        return {place: values[place] for place in PLACES if place in values}


def _copied(value: Any) -> torch.Tensor | None:
    """A tensor of floats as it is now, which later operations in place may change."""
    tensor = value_of(value)
    return None if tensor is None else tensor.detach().clone()
