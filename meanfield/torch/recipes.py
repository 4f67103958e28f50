"""A model, and its live optimizer, as a recipe, and its numbers against the tables of Zheng et al. 2026.

Which role every parameter has is told by the classes and names of modules, or as it is said. Only a base model tells
the rest, by shapes (`meanfield.parameterizations.recipes`): which matrices outside of blocks read the inputs, which are
hidden, and which make the outputs.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import nn

from meanfield.common.validation import require_choice, require_finite, require_instance
from meanfield.parameterizations import OPTIMIZER_NAMES, RECIPE_ROLES, Recipe, RecipeReport, judge_recipe
from meanfield.parameterizations.recipes import MATRIX, ModelWeight
from meanfield.torch.edits import MultiplierPlace, multiplier_of
from meanfield.torch.models import named, trained
from meanfield.torch.parts import AROUND, CONTAINERS, TURNED, branch_ends, holder, residual_blocks
from meanfield.torch.steps import require_all_stepped

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
HEAD_COUNTS = ("num_heads", "n_head", "n_heads", "num_attention_heads", "heads", "nhead")


def as_recipe(
    model: nn.Module, roles: Mapping[str, str] | None, *, is_base: bool = False
) -> tuple[Recipe, dict[str, MultiplierPlace]]:
    """A model as a recipe without numbers of an optimizer, and the places of multipliers by parameter.

    A base model may lack what names of roles fit, such as blocks of higher numbers.

    Raises:
        TypeError, ValueError: roles that are no mapping from patterns to roles, or fit no parameter that trains; no
            parameter that trains.
    """
    parameters = trained(require_instance("the model", model, nn.Module, "a torch.nn.Module"))
    if not parameters:
        raise ValueError("no parameter of the model trains; give a model that does")
    said, listed, tied = _said_roles(model, roles, is_base), residual_blocks(model), _tied(model)
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
            ModelWeight(
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


def _said_roles(model: nn.Module, roles: Any, is_base: bool) -> dict[str, str]:
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
) -> MultiplierPlace | None:
    """Where the multiplier stands of a layer that ends a branch, or that may make the outputs."""
    owner_name = holder(name)
    if role == "projection" or (role == "bias" and owner_name in ends):
        end = ends.get(owner_name, owner_name)
        return MultiplierPlace(end, False, _kind(end, shared))
    of_head = owner_name if role in (MATRIX, "head") and is_leaf else None
    module = tied.get(name) if role == "tied" else of_head
    return None if module is None else MultiplierPlace(module, True, _kind(module, shared))


def _outputs_axis(parameter: nn.Parameter, owner: nn.Module, role: str) -> int:
    is_layer = hasattr(owner, "in_features") or hasattr(owner, "in_channels")
    if not isinstance(owner, nn.Embedding) and (role == "position" or (role == "embedding" and not is_layer)):
        return max(0, parameter.dim() - 1)
    return 1 if type(owner).__name__ in TURNED and parameter.dim() > 1 else 0


def _heads(model: nn.Module) -> int | None:
    """Of the first attention that tells."""
    for module in model.modules():
        if type(module) not in CONTAINERS and ATTENTION.search(type(module).__name__.lower()):
            for name in HEAD_COUNTS:
                if isinstance(heads := getattr(module, name, None), int) and heads > 0:
                    return heads
    return None


# Classes of optimizers, in small letters -> whose tables they take. Adam is AdamW where nothing decays.
CLASSES = {name: name for name in OPTIMIZER_NAMES if name != "muon_kimi"} | {"adam": "adamw", "sophiag": "sophia"}
# What torch.optim.Muon calls the factor that makes it Muon-Kimi.
MATCHED = "match_rms_adamw"


def recipe_of(
    model: nn.Module,
    optimizer: Any,
    *,
    roles: Mapping[str, str] | None = None,
    multipliers: Mapping[str, float] | None = None,
    names: Mapping[str, str] | None = None,
) -> Recipe:
    """A model before its training and its optimizer, as data: of every parameter that trains what a table speaks of.

    ``recipe_of(model, optimizer).to_json()`` is what `python -m sims.check_recipe` reads.

    Args:
        model: with its initial weights, whose standard deviations are noted.
        optimizer: of `torch.optim` or of its kind, or a list of several; of a scheduler's rates the initial ones.
        roles: as for `parameter_groups`.
        multipliers: names or patterns of parameters -> the factor on the output of their layer, where the model makes
            it in its own forward pass. Those that `parameter_groups` has set are known.
        names: class of an optimizer -> whose tables it takes, of those that are not known by their class.

    Raises:
        TypeError, ValueError: what is no model or optimizer; parameters that no group has; patterns that fit none; an
            optimizer of unknown name; Adam with weight decay, which is no AdamW's.

    Examples:
        >>> import torch
        >>> import meanfield.torch as mft
        >>> model = torch.nn.Linear(4, 2)
        >>> recipe = mft.recipe_of(model, torch.optim.AdamW(model.parameters(), lr=0.01))
        >>> recipe.weights[0].name, recipe.weights[0].learning_rate, recipe.weights[0].epsilon
        ('weight', 0.01, 1e-08)
    """
    return _recipe_of(model, optimizer, roles, multipliers, names, is_base=False)


def check_recipe(
    model: nn.Module,
    optimizer: Any,
    base_model: nn.Module,
    base_optimizer: Any,
    *,
    condition: str = "3.1",
    roles: Mapping[str, str] | None = None,
    multipliers: Mapping[str, float] | None = None,
    base_multipliers: Mapping[str, float] | None = None,
    names: Mapping[str, str] | None = None,
) -> RecipeReport:
    """Which numbers of a live optimizer and its model are not those of the table, and by what factor.

    ``print`` shows it, ``agrees`` says whether all do, ``deviating`` has those that do not. The base model's numbers
    stand for themselves.

    Args:
        model, optimizer, roles, multipliers, names: as for `recipe_of`.
        base_model, base_optimizer, base_multipliers: of the size at which the numbers were tuned.
        condition: "3.1" or "B.1", as for `parameter_groups`.

    Raises:
        TypeError, ValueError: as `recipe_of`; models that are not one at two sizes.

    Source: Zheng et al. 2026, sections 4.1 and 4.4, tables 3 .. 7 and 9 .. 13.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> import meanfield.torch as mft
        >>> def model(width):
        ...     return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, width), nn.Linear(width, 3))
        >>> large, small = model(64), model(16)
        >>> both = [(each, torch.optim.AdamW(each.parameters(), lr=0.01)) for each in (large, small)]
        >>> checked = mft.check_recipe(*both[0], *both[1])
        >>> [cell.factor for cell in checked.deviating if cell.hyperparameter == "learning_rate"]
        [4.0]
    """
    target = recipe_of(model, optimizer, roles=roles, multipliers=multipliers, names=names)
    base = _recipe_of(base_model, base_optimizer, roles, base_multipliers, names, is_base=True)
    return judge_recipe(target, base, condition=condition)


def _recipe_of(model: nn.Module, optimizer: Any, roles: Any, multipliers: Any, names: Any, *, is_base: bool) -> Recipe:
    recipe, _ = as_recipe(model, roles, is_base=is_base)
    optimizers = list(optimizer) if isinstance(optimizer, tuple | list) else [optimizer]
    for each in optimizers:
        require_instance("optimizer", each, torch.optim.Optimizer, "an optimizer of torch.optim, or a list of several")
    parameters = trained(model)
    require_all_stepped(parameters, optimizers)
    counts = Counter(id(tensor) for each in optimizers for group in each.param_groups for tensor in group["params"])
    if several := [name for name, tensor in parameters.items() if counts[id(tensor)] > 1]:
        raise ValueError(f"{named(several)} stand in several groups, each of which steps them: leave them in one")
    said = _said_multipliers(parameters, multipliers)
    held = {id(tensor): own for each in optimizers for tensor, own in _numbers(each, names)}
    weights = (
        replace(weight, multiplier=said.get(weight.name, weight.multiplier), **held[id(parameters[weight.name])])
        for weight in recipe.weights
    )
    return replace(recipe, weights=tuple(weights))


def _said_multipliers(parameters: Mapping[str, Any], multipliers: Any) -> dict[str, float]:
    if multipliers is None:
        return {}
    if not isinstance(multipliers, Mapping):
        raise TypeError(f"multipliers is {multipliers!r}; give a mapping from names of parameters to factors")
    said: dict[str, float] = {}
    for pattern, factor in multipliers.items():
        fitting = [each for each in parameters if fnmatchcase(each, str(pattern))]
        if not fitting:
            raise ValueError(f"no parameter that trains fits {pattern!r}; the model has {named(parameters)}")
        said |= dict.fromkeys(fitting, require_finite(f"multiplier of {pattern!r}", factor, "a finite number"))
    return said


def _numbers(
    optimizer: torch.optim.Optimizer, names: Mapping[str, str] | None
) -> list[tuple[torch.Tensor, dict[str, Any]]]:
    """The numbers of every tensor that an optimizer steps."""
    listed = []
    for group in optimizer.param_groups:
        numbers: dict[str, Any] = {"optimizer": _name_of(optimizer, group, names)}
        numbers["learning_rate"] = float(group.get("initial_lr", group["lr"]))
        numbers["weight_decay"] = float(group.get("weight_decay", 0.0))
        if "eps" in group and numbers["optimizer"] not in ("muon", "muon_kimi"):
            numbers["epsilon"] = float(group["eps"])
        listed += [(tensor, numbers) for tensor in group["params"]]
    return listed


def _name_of(optimizer: torch.optim.Optimizer, group: Mapping[str, Any], names: Any) -> str:
    """Whose tables it takes."""
    kind = type(optimizer).__name__
    if names is not None:
        if not isinstance(names, Mapping):
            raise TypeError(f"names is {names!r}; give a mapping from classes of optimizers to names of tables")
        for each, name in names.items():
            require_choice(f"the name of {each}", name, OPTIMIZER_NAMES)
        if kind in names:
            return str(names[kind])
    if kind.lower() not in CLASSES:
        raise ValueError(f"no table goes by the name of {kind}; say whose it takes: names={{{kind!r}: 'adamw'}}")
    if kind == "Adam" and group["weight_decay"] and not group.get("decoupled_weight_decay"):
        raise ValueError("Adam adds weight decay to the gradient, of which the tables know nothing; take AdamW")
    return "muon_kimi" if kind == "Muon" and group["adjust_lr_fn"] == MATCHED else CLASSES[kind.lower()]
