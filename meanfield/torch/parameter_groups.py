"""Parameter groups for an optimizer of PyTorch, by the tables of Zheng et al. 2026 and a base model that was tuned."""

import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from typing import Any

from torch import nn

from meanfield.common.validation import PremiseWarning, require_choice, require_count, require_finite, require_instance
from meanfield.parameterizations import (
    CONDITIONS,
    RECIPE_ROLES,
    ROLES,
    hyperparameters_of,
    muon_step_size,
    optimizers_by_role,
    unmet_premises,
)
from meanfield.parameterizations.recipes import (
    HEADS,
    MATRIX,
    ModelWeight,
    Pair,
    Sizes,
    head_note,
    is_vector,
    paired,
    recipe_notes,
)
from meanfield.torch.edits import (
    Edit,
    MultiplierPlace,
    frozen_head_edits,
    multiplier_edits,
    rescale,
    set_multipliers,
    std_edits,
)
from meanfield.torch.models import named, trained
from meanfield.torch.recipes import MATCHED, as_recipe, frozen_heads

Numbers = float | Mapping[str, float]
Rates = float | Mapping[str, float | str]
# What is said where Muon's rate comes from AdamW's.
MATCHED_PREMISE = (
    "Muon's lr is AdamW's times 0.2 sqrt(columns) of the base model's matrices, and its weight decay over as much: for "
    "torch.optim.Muon as it is, not with adjust_lr_fn='match_rms_adamw'; elements of AdamW's steps are taken to be 0.2 "
    "of its lr in the root of their mean square, and are more in its first steps"
)
# Optimizers with an epsilon, which stands beside other sizes in each.
_OWN_EPSILON = ("adamw", "sophia", "shampoo", "soap")


@dataclass(frozen=True)
class Group:
    """Parameters that share a role and its numbers."""

    name: str
    optimizer: str
    parameters: tuple[str, ...]
    learning_rate: float
    weight_decay: float
    epsilon: float | None = None


@dataclass(frozen=True)
class ParameterGroups:
    """Groups that ``torch.optim.AdamW(groups)`` takes, and what else is to be set; `str` prints all of it.

    Attributes:
        groups: names and numbers.
        edits: initial standard deviations and multipliers, which `apply` makes.
        sizes: ratios of width and depth, as they were found.
        premises: what the numbers rest on, and where these models break it.

    Examples:
        >>> from torch import nn
        >>> import meanfield.torch as mft
        >>> wide, narrow = nn.Linear(64, 3), nn.Linear(16, 3)
        >>> groups = mft.parameter_groups(wide, narrow, lr=0.01)
        >>> mft.ParameterGroups.from_json(groups.to_json(), wide) == groups
        True
    """

    groups: tuple[Group, ...]
    edits: tuple[Edit, ...]
    sizes: str
    premises: tuple[str, ...]
    _model: nn.Module = field(repr=False, compare=False)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Of the only optimizer; ValueError where there are two."""
        handed = self.by_optimizer()
        if len(handed) > 1:
            first, second = handed
            raise ValueError(
                f"{first} and {second} step these groups; give each its own: "
                f"groups.by_optimizer()[{first!r}] and groups.by_optimizer()[{second!r}]"
            )
        return iter(next(iter(handed.values())))

    def by_optimizer(self) -> dict[str, list[dict[str, Any]]]:
        """Name of an optimizer -> the groups that it steps, as `torch.optim` takes them."""
        parameters, handed = trained(self._model), dict[str, list[dict[str, Any]]]()
        for group in self.groups:
            numbers = {"lr": group.learning_rate, "weight_decay": group.weight_decay}
            numbers |= {} if group.epsilon is None else {"eps": group.epsilon}
            own = {"params": [parameters[name] for name in group.parameters], **numbers, "name": group.name}
            handed.setdefault(group.optimizer, []).append(own)
        return handed

    def apply(self, model: nn.Module | None = None) -> None:
        """Make the edits in the model, before its training: rescale the weights as they are drawn, set multipliers.

        The weights of one kind, of all blocks together, get exactly the standard deviation that is asked for. A
        multiplier is a hook: on the output of the last layer of each branch, and on the input of the head. It is no
        part of a checkpoint; on a model that loads one, set multipliers again by `apply_multipliers`. To make the edits
        twice is to make them once.

        Args:
            model: another of the same shapes; the model of these groups if left out.
        """
        model = self._model if model is None else require_instance("model", model, nn.Module, "a torch.nn.Module")
        rescale(model, self.edits)
        set_multipliers(model, self.edits)

    def apply_multipliers(self, model: nn.Module | None = None) -> None:
        """Set the multipliers alone, as on a model that has loaded its weights, before a compiled one first runs."""
        model = self._model if model is None else require_instance("model", model, nn.Module, "a torch.nn.Module")
        inside = dict(model.named_modules())
        multiplied = (place for edit in self.edits if edit.what == "multiplier" for place in edit.places)
        if missing := [place for place in multiplied if place not in inside]:
            raise ValueError(
                f"the model has no modules {named(missing)}, which have multipliers: give one of these groups"
            )
        set_multipliers(model, self.edits)

    def labels(self) -> dict[str, str]:
        """Name of a parameter -> name of its group, as `optax.multi_transform` takes labels."""
        return {name: group.name for group in self.groups for name in group.parameters}

    def numbers(self) -> dict[str, dict[str, Any]]:
        """Name of a group -> its optimizer, learning rate, weight decay and epsilon, for each label an optimizer."""
        return {
            group.name: {key: value for key, value in asdict(group).items() if key not in ("name", "parameters")}
            for group in self.groups
        }

    def to_json(self) -> str:
        """Names and numbers, without the model; `from_json` reads it back."""
        held = {key: value for key, value in vars(self).items() if key != "_model"}
        held |= {key: [asdict(each) for each in held[key]] for key in ("groups", "edits")}
        return json.dumps(held, indent=1)

    @classmethod
    def from_json(cls, text: str, model: nn.Module) -> "ParameterGroups":
        """The groups of `to_json`, on a model with the same parameters.

        Raises:
            TypeError, ValueError: what is no such JSON; parameters that the model has not, or that no group has.
        """
        require_instance("text", text, str, "JSON in a string")
        names = set(trained(require_instance("model", model, nn.Module, "a torch.nn.Module")))
        held = read_groups(text)
        groups = tuple(Group(**each | {"parameters": tuple(each["parameters"])}) for each in held["groups"])
        edits = tuple(Edit(**each | {"places": tuple(each["places"])}) for each in held["edits"])
        read = cls(groups, edits, held["sizes"], tuple(held["premises"]), model)
        listed = [name for group in groups for name in group.parameters]
        if several := [name for name in names if listed.count(name) > 1]:
            raise ValueError(f"{named(sorted(several))} stand in several groups of the text, each of which steps them")
        if other := names ^ {name for group in groups for name in group.parameters}:
            raise ValueError(f"the model and the groups do not have the same parameters: {named(sorted(other))}")
        return read

    def __str__(self) -> str:
        lines = [self.sizes]
        for group in self.groups:
            epsilon = "" if group.epsilon is None else f", eps {group.epsilon:.3g}"
            numbers = f"lr {group.learning_rate:.4g}, weight decay {group.weight_decay:.4g}{epsilon}"
            lines.append(f"  {group.name} ({group.optimizer}, {len(group.parameters)} tensors): {numbers}")
        lines += [f"  SET {edit}" for edit in self.edits]
        return "\n".join(lines + [f"  NOTE {premise}" for premise in self.premises])


def parameter_groups(
    model: nn.Module,
    base_model: nn.Module,
    *,
    optimizer: str = "adamw",
    lr: Rates,
    weight_decay: Numbers = 0.0,
    eps: Numbers = 1e-8,
    condition: str = "3.1",
    roles: Mapping[str, str] | None = None,
    depth: tuple[int, int] | None = None,
) -> ParameterGroups:
    """Learning rate, weight decay and epsilon of every parameter of a model, from those that a small one was tuned at.

        base value x r_n^a x r_L^b

    by the tables of Zheng et al. 2026, with r_n the ratio of widths and r_L that of the numbers of blocks, Transformer
    layers or residual blocks. Dimensions that differ between the two models are widths, but for rows of tables of
    embeddings, outputs that go with them, and inputs and outputs that ``roles`` name. Every parameter has a role, by
    the classes and names of modules and by its shape: "embedding", "position", "query", "key", "value",
    "query_key_value", "projection" (which ends a branch), "ffn", "hidden", "input", "head", "tied" (embedding and head
    at once), "norm_gain", "norm_bias", "bias", "head_bias", "fixed". Gains take the column of biases; gains, shifts and
    biases do not decay. Hidden matrices outside of blocks take r_n alone.

    The step is torch.optim.AdamW's, W <- W - lr (A + weight_decay W). Initial standard deviations and multipliers come
    as a list of edits, which ``groups.apply()`` makes, in terms of what the base model starts from. A multiplier stands
    beside what the forward pass of both models does: leave factors that change with width or depth out of it.

    Args:
        model: the one to train, its weights as they are drawn.
        base_model: the same at the width and depth at which the numbers were tuned, its weights as they are drawn.
        optimizer: "adamw", "sgd", "lion", "sophia", or a hybrid HIDDEN-OTHERS such as "muon-adamw", the first for
            hidden matrices. "muon" is torch.optim.Muon as it is; "muon_kimi" is that of
            adjust_lr_fn="match_rms_adamw", made to take the learning rate of AdamW.
        lr, weight_decay, eps: of the base model; one number, or a mapping from roles, from columns of the tables
            ("input", "hidden", "output", "input_bias", "hidden_bias") or from optimizers. Where AdamW alone was tuned,
            lr={"adamw": 0.001, "muon": "match_rms_adamw"} gives every matrix of Muon AdamW's number times
            0.2 sqrt(columns) of the base model's, so that both change it by the same share, and divides its
            weight_decay, which is AdamW's then, by as much.
        condition: "3.1" for branches of two or more layers (multiplier 1/r_L), "B.1" for one (1/sqrt(r_L)).
        roles: names or patterns of parameters -> their roles, where they are not as found; "projection" says which
            layers end a branch.
        depth: blocks of the base model and of the model, where these are not as many as there are modules with layers
            in an `nn.ModuleList` or `nn.Sequential`.

    Returns:
        The groups, an iterable of dicts for an optimizer of PyTorch; with two optimizers ``by_optimizer()`` has them.

    Raises:
        TypeError, ValueError: what is no model; models that are not one at two sizes of one ratio; numbers that are
            missing, negative or not finite; roles that do not fit; one number for two optimizers of other steps;
            a tied table whose two columns or numbers disagree; blocks of which no layer ends a branch.

    Source: Zheng et al. 2026, sections 4.1 and 4.4, tables 3 .. 7 and 9 .. 13; Yang et al. 2022 of shapes.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> import meanfield.torch as mft
        >>> def model(width):
        ...     return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, width), nn.Linear(width, 3))
        >>> large = model(64)
        >>> groups = mft.parameter_groups(large, model(16), lr=0.01, weight_decay=0.1)
        >>> groups.apply()
        >>> optimizer = torch.optim.AdamW(groups)
        >>> {group["name"]: group["lr"] for group in optimizer.param_groups if group["weight_decay"]}
        {'input': 0.01, 'hidden outside blocks': 0.0025, 'head': 0.01}
    """
    require_choice("condition", condition, CONDITIONS)
    stepped_by = _stepped_by(optimizer, condition)
    target, places = as_recipe(model, roles)
    base, _ = as_recipe(base_model, roles, is_base=True)
    if depth is not None:
        if not isinstance(depth, tuple | list) or len(depth) != 2:
            raise TypeError(f"depth is {depth!r}; give two numbers of blocks, of the base model and of the model")
        of_base, of_target = (require_count("depth", each, why="it counts blocks") for each in depth)
        target, base = replace(target, depth=of_target), replace(base, depth=of_base)
    sizes, pairs = paired(target, base)
    _require_ends(pairs, sizes)
    given = {"lr": lr, "weight_decay": weight_decay, "eps": eps}
    _require_numbers(given, stepped_by)
    numbers = {pair.weight.name: _numbers(pair, sizes, stepped_by, given, condition) for pair in pairs}
    edits = [*std_edits(pairs, sizes, target, base, stepped_by, condition)]
    edits += multiplier_edits(pairs, sizes, places, stepped_by, condition)
    frozen = frozen_heads(model, base_model, has_head=any(pair.role in HEADS for pair in pairs))
    edits += frozen_head_edits(model, base_model, frozen, sizes)
    notes = recipe_notes(target, base, sizes, pairs) + _left_to_users(pairs, sizes, places, stepped_by, frozen)
    for note in notes:
        warnings.warn(note, PremiseWarning, stacklevel=2)
    ends = [type(model.get_submodule(place.module)).__name__ for place in places.values()]
    has_unknown_heads = target.heads is None or base.heads is None
    premises = (*notes, *_premises(pairs, sizes, stepped_by, condition, ends, has_unknown_heads))
    premises += (MATCHED_PREMISE,) * _takes_adamw_s(lr)
    return ParameterGroups(_grouped(pairs, numbers), tuple(edits), str(sizes), premises, model)


def _stepped_by(optimizer: Any, condition: str) -> dict[str, str]:
    """Column -> optimizer; refuses those that step no vectors."""
    require_instance("optimizer", optimizer, str, "a name, such as 'adamw' or 'muon-adamw'")
    stepped_by = optimizers_by_role(optimizer, CONDITIONS[condition])
    if "hidden_bias" not in stepped_by:
        raise ValueError(
            f"optimizer is {optimizer!r}, which steps matrices alone; name who steps the vectors, too: "
            f"'{stepped_by['hidden']}-adamw'"
        )
    return stepped_by


def _require_ends(pairs: list[Pair], sizes: Sizes) -> None:
    """Refuse a ratio of depths where some block has no branch to multiply."""
    if sizes.depth_ratio == 1:
        return
    blocks = {(pair.weight.kind.partition("*")[0], pair.weight.block): False for pair in pairs}
    blocks = {place: False for place in blocks if place[1] is not None}
    for pair in pairs:
        if pair.role == "projection":
            blocks[pair.weight.kind.partition("*")[0], pair.weight.block] = True
    if not blocks or not all(blocks.values()):
        raise ValueError(
            "no layer was found that ends a branch of every block, where the factor of depth belongs: blocks are "
            "modules of an nn.ModuleList or nn.Sequential; say which layers end branches: "
            "roles={'*.c_proj.weight': 'projection'}"
        )


def _numbers(
    pair: Pair, sizes: Sizes, stepped_by: Mapping[str, str], given: Mapping[str, Any], condition: str
) -> tuple[str, float, float, float | None]:
    """Optimizer, learning rate, weight decay and epsilon of a parameter."""
    name = stepped_by[pair.column or "output"]
    given, by = _as_numbers(pair, name, given)
    epsilon = f"{name}_epsilon"
    has_epsilon = epsilon in hyperparameters_of(name, CONDITIONS[condition])
    rows = {"lr": "learning_rate", "weight_decay": "weight_decay", "eps": epsilon}
    values = {}
    for which, row in rows.items():
        if (which == "eps" and not has_epsilon) or (which == "weight_decay" and is_vector(pair.role)):
            values[which] = 0.0
            continue
        factor = pair.factor(sizes, name, row, condition)
        values[which] = _base_value(which, given[which], pair, name) * by[which] * factor
    return name, values["lr"], values["weight_decay"], values["eps"] if has_epsilon else None


def _takes_adamw_s(lr: Any) -> bool:
    """Whether Muon's rate is to come from AdamW's."""
    return isinstance(lr, Mapping) and lr.get("muon") == MATCHED


def _as_numbers(pair: Pair, name: str, given: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, float]]:
    """What is given, with AdamW's rate in place of the word for it, and what rate and decay are multiplied by.

    torch.optim.Muon multiplies the polar factor of a matrix by a number of its shape, and by another one where it is to
    match AdamW's step: the ratio of these makes the one step as large as the other.
    """
    same, lr = dict.fromkeys(given, 1.0), given["lr"]
    if name != "muon" or not _takes_adamw_s(lr) or any(each in lr for each in (pair.role, pair.column)):
        return given, same
    sides = pair.base.shape[0], _columns(pair.base)
    by = muon_step_size(MATCHED, *sides) / muon_step_size("original", *sides)
    return {**given, "lr": {**lr, "muon": lr["adamw"]}}, same | {"lr": by, "weight_decay": 1 / by}


def _base_value(which: str, given: Any, pair: Pair, name: str) -> float:
    """The base model's number for a parameter: by its role, its column or its optimizer, or one for all."""
    if not isinstance(given, Mapping):
        return float(given)
    keys = {"embedding": "input", "head": "output"} if pair.role == "tied" else {pair.role: pair.column}
    values = set()
    for role, column in keys.items():
        held = next((each for each in (pair.role, role, column, name) if each in given), None)
        if held is None:
            raise ValueError(f"{which} has no number for {pair.weight.name!r}: give one for {role!r} or {name!r}")
        values.add(float(given[held]))
    if len(values) > 1:
        raise ValueError(
            f"{pair.weight.name!r} is the embedding and the head at once, and {which} has two numbers for it: untie "
            "them, or give one number, for 'tied'"
        )
    return values.pop()


def _require_numbers(given: Mapping[str, Any], stepped_by: Mapping[str, str]) -> None:
    """Refuse what is no number, unknown names in a mapping, and one rate for optimizers of other steps."""
    optimizers = list(dict.fromkeys([stepped_by["hidden"], *stepped_by.values()]))
    for which, values in given.items():
        for key in values if isinstance(values, Mapping) else ():
            require_choice(f"a name in {which}", key, (*RECIPE_ROLES, *ROLES, *optimizers))
        named_values = values if isinstance(values, Mapping) else {"": values}
        if which == "lr" and _takes_adamw_s(values):
            if "adamw" not in values:
                raise ValueError(
                    f"lr of 'muon' is {MATCHED!r}, which takes the number of 'adamw', and there is none: give "
                    f"optimizer='muon-adamw' and lr={{'adamw': 0.001, 'muon': {MATCHED!r}}}"
                )
            named_values = {key: value for key, value in values.items() if key != "muon"}
        for key, value in named_values.items():
            name = f"{which} of {key!r}" if key else which
            if require_finite(name, value, "a number, finite and at least 0") < 0:
                raise ValueError(f"{name} is {value:g}; it must be at least 0")
    differing = {
        "lr": [] if set(optimizers) == {"muon_kimi", "adamw"} else optimizers,
        "eps": [name for name in optimizers if name in _OWN_EPSILON],
    }
    for which, names in differing.items():
        if len(names) > 1 and not isinstance(given[which], Mapping):
            first, second = names
            both = set(names) == {"muon", "adamw"}
            of_muon = f"; {MATCHED!r} in place of Muon's number makes it from AdamW's, and muon_kimi takes AdamW's lr"
            raise ValueError(
                f"{which} is one number for {first} and {second}, whose steps are of other sizes: give "
                f"{which}={{{first!r}: ..., {second!r}: ...}}{of_muon * both}"
            )


def _left_to_users(
    pairs: list[Pair],
    sizes: Sizes,
    places: Mapping[str, MultiplierPlace],
    stepped_by: Mapping[str, str],
    frozen: list[str],
) -> list[str]:
    """What no module is there for."""
    of_muon = [pair.weight for pair in pairs if stepped_by["hidden"].startswith("muon") and pair.column == "hidden"]
    notes = []
    if of_taps := [weight.name for weight in of_muon if len(weight.shape) > 2]:
        notes.append(
            f"torch.optim.Muon steps matrices alone, and {named(of_taps)} have taps: take a Muon that flattens them, "
            "or another optimizer"
        )
    kept = [pair.weight.name for pair in pairs if pair.role == "fixed" and pair.weight.block is not None]
    if sizes.depth_ratio != 1 and (kept := [name for name in kept if name.endswith("weight")]):
        notes.append(
            f"{named(kept)} keep the base model's values, within blocks: where such a layer ends a branch, no factor "
            "of depth is set; multiply this branch as the others are"
        )
    if frozen:
        notes.append(
            f"the weight of {named(frozen)}, which makes the outputs, is frozen, and so is a table of embeddings that "
            "is tied with it: no step moves it, so that it has no group and keeps its initial weights; the multiplier "
            "of the head holds all the same, as the layers below move what it reads"
        )
    if sizes.width_ratio == 1:
        return notes
    notes += [
        f"{pair.weight.name!r} belongs to no layer, and its first axis is taken for its outputs, as of nn.Linear: "
        f"where the forward pass has x @ {pair.weight.name} and it makes the outputs, keep it in an nn.Linear"
        for pair in pairs
        if pair.weight.role == MATRIX and pair.role == "input" and pair.weight.name not in places
    ]
    if not frozen and (untold := head_note(pairs, sizes)):
        notes.append(untold)
    heads, factor = [pair for pair in pairs if pair.role in HEADS], f"{1 / sizes.width_ratio:.4g}"
    notes += [
        f"{pair.weight.name!r} belongs to no layer that could be multiplied: multiply the outputs by {factor} "
        f"yourself, and say so to recipe_of: multipliers={{{pair.weight.name!r}: {factor}}}"
        for pair in heads
        if pair.weight.name not in places
    ]
    return notes


# How many layers a branch has under each condition.
LAYERS_OF = {"3.1": "two and more layers", "B.1": "one layer"}


def _premises(
    pairs: list[Pair],
    sizes: Sizes,
    stepped_by: Mapping[str, str],
    condition: str,
    ends: list[str],
    has_unknown_heads: bool,
) -> Iterator[str]:
    """Those of the tables, and of these models, whose multipliers stand at modules of the classes ``ends``."""
    yield f"condition {condition} of Zheng et al. 2026, for branches of {LAYERS_OF[condition]}"
    inside = {pair.role for pair in pairs if pair.weight.block is not None and pair.column == "hidden"}
    own = "B.1" if inside == {"projection"} else "3.1"
    if inside and own != condition:
        yield f"branches here have {LAYERS_OF[own]}: give condition={own!r}"
    yield "depth counts residual blocks, of a Transformer its layers"
    yield "weight decay is of steps W <- W - lr (A + weight_decay W), as torch.optim.AdamW and Muon make them"
    yield "multipliers are hooks: they are in the gradients of their layers, and in the norm by which all are clipped"
    if any(pair.role == "projection" for pair in pairs):
        yield (
            "branches are read from the modules of blocks, and not from what forward() makes of them: a norm behind a "
            "branch or behind the sum (post-norm), and factors such as 0.5 * x, are not seen there; the tables are for "
            "branches that the stream takes as they are, times the multiplier"
        )
    if has_unknown_heads and any(pair.role in ("query", "query_key_value") for pair in pairs):
        yield "attention: heads of one size in both models, or logits over the head size and not over its root"
    if any("norm" in end.lower() for end in ends):
        yield (
            "branches end in normalisation, where the multiplier stands: the tables are for branches without, as "
            "behind it the size of weights does not count"
        )
    width, base_width = _widths(pairs)
    outputs = next((pair.weight.shape[0] for pair in pairs if pair.role in ("head", "tied")), None)
    for name in dict.fromkeys(stepped_by.values()):
        yield from unmet_premises(
            name,
            width=width,
            depth=max(1, sizes.depth),
            base_width=base_width,
            base_depth=max(1, sizes.base_depth),
            block_depth=CONDITIONS[condition],
            roles=[column for column, by in stepped_by.items() if by == name],
            output_dimension=outputs,
        )


def _widths(pairs: list[Pair]) -> tuple[int, int]:
    """Of the stream: what the first parameter gives that makes it."""
    pair = next((pair for pair in pairs if pair.column == "input"), pairs[0])
    axis = 1 if pair.role == "tied" else pair.weight.outputs_axis
    return pair.weight.shape[axis], pair.base.shape[axis]


def _grouped(pairs: list[Pair], numbers: Mapping[str, tuple[str, float, float, float | None]]) -> tuple[Group, ...]:
    """One group for every role and its numbers, in the order of the model."""
    columns_of = {pair.weight.name: _columns(pair.weight) for pair in pairs}
    together: dict[tuple[Any, ...], list[str]] = {}
    for pair in pairs:
        together.setdefault((pair.label, *numbers[pair.weight.name]), []).append(pair.weight.name)
    labels = [label for label, *_ in together]
    groups = []
    for (label, by, *values), names in together.items():
        # Of one role, only rates that are made from AdamW's differ, by the columns.
        columns = f" of {columns_of[names[0]]} columns" if labels.count(label) > 1 else ""
        groups.append(Group(label + columns, by, tuple(names), *values))
    return tuple(groups)


def _columns(weight: ModelWeight) -> int:
    """Of its matrix as torch.optim.Muon has it, taps of a convolution among them."""
    return weight.elements // weight.shape[0]


# Groups as JSON: what a field has to be, in words, and whether a value is it.
_Field = tuple[str, Callable[[Any], bool]]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value >= 0


def _is_list_of(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(isinstance(each, kind) for each in value)


STRING: _Field = ("a string", lambda value: isinstance(value, str))
NAMES: _Field = ("a list of strings", _is_list_of(str))
NUMBER: _Field = ("a number, finite and at least 0", _is_number)
OBJECTS: _Field = ("a list of objects", _is_list_of(dict))
WHOLE = {"groups": OBJECTS, "edits": OBJECTS, "sizes": STRING, "premises": NAMES}
GROUP = {"name": STRING, "optimizer": STRING, "parameters": NAMES, "learning_rate": NUMBER, "weight_decay": NUMBER}
GROUP |= {"epsilon": ("a number or null", lambda value: value is None or _is_number(value))}
EDIT = {"what": ("'initial_std' or 'multiplier'", lambda value: value in ("initial_std", "multiplier"))}
EDIT |= {"where": STRING, "places": NAMES, "value": NUMBER, "was": NUMBER}
EDIT |= {"of_input": ("true or false", lambda value: isinstance(value, bool))}
WRITE = "give what groups.to_json() wrote, unchanged"


def read_groups(text: str) -> dict[str, Any]:
    """What `ParameterGroups.to_json` wrote, with every field of every group and edit.

    Raises:
        ValueError: what is no JSON, no object, or has fields that are unknown, missing or of another kind.
    """
    try:
        held = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"the text is no JSON of parameter groups: {error}; {WRITE}") from error
    _require_fields("the whole", held, WHOLE)
    for what, kinds in (("groups", GROUP), ("edits", EDIT)):
        for number, each in enumerate(held[what]):
            _require_fields(f"{what}[{number}]", each, kinds)
    return dict(held)


def _require_fields(where: str, held: Any, kinds: Mapping[str, _Field]) -> None:
    start = f"the text is no JSON of parameter groups: {where}"
    if not isinstance(held, dict):
        raise ValueError(f"{start} is {json.dumps(held)[:60]} and no object; {WRITE}")
    if missing := [name for name in kinds if name not in held]:
        raise ValueError(f"{start} has no {missing[0]!r}; it needs {', '.join(map(repr, kinds))}; {WRITE}")
    if unknown := [name for name in held if name not in kinds]:
        raise ValueError(f"{start} has {unknown[0]!r}, which none has; {WRITE}")
    for name, (words, fits) in kinds.items():
        if not fits(held[name]):
            raise ValueError(f"{start} has {name!r} {json.dumps(held[name])[:60]}, which must be {words}; {WRITE}")
