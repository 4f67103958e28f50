"""Multipliers of layers, kept by hooks: what a module gives, or what it reads, times a number.

Parameters stay as they are, so that a checkpoint has no trace of them: make them again on the model that loads it.
"""

from collections.abc import Mapping
from inspect import signature
from typing import Any

import torch
from torch import nn


class OutputMultiplier:
    """A forward hook: the output of a module, bias and all, times a factor."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, module: nn.Module, inputs: Any, outputs: Any) -> Any:
        return _times(outputs, self.factor)


class InputMultiplier:
    """A hook before the forward pass: the first input of a module times a factor, so that its bias stays outside.

    Args:
        factor: the multiplier.
        first: what the module's forward pass calls its first input, by which it may be given.
    """

    def __init__(self, factor: float, first: str | None = None) -> None:
        self.factor, self.first = factor, first

    def __call__(self, module: nn.Module, inputs: Any, keywords: Mapping[str, Any]) -> Any:
        if inputs or self.first not in keywords:
            return _times(inputs, self.factor), keywords
        return inputs, {
            name: _times(value, self.factor) if name == self.first else value for name, value in keywords.items()
        }


def _times(value: Any, factor: float) -> Any:
    """A tensor, or the first of several, times a factor."""
    if isinstance(value, tuple) and value:
        return (_times(value[0], factor), *value[1:])
    if not isinstance(value, torch.Tensor):
        given = "nothing by position, nor its first input by name" if value == () else f"a {type(value).__name__}"
        raise TypeError(f"a multiplier is for tensors, and its module reads or gives {given}")
    return value * factor


def set_multiplier(module: nn.Module, factor: float, *, of_input: bool) -> None:
    """Multiply what a module gives or reads from now on by this factor alone, whatever it was before."""
    for hooks in (module._forward_hooks, module._forward_pre_hooks):
        for key in [key for key, hook in hooks.items() if isinstance(hook, OutputMultiplier | InputMultiplier)]:
            del hooks[key]
            module._forward_pre_hooks_with_kwargs.pop(key, None)
    if of_input:
        first = next(iter(signature(module.forward).parameters), None)
        module.register_forward_pre_hook(InputMultiplier(factor, first), with_kwargs=True)
    else:
        module.register_forward_hook(OutputMultiplier(factor))


def multiplier_of(module: nn.Module) -> float:
    """The factor that `set_multiplier` has set, 1 where it has set none."""
    hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
    return next((hook.factor for hook in hooks if isinstance(hook, OutputMultiplier | InputMultiplier)), 1.0)
