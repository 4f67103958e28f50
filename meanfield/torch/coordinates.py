"""Coordinate checks: whether a PyTorch model keeps its size, and moves alike in training, at every width and depth.

    value     |z_t|         root mean square over all elements, after t steps of training
    change    |z_t - z_0|   the same of the change since then

of four values z, on the one batch that every step takes: of what the first block reads ("first"), of what comes behind
half of the blocks ("middle") and behind the last ("last"), and of the outputs.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, signature
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import nn

from meanfield.common.seeds import checked_seed
from meanfield.common.validation import (
    Array,
    PremiseWarning,
    require_choice,
    require_count,
    require_counts,
    require_draws,
)
from meanfield.torch.coordinate_verdicts import FIRST, FLAT, LAST, MIDDLE, OUTPUTS, PLACES, Asked, judged
from meanfield.torch.models import PRECISIONS, RESET, call, taken_batches, trained
from meanfield.torch.parts import blocks, chosen, has_weights, head, leaves
from meanfield.torch.passes import LossNotFinite, Pass, Task, gradients, mean_square, value_of
from meanfield.torch.scales import name_of, tasks
from meanfield.torch.steps import MadeStep, require_all_stepped, require_one_gradient, step_of

# As many as are taken where their numbers are left out: draws with which slopes of small models have errors of a few
# hundredths, and steps after which momentum and weight decay have begun to act.
DRAWS, STEPS = 16, 4
# Weight decay is suspected where it takes this part of a weight in a step, or more: values change by some hundredths.
DECAYS_SEEN = 1e-3
# A slope that finite sizes correct takes so many sizes.
FEWEST_SIZES = 3

# What is measured of a place over steps: its name, where `ModelMoves` has it, and what it is.
MEASURED = {
    "feature_norm": ("values", "root mean square of a value"),
    "feature_update_norm": ("changes", "root mean square of the change of a value since before the first step"),
}

# Direction -> (width, depth) of every model of its ladder; a direction of one size has none.
Ladders = Mapping[str, list[tuple[int, int]]]


def coordinate_check(
    factory: Callable[..., nn.Module],
    loss: Callable[[Any, Any], torch.Tensor],
    batches: Iterable[tuple[Any, Any]],
    *,
    widths: int | Sequence[int],
    depths: int | Sequence[int],
    optimizer: Callable[..., Any],
    steps: int = STEPS,
    draws: int = DRAWS,
    seed: int = 0,
    modules: Any = None,
    forward: Callable[[nn.Module, Any], Any] = call,
    flat: float = FLAT,
    table: str | None = None,
    block_depth: int = 2,
    precision: str = "float32",
) -> xr.Dataset:
    """Whether blocks and outputs of a PyTorch model keep their size, and move alike, at every width and depth.

        value     |z|           root mean square of z before the first step
        change    |z_t - z_0|   the same of its change after t steps

    Models of several sizes are trained by their own optimizer, momentum, weight decay and epsilon included. Every draw
    has initial weights and one batch, on which it trains and is measured, with the same masks of dropout throughout and
    with statistics of the batch. Of each value and change the power of the width (of the depth) that it goes as is
    found, and judged: CONFIRMED is flat, REFUTED grows or falls. For a slope that is not flat, cells of the tables of
    Zheng et al. 2026 are named that could be wrong, and by which factor, at leading order and without normalisation
    inside of branches. A cell whose weights make a small part of all moves at these sizes is not seen; nor is weight
    decay that takes less than a thousandth of a weight in a step (learning rate times weight decay), as in most
    training: compare it with `check_recipe`.

    Args:
        factory: makes a model with its initial weights drawn; a function, or class, of ``width`` and ``depth``, which
            it is given by these names, as far as it has them.
        loss, batches, forward: as for `step_scales`; all sizes take the same batches.
        widths, depths: sizes to compare, three or more; or one. Some near the least and one far above tell most. Of
            two ladders each is run at the least size of the other.
        optimizer: a class of `torch.optim`, or a `functools.partial` of one, which is given all parameters that train;
            or a function of the model, and of ``width`` and ``depth`` where it has parameters of these names, that
            makes the optimizer, or a list of several, with its rates at that size.
        steps: of training.
        draws: at least 2; errors come from the spread over draws.
        seed: root of all streams, of PyTorch's own generator; what it draws outside does not change.
        modules: whose values count, as for `step_scales`: blocks if left out, and of models without blocks leaves with
            weights but the head. Compared are what the first of them reads ("first"), where it is trained; the value
            behind half of them ("middle") and behind the last ("last"); and the outputs.
        flat: exponents of so much or less, on either side, count as flat.
        table: whose cells are named: one of `meanfield.parameterizations.OPTIMIZER_NAMES`, or a hybrid HIDDEN-OTHERS;
            if left out, by the classes of the optimizers.
        block_depth: matrices of a residual branch, as for `meanfield.hyperparameter_table`.
        precision: "float32" or "float64", of weights, floats in batches, and training.

    Returns:
        Dataset with feature_norm_by_DIRECTION and feature_update_norm_by_DIRECTION over sizes, ``draw``, ``step`` and
        ``place``, and loss_by_DIRECTION; and over ``row``, a slope each, with coordinates ``along``, ``of`` ("value" or
        "change"), ``at`` and ``after``: slope, slope_stderr and slope_allowance, plain_slope, verdict, evidence,
        refuted_from, draws_needed and suspects. `coordinate_report` prints them, `figures.model_coordinates` draws
        them. The initial outputs may fall with the width, as the tables let them. What is 0 at all sizes has no row.

    Raises:
        TypeError, ValueError: as `step_scales`; no ladder, or one with fewer than three sizes or with one twice; models
            that do not grow with a size; a loss that is not finite at first, or later in models of the least size;
            models that nothing moves.

    Warns:
        PremiseWarning: larger models leave the range of floats, which refutes that they are flat.

    Source: Zheng et al. 2026, section 5.1, figure 1; slopes and judges as in `sims.coordinate_check`.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> import meanfield.torch as mft
        >>> def model(width):
        ...     hidden = [nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
        ...     return nn.Sequential(nn.Linear(8, width), nn.ReLU(), *hidden, nn.Linear(width, 3))
        >>> batches = [(torch.randn(16, 8), torch.randint(3, (16,))) for _ in range(8)]
        >>> sizes = {"widths": [32, 64, 128, 256], "depths": 2}
        >>> data = nn.functional.cross_entropy, batches
        >>> checked = mft.coordinate_check(model, *data, **sizes, optimizer=torch.optim.AdamW, steps=1, draws=8)
        >>> checked.attrs["verdict"]
        'REFUTED'
    """
    step_count, number, seed = require_count("steps", steps), require_draws("draws", draws), checked_seed(seed)
    require_choice("precision", precision, PRECISIONS)
    asked = Asked.checked(flat, table, block_depth)
    ladders = _ladders({"width": widths, "depth": depths})
    sized = _Sized(factory, optimizer, {along for along, sizes in ladders.items() if sizes})
    taken = taken_batches(batches, number, seed)
    runs: dict[tuple[int, int], _Run] = {}
    for size in dict.fromkeys(size for sizes in ladders.values() for size in sizes):
        drawn = tasks(sized.factory_of(*size), loss, taken, forward, RESET, number, seed, precision)
        runs[size] = _run(drawn, sized.step_of(*size), step_count, modules)
    _require_growth(ladders, runs)
    _require_finite(ladders, runs)
    first = next(iter(runs.values()))
    attrs: dict[str, Any] = {
        "command": "meanfield.torch.coordinate_check",
        "family": first.family,
        "optimizer": first.optimizer,
    }
    attrs |= {"least_width": min(size[0] for size in runs), "least_depth": min(size[1] for size in runs)}
    attrs |= {"loss": name_of(loss), "precision": precision, "steps": step_count, "draws": number, "seed": str(seed)}
    attrs |= {"decays": int(any(run.decays for run in runs.values())), "torch": torch.__version__}
    return judged(_dataset(ladders, runs, attrs), asked)


def _ladders(given: Mapping[str, Any]) -> Ladders:
    sizes: dict[str, list[int]] = {}
    for along, values in given.items():
        sizes[along] = own = sorted(require_counts(f"{along}s", values))
        if not own or len(set(own)) < len(own):
            raise ValueError(f"{along}s are {values!r}; give one size, or several, each once")
        if 1 < len(own) < FEWEST_SIZES:
            raise ValueError(f"{along}s are {values!r}; a slope with its correction takes {FEWEST_SIZES} sizes or more")
    if all(len(own) == 1 for own in sizes.values()):
        raise ValueError("widths and depths are one size each, and nothing is compared: give several of one of them")
    width, depth = sizes["width"][0], sizes["depth"][0]
    models = {"width": [(own, depth) for own in sizes["width"]], "depth": [(width, own) for own in sizes["depth"]]}
    return {along: ladder if len(ladder) > 1 else [] for along, ladder in models.items()}


@dataclass(frozen=True)
class _Sized:
    """What makes models of every size, and their optimizers; directions ``compared`` are those of several sizes."""

    factory: Callable[..., nn.Module]
    optimizer: Callable[..., Any]
    compared: set[str]

    def __post_init__(self) -> None:
        for name in ("factory", "optimizer"):
            given = getattr(self, name)
            if not callable(given) or isinstance(given, nn.Module):
                words = "give a function, as models of several sizes are made, each with an optimizer of its own"
                raise TypeError(f"{name} is a {type(given).__name__}; {words}")
        taken = _sizes_for("factory", self.factory, 1, 1)
        if missing := [along for along in ("width", "depth") if along in self.compared and along not in taken]:
            raise TypeError(f"factory takes no {' and no '.join(missing)}, of which there are several")
        self.step_of(1, 1)

    def factory_of(self, width: int, depth: int) -> Callable[[], nn.Module]:
        """What makes models of one size."""
        return partial(self.factory, **_sizes_for("factory", self.factory, width, depth))

    def step_of(self, width: int, depth: int) -> MadeStep:
        """What makes their optimizers."""
        sizes = _sizes_for("optimizer", partial(self.optimizer, None), width, depth)
        made = step_of(partial(self.optimizer, **sizes), None)
        if not isinstance(made, MadeStep):
            raise TypeError(f"optimizer is {self.optimizer!r}; give a class of torch.optim, or a function of the model")
        return made


def _sizes_for(what: str, function: Callable[..., Any], width: int, depth: int) -> dict[str, int]:
    """Those of the sizes that a function takes by name, and has not been given already (`functools.partial`).

    Raises:
        TypeError: what it takes besides.
    """
    sizes = {"width": width, "depth": depth}
    try:
        takes = signature(function)
        others = what == "factory" and any(each.kind is Parameter.VAR_KEYWORD for each in takes.parameters.values())
        settled = getattr(function, "keywords", {})
        given = {name: sizes[name] for name in sizes if (others or name in takes.parameters) and name not in settled}
        takes.bind(**given)
    except (TypeError, ValueError) as error:
        of = "width and depth" if what == "factory" else "the model, and of width and depth where it needs them"
        raise TypeError(f"{what} is to be a function of {of}, by these names: {error}") from error
    return given


@dataclass(frozen=True)
class ModelMoves:
    """Of one model, over steps from 0, NaN behind the last of which the loss is finite.

    Attributes:
        values, changes: place -> sizes of values, and of their changes.
        losses: before each step.
    """

    values: dict[str, Array]
    changes: dict[str, Array]
    losses: Array


def moves(
    model: nn.Module, task: Task, optimizers: Sequence[torch.optim.Optimizer], steps: int, modules: Any
) -> ModelMoves:
    """Train a model by its optimizers, all of which step at once.

    Raises:
        TypeError, ValueError: as `passes.gradients` and `parts.chosen`; parameters that no optimizer has; modules that
            are not called in every step.
    """
    require_all_stepped(trained(model), optimizers)
    require_one_gradient(optimizers)
    watched = _Watched(model, modules)
    start: dict[str, torch.Tensor] = {}
    losses, rows = np.full(steps + 1, np.nan), np.full((2, len(PLACES), steps + 1), np.nan)
    for step in range(steps + 1):
        try:
            slopes, made = gradients(model, task, watched.names, watched.hooked)
        except LossNotFinite:
            if step == 0:
                raise
            break
        losses[step] = made.loss.item()
        seen = watched.compared(made)
        start = start or seen
        if seen.keys() != start.keys() or any(seen[place].shape != start[place].shape for place in start):
            raise ValueError("the model calls other modules in some steps than in others; give modules that all call")
        for place, value in seen.items():
            sizes = mean_square(value), mean_square(value.double() - start[place].double())
            rows[:, PLACES.index(place), step] = [float(size) ** 0.5 for size in sizes]
        for name, parameter in trained(model).items() if step < steps else ():
            parameter.grad = slopes[name]
        for optimizer in optimizers if step < steps else ():
            optimizer.step()
    values, changes = ({place: sizes[PLACES.index(place)] for place in start} for sizes in rows)
    return ModelMoves(values, changes, losses)


class _Watched:
    """The modules whose values count, and what they have read and made in the last pass."""

    def __init__(self, model: nn.Module, modules: Any) -> None:
        listed = chosen(model, modules) or blocks(model)
        self._model, self._are_leaves = model, not listed
        self._own = set(listed or (name for name in leaves(model) if has_weights(model.get_submodule(name))))
        self.names = self._own | set(leaves(model))
        self._calls: list[tuple[str, torch.Tensor | None, torch.Tensor]] = []

    def hooked(self, model: nn.Module, hooks: ExitStack) -> None:
        """Keep, from now on, what modules read and make, in the order in which their calls end."""
        self._calls, reads = [], list[torch.Tensor | None]()

        def begun(_module: nn.Module, inputs: Any) -> None:
            reads.append(_copied(inputs))

        def ended(name: str, made: Any) -> None:
            read, value = reads.pop(), _copied(made)
            if value is not None:
                self._calls.append((name, read, value))

        for name in self._own:
            module = model.get_submodule(name)
            hooks.callback(module.register_forward_pre_hook(begun).remove)
            hooks.callback(module.register_forward_hook(lambda _module, _inputs, made, n=name: ended(n, made)).remove)

    def compared(self, made: Pass) -> dict[str, torch.Tensor]:
        """The values of the last pass, by place; half of the blocks are some where their number is even."""
        top = head(self._model, made) if self._are_leaves else None
        calls = [call for call in self._calls if call[0] != top]
        values = {OUTPUTS: made.outputs}
        if calls:
            read = calls[0][1]
            values |= {LAST: calls[-1][2]} | ({FIRST: read} if read is not None else {})
        if calls and len(calls) % 2 == 0:
            values[MIDDLE] = calls[len(calls) // 2 - 1][2]
        return {place: values[place] for place in PLACES if place in values}


def _copied(value: Any) -> torch.Tensor | None:
    """A tensor of floats as it is now, which later operations in place may change."""
    tensor = value_of(value)
    return None if tensor is None else tensor.detach().clone()


@dataclass(frozen=True)
class _Run:
    """The models of one size, draw by draw."""

    draws: list[ModelMoves]
    family: str
    parameters: int
    optimizer: str
    decays: bool

    @property
    def places(self) -> set[str]:
        """Of which all draws have values."""
        return set.intersection(*(set(draw.values) for draw in self.draws))

    @property
    def lost(self) -> int:
        """Draws that leave the range of floats."""
        return sum(not np.isfinite([draw.losses, *draw.values.values()]).all() for draw in self.draws)


def _run(drawn: Iterable[Any], step: MadeStep, steps: int, modules: Any) -> _Run:
    draws = []
    for model, task in drawn:
        optimizers = step.made(model)
        draws.append(moves(model, task, optimizers, steps, modules))
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    return _Run(
        draws,
        type(model).__name__,
        sum(parameter.numel() for parameter in model.parameters()),
        " and ".join(type(each).__name__ for each in optimizers),
        any(float(group["lr"]) * group.get("weight_decay", 0.0) >= DECAYS_SEEN for group in groups),
    )


def _require_growth(ladders: Ladders, runs: Mapping[Any, _Run]) -> None:
    """Raise ValueError unless models have more parameters at every larger size."""
    for along, ladder in ladders.items():
        for small, large in pairwise(ladder):
            if runs[large].parameters <= runs[small].parameters:
                shown = " and ".join(f"{runs[size].parameters:,} at {_words(size)}" for size in (small, large))
                raise ValueError(f"models do not grow with the {along}: they have {shown} parameters")


def _require_finite(ladders: Ladders, runs: Mapping[Any, _Run]) -> None:
    """Refuse models of the least size that leave the floats, and warn of larger ones that do."""
    least = {ladder[0] for ladder in ladders.values() if ladder}
    for size, run in runs.items():
        if not run.lost:
            continue
        said = f"{run.lost} of {len(run.draws)} models of {_words(size)} leave the range of floats in training"
        if size in least:
            raise ValueError(f"{said}, the smallest already: take a lower learning rate, or fewer steps")
        warnings.warn(f"{said}, which refutes that they stay flat", PremiseWarning, stacklevel=3)


def _words(size: tuple[int, int]) -> str:
    return f"width {size[0]} and depth {size[1]}"


def _dataset(ladders: Ladders, runs: Mapping[Any, _Run], attrs: Mapping[str, Any]) -> xr.Dataset:
    """Sizes of values and of their changes, and losses, over the ladders."""
    shared = set.intersection(*(run.places for run in runs.values()))
    places = [place for place in PLACES if place in shared]
    variables: dict[str, Any] = {}
    coords: dict[str, Any] = {"place": ("place", places, {"long_name": "place in the model"})}
    for along, ladder in ((along, ladder) for along, ladder in ladders.items() if ladder):
        coords[along] = (along, [size[along == "depth"] for size in ladder], {"long_name": along, "units": "1"})
        draws = [runs[size].draws for size in ladder]
        for name, (which, words) in MEASURED.items():
            values = [[[getattr(draw, which)[place] for place in places] for draw in own] for own in draws]
            moved = np.moveaxis(np.array(values), 2, 3)
            said = {"long_name": f"{words}, by {along}", "units": "1"}
            variables[f"{name}_by_{along}"] = ((along, "draw", "step", "place"), moved, said)
        losses = np.array([[draw.losses for draw in own] for own in draws])
        said = {"long_name": f"loss of the batch before a step, by {along}", "units": "1"}
        variables[f"loss_by_{along}"] = ((along, "draw", "step"), losses, said)
    for name, words in (("draw", "draw"), ("step", "steps of training")):
        size = next(values.shape[dims.index(name)] for dims, values, _ in variables.values())
        coords[name] = (name, np.arange(size), {"long_name": words, "units": "1"})
    return xr.Dataset(variables, coords, dict(attrs))
