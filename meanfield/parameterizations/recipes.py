"""A training recipe as data: the role of every parameter of a model, what it starts from and what steps it.

The same model at two sizes pairs its parameters by name, blocks beyond those of the smaller one with its last. What
differs between their shapes is the width, as in Yang et al. 2022, but for what counts words, positions, inputs or
outputs where a role tells it. Each pair has a column of the tables of Zheng et al. 2026, and a factor for every
hyperparameter.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from math import isclose, sqrt
from re import sub
from typing import Any

from meanfield.common.validation import require_choice, require_count, require_finite, require_instance
from meanfield.parameterizations.tables import CONSTANT, Scaling, scaling

# Condition of Zheng et al. 2026 -> layers of a residual branch, by which `hyperparameter_table` finds its table.
CONDITIONS = {"3.1": 2, "B.1": 1}

# What parameters are called, and the columns of the tables that they take. Vectors take those of biases, as gains scale
# as biases do: both change what they act on by as much as they change themselves.
_HIDDEN = ("query", "key", "value", "query_key_value", "projection", "ffn", "hidden")
_READING = ("embedding", "position", "input")
_COLUMNS = dict.fromkeys(_READING, "input") | dict.fromkeys(_HIDDEN, "hidden") | {"head": "output", "tied": "input"}
VECTORS = ("norm_gain", "norm_bias", "bias")
HEADS = ("head", "tied")
# What keeps the values of the base model at every size.
FIXED = ("fixed", "head_bias")
RECIPE_ROLES = (*_COLUMNS, *VECTORS, *FIXED)
# A matrix outside of blocks: input, hidden or head, as its shape will tell.
MATRIX = "matrix"
# Of parameters whose first axis counts what is looked up, which is no width.
_LOOKED_UP = ("embedding", "position", "tied")
# So near must a ratio of standard deviations be to 1/sqrt(2 L) to be taken for it.
NEAR_DEPTH = 0.1


def is_vector(role: str) -> bool:
    """Whether it takes no weight decay by custom: gains, shifts and biases."""
    return role in (*VECTORS, "head_bias")


@dataclass(frozen=True, kw_only=True)
class ModelWeight:
    """One parameter of a model.

    Attributes:
        name: as the model calls it.
        kind: the same with * for the number of its block, which all blocks share.
        shape: of its tensor.
        role: one of `RECIPE_ROLES`, or `MATRIX`.
        block: the number of its block among its like; None outside of blocks.
        outputs_axis: of its shape, the axis that counts outputs.
        std: initial standard deviation around zero: the root of the mean square, 1 of gains.
        multiplier: what its layer's output is multiplied by in the forward pass, of layers that end a branch or stand
            outside of blocks; None of others.
        optimizer: whose table it takes, one of `OPTIMIZER_NAMES`.
        learning_rate, weight_decay, epsilon: of its parameter group; epsilon None where the optimizer has none.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    role: str
    block: int | None = None
    outputs_axis: int = 0
    std: float | None = None
    multiplier: float | None = None
    optimizer: str | None = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    epsilon: float | None = None

    def __post_init__(self) -> None:
        for which in ("name", "kind", "role"):
            require_instance(which, getattr(self, which), str, "a word")
        require_choice(f"the role of {self.name!r}", self.role, (*RECIPE_ROLES, MATRIX))
        sizes = require_instance(f"the shape of {self.name!r}", self.shape, tuple | list, "a list of sizes")
        shape = tuple(require_count(f"a size of {self.name!r}", size) for size in sizes)
        object.__setattr__(self, "shape", shape)
        if self.block is not None:
            require_count(f"the block of {self.name!r}", self.block, minimum=0)
        most = max(0, len(shape) - 1)
        require_count(f"the outputs_axis of {self.name!r}", self.outputs_axis, minimum=0, maximum=most)
        if self.optimizer is not None:
            require_instance(f"the optimizer of {self.name!r}", self.optimizer, str, "a word")
        for which in ("std", "multiplier", "learning_rate", "weight_decay", "epsilon"):
            if (number := getattr(self, which)) is not None:
                require_finite(f"{which} of {self.name!r}", number, "a number, finite and at least 0")
                if number < 0:
                    raise ValueError(f"{which} of {self.name!r} is {number:g}; it must be at least 0")

    @property
    def elements(self) -> int:
        """Numbers in its tensor."""
        count = 1
        for size in self.shape:
            count *= size
        return count


@dataclass(frozen=True)
class Recipe:
    """A model of one size with its optimizer: all parameters that train, its blocks, and heads of attention if any."""

    weights: tuple[ModelWeight, ...]
    depth: int
    heads: int | None = None

    def __post_init__(self) -> None:
        listed = require_instance("weights", self.weights, tuple | list, "a sequence of parameters")
        weights = tuple(require_instance("an entry of weights", each, ModelWeight, "a ModelWeight") for each in listed)
        if not weights:
            raise ValueError("the recipe has no parameters; give those of a model that trains")
        object.__setattr__(self, "weights", weights)
        require_count("depth", self.depth, minimum=0, why="it counts blocks")
        if self.heads is not None:
            require_count("heads", self.heads)

    def to_json(self) -> str:
        """All of it; `read_recipe` reads it back."""
        parameters = [asdict(weight) for weight in self.weights]
        return json.dumps({"depth": self.depth, "heads": self.heads, "parameters": parameters}, indent=1)

    @cached_property
    def stds(self) -> dict[tuple[str, tuple[int, ...]], tuple[float | None, int]]:
        """Of parameters of one kind and shape: the standard deviation over all their blocks, and of how many elements.

        None where a parameter has none.
        """
        pooled: dict[tuple[str, tuple[int, ...]], tuple[float | None, int]] = {}
        for weight in self.weights:
            square, count = pooled.get((weight.kind, weight.shape), (0.0, 0))
            total = None if square is None or weight.std is None else square + weight.elements * weight.std**2
            pooled[weight.kind, weight.shape] = (total, count + weight.elements)
        return {key: (None if sum_ is None else sqrt(sum_ / count), count) for key, (sum_, count) in pooled.items()}

    def std_of(self, weight: ModelWeight) -> tuple[float | None, int]:
        """`stds` of the kind of one of its parameters."""
        return self.stds[weight.kind, weight.shape]


def read_recipe(text: str) -> Recipe:
    """A recipe from JSON, as `Recipe.to_json` writes it.

    Raises:
        TypeError, ValueError: what is no JSON, no recipe, or has fields that are unknown, missing or no numbers.
    """
    require_instance("the recipe", text, str, "JSON in a string")
    try:
        held = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"the recipe is no JSON: {error}") from error
    if not isinstance(held, Mapping) or not isinstance(held.get("parameters"), list) or "depth" not in held:
        raise ValueError(
            "the recipe is no object with depth and a list of parameters; meanfield.torch.recipe_of(model, optimizer)"
            ".to_json() writes it"
        )
    return Recipe(tuple(map(_weight, held["parameters"])), held["depth"], held.get("heads"))


def _weight(held: Any) -> ModelWeight:
    known = {field.name for field in fields(ModelWeight)}
    if not isinstance(held, Mapping) or not {"name", "kind", "shape", "role"} <= set(held):
        raise ValueError(f"a parameter of the recipe is {str(held)[:60]}; it needs name, kind, shape and role")
    if unknown := sorted(set(held) - known):
        raise ValueError(f"the parameter {held['name']!r} of the recipe has {unknown[0]!r}, which none has")
    return ModelWeight(**held)


@dataclass(frozen=True)
class Sizes:
    """Of two models: ratios of width and depth, and what they are ratios of."""

    width_ratio: float
    depth: int
    base_depth: int

    @property
    def depth_ratio(self) -> float:
        return self.depth / self.base_depth if self.base_depth else 1.0

    def __str__(self) -> str:
        depth = f"depth {self.base_depth} -> {self.depth} blocks (r_L = {self.depth_ratio:.4g})"
        return f"width x {self.width_ratio:.4g} (r_n), {depth}"


@dataclass(frozen=True)
class Pair:
    """A parameter and the one of the base model that it takes its numbers from.

    Attributes:
        role: that of the parameter; of a `MATRIX` the role that its shape tells.
        column: of the tables; "" of what keeps its values.
    """

    weight: ModelWeight
    base: ModelWeight
    role: str
    column: str

    @property
    def label(self) -> str:
        """Its role, and of hidden weights and vectors whether they stand outside of blocks, where depth has no part."""
        outside = self.weight.block is None and self.role in (*VECTORS, *_HIDDEN)
        return f"{self.role.replace('_', ' ')}{' outside blocks' * outside}"

    def column_of(self, hyperparameter: str) -> str:
        """The column of one number: of a tied table the head alone has a multiplier."""
        is_of_head = self.role == "tied" and hyperparameter == "block_multiplier"
        return "output" if is_of_head else self.column

    def scaling(self, optimizer: str, hyperparameter: str, condition: str) -> Scaling:
        """The cell of the table, without depth outside of blocks.

        Raises:
            ValueError: no such cell, a tied table whose two columns disagree.
        """
        if not self.column:
            return CONSTANT
        cell = scaling(optimizer, self.column_of(hyperparameter), hyperparameter, block_depth=CONDITIONS[condition])
        if self.role == "tied" and self.column_of(hyperparameter) == "input":
            other = scaling(optimizer, "output", hyperparameter, block_depth=CONDITIONS[condition])
            if other != cell:
                raise ValueError(
                    f"{self.weight.name!r} is the embedding and the head at once, but under {optimizer} the table's "
                    f"{hyperparameter} of input weights is x {cell} and of output weights x {other}: untie them, or "
                    "take adamw for them, whose two columns agree"
                )
        return cell if self.weight.block is not None else Scaling(cell.width)

    def factor(self, sizes: Sizes, optimizer: str, hyperparameter: str, condition: str) -> float:
        """What the base model's number is multiplied by."""
        return self.scaling(optimizer, hyperparameter, condition).at(sizes.width_ratio, sizes.depth_ratio)


def paired(target: Recipe, base: Recipe) -> tuple[Sizes, list[Pair]]:
    """The ratios of two sizes of a model, and the parameters of the first beside those of the second.

    Raises:
        ValueError: parameters without a counterpart, shapes that differ by several ratios, models of one size, roles
            that do not go with the shapes.
    """
    matched = list(_matched(target, base))
    kinds = {weight.kind for weight in target.weights}
    if missing := [weight.name for weight in base.weights if weight.kind not in kinds]:
        raise ValueError(
            f"{missing[0]!r} of the base model has no counterpart that trains in the model; give the same model of "
            "another size, both tied, compiled, wrapped and frozen alike"
        )
    both = _with_heads(matched)
    sizes = Sizes(_width_ratio(both), target.depth, base.depth)
    if bool(target.depth) != bool(base.depth):
        raise ValueError(
            f"the base model has {base.depth} blocks and the model {target.depth}; give models of one kind"
        )
    if sizes.width_ratio == 1 and sizes.depth_ratio == 1:
        raise ValueError("both models are of one size, so that nothing scales; give a base model of another")
    ordered = _by_order([weight for weight, _ in both]) if sizes.width_ratio == 1 else {}
    return sizes, [_pair(weight, of_base, ordered, sizes.width_ratio) for weight, of_base in both]


def _by_order(weights: list[ModelWeight]) -> dict[str, str]:
    """Roles of matrices outside of blocks where no shape tells: those before all blocks read the inputs, the last is
    the head, if no other is.
    """
    matrices = [weight.name for weight in weights if weight.role == MATRIX]
    ahead = [weight.name for weight in weights[: next((at for at, each in enumerate(weights) if each.block == 0), 1)]]
    last = "" if any(weight.role in HEADS for weight in weights) else (matrices or [""])[-1]
    roles = {name: "input" if name in ahead else "head" if name == last else "hidden" for name in matrices}
    return roles | _biases_of({name for name, role in roles.items() if role == "head"}, weights)


def _matched(target: Recipe, base: Recipe) -> Iterable[tuple[ModelWeight, ModelWeight]]:
    """Pairs by name; blocks beyond those of the base model go with its last of their kind."""
    by_kind: dict[str, dict[int | None, ModelWeight]] = {}
    for weight in base.weights:
        by_kind.setdefault(weight.kind, {})[weight.block] = weight
    for weight in target.weights:
        like = by_kind.get(weight.kind)
        if like is None:
            raise ValueError(
                f"{weight.name!r} has no counterpart that trains in the base model: {_looked_for(weight, target, base)}"
            )
        last = max((block for block in like if block is not None), default=None)
        of_base = like[weight.block if weight.block in like else last]
        if len(weight.shape) != len(of_base.shape):
            raise ValueError(f"{weight.name!r} has shape {weight.shape} and in the base model {of_base.shape}")
        yield weight, of_base


def _looked_for(weight: ModelWeight, target: Recipe, base: Recipe) -> str:
    """What a parameter without a counterpart was looked for by, and what to do."""
    if weight.kind != weight.name:
        looked = f"none is called {weight.kind!r}, with * for the number of a block"
    else:
        looked = "none has this name, and it stands in no block whose number may differ"
    rows = dict.fromkeys(f"{each.kind.partition('*')[0]}*" for each in target.weights if each.block is not None)
    rows_found = f"found {', '.join(map(repr, rows))}" if rows else "found none"
    alike = next((each.name for each in base.weights if _unnumbered(each.name) == _unnumbered(weight.name)), None)
    numbered = "" if alike is None else f"; {alike!r} of the base model differs by a number alone, as blocks do"
    return (
        f"{looked}{numbered}. Blocks are the modules with layers that an nn.ModuleList, nn.Sequential or nn.ModuleDict "
        f"holds, no class made from these; the model was searched for them, and {rows_found}. Keep all blocks in one "
        "such list, as self.blocks = nn.ModuleList([...]), and give the same model of another size, both tied, "
        "compiled, wrapped and frozen alike"
    )


def _unnumbered(name: str) -> str:
    return sub(r"\d+", "*", name)


def _with_heads(both: list[tuple[ModelWeight, ModelWeight]]) -> list[tuple[ModelWeight, ModelWeight]]:
    """The same pairs, those named that make one output for every word of a vocabulary that grows, with their biases.

    Their outputs grow with the rows of a table of embeddings, which are no width.

    Raises:
        ValueError: several such layers, or a vocabulary that is as large as the width in both models, where no shape
            tells the head.
    """
    grown: dict[tuple[int, int], tuple[ModelWeight, bool]] = {}
    for weight, base in both:
        axis = _axis_of_rows(weight)
        if axis is not None and weight.shape[axis] != base.shape[axis]:
            is_square = (weight.shape[axis], base.shape[axis]) == (weight.shape[1 - axis], base.shape[1 - axis])
            grown[weight.shape[axis], base.shape[axis]] = weight, is_square
    heads = {weight.name for weight, _ in both if weight.role == "head" and weight.block is None}
    fitting = []
    for weight, base in both:
        outputs = weight.shape[weight.outputs_axis], base.shape[base.outputs_axis]
        if weight.role == MATRIX and outputs in grown:
            fitting.append((weight.name, *grown[outputs]))
    if len(fitting) > 1 or any(is_square for *_, is_square in fitting):
        name, table, _ = fitting[-1]
        raise ValueError(
            f"{table.name!r} has more rows than the base model's, which are no width, and as many outputs have "
            f"{' and '.join(repr(each) for each, *_ in fitting)}, which may count words or channels: say what they "
            f"are, roles={{{name!r}: 'head'}} or 'hidden', or give models of one vocabulary"
        )
    heads |= {name for name, *_ in fitting}
    roles = dict.fromkeys(heads, "head") | _biases_of(heads, [weight for weight, _ in both])
    return [(replace(weight, role=roles.get(weight.name, weight.role)), base) for weight, base in both]


def _biases_of(heads: set[str], weights: list[ModelWeight]) -> dict[str, str]:
    """The roles of the biases that stand beside these weights."""
    names = {f"{name.removesuffix('weight')}bias" for name in heads if name.endswith("weight")}
    return {weight.name: "head_bias" for weight in weights if weight.role == "bias" and weight.name in names}


def _axis_of_rows(weight: ModelWeight) -> int | None:
    """The axis of a table of embeddings that counts what is looked up."""
    if weight.role not in ("embedding", "tied") or len(weight.shape) != 2:
        return None
    return 0 if weight.role == "tied" else 1 - weight.outputs_axis


def _width_ratio(both: list[tuple[ModelWeight, ModelWeight]]) -> float:
    """The ratio of all sizes that differ, 1 where none does."""
    seen: tuple[float, str] | None = None
    for weight, base in both:
        for axis in _growing(weight, base):
            ratio = weight.shape[axis] / base.shape[axis]
            if seen is not None and not isclose(seen[0], ratio, rel_tol=1e-9):
                role = "'input'} or 'head'" if len(weight.shape) > 1 else "'head_bias'}"
                raise ValueError(
                    f"a size of {seen[1]!r} is {seen[0]:.4g} times the base model's, and one of {weight.name!r} "
                    f"{ratio:.4g} times: give a base model that differs by one ratio of widths alone, of the same "
                    "inputs and outputs, and of two blocks a stage where stages change the width; of a layer whose "
                    f"inputs or outputs are others, say so: roles={{{weight.name!r}: {role}"
                )
            seen = ratio, weight.name
    _require_two_sides(both)
    return 1.0 if seen is None else seen[0]


def _growing(weight: ModelWeight, base: ModelWeight) -> list[int]:
    """Axes that differ and are widths."""
    sizes = enumerate(zip(weight.shape, base.shape, strict=True))
    return [axis for axis, (size, of_base) in sizes if size != of_base and not _is_counted(weight, axis)]


def _require_two_sides(both: list[tuple[ModelWeight, ModelWeight]]) -> None:
    """Refuse what grows on one side alone of layers that no role tells: a width is given by one and read by another."""
    matrices = [(weight, _growing(weight, base)) for weight, base in both if len(weight.shape) > 1]
    grown = [(weight, axes) for weight, axes in matrices if axes]
    sides = {axis == weight.outputs_axis for weight, axes in grown for axis in axes}
    if len(sides) != 1 or len(matrices) < 2 or any(weight.role != MATRIX for weight, _ in grown):
        return
    side, name = "outputs" if sides.pop() else "inputs", grown[0][0].name
    raise ValueError(
        f"the {side} of {name!r} are others than the base model's, and no layer that trains goes with them, as with a "
        f"width: give a base model of as many {side}, or say what this layer is, roles={{{name!r}: 'head'}} or 'input'"
    )


def _is_counted(weight: ModelWeight, axis: int) -> bool:
    """Whether an axis counts words, places, inputs or outputs, which are no width."""
    if weight.role == "tied":
        return axis == 0
    if weight.role in ("embedding", "position") or (weight.role == "input" and weight.block is None):
        return axis != weight.outputs_axis
    return weight.role == "head_bias" or (
        weight.role == "head" and weight.block is None and axis == weight.outputs_axis
    )


def _pair(weight: ModelWeight, base: ModelWeight, ordered: Mapping[str, str], width_ratio: float) -> Pair:
    role = ordered.get(weight.name) or _role(weight, base, width_ratio)
    biases = "input_bias" if weight.block is None else "hidden_bias"
    return Pair(weight, base, role, biases if role in VECTORS else _COLUMNS.get(role, ""))


def _role(weight: ModelWeight, base: ModelWeight, width_ratio: float) -> str:
    """The role of a parameter, as its shape tells where the width grows."""
    if width_ratio == 1 or weight.role in (*FIXED, *_LOOKED_UP):
        return weight.role
    growing = _growing(weight, base)
    grows = [axis in growing for axis in range(len(weight.shape))]
    if weight.role in VECTORS:
        told = weight.role if any(grows) else "head_bias" if weight.block is None else ""
    elif sum(grows) > 1:
        told = "hidden"
    else:
        told = "input" if grows[weight.outputs_axis] else "head" if any(grows) and len(grows) > 1 else ""
    if told and weight.role in (*VECTORS, MATRIX, told):
        return told
    if told == "hidden" and weight.role in _HIDDEN:
        return weight.role
    remedy = ""
    if weight.block is not None and weight.role in _HIDDEN:
        remedy = " let both its sides grow with the width, as by more heads of keys and values, or"
        if len(weight.shape) > 2 and grows[weight.outputs_axis] and weight.shape[1] == 1:
            remedy = " a convolution of every channel by itself (depthwise) scales as a gain does, 'norm_gain':"
    raise ValueError(
        f"{weight.name!r} is taken for {weight.role!r}, but is {list(weight.shape)} for {list(base.shape)} of the base "
        f"model, which that column of the tables does not fit;{remedy} say what it is, roles={{{weight.name!r}: ROLE}}"
        f", one of {', '.join(map(repr, RECIPE_ROLES))}, of which 'fixed' keeps the base model's values"
    )


def recipe_notes(target: Recipe, base: Recipe, sizes: Sizes, pairs: list[Pair]) -> list[str]:
    """What breaks the premises of the tables and no cell shows: a sentence each, with a remedy."""
    notes = [*_counts_that_grow(pairs), *_untold_inputs(pairs, sizes)]
    if divides_by_depth(target):
        notes.append(
            "residual projections start at the standard deviation of other hidden weights over sqrt(2 L), as in GPT-2, "
            "which counts the depth twice beside the block multiplier: drop it from the model"
        )
    if target.heads is not None and base.heads is not None:
        size_ratio = sizes.width_ratio * base.heads / target.heads
        if not isclose(size_ratio, 1, rel_tol=1e-9):
            notes.append(
                f"the head size is {size_ratio:.4g} times the base model's, and the tables keep it: scale the number "
                "of heads with the width, or divide attention logits by the head size and not by its root, in both "
                "models, with a number that agrees with the root in the base model"
            )
    return notes


def _counts_that_grow(pairs: list[Pair]) -> Iterable[str]:
    """Vocabularies, inputs or outputs that are others than the base model's."""
    grown: dict[tuple[int, int], str] = {}
    for pair in pairs:
        for axis, sizes in enumerate(zip(pair.weight.shape, pair.base.shape, strict=True)):
            is_of_matrix = len(pair.weight.shape) > 1 and pair.role != "position"
            if is_of_matrix and sizes[0] != sizes[1] and _is_counted(pair.weight, axis):
                grown.setdefault(sizes, pair.weight.name)
    for (size, of_base), name in grown.items():
        yield (
            f"{name!r} counts {size} where the base model's counts {of_base}: this is no width, and no table has a "
            "number for it; tune at the vocabulary, the inputs and the outputs that you train with"
        )


def _untold_inputs(pairs: list[Pair], sizes: Sizes) -> Iterable[str]:
    """A first layer that both shapes call hidden, where nothing else reads the inputs."""
    first = pairs[0]
    is_hidden = sizes.width_ratio != 1 and first.weight.role == MATRIX and first.role == "hidden"
    if is_hidden and not any(pair.column == "input" for pair in pairs):
        yield (
            f"no parameter was found that reads the inputs: where {first.weight.name!r} does, whose inputs grow by the "
            f"ratio of widths, say roles={{{first.weight.name!r}: 'input'}}, or give models of as many inputs"
        )


def head_note(pairs: list[Pair], sizes: Sizes) -> str:
    """That no layer makes the outputs, and which may; empty where one does, or where no width grows."""
    if sizes.width_ratio == 1 or any(pair.role in HEADS for pair in pairs):
        return ""
    factor = f"{1 / sizes.width_ratio:.4g}"
    last = next((pair.weight.name for pair in reversed(pairs) if pair.weight.role == MATRIX), None)
    may = f"where {last!r} makes them, whose outputs grow by the ratio of widths, say roles={{{last!r}: 'head'}}, or "
    may = "" if last is None else f"{may}give models of as many outputs; "
    return (
        f"no layer was found that makes the outputs: {may}where the table of embeddings makes them, say roles={{NAME: "
        f"'tied'}}, and multiply the outputs by {factor} yourself"
    )


def divides_by_depth(recipe: Recipe) -> bool:
    """Whether all weights that end a branch start at 1/sqrt(2 L) of the other weights of blocks.

    Not where one standard deviation over the root of their inputs is that of all, as PyTorch's layers draw: behind four
    times as many units as before, this makes the same ratio at 2 blocks.
    """
    stds: dict[str, set[tuple[float, float]]] = {"projection": set(), "other": set()}
    for weight in recipe.weights:
        std = recipe.std_of(weight)[0]
        if weight.block is not None and weight.role in _HIDDEN and std:
            of_unit = std * sqrt(weight.elements / weight.shape[weight.outputs_axis])
            stds["projection" if weight.role == "projection" else "other"].add((std, of_unit))
    if recipe.depth < 2 or not all(stds.values()):
        return False
    pairs = [(mine, other) for mine in stds["projection"] for other in stds["other"]]
    by_depth = sqrt(2 * recipe.depth)
    return all(isclose(mine[0] / other[0] * by_depth, 1, rel_tol=NEAR_DEPTH) for mine, other in pairs) and not all(
        isclose(mine[1] / other[1], 1, rel_tol=NEAR_DEPTH) for mine, other in pairs
    )
