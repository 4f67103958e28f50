"""The parts of a model: its leaves, the blocks that it repeats, those that a user chooses, and where branches end.

A branch of a residual block ends with its last layer, behind which something joins the stream.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from inspect import isclass
from typing import Any, Self

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
        is_listed = type(modules[holder(name)]) in CONTAINERS
        if name and not is_within and is_listed and is_block(module):
            listed.append(name)
    return listed


def is_block(module: nn.Module) -> bool:
    """Whether it has weights and modules of its own, and is no mere container."""
    return type(module) not in CONTAINERS and has_weights(module) and any(True for _ in module.children())


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
        if isinstance(each, str):
            fitting = {name for name, _ in model.named_modules() if fnmatchcase(name, each)}
        elif isclass(each) and issubclass(each, nn.Module):
            fitting = {name for name, module in model.named_modules() if isinstance(module, each)}
        else:
            raise TypeError(f"modules has {each!r}; give names, patterns such as 'blocks.*', or classes of modules")
        if not fitting:
            inside = named(name for name, _ in model.named_modules() if name)
            raise ValueError(f"no module of the model fits {each!r}; it has {inside}")
        names |= fitting
    return [name for name, _ in model.named_modules() if name in names]


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


def stream_calls(model: nn.Module, made: Pass) -> list[Call]:
    """The calls whose values carry the signal on: of blocks, and of layers outside of them below the head.

    Those of all leaves, where there are none.
    """
    listed, top = blocks(model), head(model, made)
    outside = {name for name in leaves(model) if not any(name.startswith(f"{block}.") for block in listed)}
    layers = {name for name in outside if name != top and _has_matrix(model.get_submodule(name))}
    outputs = {made.calls[number].place for number in made.outputs_at}
    calls = [call for call in made.calls if call.module in {*listed, *layers} and call.place not in outputs]
    return calls or [call for call in made.calls if call.module in leaves(model)]


def block_calls(model: nn.Module, made: Pass) -> list[Call]:
    """The calls of blocks in a pass."""
    names = set(blocks(model))
    return [call for call in made.calls if call.module in names]


def inner_layers(model: nn.Module, made: Pass) -> list[str]:
    """Layers between the first leaf with parameters and the last, in the order of their first calls."""
    return [name for name in weighted_leaves(model, made.calls)[1:-1] if _is_layer(model.get_submodule(name))]


def branch_layers(model: nn.Module) -> int:
    """The most layers that a block has, but for those that lead the stream around its branches; 0 without blocks."""
    held = (_layers(model.get_submodule(block)) for block in blocks(model))
    return max((sum(not AROUND.search(name.lower()) for name in names) for names in held), default=0)


def normalised(model: nn.Module, made: Pass) -> str:
    """Whether the last block normalises what it reads, "pre", what it gives, "post", or neither, ""."""
    last = next(reversed(block_calls(model, made)), None)
    if last is None:
        return ""
    block = model.get_submodule(last.module)
    inside = {f"{last.module}.{name}" for name in leaves(block)}
    kinds = [model.get_submodule(each.module) for each in made.calls if each.module in inside]
    acting = [module for module in kinds if not isinstance(module, nn.Dropout | nn.Identity)]
    are_norms = ["norm" in type(module).__name__.lower() for module in acting]
    return ("pre" if are_norms[0] else "post" if are_norms[-1] else "") if acting else ""


# Residual blocks, and where their branches end.

# Modules beside a branch of a block, which lead the stream around it.
AROUND = re.compile(r"downsample|shortcut|skip|identity")
# Names of layers within a branch, which end none.
WITHIN = re.compile(r"^(w?[qkv]|query|key|value|gate|up|[qkv]_?proj|gate_?proj|up_?proj)$")
# Weights of these have their outputs on the second axis.
TURNED = ("Embedding", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Conv1D")


def residual_blocks(model: nn.Module) -> list[str]:
    """The blocks of a model.

    Not the ends of an `nn.Sequential` of which there is one, such as patches and heads. Where an `nn.ModuleList` has
    lists of a branch each, as of attention and feed-forward, these lists are the blocks.
    """
    listed = list(dict.fromkeys(_lifted(model, name) for name in blocks(model)))
    for name in list(listed):
        like = [each for each in listed if holder(each) == holder(name)]
        kinds = [type(model.get_submodule(each)) for each in like]
        is_single = kinds.count(type(model.get_submodule(name))) == 1 and len(set(kinds)) < len(kinds)
        is_in_row = isinstance(model.get_submodule(holder(name)), nn.Sequential)
        if is_in_row and is_single and name in (like[0], like[-1]):
            listed.remove(name)
    return listed


def holder(name: str) -> str:
    """The module that has this one."""
    return name.rpartition(".")[0]


def _lifted(model: nn.Module, block: str) -> str:
    """The list of branches that a block stands in, or the block itself."""
    around = model.get_submodule(holder(block))
    if not block or not isinstance(around, nn.ModuleList) or not holder(block):
        return block
    is_listed = isinstance(model.get_submodule(holder(holder(block))), nn.ModuleList)
    kinds = [type(child) for child in around]
    return holder(block) if is_listed and len(kinds) > 1 and len(set(kinds)) == len(kinds) else block


def branch_ends(model: nn.Module, listed: Collection[str], said: Collection[str]) -> dict[str, str]:
    """Layers that end a branch of a block -> the module whose output the block adds to the stream.

    A branch is a module of a block with several layers, or all layers that stand in the block itself. Its end is the
    last of its layers, in the order in which they were made, that has as many outputs as the stream has channels, and
    is no query, key, value or gate by its name. The stream has as many channels as the block's first layer has inputs,
    as a shortcut around the branch gives, or as a layer normalisation in the block has: a mixer's branches act on
    tokens and on channels. Where layers stand in several modules, as in BERT, those that do not give the stream's
    channels end nothing. What it gives joins the stream, or what the normalisation behind it gives; of PyTorch's
    attention, which does not call its last layer, what the attention gives. Experts in a list end a branch each.

    Args:
        listed: the blocks.
        said: layers of which it is said that they end a branch; none is looked for in their blocks.

    Raises:
        ValueError: layers that stand in a block itself and may end several branches.
    """
    ends = {layer: _joining(model, layer) for layer in said}
    for name in listed:
        if not any(layer.startswith(f"{name}.") for layer in said):
            layers = (f"{name}.{within}" for within in _ends_of_block(model.get_submodule(name), name))
            ends |= {layer: _joining(model, layer) for layer in layers}
    return ends


@dataclass(frozen=True)
class _Built:
    """What a residual block is built of.

    Attributes:
        block: the module; of a wrapper, as of a compiled block, what it wraps.
        within: the names of the wrappers around it, each with a dot behind it.
        parts: its modules by name, but for those that lead the stream around its branches.
    """

    block: nn.Module
    within: str
    parts: dict[str, nn.Module]

    @classmethod
    def of(cls, block: nn.Module, within: str = "") -> Self:
        """Read the modules of a block."""
        inner = list(block.named_children())
        if len(inner) == 1 and not any(True for _ in block.parameters(recurse=False)) and not _is_layer(inner[0][1]):
            return cls.of(inner[0][1], f"{within}{inner[0][0]}.")
        return cls(block, within, {own: part for own, part in inner if not AROUND.search(own.lower())})

    @property
    def layers(self) -> list[str]:
        """Those that stand in the block itself."""
        return [own for own, part in self.parts.items() if _is_layer(part)]

    @property
    def branches(self) -> dict[str, nn.Module]:
        """Modules with layers in them."""
        return {own: part for own, part in self.parts.items() if not _is_layer(part) and _layers(part)}

    @property
    def shortcut(self) -> list[int]:
        """The channels that a shortcut around the branches gives, where there is one."""
        around = [own for own in _layers(self.block) if AROUND.search(own.lower())]
        return [_sizes(self.block.get_submodule(own))[0] for own in around[-1:]]

    @property
    def stream(self) -> list[int]:
        """Channels that the stream may have: of a shortcut or else of the first layer, and of normalisations."""
        first = [_sizes(self.block.get_submodule(own))[1] for own in _layers(self.block)[:1]]
        return [*(self.shortcut or first), *(size for part in self.parts.values() for size in _normalised(part))]

    @property
    def is_linear(self) -> bool:
        """Whether all layers in the block itself are linear."""
        return all(isinstance(self.parts[own], nn.Linear) for own in self.layers)

    def keeping(self) -> dict[str, int | None]:
        """The branches with a layer that gives channels of the stream, and those: as many as it reads, or the first."""
        kept: dict[str, int | None] = {}
        for own, branch in self.branches.items():
            layers = _layers(branch)
            if given := [size for size in self.stream if _giving(branch, layers, size)]:
                reads = _sizes(branch.get_submodule(layers[0]))[1]
                kept[own] = reads if reads in given else given[0]
        return kept


# How blocks are built, by where the layers of a branch stand. The first row of a table that names any counts.
#
# Layers in the block itself, of which the last ends the branch:
LAYERS_IN_THE_BLOCK: tuple[Callable[[_Built], list[str]], ...] = (
    # beside a shortcut that tells the channels, as in the first block of a stage of a ResNet;
    lambda built: [own for channels in built.shortcut for own in _giving(built.block, built.layers, channels)],
    # from the stream to the stream, as in other blocks of a ResNet, or PyTorch's feed-forward;
    lambda built: _fitting(built.block, built.layers),
    # to other channels, as convolutions that make more of them, and experts in one tensor. Linear ones end none then.
    lambda built: [] if built.is_linear else built.layers,
)
# Modules of the block that are a branch each, and the channels that they give, None where these are not known:
LAYERS_IN_MODULES: tuple[Callable[[_Built], dict[str, int | None]], ...] = (
    # those that give the stream's, as attention and feed-forward do, and a mixer's tokens and channels;
    _Built.keeping,
    # all, where none does.
    lambda built: dict.fromkeys(built.branches),
)


def _ends_of_block(block: nn.Module, name: str) -> Iterator[str]:
    """The layers that end the branches of a block, by their names in it."""
    built = _Built.of(block)
    ends = next(filter(None, (row(built) for row in LAYERS_IN_THE_BLOCK)), [])
    norms = sum("norm" in type(part).__name__.lower() for part in built.parts.values())
    if len(ends) > 1 and norms > 1 and built.is_linear:  # two normalisations make two branches
        raise ValueError(
            f"any of {named(f'{name}.{built.within}{own}' for own in ends)} may end a branch of its block: say which "
            f"do, roles={{'*.{ends[-1]}.weight': 'projection'}}"
        )
    yield from (f"{built.within}{own}" for own in ends[-1:])
    modules = next(filter(None, (row(built) for row in LAYERS_IN_MODULES)), {})
    for own, channels in modules.items():
        yield from (f"{built.within}{own}.{end}" for end in _ends_within(built.branches[own], channels))


def _normalised(child: nn.Module) -> list[int]:
    """The channels of a layer or RMS normalisation; none of another module."""
    weight, kind = getattr(child, "weight", None), type(child).__name__.lower()
    is_norm = "layernorm" in kind or "rmsnorm" in kind
    return [len(weight)] if is_norm and isinstance(weight, nn.Parameter) and weight.dim() == 1 else []


def _ends_within(module: nn.Module, stream: int | None = None) -> Iterator[str]:
    """Of a branch: its last layer, or those of its experts and of what stands beside them."""
    lists = [(name, inner) for name, inner in module.named_modules() if isinstance(inner, nn.ModuleList)]
    row = next((name for name, own in lists if len(own) > 1 and all(len(_layers(each)) > 1 for each in own)), None)
    experts = []
    if row is not None:
        experts = [f"{row}.{name}".lstrip(".") for name, _ in module.get_submodule(row).named_children()]
    for name in experts:
        yield from (f"{name}.{end}" for end in _ends_within(module.get_submodule(name), stream))
    layers = [name for name in _layers(module) if not any(name.startswith(f"{expert}.") for expert in experts)]
    given = _fitting(module, layers) if stream is None else _giving(module, layers, stream)
    if layers and (fitting := given or ([] if experts else layers)):
        yield fitting[-1]


def _fitting(module: nn.Module, layers: list[str]) -> list[str]:
    """Those with as many outputs as the first has inputs."""
    return _giving(module, layers, _sizes(module.get_submodule(layers[0]))[1]) if layers else []


def _giving(module: nn.Module, layers: list[str], channels: int) -> list[str]:
    """Those with so many outputs that may end a branch by their names."""
    giving = [name for name in layers if _sizes(module.get_submodule(name))[0] == channels]
    return [name for name in giving if not WITHIN.match(name.rpartition(".")[2].lower())] or giving


def _sizes(layer: nn.Module) -> tuple[int, int]:
    """Outputs and inputs of a layer."""
    weight = next(parameter for parameter in layer.parameters(recurse=False) if parameter.dim() > 1)
    outputs, inputs = weight.shape[:2]
    return (inputs, outputs) if type(layer).__name__ in TURNED else (outputs, inputs)


def _layers(module: nn.Module) -> list[str]:
    return [name for name, inner in module.named_modules() if name and _is_layer(inner)]


def _is_layer(module: nn.Module) -> bool:
    """Whether it has a matrix of its own and no modules; no table of embeddings."""
    if isinstance(module, nn.Embedding) or any(True for _ in module.children()):
        return False
    return _has_matrix(module)


def _has_matrix(module: nn.Module) -> bool:
    return any(parameter.dim() > 1 for parameter in module.parameters(recurse=False))


def _joining(model: nn.Module, layer: str) -> str:
    """The module whose output joins the stream behind the last layer of a branch."""
    around = model.get_submodule(holder(layer))
    if isinstance(around, nn.MultiheadAttention):
        return holder(layer)
    own, children = layer.rpartition(".")[2], list(around.named_children())
    at = next((at for at, (name, _) in enumerate(children) if name == own), len(children))
    if at + 1 < len(children):
        name, behind = children[at + 1]
        is_called_next = isinstance(around, nn.Sequential) or "Conv" in type(children[at][1]).__name__
        if is_called_next and "norm" in type(behind).__name__.lower():
            return f"{holder(layer)}.{name}".lstrip(".")
    return layer
