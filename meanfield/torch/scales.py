"""How far a step of an optimizer moves every module of a PyTorch model, and the rates at which it moves it by 1.

Groups of parameters may be asked for, too: the change that group g makes alone, while all others stay, has

    S_l^(g) = mean square of the sum over parameters of group g of (dz_l / dW) A

The changes T^(g) of groups that hold every parameter once add up to T; their mean squares do not, as changes may point
against each other.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from fnmatch import fnmatchcase
from statistics import fmean
from typing import Any, ClassVar, Self

import numpy as np
import torch
import xarray as xr
from torch import nn

from meanfield.common.estimates import summarise_each
from meanfield.common.seeds import checked_seed
from meanfield.common.validation import Array, require_draws
from meanfield.quantities.registry import measured_dataset
from meanfield.quantities.step_scales import relative, update_estimates
from meanfield.simulation.step_moves import warn_unless_kept
from meanfield.torch.models import RESET, ModelSource, call, named, on_model, samples_of, taken_batches, trained
from meanfield.torch.parts import (
    block_calls,
    blocks,
    chosen,
    last_layer,
    leaves,
    normalised,
    stream_calls,
)
from meanfield.torch.passes import (
    Call,
    Pass,
    Task,
    changes,
    gradients,
    mean_square,
    require_agreement,
)
from meanfield.torch.skips import skips
from meanfield.torch.steps import LiveStep, Step, step_of

# As many draws as are taken where their number is left out.
DRAWS = 16


def step_scales(
    model: nn.Module | Callable[[], nn.Module],
    loss: Callable[[Any, Any], torch.Tensor],
    batches: Iterable[tuple[Any, Any]],
    *,
    optimizer: Any,
    modules: Any = None,
    groups: Mapping[str, str | Sequence[str]] | None = None,
    forward: Callable[[nn.Module, Any], Any] = call,
    reinit: Callable[[nn.Module], Any] | str | None = RESET,
    draws: int = DRAWS,
    seed: int = 0,
    precision: str = "float64",
) -> xr.Dataset:
    """How far a step of an optimizer moves the value of every module of a model and its outputs, at learning rate 1.

        S_l = mean square of T_l,   T_l = sum over parameters (dz_l / dW) A,   W moves by -A

    T is the exact first-order change of the value z of a module, by forward derivatives, and A the direction of the
    step: at rate 1 and without weight decay. Every draw takes initial weights and one of the batches. Four scales
    follow, the rates at which a mean square is 1: that of the changes of the layers (learning_rate_scale), of the same
    over the values (relative_), of the last layer's alone (last_) and of the outputs' (output_learning_rate_scale).
    Layers are the modules that are chosen; or else the blocks, whose values carry the stream of a residual model on,
    and the layers outside of blocks, below the head, as `meanfield.step_scales` has them.

    Args:
        model: a function without arguments that makes the model with its initial weights drawn, such as its class; or
            a module, of which copies are taken.
        loss: (outputs, targets) -> the mean over the batch, as `torch.nn.functional.cross_entropy`. A model that
            computes its own loss gives it as a part of its outputs: ``lambda outputs, targets: outputs.loss``.
        batches: pairs (inputs, targets) of tensors, in a list or a loader; draw i takes batch i, from the first again
            behind the last. Inputs in a tuple are given to the model by position, those in a mapping by keyword.
        optimizer: what makes the step:
            a class of `torch.optim`, or a `functools.partial` of one: its first step, epsilon and betas as they are;
            a function from the model to its optimizer, or to a list of several: the same, with parameter groups;
            the optimizer of a module, or a list of several: its next step, from its state (with reinit=None);
            a name ("sgd", "adamw", "lion", "muon", "muon-adamw", ...) or one of `meanfield.optimizers`: the first step
            from rest as `meanfield.step_scales` has it, without epsilon.
            Rates of parameter groups are taken over that of the first group, which is the learning rate.
        modules: which values: names, patterns ("blocks.*") or classes of modules. All leaves if left out, modules
            without others in them. Every call of a module has a value of its own, its tensor, or of several the first
            of floats. The last layer is the last of those that are chosen, otherwise the last block, a module of
            several in an `nn.Sequential` or `nn.ModuleList`, or without blocks the last leaf with parameters; in all
            cases below the outputs.
        groups: labels of groups of parameters, each with names or patterns ("*.bias"), of which it is asked how far
            they move every value alone: {"norms": "*.ln_*", "embedding": "wte.weight"}. A group costs one pass a draw.
        forward: (model, inputs) -> outputs, where the model is called in another way.
        reinit: how weights of a module are drawn: by all its modules' ``reset_parameters``, by a function of the
            module, or not at all (None), so that draws differ by their batches and by dropout alone.
        draws: at least 2; errors come from the spread over draws.
        seed: root of all streams, of PyTorch's own generator; what it draws outside does not change.
        precision: "float64" or "float32", of weights, floats in batches, and passes, whatever the model has.

    Returns:
        Dataset as that of `meanfield.step_scales`, where ``layer`` counts the values in the order in which calls end,
        with coordinates ``module``, their names (#2 behind the second call), and ``kind``, their classes. Attributes:

        - ``last_layer``: which value that is; ``last_mean_square``: its mean square in the first draw;
        - ``counted``: the values that means over layers count;
        - ``block_names``, ``width``: the blocks, and what most matrices have of outputs or output channels;
        - ``skips``: whether the model has skip connections, "yes", "no" or "unknown";
        - ``batch_size``: along the first axis of the first input;
        - ``kept_share``: of a first step of Adam what its epsilon leaves of signs, with a warning where that is less
          than half.

        With groups there is update_energy_of_group over ``group`` and ``layer``, with its _stderr and _largest_share,
        the mean squares of the changes that each makes alone. Dimensionless. A draw costs as much as two to four steps
        of training in the same precision, and singular values under optimizers of matrices; the first one costs about a
        dozen steps more, which look for skip connections.

    Raises:
        TypeError, ValueError: what is no model, batch, loss or optimizer; no parameters; parameters that train and get
            no gradient or that the optimizer has not; a loss that is not finite; modules that are not there, or not
            called; an operation without a forward derivative; a model that draws random numbers elsewhere than in
            PyTorch; weights that cannot be drawn anew; draws in which nothing moves.

    Source: Zhang et al. 2026, eqs. 7 - 9, under the loss and the optimizer of training.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> import meanfield.torch as mft
        >>> def model():
        ...     return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))
        >>> batches = [(torch.randn(32, 8), torch.randint(3, (32,)))]
        >>> scales = mft.step_scales(model, nn.functional.cross_entropy, batches, optimizer=torch.optim.AdamW, draws=4)
        >>> scales.module.values.tolist(), scales.attrs["last_layer"]
        (['0', '1', '2', '3', '4'], '2')
    """
    step = step_of(optimizer, model)
    require_live_weights(step, reinit)
    measured: list[_Draw] = []
    for own, task in tasks(model, loss, batches, forward, reinit, draws, seed, precision):
        measured.append(_measured(own, task, step, chosen(own, modules), grouped(own, groups)))
        if measured[-1].places != measured[0].places:
            raise ValueError("the model calls other modules in some draws than in others; give modules that all call")
    how = {"loss": name_of(loss), "precision": precision, "seed": str(seed), "draws": len(measured)}
    return _dataset(measured, step, how, list(groups or {}))


def require_live_weights(step: Step, reinit: Any) -> None:
    """Raise ValueError where an optimizer's state would meet weights drawn anew."""
    if isinstance(step, LiveStep) and reinit is not None:
        raise ValueError(
            "the state of an optimizer belongs to the weights as they are: give reinit=None beside it, or for a first "
            "step the optimizer's class, such as torch.optim.AdamW"
        )


def tasks(
    model: Any, loss: Any, batches: Any, forward: Any, reinit: Any, draws: Any, seed: Any, precision: Any
) -> Iterator[tuple[nn.Module, Task]]:
    """The model of every draw and what is asked of it, by the arguments of `step_scales`."""
    source, number = ModelSource(model, reinit, precision, checked_seed(seed)), require_draws("draws", draws)
    taken = taken_batches(batches, number, source.seed)
    for draw, own in enumerate(source.models(number)):
        inputs, targets = on_model(taken[draw % len(taken)], own, source.dtype)
        yield own, Task(forward, _loss_of(loss, own, source.dtype), inputs, targets, source.seed, draw)


@dataclass(frozen=True)
class Described:
    """What a dataset says of a model."""

    family: str
    parameters: int
    first_layer: ClassVar[int] = 1

    @classmethod
    def of(cls, model: nn.Module) -> Self:
        """Read a model."""
        return cls(type(model).__name__, sum(parameter.numel() for parameter in trained(model).values()))

    def describe(self) -> dict[str, Any]:
        return {"family": self.family, "parameters": self.parameters}


@dataclass(frozen=True)
class _Draw:
    """The numbers of one draw, over the places that are wanted."""

    places: tuple[str, ...]
    kinds: tuple[str, ...]
    numbers: Mapping[str, Array]
    by_group: Array
    said: Mapping[str, Any]
    model: Described


def _measured(
    model: nn.Module, task: Task, step: Step, modules: list[str] | None, groups: Mapping[str, set[str]]
) -> _Draw:
    """The energies of one draw."""
    asked = set(leaves(model) if modules is None else modules)
    watched = {*leaves(model), *blocks(model), *asked}
    slopes, first = gradients(model, task, watched)
    directions = step.directions(model, slopes, first)
    made = changes(model, task, directions, watched)
    require_agreement(first, made, slopes, directions)
    wanted = [each for each in made.calls if each.module in asked]
    if not wanted:
        raise ValueError("none of the modules is called with a tensor of floats as its value; choose others")
    last, in_blocks = last_layer(model, made, modules), block_calls(model, made)
    counted = wanted if modules is not None else stream_calls(model, made)
    kinds = tuple(type(model.get_submodule(each.module)).__name__ for each in (*wanted, last))
    said: dict[str, Any] = {
        "last_layer": last.place,
        "last_kind": kinds[-1],
        "last_mean_square": float(last.size),
        "counted": " ".join(each.place for each in counted),
        "blocks": len(in_blocks),
        "block_names": " ".join(dict.fromkeys(each.module for each in in_blocks)),
        "width": width_of(model),
        "normalised": normalised(model, made),
        "batch_size": samples_of(task.inputs),
    }
    if task.draw == 0:
        said["skips"] = skips(model, task, first)
    if kept := step.kept(model, slopes):
        said |= {"kept_share": kept[0], "epsilon": kept[1]}
    by_group = [
        changes(model, task, {name: directions[name] for name in names}, {each.module for each in wanted}).calls
        for names in groups.values()
    ]
    return _Draw(
        tuple(each.place for each in wanted),
        kinds[:-1],
        _numbers(wanted, counted, last, made),
        np.array([[float(each.energy) for each in calls] for calls in by_group]),
        said,
        Described.of(model),
    )


def width_of(model: nn.Module) -> int:
    """What most of the trained matrices have of outputs, or of output channels, but for embeddings.

    The largest of several that are as many; 0 without a matrix.
    """
    tables = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    matrices = [
        parameter for parameter in trained(model).values() if parameter.ndim > 1 and id(parameter) not in tables
    ]
    counts = Counter(len(parameter) for parameter in matrices)
    return max(counts, key=lambda outputs: (counts[outputs], outputs), default=0)


def _numbers(wanted: list[Call], counted: list[Call], last: Call, made: Pass) -> dict[str, Array]:
    """Energies of the wanted calls and of those that means count, and of the last layer and outputs as one each."""
    calls, number = [*wanted, *counted, last], len(wanted)
    energies, sizes = (
        torch.stack([getattr(each, name) for each in calls]).cpu().numpy() for name in ("energy", "size")
    )
    if not np.isfinite(energies).all():
        raise OverflowError("changes are outside the range of floats: give weights and inputs of the size of 1")
    shares = np.where((sizes == 0) & (energies > 0), np.nan, relative(energies, sizes))
    return {
        "update_energy": energies[:number],
        "relative_update_energy": shares[:number],
        "counted_update_energy": energies[number:-1],
        "counted_relative_update_energy": shares[number:-1],
        "last_update_energy": shares[-1],
        "output_update_energy": np.array([float(mean_square(made.change))]),
    }


def _dataset(measured: list[_Draw], step: Step, how: Mapping[str, Any], groups: list[str]) -> xr.Dataset:
    values = {name: np.stack([draw.numbers[name] for draw in measured]) for name in measured[0].numbers}
    if not (values["update_energy"].any() or values["output_update_energy"].any()):
        raise ValueError(
            f"nothing moves in any of the {len(measured)} draws, and no rate moves it by 1: the gradients are 0, as "
            "units have died, or inputs are 0; give inputs and initial weights of the size of 1"
        )
    first = measured[0]
    attrs = {"optimizer": step.name, "level": "measured", "torch": torch.__version__, **first.said, **how}
    if shares := [draw.said["kept_share"] for draw in measured if "kept_share" in draw.said]:
        attrs["kept_share"] = fmean(shares)
        warn_unless_kept(attrs["kept_share"], attrs["epsilon"], step.name)
    coords: dict[str, Any] = {"module": ("layer", list(first.places)), "kind": ("layer", list(first.kinds))}
    estimates: dict[str, Any] = dict(update_estimates(values))
    if groups:
        estimates["update_energy_of_group"] = summarise_each(np.stack([draw.by_group for draw in measured]))
        coords["group"] = groups
    return measured_dataset(first.model, estimates, attrs, coords)


def _loss_of(loss: Any, model: nn.Module, dtype: torch.dtype) -> Callable[[Any, Any], torch.Tensor]:
    """The loss in the precision of the passes, where it is a module with numbers of its own."""
    if not callable(loss):
        raise TypeError(f"loss is {loss!r}; give a function (outputs, targets) -> tensor, or a module of torch.nn")
    if isinstance(loss, type):
        raise TypeError(f"loss is the class {loss.__name__}; give one made from it, {loss.__name__}()")
    if not isinstance(loss, nn.Module):
        return loss
    return deepcopy(loss).to(next(model.parameters()).device, dtype)


def name_of(loss: Any) -> str:
    """As datasets call a loss."""
    return getattr(loss, "__name__", type(loss).__name__)


def first_model(
    model: Any, reinit: Any = RESET, precision: str = "float64", seed: int = 0, **_options: Any
) -> tuple[nn.Module, Any]:
    """The model of the first draw of `step_scales` under these options, and what to give there in place of ``model``.

    That is a function which gives this very model first, so that none is made that is not measured.
    """
    shown = next(ModelSource(model, reinit, precision, checked_seed(seed)).models(1))
    if isinstance(model, nn.Module):
        return shown, model
    made = [shown]
    return shown, lambda: made.pop() if made else model()


def require_last(scales: xr.Dataset, of: str) -> None:
    """Raise ValueError where the last layer is what a scale is of and has no size of its own, or does not move."""
    if (
        of == "last"
        and np.isinf(scales["last_learning_rate_scale"])
        and np.isfinite(scales["output_learning_rate_scale"])
    ):
        raise ValueError(
            f"the last layer, {scales.attrs['last_layer']!r}, does not move in the first step, and the outputs do: the "
            "weights behind it start at 0; measure the model behind a step or with a head that does not start at 0"
        )
    if of == "last" and scales["last_learning_rate_scale"].isnull():
        raise ValueError(
            f"the value of the last layer, {scales.attrs['last_layer']!r}, starts at 0, relative to which no change "
            "has a size: choose modules, the last of which is another"
        )


def grouped(model: nn.Module, groups: Any) -> dict[str, set[str]]:
    """The names of the parameters of every group, from patterns of names; no group where none are asked for.

    Raises:
        TypeError, ValueError: what is no mapping to patterns; patterns that fit no parameter that trains.
    """
    if groups is None:
        return {}
    if not isinstance(groups, Mapping):
        raise TypeError(f"groups is {groups!r}; give a mapping from labels to patterns of names of parameters")
    return {str(label): _fitting(model, patterns) for label, patterns in groups.items()}


def _fitting(model: nn.Module, patterns: Any) -> set[str]:
    listed = [patterns] if isinstance(patterns, str) else patterns
    if not isinstance(listed, Sequence) or not all(isinstance(each, str) for each in listed):
        raise TypeError(f"groups has {patterns!r}; give names of parameters, or patterns such as '*.bias'")
    names = set()
    for pattern in listed:
        fitting = {name for name in trained(model) if fnmatchcase(name, pattern)}
        if not fitting:
            raise ValueError(f"no parameter that trains fits {pattern!r}; the model has {named(trained(model))}")
        names |= fitting
    return names
