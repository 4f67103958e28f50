"""What to set in a model before its training: initial standard deviations, and multipliers of layers.

Multipliers are kept by hooks: what a module gives, or what it reads, times a number. Parameters stay as they are, so
that a checkpoint has no trace of them: make them again on the model that loads it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from inspect import signature
from math import log, sqrt
from typing import Any

import torch
from torch import nn

from meanfield.parameterizations import Recipe
from meanfield.parameterizations.recipes import Pair, Sizes
from meanfield.torch.models import named, trained


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


# Initial standard deviations that differ by fewer standard errors of two drawn ones are taken for one.
ERRORS = 3.0
# Roles whose layers have a multiplier.
_MULTIPLIED = ("projection", "head", "tied")


@dataclass(frozen=True)
class MultiplierPlace:
    """Where the multiplier of a parameter's layer stands: at a module, on what it gives or on what it reads."""

    module: str
    of_input: bool
    kind: str


@dataclass(frozen=True)
class Edit:
    """What to set in a model before training.

    Attributes:
        what: "initial_std" of a parameter, or "multiplier" of a module.
        where: the parameter or the module, with * for the number of its block where there are several.
        places: the names of all that these are.
        value: what to set: a standard deviation around zero, or a factor.
        was: what it is in the model.
        of_input: of multipliers, whether they stand before the module.
    """

    what: str
    where: str
    places: tuple[str, ...]
    value: float
    was: float
    of_input: bool = False

    def __str__(self) -> str:
        if self.what == "initial_std":
            return f"{self.where}: initial standard deviation {self.value:.4g}, and not {self.was:.4g}"
        place = "what it reads" if self.of_input else "what it gives, its bias included,"
        count = f" (once in each of {len(self.places)})" * (len(self.places) > 1)
        return f"{self.where}: multiply {place} by {self.value:.4g}{count}"


def std_edits(
    pairs: list[Pair], sizes: Sizes, target: Recipe, base: Recipe, stepped_by: Mapping[str, str], condition: str
) -> Iterator[Edit]:
    """Of every kind whose drawn weights have another standard deviation than the table asks for."""
    kinds: dict[tuple[str, tuple[int, ...]], list[Pair]] = {}
    for pair in pairs:
        kinds.setdefault((pair.weight.kind, pair.weight.shape), []).append(pair)
    for (kind, _), alike in kinds.items():
        pair, names = alike[0], tuple(each.weight.name for each in alike)
        (now, count), (of_base, base_count) = target.std_of(pair.weight), base.std_of(pair.base)
        assert now is not None
        assert of_base is not None
        factor = pair.factor(sizes, stepped_by[pair.column or "output"], "initial_variance", condition)
        wanted = of_base * sqrt(factor)
        if wanted and not now:
            raise ValueError(
                f"{names[0]!r} starts at 0, and in the base model at a standard deviation of {of_base:.3g}; draw both "
                "alike"
            )
        slack = 0.0 if pair.role == "norm_gain" else ERRORS * sqrt(1 / (2 * count) + 1 / (2 * base_count))
        if now != wanted and not (wanted and abs(log(wanted / now)) <= slack):
            yield Edit("initial_std", kind if len(names) > 1 else names[0], names, wanted, now)


def multiplier_edits(
    pairs: list[Pair],
    sizes: Sizes,
    places: Mapping[str, MultiplierPlace],
    stepped_by: Mapping[str, str],
    condition: str,
) -> Iterator[Edit]:
    """One for every kind of place, each module once, however many parameters stand there."""
    kinds: dict[tuple[str, bool, float], dict[str, float]] = {}
    for pair in pairs:
        if pair.role not in _MULTIPLIED or pair.weight.name not in places:
            continue
        place, own = places[pair.weight.name], pair.weight.multiplier
        factor = pair.factor(sizes, stepped_by[pair.column], "block_multiplier", condition)
        value = factor * (1.0 if pair.base.multiplier is None else pair.base.multiplier)
        if own is not None and value != own:
            kinds.setdefault((place.kind, place.of_input, value), {})[place.module] = own
    for (kind, of_input, value), modules in kinds.items():
        names = tuple(modules)
        where = kind if len(names) > 1 else names[0]
        yield Edit("multiplier", where, names, value, modules[names[0]], of_input)


def frozen_head_edits(model: nn.Module, base_model: nn.Module, heads: Iterable[str], sizes: Sizes) -> Iterator[Edit]:
    """Of heads that take no step, the multiplier alone."""
    for head in heads:
        own, of_base = (multiplier_of(each.get_submodule(head)) for each in (model, base_model))
        if own != (value := of_base / sizes.width_ratio):
            yield Edit("multiplier", head, (head,), value, own, of_input=True)


def rescale(model: nn.Module, edits: Iterable[Edit]) -> None:
    """Give the weights of one kind, of all blocks together, exactly the standard deviation that is asked for.

    Raises:
        ValueError: a model without the parameters of the edits.
    """
    wanted, parameters = [edit for edit in edits if edit.what == "initial_std"], trained(model)
    if missing := [name for edit in wanted for name in edit.places if name not in parameters]:
        raise ValueError(f"the model has no parameters {named(missing)} that train; give the model of these groups")
    with torch.no_grad():
        for edit in wanted:
            tensors = [parameters[name] for name in edit.places]
            squares = sum(float(tensor.double().square().sum()) for tensor in tensors)
            now = sqrt(squares / sum(tensor.numel() for tensor in tensors))
            for tensor in tensors:
                tensor.mul_(edit.value / now if now else 0.0)


def set_multipliers(model: nn.Module, edits: Iterable[Edit]) -> None:
    """Set every multiplier at all its places."""
    for edit in (edit for edit in edits if edit.what == "multiplier"):
        for module in edit.places:
            set_multiplier(model.get_submodule(module), edit.value, of_input=edit.of_input)
