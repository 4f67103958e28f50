"""Which role every parameter of a model has: by the classes and names of modules, or as it is said.

Only a base model tells the rest, by shapes (`meanfield.parameterizations.recipes`): which matrices outside of blocks
read the inputs, which are hidden, and which make the outputs.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from torch import nn

from meanfield.common.validation import require_choice, require_instance
from meanfield.parameterizations.recipes import MATRIX, RECIPE_ROLES, VECTORS, Recipe, Weight
from meanfield.torch.branches import AROUND, TURNED, branch_ends, holder, residual_blocks
from meanfield.torch.models import named, trained
from meanfield.torch.multipliers import multiplier_of
from meanfield.torch.parts import CONTAINERS

ATTENTION = re.compile(r"attention|attn")
FEED_FORWARD = re.compile(r"mlp|ffn|feed_?forward")
POSITION = re.compile(r"wpe|pos")
# Names of parameters of their own that join the tokens, as positions do.
TOKEN = re.compile(r"^(cls|class|class_embedding)$|tokens?$")
# Names of parameters, or of their layers, within attention.
ATTENTION_PARTS = {
    "query": re.compile(r"^(q|wq|query|q_?proj(_weight)?)$"),
    "key": re.compile(r"^(k|wk|key|k_?proj(_weight)?)$"),
    "value": re.compile(r"^(v|wv|value|v_?proj(_weight)?)$"),
}
# How modules of attention call the number of their heads.
HEADS = ("num_heads", "n_head", "n_heads", "num_attention_heads", "heads", "nhead")


@dataclass(frozen=True)
class Place:
    """Where the multiplier of a parameter's layer stands: at a module, on what it gives or on what it reads."""

    module: str
    of_input: bool
    kind: str


def described(
    model: nn.Module, roles: Mapping[str, str] | None, *, is_base: bool = False
) -> tuple[Recipe, dict[str, Place]]:
    """A model as a recipe without numbers of an optimizer, and the places of multipliers by parameter.

    A base model may lack what names of roles fit, such as blocks of higher numbers.

    Raises:
        TypeError, ValueError: roles that are no mapping from patterns to roles, or fit no parameter that trains; no
            parameter that trains.
    """
    parameters = trained(require_instance("the model", model, nn.Module, "a torch.nn.Module"))
    if not parameters:
        raise ValueError("no parameter of the model trains; give a model that does")
    said, listed, tied = _said(model, roles, is_base), residual_blocks(model), _tied(model)
    ends = branch_ends(model, listed, {holder(name) for name, role in said.items() if role == "projection"})
    shared = _starred(model, listed)
    numbers = {name: [each for each in listed if holder(each) == holder(name)].index(name) for name in listed}
    weights, places = [], {}
    for name, parameter in parameters.items():
        owner_name = holder(name)
        owner = model.get_submodule(owner_name)
        of_tied = parameter.dim() < 2 and owner_name in tied.values()
        block = next((each for each in listed if name.startswith(f"{each}.")), None)
        if block is not None and AROUND.search(owner_name[len(block) :].lower()):
            block = None  # what leads the stream around a branch has no multiplier, and no factor of depth
        by_name = _role(name, parameter, owner, owner_name in ends, block is not None, name in tied)
        role = said.get(name, "head_bias" if of_tied else by_name)
        is_leaf = not any(True for _ in owner.children())
        place = _place(name, role, is_leaf, ends, tied, shared)
        if place is not None:
            places[name] = place
        weights.append(
            Weight(
                name=name,
                kind=_kind(name, shared),
                shape=tuple(parameter.shape),
                role=role,
                block=None if block is None else numbers[block],
                outputs_axis=_outputs_axis(parameter, owner, role),
                std=float(parameter.detach().double().square().mean().sqrt()),
                multiplier=None if place is None else multiplier_of(model.get_submodule(place.module)),
            )
        )
    ending = [block for block in listed if any(name.startswith(f"{block}.") for name in places)]
    return Recipe(tuple(weights), _depth(model, ending or listed), _heads(model)), places


def _depth(model: nn.Module, listed: list[str]) -> int:
    """How many blocks the model lists, one that stands in a row several times as many times."""
    blocks = {id(model.get_submodule(name)) for name in listed}
    rows = [model.get_submodule(row) for row in dict.fromkeys(map(holder, listed))]
    return sum(id(module) in blocks for row in rows for module in row._modules.values())


def _starred(model: nn.Module, listed: list[str]) -> dict[str, str]:
    """Modules whose numbers differ between depths -> the names that they share: "*" for that of a block, and what
    stands in a row behind blocks counted from its end.
    """
    shared = {name: f"{holder(name)}.*".lstrip(".") for name in listed}
    for row in dict.fromkeys(map(holder, listed)):
        children = [f"{row}.{name}".lstrip(".") for name, _ in model.get_submodule(row).named_children()]
        last = max(at for at, name in enumerate(children) if name in listed)
        for at, name in enumerate(children[last + 1 :], last + 1):
            if isinstance(model.get_submodule(row), nn.Sequential):
                shared[name] = f"{row}.end{at - len(children)}".lstrip(".")
    return shared


def _kind(name: str, shared: Mapping[str, str]) -> str:
    """A name without the numbers that differ between depths."""
    module = next((each for each in shared if name == each or name.startswith(f"{each}.")), None)
    return name if module is None else shared[module] + name[len(module) :]


def _said(model: nn.Module, roles: Any, is_base: bool) -> dict[str, str]:
    """Role by name of a parameter, from patterns; the last that fits counts."""
    if roles is None:
        return {}
    if not isinstance(roles, Mapping):
        raise TypeError(f"roles is {roles!r}; give a mapping from names or patterns of parameters to roles")
    said: dict[str, str] = {}
    parameters = trained(model)
    for pattern, role in roles.items():
        require_choice(f"the role of {pattern!r}", role, RECIPE_ROLES)
        fitting = [name for name in parameters if fnmatchcase(name, str(pattern))]
        if not fitting and not is_base:
            frozen = [name for name, _ in model.named_parameters() if fnmatchcase(name, str(pattern))]
            also = f"; {named(frozen)}, which fits, is frozen and has no role: leave it out" if frozen else ""
            raise ValueError(f"no parameter that trains fits {pattern!r}{also}; the model has {named(parameters)}")
        said |= dict.fromkeys(fitting, str(role))
    return said


def _role(name: str, parameter: nn.Parameter, owner: nn.Module, ends: bool, in_block: bool, tied: bool) -> str:
    """By classes and names."""
    layer, _, own = name.lower().rpartition(".")
    if "norm" in type(owner).__name__.lower():
        return "norm_bias" if own == "bias" else "norm_gain"
    if tied:
        return "tied"
    if isinstance(owner, nn.Embedding):
        return "position" if POSITION.search(layer.rpartition(".")[2]) else "embedding"
    is_beside = not in_block and any(True for _ in owner.children())
    if is_beside and (parameter.dim() == 3 or POSITION.search(own) or TOKEN.search(own)):
        return "position"
    if parameter.dim() < 2:
        return "bias"
    if not in_block:
        return MATRIX
    if ends:
        return "projection"
    if ATTENTION.search(layer) or ATTENTION.search(type(owner).__name__.lower()):
        words = (own, layer.rpartition(".")[2])
        parts = (part for part, pattern in ATTENTION_PARTS.items() if any(map(pattern.match, words)))
        return next(parts, "query_key_value")
    return "ffn" if FEED_FORWARD.search(layer) else "hidden"


def _tied(model: nn.Module) -> dict[str, str]:
    """Name of a parameter that is a table of embeddings and the weight of a layer -> the name of this layer.

    A frozen one, too.
    """
    owners: dict[int, list[str]] = {}
    for module_name, module in model.named_modules(remove_duplicate=False):
        for parameter in module._parameters.values():
            if parameter is not None and module_name not in owners.setdefault(id(parameter), []):
                owners[id(parameter)].append(module_name)
    tied = {}
    for name, parameter in model.named_parameters():
        layers = [each for each in owners[id(parameter)] if not isinstance(model.get_submodule(each), nn.Embedding)]
        if layers and len(layers) < len(owners[id(parameter)]):
            tied[name] = layers[0]
    return tied


def frozen_heads(model: nn.Module, base_model: nn.Module, *, has_head: bool) -> list[str]:
    """Layers outside of blocks whose frozen weight makes the outputs: a tied table, or what reads a width alone where
    no layer that trains is the head.
    """
    tied, listed, of_base = _tied(model), residual_blocks(model), dict(base_model.named_parameters())
    heads = []
    for name, parameter in model.named_parameters():
        layer, base = tied.get(name, holder(name)), of_base.get(name)
        is_outside = not any(layer == block or layer.startswith(f"{block}.") for block in listed)
        if parameter.requires_grad or parameter.dim() < 2 or base is None or not is_outside:
            continue
        owner = model.get_submodule(layer)
        outputs = _outputs_axis(parameter, owner, MATRIX)
        grows = [
            axis for axis, sizes in enumerate(zip(parameter.shape, base.shape, strict=False)) if sizes[0] != sizes[1]
        ]
        reads_width = not has_head and not isinstance(owner, nn.Embedding) and bool(grows) and outputs not in grows
        heads += [layer] if name in tied or reads_width else []
    return heads


def _place(
    name: str,
    role: str,
    is_leaf: bool,
    ends: Mapping[str, str],
    tied: Mapping[str, str],
    shared: Mapping[str, str],
) -> Place | None:
    """Where the multiplier stands of a layer that ends a branch, or that may make the outputs."""
    owner_name = holder(name)
    if role == "projection" or (role == "bias" and owner_name in ends):
        end = ends.get(owner_name, owner_name)
        return Place(end, False, _kind(end, shared))
    of_head = owner_name if role in (MATRIX, "head") and is_leaf else None
    module = tied.get(name) if role == "tied" else of_head
    return None if module is None else Place(module, True, _kind(module, shared))


def _outputs_axis(parameter: nn.Parameter, owner: nn.Module, role: str) -> int:
    is_layer = hasattr(owner, "in_features") or hasattr(owner, "in_channels")
    if not isinstance(owner, nn.Embedding) and (role == "position" or (role == "embedding" and not is_layer)):
        return max(0, parameter.dim() - 1)
    return 1 if type(owner).__name__ in TURNED and parameter.dim() > 1 else 0


def _heads(model: nn.Module) -> int | None:
    """Of the first attention that tells."""
    for module in model.modules():
        if type(module) not in CONTAINERS and ATTENTION.search(type(module).__name__.lower()):
            for name in HEADS:
                if isinstance(heads := getattr(module, name, None), int) and heads > 0:
                    return heads
    return None


def is_vector(role: str) -> bool:
    """Whether it takes no weight decay: gains, shifts and biases."""
    return role in (*VECTORS, "head_bias")
