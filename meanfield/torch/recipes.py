"""A live optimizer and its model as a recipe, and its numbers against the tables of Zheng et al. 2026."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import nn

from meanfield.common.validation import require_choice, require_finite, require_instance
from meanfield.parameterizations import OPTIMIZER_NAMES, Recipe, RecipeReport, judge_recipe
from meanfield.torch.models import named, trained
from meanfield.torch.roles import described
from meanfield.torch.steps import require_all_stepped

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
    recipe, _ = described(model, roles, is_base=is_base)
    optimizers = list(optimizer) if isinstance(optimizer, tuple | list) else [optimizer]
    for each in optimizers:
        require_instance("optimizer", each, torch.optim.Optimizer, "an optimizer of torch.optim, or a list of several")
    parameters = trained(model)
    require_all_stepped(parameters, optimizers)
    _require_stepped_once(parameters, optimizers)
    said = _said(parameters, multipliers)
    held = {id(tensor): own for each in optimizers for tensor, own in _numbers(each, names)}
    weights = (
        replace(weight, multiplier=said.get(weight.name, weight.multiplier), **held[id(parameters[weight.name])])
        for weight in recipe.weights
    )
    return replace(recipe, weights=tuple(weights))


def _require_stepped_once(parameters: Mapping[str, Any], optimizers: list[torch.optim.Optimizer]) -> None:
    """Refuse a tensor in several optimizers, each of which would step it."""
    counts = Counter(id(tensor) for each in optimizers for group in each.param_groups for tensor in group["params"])
    if several := [name for name, tensor in parameters.items() if counts[id(tensor)] > 1]:
        raise ValueError(f"{named(several)} stand in several groups, each of which steps them: leave them in one")


def _said(parameters: Mapping[str, Any], multipliers: Any) -> dict[str, float]:
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
