"""The direction A of a step at learning rate 1 and without weight decay: W moves by -A.

Of an optimizer of PyTorch it is what the optimizer does, on copies. Of the optimizers that the library knows by name it
is their first step from rest, a function of the gradient alone (`meanfield.optimizers.first_steps`).
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from meanfield.common.validation import Array
from meanfield.optimizers import FIRST_STEPS, Gradient, Hybrid, Optimizer, Place
from meanfield.optimizers.base import NoStep
from meanfield.optimizers.first_steps import GRADIENT, SIGN, SMALL_STEP, FirstStep
from meanfield.optimizers.linear_algebra import dense
from meanfield.torch.models import named, trained
from meanfield.torch.parts import head, weighted_leaves
from meanfield.torch.passes import Pass
from meanfield.transfer.starting import trial_name

# Of a vector of parameters, gradients below so many rounding errors of the largest in the model are 0: where terms
# cancel, as those of a bias below a normalisation, they leave rounding errors, and these have signs, too.
NOISE = 64
# Weights of these keep their outputs in columns.
COLUMNS_OF_OUTPUTS = (nn.Embedding, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
# The learning rate at which optimizers of PyTorch make their step. Some, as Adafactor, have an upper limit to it, and
# far smaller steps would be lost in rounding errors of the weights.
STEP_RATE = 2.0**-10
# Those that divide a gradient by the root of its second moments without bias.
ADAM = (torch.optim.Adam, torch.optim.AdamW)
# The momentum of SGD in trials.
TRIAL_MOMENTUM = 0.9
# As `meanfield.transfer.starting` calls the optimizers of PyTorch whose first step is that of these.
TRIAL_NAMES = {"SGD": "sgd", "Adam": "adamw", "AdamW": "adamw", "Lion": "lion", "Muon": "muon"}


@dataclass(frozen=True)
class Stepped:
    """One parameter behind the step of its optimizer, in double precision.

    Attributes:
        weights: as they are then.
        rate: the learning rate of its group over that of the first group.
        optimizer: the class of what stepped it.
        group, state: what the optimizer has of it then.
    """

    weights: torch.Tensor
    rate: float
    optimizer: type[torch.optim.Optimizer]
    group: Mapping[str, Any]
    state: Mapping[str, Any]


class Step(ABC):
    """What makes a step of a model, called ``name`` by reports."""

    name: str

    @abstractmethod
    def directions(self, model: nn.Module, slopes: Mapping[str, torch.Tensor], made: Pass) -> dict[str, Any]:
        """A of every parameter that trains, from its gradient and the pass that made this."""

    @abstractmethod
    def trial_name(self, model: nn.Module) -> str:
        """The name under which trials may know the optimizer."""

    def kept(self, model: nn.Module, slopes: Mapping[str, torch.Tensor]) -> tuple[float, float] | None:
        """What epsilon leaves of signs, the mean of |G| / (|G| + epsilon) over elements with a gradient, and epsilon.

        Of several epsilons it is the first. None where the step is no first step by signs.
        """
        return None


def step_of(optimizer: Any, model: Any) -> Step:
    """The step of what stands for an optimizer (`step_scales`), of the model that is given.

    Raises:
        TypeError, ValueError: what stands for none, unknown names, steps that need more than the gradient.
    """
    if isinstance(optimizer, str | Optimizer | Hybrid):
        return NamedStep(FirstStep(optimizer))
    if optimizers := _optimizers(optimizer):
        return LiveStep(optimizers, model)
    made_by = optimizer.func if isinstance(optimizer, partial) else optimizer
    if inspect.isclass(made_by) and issubclass(made_by, torch.optim.Optimizer):
        return MadeStep(made_by.__name__, lambda own: optimizer(list(trained(own).values())))
    if callable(optimizer) and not inspect.isclass(optimizer):
        return MadeStep("", optimizer)
    raise TypeError(
        f"optimizer is {optimizer!r}; give a class of torch.optim, a function that makes the optimizer of a model, the "
        f"optimizer of this model itself, or a name, one of {', '.join(map(repr, FIRST_STEPS))}"
    )


def _optimizers(given: Any) -> list[torch.optim.Optimizer]:
    """Optimizers of PyTorch, one or a list of several; none where there are others."""
    listed = list(given) if isinstance(given, tuple | list) else [given]
    return listed if all(isinstance(each, torch.optim.Optimizer) for each in listed) else []


class NamedStep(Step):
    """The first step from rest of one of the library's optimizers."""

    def __init__(self, step: FirstStep) -> None:
        self.name, self._step = step.name, step
        for role in ("hidden", "output"):
            if step.method_of(role).curved:
                raise ValueError(f"{step.name} divides by the curvature of the loss; take an optimizer that needs none")

    def trial_name(self, model: nn.Module) -> str:
        return trial_name(self._step.optimizer)

    def directions(self, model: nn.Module, slopes: Mapping[str, torch.Tensor], made: Pass) -> dict[str, Any]:
        largest = max(float(slope.abs().max()) for slope in slopes.values())
        roles, directions = roles_of(model, made), {}
        for name, parameter in trained(model).items():
            slope = slopes[name]
            if parameter.dim() < 2:
                noise = NOISE * torch.finfo(slope.dtype).eps * largest
                slope = torch.where(slope.abs() <= noise, torch.zeros_like(slope), slope)
            form = self._step.form_of(roles[name])
            if form in (GRADIENT, SIGN):
                directions[name] = slope if form == GRADIENT else slope.sign()
            else:
                directions[name] = self._of_matrix(model, name, roles[name], slope)
        return directions

    def _of_matrix(self, model: nn.Module, name: str, role: str, slope: torch.Tensor) -> torch.Tensor:
        owner, weights = model.get_submodule(name.rpartition(".")[0]), trained(model)[name].detach()
        matrices = (_as_matrix(each, owner).cpu().numpy() for each in (slope, weights))
        return _from_matrix(torch.as_tensor(self._direction(name, role, *matrices)).to(slope), slope, owner)

    def _direction(self, name: str, role: str, slope: Array, weights: Array) -> Array:
        try:
            place = Place(weights, SMALL_STEP)
            return np.asarray(dense(self._step.method_of(role).step(None, Gradient(slope), place)[0]))
        except NoStep as error:
            raise ValueError(f"{self.name} has no first step from rest at {name!r}: {error}") from error


def roles_of(model: nn.Module, made: Pass) -> dict[str, str]:
    """The roles of parameters as `Net.role_of` has them: what reads the inputs, what makes the outputs, or hidden.

    Tables of embeddings, and parameters that stand beside modules as positions do, read the inputs; vectors are biases.
    """
    weighted = (
        name
        for name in weighted_leaves(model, made.calls)
        if any(parameter.dim() > 1 for parameter in model.get_submodule(name).parameters())
    )
    first, last, roles = next(weighted, None), head(model, made), {}
    for name, parameter in trained(model).items():
        owner_name = name.rpartition(".")[0]
        owner, role = model.get_submodule(owner_name), "hidden"
        is_beside = any(True for _ in owner.children()) and (not owner_name or parameter.shape[:1] == (1,))
        if isinstance(owner, nn.Embedding) or is_beside or owner_name == first:
            role = "input"
        elif owner_name == last:
            role = "output"
        roles[name] = f"{role}_bias" if parameter.dim() < 2 else role
    return roles


def _as_matrix(values: torch.Tensor, owner: nn.Module) -> torch.Tensor:
    """(outputs, inputs and taps) of a parameter; a column of a vector."""
    turned = values.transpose(0, 1) if isinstance(owner, COLUMNS_OF_OUTPUTS) and values.dim() > 1 else values
    return turned.reshape(turned.shape[0] if turned.dim() else 1, -1)


def _from_matrix(matrix: torch.Tensor, like: torch.Tensor, owner: nn.Module) -> torch.Tensor:
    if isinstance(owner, COLUMNS_OF_OUTPUTS) and like.dim() > 1:
        return matrix.reshape(like.transpose(0, 1).shape).transpose(0, 1)
    return matrix.reshape(like.shape)


class StepOfPyTorch(Step):
    """A step that optimizers of PyTorch make."""

    @abstractmethod
    def stepped(self, model: nn.Module, slopes: Mapping[str, torch.Tensor]) -> dict[str, Stepped]:
        """Every parameter that trains behind a step from its gradient; model and optimizers stay as they are."""

    def directions(self, model: nn.Module, slopes: Mapping[str, torch.Tensor], made: Pass) -> dict[str, Any]:
        behind = self.stepped(model, slopes)
        return {
            name: ((parameter.detach().double() - behind[name].weights) / STEP_RATE).to(parameter.dtype)
            for name, parameter in trained(model).items()
        }


class MadeStep(StepOfPyTorch):
    """The first step of optimizers of PyTorch, which are made anew for every model.

    Args:
        name: of the class, or empty where a function makes them.
        make: from a model to its optimizer, or to a list of several.
    """

    def __init__(self, name: str, make: Callable[[nn.Module], Any]) -> None:
        self.name, self._make = name, make

    def trial_name(self, model: nn.Module) -> str:
        return _trial_name(self.made(model))

    def stepped(self, model: nn.Module, slopes: Mapping[str, torch.Tensor]) -> dict[str, Stepped]:
        parameters = trained(model)
        before = {name: parameter.data for name, parameter in parameters.items()}
        for name, parameter in parameters.items():
            parameter.data = before[name].to(torch.float64, copy=True)
            parameter.grad = slopes[name].double()
        optimizers = self.made(model)
        self.name = self.name or _names(optimizers)
        require_all_stepped(parameters, optimizers)
        _step(optimizers)
        behind = _behind(optimizers, {id(parameter): name for name, parameter in parameters.items()})
        for name, parameter in parameters.items():
            parameter.grad, parameter.data = None, before[name]
        return behind

    def kept(self, model: nn.Module, slopes: Mapping[str, torch.Tensor]) -> tuple[float, float] | None:
        names = {id(parameter): name for name, parameter in trained(model).items()}
        shares, epsilons = [], []
        for optimizer in self.made(model):
            for group in optimizer.param_groups if isinstance(optimizer, ADAM) else ():
                epsilons.append(float(group["eps"]))
                sizes = [slopes[names[id(parameter)]].double().abs().flatten() for parameter in group["params"]]
                shares += [each[each > 0] / (each[each > 0] + epsilons[-1]) for each in sizes]
        return (float(torch.cat(shares).mean()), epsilons[0]) if sum(map(len, shares)) else None

    def made(self, model: nn.Module) -> list[torch.optim.Optimizer]:
        """The optimizers of a model."""
        made = self._make(model)
        if not (optimizers := _optimizers(made)):
            raise TypeError(
                f"the function made {type(made).__name__}; give one from a model to its torch.optim optimizer"
            )
        return optimizers


class LiveStep(StepOfPyTorch):
    """The next step of the optimizers of a module, from the state that they have."""

    def __init__(self, optimizers: list[torch.optim.Optimizer], model: Any) -> None:
        self.name, self._optimizers = _names(optimizers), optimizers
        if not isinstance(model, nn.Module):
            raise TypeError(
                "an optimizer is given that steps the parameters of one model: give its class, such as "
                "torch.optim.AdamW, or a function from the model to its optimizer; or this model, to go on from its "
                "state"
            )
        require_all_stepped(trained(model), optimizers)
        self._names = {id(parameter): name for name, parameter in trained(model).items()}

    def trial_name(self, model: nn.Module) -> str:
        return _trial_name(self._optimizers)

    def stepped(self, model: nn.Module, slopes: Mapping[str, torch.Tensor]) -> dict[str, Stepped]:
        """By copies of the optimizers."""
        copies, parameters, names = deepcopy(self._optimizers), trained(model), {}
        for own, copied in zip(_parameters(self._optimizers), _parameters(copies), strict=True):
            copied.grad = None
            if (name := self._names.get(id(own))) is not None:
                names[id(copied)] = name
                copied.data = parameters[name].detach().to(torch.float64, copy=True)
                copied.grad = slopes[name].double()
        for state in (state for optimizer in copies for state in optimizer.state.values()):
            tensors = {key: value for key, value in state.items() if isinstance(value, torch.Tensor) and key != "step"}
            state.update({key: value.double() for key, value in tensors.items() if value.is_floating_point()})
        _step(copies)
        return _behind(copies, names)


def _behind(optimizers: Sequence[torch.optim.Optimizer], names: Mapping[int, str]) -> dict[str, Stepped]:
    """The parameters of these names, by identity, after a step of `STEP_RATE`."""
    return {
        names[id(parameter)]: Stepped(
            parameter.detach(),
            float(group["lr"]) / STEP_RATE,
            type(optimizer),
            group,
            optimizer.state.get(parameter, {}),
        )
        for optimizer in optimizers
        for group in optimizer.param_groups
        for parameter in group["params"]
        if id(parameter) in names
    }


def _step(optimizers: Sequence[torch.optim.Optimizer]) -> None:
    """Make a step of learning rate `STEP_RATE` without weight decay; groups keep their rates over that of the first.

    The step is that of the class: a scheduler puts another in its place, which steps the optimizer that it was of.
    """
    rates = [
        float(group.get("initial_lr", group["lr"])) for optimizer in optimizers for group in optimizer.param_groups
    ]
    if not rates[0] > 0:
        raise ValueError(
            "the learning rate of the first parameter group is 0, over which those of all groups are taken"
        )
    for group, rate in zip((group for each in optimizers for group in each.param_groups), rates, strict=True):
        relative = STEP_RATE * rate / rates[0]
        group["lr"] = torch.full_like(group["lr"], relative) if isinstance(group["lr"], torch.Tensor) else relative
        if "weight_decay" in group:
            group["weight_decay"] = 0.0
    require_one_gradient(optimizers)
    for optimizer in optimizers:
        type(optimizer).step(optimizer)


def require_one_gradient(optimizers: Iterable[torch.optim.Optimizer]) -> None:
    """Raise ValueError where a step takes the gradients of several places."""
    for optimizer in optimizers:
        if inspect.signature(type(optimizer).step).parameters["closure"].default is inspect.Parameter.empty:
            raise ValueError(f"a step of {type(optimizer).__name__} takes several gradients; give one that takes one")


def _parameters(optimizers: Sequence[torch.optim.Optimizer]) -> Iterator[nn.Parameter]:
    return (each for optimizer in optimizers for group in optimizer.param_groups for each in group["params"])


def require_all_stepped(parameters: Mapping[str, nn.Parameter], optimizers: Sequence[torch.optim.Optimizer]) -> None:
    """Raise ValueError unless each parameter is one of an optimizer's."""
    stepped = {id(parameter) for parameter in _parameters(optimizers)}
    if missing := [name for name, parameter in parameters.items() if id(parameter) not in stepped]:
        raise ValueError(
            f"no group of the optimizer has the parameters {named(missing)}, which train: add them, or freeze them "
            "(requires_grad_(False))"
        )


def _names(optimizers: Sequence[torch.optim.Optimizer]) -> str:
    return " and ".join(type(each).__name__ for each in optimizers)


def _trial_name(optimizers: Sequence[torch.optim.Optimizer]) -> str:
    """The name of the trials, of Muon beside AdamW at one rate, too; their own where there are none."""
    name, groups = _names(optimizers), optimizers[0].param_groups
    kinds = {TRIAL_NAMES.get(type(each).__name__) for each in optimizers}
    if kinds == {"muon", "adamw"} and len({group["lr"] for each in optimizers for group in each.param_groups}) == 1:
        return "muon-adamw"
    if name == "SGD" and any(group["momentum"] for group in groups):
        as_in_trials = {"momentum": TRIAL_MOMENTUM, "dampening": 0, "nesterov": False}
        is_known = all(group[each] == value for group in groups for each, value in as_in_trials.items())
        return "sgd_momentum" if is_known else "SGD with momentum"
    return TRIAL_NAMES.get(name, name)
