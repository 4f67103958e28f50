"""Two passes of a batch through a model: the gradient of its loss, and how all values move with its parameters.

    reverse    G = dL/dW                          of all parameters that train
    forward    T = sum over parameters dz/dW A    of the value z of every call of a module, by dual numbers

Values are squared as they are made and let go, so that no pass holds more than a step of training does. Both passes
start from the same buffers and random numbers, which makes masks of dropout the same, and take attention as products
of matrices: fused attention has no forward derivative.
"""

import sys
import warnings
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.autograd import forward_ad
from torch.nn.attention import SDPBackend, sdpa_kernel

from meanfield.torch.models import named, seeded, tensors_of, trained

# How far two passes of one batch, and two ways to the change of its loss, may differ by rounding.
SAME_VALUE = {torch.float64: 1e-9, torch.float32: 1e-4}
SAME_CHANGE = {torch.float64: 1e-5, torch.float32: 1e-2}
HALF = (torch.float16, torch.bfloat16)
# In place of a mean square that is not taken.
NONE = torch.tensor(torch.nan)
# The outputs are looked for among the values of so many calls that ended last.
LAST_ENDED = 8


# Adds hooks of its own to a model, for as long as a pass forward lasts.
Watching = Callable[[nn.Module, ExitStack], None]


class LossNotFinite(ValueError):
    """The loss of a batch is infinite or NaN."""


@dataclass(frozen=True)
class Task:
    """A batch, what a model makes of it, and the loss of that.

    Attributes:
        forward: (model, inputs) -> outputs.
        loss: (outputs, targets) -> a number.
        inputs, targets: where the model is, in its precision.
        seed, draw: of the random numbers in the passes.
    """

    forward: Callable[[nn.Module, Any], Any]
    loss: Callable[[Any, Any], Any]
    inputs: Any
    targets: Any
    seed: int
    draw: int


@dataclass(frozen=True)
class Call:
    """One call of a module.

    Attributes:
        module: its name.
        place: the same, with #2, #3, ... at later calls of the same module.
        elements: of its value.
        energy, size: mean squares of the change of the value, and of the value itself; NaN where nothing moves.
    """

    module: str
    place: str
    elements: int
    energy: torch.Tensor
    size: torch.Tensor


@dataclass(frozen=True)
class Pass:
    """What a forward pass makes.

    Attributes:
        calls: of the modules that are watched, in the order in which they end.
        outputs, change: what the model makes of the batch, as its first tensor of floats, and the change of that.
        outputs_at: the numbers of the calls whose values the outputs are.
        loss, loss_change: the loss and its change.
    """

    calls: list[Call]
    outputs: torch.Tensor
    change: torch.Tensor
    outputs_at: frozenset[int]
    loss: torch.Tensor
    loss_change: torch.Tensor


def gradients(
    model: nn.Module, task: Task, watched: Collection[str], also: Watching | None = None
) -> tuple[dict[str, torch.Tensor], Pass]:
    """The gradient of the loss by every parameter that trains, by name, and the calls of the watched modules.

    ``also``: hooks besides, in the pass forward.

    Raises:
        LossNotFinite: a loss that is not.
        TypeError, ValueError: a loss that is no number, or that no parameter moves; parameters without a gradient;
            outputs that are no tensor of floats.
    """
    parameters = trained(model)
    _forget_gradients(parameters)
    with _same_start(model, task), torch.enable_grad():
        made = _run(model, task, watched, [], moves=False, also=also)
        _require_loss(made.loss)
        made.loss.backward()
    if missing := [name for name, parameter in parameters.items() if parameter.grad is None]:
        raise ValueError(
            f"the loss gives no gradient to the parameters {named(missing)}: freeze those that a step leaves as they "
            "are (requires_grad_(False)), or take a batch and a loss that reach them"
        )
    slopes = {name: parameter.grad.to_dense() for name, parameter in parameters.items() if parameter.grad is not None}
    _forget_gradients(parameters)
    return slopes, made


def outputs_of(model: nn.Module, task: Task) -> torch.Tensor:
    """The outputs of a model, from which backward passes may start.

    Raises:
        TypeError, ValueError: outputs of several tensors; a loss as for `gradients`.
    """
    with _same_start(model, task), torch.enable_grad():
        outputs = task.forward(model, task.inputs)
        if not isinstance(outputs, torch.Tensor):
            raise TypeError(
                f"the outputs are a {type(outputs).__name__}; a curvature is that of one tensor of them: give forward, "
                "which takes it, such as lambda model, inputs: model(**inputs)['logits'], and a loss of it and targets"
            )
        _require_loss(task.loss(outputs, task.targets))
    return outputs


def reaches(model: nn.Module, task: Task, source: str, silenced: Collection[str]) -> bool | None:
    """Whether the outputs depend on what a module gives, with others silenced, which give 0 whatever they read.

    None where that cannot be told: what a module gives is no tensor, numbers are not finite, or the model refuses the
    zeros, as by an assertion or an operation that needs others.
    """
    moved: list[torch.Tensor] = []

    def marked(_module: nn.Module, _inputs: Any, made: torch.Tensor) -> torch.Tensor:
        moved.append(torch.zeros_like(made, requires_grad=True))
        return made.detach() + moved[-1]

    def silent(_module: nn.Module, _inputs: Any, made: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(made)

    with _same_start(model, task), torch.enable_grad(), ExitStack() as hooks:
        hooks.callback(model.get_submodule(source).register_forward_hook(marked).remove)
        for name in silenced:
            hooks.callback(model.get_submodule(name).register_forward_hook(silent).remove)
        try:
            value = value_of(task.forward(model, task.inputs))
            assert value is not None  # `gradients` has refused other outputs
            slopes = torch.autograd.grad(value, moved, torch.randn_like(value), allow_unused=True)
        except Exception:  # a model's own, on numbers that it would never meet
            return None
    made = [slope for slope in slopes if slope is not None]
    if not (moved and torch.isfinite(value).all() and all(torch.isfinite(slope).all() for slope in made)):
        return None
    return any(bool(slope.any()) for slope in made)


def _forget_gradients(parameters: Mapping[str, nn.Parameter]) -> None:
    for parameter in parameters.values():
        parameter.grad = None


def _require_loss(loss: torch.Tensor) -> None:
    if loss.numel() != 1:
        raise ValueError(f"the loss has shape {tuple(loss.shape)}; give one number, as the mean over the batch")
    if not torch.isfinite(loss).all():
        raise LossNotFinite(
            f"the loss is {loss.item()} at initial weights; give inputs and weights of which it is finite"
        )
    if not loss.requires_grad:
        raise ValueError("no parameter that trains moves the loss; give the loss of the outputs of the model")


def changes(model: nn.Module, task: Task, directions: Mapping[str, torch.Tensor], watched: Collection[str]) -> Pass:
    """How the values of watched modules, the outputs and the loss change as parameters move along directions.

    Those without a direction stay.

    Raises:
        ValueError: an operation without a forward derivative.
    """
    stack: list[str] = []
    with _same_start(model, task), torch.no_grad(), forward_ad.dual_level(), _moving(model, directions):
        try:
            return _run(model, task, watched, stack, moves=True)
        except (NotImplementedError, RuntimeError) as error:
            if not any(words in str(error) for words in ("forward AD", "forward mode AD")):
                raise
            where = f"module {stack[-1]!r}" if any(stack) else "the model"
            raise ValueError(
                f"{where} has an operation without a forward derivative ({str(error).splitlines()[0]}); write it by "
                "operations that have one, and give use_reentrant=False to checkpoints"
            ) from error


def require_agreement(
    first: Pass, second: Pass, slopes: Mapping[str, torch.Tensor], directions: Mapping[str, torch.Tensor]
) -> None:
    """Raise ValueError unless both passes make the same values, and forward derivatives are those of the gradient."""
    dtype = next(iter(slopes.values())).dtype
    for before, after in ((first.outputs, second.outputs), (first.loss, second.loss)):
        if not torch.allclose(before, after, rtol=SAME_VALUE[dtype], atol=SAME_VALUE[dtype], equal_nan=True):
            raise ValueError(
                "two passes of one batch differ: the model draws random numbers elsewhere than in PyTorch, or keeps a "
                "state that is no buffer; make it the same function at every call"
            )
    products = [(slopes[name] * directions[name]).double() for name in slopes]
    expected, size = (float(sum(each.sum() for each in terms)) for terms in (products, map(torch.abs, products)))
    change = float(second.loss_change)
    if abs(change - expected) > SAME_CHANGE[dtype] * size:
        raise ValueError(
            f"the loss changes by {change:.6g} by forward derivatives and by {expected:.6g} by the gradient, as an "
            "operation hides parameters from one of them: checkpoints with use_reentrant=True (give False), copies of "
            "parameters, or functions of their own derivative"
        )


def _run(
    model: nn.Module,
    task: Task,
    watched: Collection[str],
    stack: list[str],
    moves: bool,
    also: Watching | None = None,
) -> Pass:
    """Run a batch through a model and watch its modules; on ``stack`` are those that have begun and not ended."""
    watcher = _Watcher(set(watched), stack, moves)
    with ExitStack() as hooks:
        for name, module in model.named_modules():
            hooks.callback(module.register_forward_pre_hook(watcher.begun(name), prepend=True).remove)
            hooks.callback(module.register_forward_hook(watcher.ended(name)).remove)
        if also:
            also(model, hooks)
        made = task.forward(model, task.inputs)
        value = value_of(made)
        if value is None:
            raise TypeError(f"the outputs are a {type(made).__name__} without a tensor of floats; give such a tensor")
        if value.dtype in HALF:
            raise ValueError(
                f"the outputs are in {value.dtype}, which holds no exact change: the model lowers its precision itself"
            )
        outputs_at = frozenset(
            number
            for number, other in watcher.last
            if value.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
            and value.numel() == other.numel()  # the same numbers in memory, in whatever shape
        )
        loss = task.loss(made, task.targets)
    if not isinstance(loss, torch.Tensor):
        raise TypeError(f"the loss is a {type(loss).__name__}; give a function (outputs, targets) -> tensor")
    (outputs, change), (loss, loss_change) = _parted(value), _parted(loss)
    return Pass(watcher.calls, outputs.detach(), change.detach(), outputs_at, loss, loss_change.detach())


class _Watcher:
    """Lists the calls of watched modules as they end, with the mean squares of their values where these move."""

    def __init__(self, watched: Collection[str], stack: list[str], squares: bool) -> None:
        self.calls: list[Call] = []
        self.last: deque[tuple[int, torch.Tensor]] = deque(maxlen=LAST_ENDED)
        self._watched, self._stack, self._squares, self._times = watched, stack, squares, Counter[str]()

    def begun(self, name: str) -> Callable[..., None]:
        """What a module of this name does before a call."""
        return lambda *_: self._stack.append(name)

    def ended(self, name: str) -> Callable[..., None]:
        """What it does behind a call, with its value."""

        def end(_module: nn.Module, _inputs: Any, made: Any) -> None:
            self._stack.pop()
            value = value_of(made) if name in self._watched else None
            if value is not None:
                self._add(name, value)

        return end

    def _add(self, name: str, value: torch.Tensor) -> None:
        self._times[name] += 1
        place = name if self._times[name] == 1 else f"{name}#{self._times[name]}"
        self.last.append((len(self.calls), value))
        squares = (mean_square(each.detach()) for each in reversed(_parted(value))) if self._squares else (NONE, NONE)
        self.calls.append(Call(name, place, value.numel(), *squares))


def mean_square(values: torch.Tensor) -> torch.Tensor:
    """Over all elements, in double precision."""
    return values.double().square().mean()


def value_of(made: Any) -> torch.Tensor | None:
    """What a module makes: its tensor, or of several in tuples and mappings the first of floats that is no number."""
    return next((each for each in tensors_of(made) if each.is_floating_point() and each.dim() > 0), None)


def _parted(value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A value and its change, which is 0 where nothing moves it."""
    primal, tangent = forward_ad.unpack_dual(value)
    return primal, torch.zeros_like(primal) if tangent is None else tangent


@contextmanager
def _same_start(model: nn.Module, task: Task) -> Iterator[None]:
    """A pass that starts from the same numbers as any other of this task, on copies of the buffers."""
    device = next(model.parameters()).device.type
    # What is compiled runs as it is written; the compiler, which takes seconds to load, is there where something is.
    eager = torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else nullcontext()
    held = [(module, dict(module._buffers)) for module in model.modules()]
    copies = {id(buffer): buffer.clone() for buffer in model.buffers()}
    for module, buffers in held:
        module._buffers.update({name: copies[id(each)] for name, each in buffers.items() if each is not None})
    try:
        with (
            seeded(task.seed, "torch passes", task.draw),
            sdpa_kernel(SDPBackend.MATH),
            torch.autocast(device, enabled=False),
            eager,
        ):
            yield
    finally:
        for module, buffers in held:
            module._buffers.update(buffers)


@contextmanager
def _moving(model: nn.Module, directions: Mapping[str, torch.Tensor]) -> Iterator[None]:
    """Parameters as dual numbers, at all places of a tied one; the modules take them for parameters.

    Without that mark a list of parameters would copy each that is taken from a slice of it, and lose its change.
    """
    duals: dict[int, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of PyTorch's own parts, which the first dual number loads
        for name, parameter in trained(model).items():
            if name in directions:
                duals[id(parameter)] = dual = forward_ad.make_dual(parameter.detach(), directions[name])
                dual._is_param = True
    held = [
        (module, name, parameter)
        for module in model.modules()
        for name, parameter in module._parameters.items()
        if parameter is not None and id(parameter) in duals
    ]
    try:
        for module, name, parameter in held:
            setattr(module, name, duals[id(parameter)])
        yield
    finally:
        for module, name, parameter in held:
            setattr(module, name, parameter)
