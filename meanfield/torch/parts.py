"""The parts of a model: its leaves, the blocks that it repeats, and those that a user chooses."""

from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from inspect import isclass
from typing import Any

from torch import nn

from meanfield.torch.models import named
from meanfield.torch.passes import Call, Pass

# Modules that only hold others, in a row or not.
CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


def leaves(model: nn.Module) -> list[str]:
    """Modules without others in them."""
    return [name for name, module in model.named_modules() if not any(True for _ in module.children())]


def blocks(model: nn.Module) -> list[str]:
    """What a model lists in its containers and is made of several modules: blocks of a ResNet or a Transformer.

    Blocks within blocks count for the outer one.
    """
    modules = dict(model.named_modules())
    listed: list[str] = []
    for name, module in modules.items():
        # Modules come in the order of a walk, so that those within a block stand behind it at once.
        is_within = bool(listed) and name.startswith(f"{listed[-1]}.")
        if name and not is_within and _is_listed(name, modules) and is_block(module):
            listed.append(name)
    return listed


def is_block(module: nn.Module) -> bool:
    """Whether it has weights and modules of its own, and is no mere container."""
    return type(module) not in CONTAINERS and has_weights(module) and any(True for _ in module.children())


def _is_listed(name: str, modules: Mapping[str, nn.Module]) -> bool:
    return type(modules[name.rpartition(".")[0]]) in CONTAINERS


def has_weights(module: nn.Module) -> bool:
    """Whether it, or a module in it, has parameters."""
    return any(True for _ in module.parameters())


def chosen(model: nn.Module, modules: Any) -> list[str] | None:
    """Names of the modules that are asked for, by name, by pattern or by class; None where nothing is.

    Raises:
        TypeError, ValueError: what is neither, or fits no module.
    """
    if modules is None:
        return None
    wanted = [modules] if isinstance(modules, str) or isclass(modules) else modules
    if not isinstance(wanted, Iterable):
        raise TypeError(f"modules is {modules!r}; give names, patterns such as 'blocks.*', or classes of modules")
    names: set[str] = set()
    for each in wanted:
        fitting = _fitting(model, each)
        if not fitting:
            inside = named(name for name, _ in model.named_modules() if name)
            raise ValueError(f"no module of the model fits {each!r}; it has {inside}")
        names |= fitting
    return [name for name, _ in model.named_modules() if name in names]


def _fitting(model: nn.Module, wanted: Any) -> set[str]:
    if isinstance(wanted, str):
        return {name for name, _ in model.named_modules() if fnmatchcase(name, wanted)}
    if isclass(wanted) and issubclass(wanted, nn.Module):
        return {name for name, module in model.named_modules() if isinstance(module, wanted)}
    raise TypeError(f"modules has {wanted!r}; give names, patterns such as 'blocks.*', or classes of modules")


def weighted_leaves(model: nn.Module, calls: Iterable[Call]) -> list[str]:
    """Leaves with parameters that a pass has called, in the order of their first calls."""
    names = dict.fromkeys(call.module for call in calls)
    leaf = set(leaves(model))
    return [name for name in names if name in leaf and has_weights(model.get_submodule(name))]


def head(model: nn.Module, made: Pass) -> str | None:
    """The leaf that makes the outputs: the last with parameters, where its value has as many elements as they have."""
    weighted = set(weighted_leaves(model, made.calls))
    last = next((call for call in reversed(made.calls) if call.module in weighted), None)
    return last.module if last is not None and last.elements == made.outputs.numel() else None


def last_layer(model: nn.Module, made: Pass, modules: Collection[str] | None) -> Call:
    """The call whose value is that of the last layer, below the head.

    It is the last call of the modules that are chosen, or else of the blocks, or else of leaves with parameters; but
    not one whose value the outputs are, unless there is no other.
    """
    calls, top = made.calls, head(model, made)
    outputs = {calls[number].place for number in made.outputs_at}
    for names in (modules, blocks(model)):
        fitting = [call for call in calls if names and call.module in names and call.place not in outputs]
        if fitting:
            return fitting[-1]
    with_parameters = set(weighted_leaves(model, calls))
    weighted = [call for call in calls if call.module in with_parameters]
    below = [call for call in weighted if call.module != top and call.place not in outputs]
    return (below or weighted or calls)[-1]


def block_calls(model: nn.Module, made: Pass) -> list[Call]:
    """The calls of blocks in a pass."""
    names = set(blocks(model))
    return [call for call in made.calls if call.module in names]


def normalised(model: nn.Module, made: Pass) -> str:
    """Whether the last block normalises what it reads, "pre", what it gives, "post", or neither, ""."""
    last = next(reversed(block_calls(model, made)), None)
    if last is None:
        return ""
    block = model.get_submodule(last.module)
    inside = {f"{last.module}.{name}" for name in leaves(block)}
    kinds = [model.get_submodule(each.module) for each in made.calls if each.module in inside]
    acting = [_is_norm(module) for module in kinds if not isinstance(module, nn.Dropout | nn.Identity)]
    return ("pre" if acting[0] else "post" if acting[-1] else "") if acting else ""


def _is_norm(module: nn.Module) -> bool:
    return "norm" in type(module).__name__.lower()
