"""The models that are measured, one for every draw, and the batches that they are given.

A model is measured on a copy of its own, in double or single precision, as half precision leaves no exact change.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from meanfield.common.seeds import stream_key
from meanfield.common.validation import PremiseWarning, require_choice

PRECISIONS = {"float64": torch.float64, "float32": torch.float32}
# How a module that is given has its weights drawn anew: by all its modules' own method of this name.
RESET = "reset_parameters"
# What the classes of PyTorch that keep this method to themselves call it.
RESETS = (RESET, f"_{RESET}")
# Two standard deviations of one parameter that differ by this factor are of two laws, where it has so many elements.
OTHER_LAW, ENOUGH_ELEMENTS = 1.5, 256
# Of parameters or modules that an error names, so many at most.
MOST_NAMED = 4


@dataclass(frozen=True)
class ModelSource:
    """Where models come from, one for every draw.

    Args:
        model: a function that makes one with its weights drawn, or a module.
        reinit: how the weights of a module are drawn anew: "reset_parameters", a function of the module, or None where
            they stay.
        precision: "float64" or "float32".
        seed: root of all streams.
    """

    model: Any
    reinit: Any
    precision: str
    seed: int

    def __post_init__(self) -> None:
        require_choice("precision", self.precision, PRECISIONS)
        if not callable(self.model):
            raise TypeError(f"model is {self.model!r}; give a torch.nn.Module, or a function that makes one")
        if isinstance(self.model, torch.jit.ScriptModule):
            raise TypeError("model is a compiled ScriptModule, whose parts cannot be watched; give the module itself")
        if self.is_factory and self.reinit != RESET:
            raise ValueError("model is a function that draws its own weights; leave reinit to modules")
        if not (self.reinit is None or callable(self.reinit)):
            require_choice("reinit", self.reinit, (RESET,))

    @property
    def is_factory(self) -> bool:
        """Whether it makes a model for every draw."""
        return not isinstance(self.model, nn.Module)

    @property
    def dtype(self) -> torch.dtype:
        """Of weights and passes."""
        return PRECISIONS[self.precision]

    def models(self, draws: int) -> Iterator[nn.Module]:
        """The models of so many draws, checked; draw i depends on the seed and i alone."""
        model: nn.Module | None = None
        for draw in range(draws):
            if self.is_factory:
                with seeded(self.seed, "torch weights", draw):
                    model = self.model()
                if not isinstance(model, nn.Module):
                    raise TypeError(f"the function made {type(model).__name__}, and no torch.nn.Module")
            elif model is None or self.reinit is not None:
                model = deepcopy(self.model)
                with seeded(self.seed, "torch weights", draw):
                    self._draw_anew(model)
            require_measurable(model)
            if draw == 0:
                self._warn_of_other_laws(model)
            yield model.to(self.dtype)

    def _draw_anew(self, model: nn.Module) -> None:
        if callable(self.reinit):
            self.reinit(model)
        elif self.reinit == RESET:
            reset(model)

    def _warn_of_other_laws(self, model: nn.Module) -> None:
        if self.is_factory or self.reinit != RESET:
            return
        if other := dict(islice(_other_laws(self.model, model), MOST_NAMED)):
            shown = ", ".join(f"{name!r} {new:.2g}, not {old:.2g}" for name, (old, new) in other.items())
            warnings.warn(
                f"reset_parameters draws weights of other standard deviations than the model has ({shown}): where the "
                "model is trained, or makes initial weights of its own, give the function that makes it, or reinit",
                PremiseWarning,
                stacklevel=2,
            )


def reset(model: nn.Module) -> None:
    """Draw all weights of a model anew, by the `reset_parameters` of its modules."""
    resets = {
        name: next((getattr(module, own) for own in RESETS if hasattr(module, own)), None)
        for name, module in model.named_modules()
    }
    missing = [
        name or type(model).__name__
        for name, module in model.named_modules()
        if resets[name] is None and any(True for _ in module.parameters(recurse=False))
    ]
    if missing:
        raise ValueError(
            f"{named(missing)} have parameters and no reset_parameters, so that their weights cannot be drawn anew: "
            "give the function that makes the model, or reinit, a function that draws all weights of a model"
        )
    with torch.no_grad():
        for again in filter(None, resets.values()):
            again()


def _other_laws(old: nn.Module, new: nn.Module) -> Iterator[tuple[str, tuple[float, float]]]:
    """Parameters of two models of one kind whose standard deviations differ, by name."""
    others = dict(new.named_parameters())
    for name, parameter in old.named_parameters():
        if parameter.numel() < ENOUGH_ELEMENTS:
            continue
        spreads = float(parameter.detach().double().std()), float(others[name].detach().double().std())
        if not 1 / OTHER_LAW < (spreads[0] + 1e-300) / (spreads[1] + 1e-300) < OTHER_LAW:
            yield name, spreads


def require_measurable(model: nn.Module) -> None:
    """Refuse a model of which no step can be measured; every function of this room does so before any work.

    Raises:
        TypeError: no torch.nn.Module.
        ValueError: parameters without a shape or on the meta device, none that trains, or evaluation mode.

    Example:
        >>> import torch
        >>> import meanfield.torch as mft
        >>> mft.require_measurable(torch.nn.Linear(2, 1).eval())
        Traceback (most recent call last):
        ValueError: the model is in evaluation mode, and a step is made in training mode: call model.train()
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model is {type(model).__name__}, and no torch.nn.Module: give the model itself")
    parameters = dict(model.named_parameters())
    if lazy := [name for name, parameter in parameters.items() if is_lazy(parameter)]:
        raise ValueError(f"{named(lazy)} have no shape yet: run the model once on a batch before it is measured")
    if absent := [name for name, value in (*parameters.items(), *model.named_buffers()) if value.is_meta]:
        raise ValueError(
            f"{named(absent)} are on the meta device, without numbers: make the model on a device that has some"
        )
    if not any(parameter.requires_grad for parameter in parameters.values()):
        raise ValueError("no parameter of the model trains, so that no step moves it: give one with requires_grad")
    if not model.training:
        raise ValueError("the model is in evaluation mode, and a step is made in training mode: call model.train()")


def trained(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that train, by name, a tied one once."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def named(names: Iterable[str]) -> str:
    """The first names of a list, and how many more there are."""
    listed = list(names)
    shown = ", ".join(map(repr, listed[:MOST_NAMED]))
    return f"{shown} and {len(listed) - MOST_NAMED} more" if len(listed) > MOST_NAMED else shown


@contextmanager
def seeded(seed: int, purpose: str, draw: int) -> Iterator[None]:
    """Random numbers of PyTorch keyed by purpose and draw; what draws them outside goes on as if nothing were drawn."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(stream_key(seed, purpose, draw))
        yield


def taken_batches(batches: Iterable[Any], most: int, seed: int) -> list[tuple[Any, Any]]:
    """The first batches, so many at most, each a pair of inputs and targets.

    Raises:
        TypeError, ValueError: none at all, what is no pair, a batch without samples, floats in some batches where
            others have whole numbers.
    """
    if isinstance(batches, torch.Tensor | np.ndarray | Mapping | str) or not isinstance(batches, Iterable):
        raise TypeError(f"batches is a {type(batches).__name__}; {GIVE_PAIRS}")
    with seeded(seed, "torch batches", 0):
        taken = list(islice(batches, most))
    if not taken:
        raise ValueError(f"there are no batches; {GIVE_PAIRS}")
    for number, batch in enumerate(taken):
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            raise TypeError(f"batch {number} is a {type(batch).__name__} and no pair; {GIVE_PAIRS}")
        if any(tensor.numel() == 0 for tensor in tensors_of(batch)):
            raise ValueError(f"batch {number} is empty: a tensor of it has no elements; give batches with samples")
        _require_alike(taken[0], batch, number)
    return [(inputs, targets) for inputs, targets in taken]


def samples_of(inputs: Any) -> int:
    """How many samples a batch has: the length of the first tensor of its inputs that has one, or 1."""
    return next((len(tensor) for tensor in tensors_of(inputs) if tensor.ndim), 1)


def _require_alike(first: Any, batch: Any, number: int) -> None:
    """Raise TypeError where tensors of a batch are floats and those of the first are not, or the other way round."""
    for what, given, own in zip(("inputs", "targets"), first, batch, strict=True):
        types = [[tensor.dtype for tensor in tensors_of(part)] for part in (given, own)]
        floats = [[each.is_floating_point for each in listed] for listed in types]
        if len(types[0]) == len(types[1]) and floats[0] != floats[1]:
            shown = [", ".join(str(each).removeprefix("torch.") for each in listed) for listed in types]
            raise TypeError(f"{what} of batch {number} are {shown[1]}, and those of batch 0 {shown[0]}; give one type")


GIVE_PAIRS = "give a list of pairs [(inputs, targets), ...], or a loader of such pairs"


def tensors_of(value: Any) -> Iterator[torch.Tensor]:
    """All tensors in nested tuples, lists and mappings, in order."""
    if isinstance(value, np.ndarray):
        value = torch.as_tensor(value)
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping | tuple | list):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from tensors_of(part)


def on_model(value: Any, model: nn.Module, dtype: torch.dtype) -> Any:
    """The same batch where the model is, floats in its precision."""
    if isinstance(value, np.ndarray):
        value = torch.as_tensor(value)
    if isinstance(value, torch.Tensor):
        device = next(model.parameters()).device
        return value.to(device, dtype) if value.is_floating_point() else value.to(device)
    if isinstance(value, Mapping):
        return {name: on_model(part, model, dtype) for name, part in value.items()}
    if isinstance(value, tuple | list):
        parts = [on_model(part, model, dtype) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def call(model: nn.Module, inputs: Any) -> Any:
    """The outputs of a model, by keywords of a mapping, by position of a tuple or list."""
    if isinstance(inputs, Mapping):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, tuple | list) else model(inputs)
