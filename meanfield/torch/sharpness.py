"""The learning rate at which steps on a batch are just stable, of a PyTorch model.

Under an optimizer that divides every gradient by a number p of its own, and has momentum beta, steps on a parabola of
curvature H are stable where H in units of p has eigenvalues below a number:

    rate < factor / lambda_max(p^(-1/2) H p^(-1/2))

    SGD             p = 1,                  factor 2 (1 + beta)
    Adam, AdamW     p = sqrt(v) + epsilon,  factor 2 (1 + beta_1) / (1 - beta_1)   (v: second moments without bias)
    RMSprop         p = sqrt(v) + epsilon,  factor 2 (1 + beta)

Source: Cohen et al. 2021, appendix B (momentum); Cohen et al. 2022, section 2 (Adam, RMSprop).
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
import xarray as xr
from scipy.sparse.linalg import LinearOperator, eigsh
from torch import nn

from meanfield.common.estimates import DrawStatistic, Estimate, Means, quantiles, summarise
from meanfield.common.seeds import stream
from meanfield.common.validation import Array
from meanfield.optimizers.by_name import IN_USE
from meanfield.optimizers.elementwise import SGD
from meanfield.quantities.registry import SHARES, measured_dataset
from meanfield.simulation.training.sharpness import stable_limit
from meanfield.torch.models import RESET, call, trained
from meanfield.torch.passes import Task, changes, gradients, outputs_of
from meanfield.torch.scales import DRAWS, Described, name_of, require_live_weights, tasks
from meanfield.torch.steps import ADAM, NamedStep, Step, StepOfPyTorch, Stepped, step_of

# Relative residual at which an eigenvalue is known, as for `meanfield.stable_rate`.
TOLERANCE = 1e-6
TAKES = "take 'sgd', 'sgd_momentum', or SGD, Adam, AdamW or RMSprop of torch.optim"


def stable_rate(
    model: nn.Module | Callable[[], nn.Module],
    loss: Callable[[Any, Any], torch.Tensor],
    batches: Iterable[tuple[Any, Any]],
    *,
    optimizer: Any = "sgd",
    forward: Callable[[nn.Module, Any], Any] = call,
    reinit: Callable[[nn.Module], Any] | str | None = RESET,
    draws: int = DRAWS,
    seed: int = 0,
    precision: str = "float64",
) -> xr.Dataset:
    """The rate above which steps on a batch leave a quadratic minimum: 2 / lambda_max under gradient descent.

    lambda_max is the largest eigenvalue of the Gauss-Newton matrix J^T H J, with J the derivative of the outputs with
    respect to all parameters that train and H the loss's second derivative with respect to the outputs. It is found by
    Lanczos iterations, each of a forward derivative and a backward pass; some tens of them make a draw.
    Adaptive optimizers measure the curvature in units of their second moments, and momentum moves the limit.

    Args:
        optimizer: "sgd", "sgd_momentum" (0.9), or SGD, Adam, AdamW or RMSprop of `torch.optim`, as `step_scales` takes
            them. From rest second moments are those of one gradient, in which weights of small gradients count for
            much: take the optimizer of a model in training (with reinit=None) where this matters.
        model, loss, batches, forward, reinit, draws, seed, precision: as for `step_scales`; the outputs are one tensor,
            which ``forward`` takes of those of a model that gives several, or its own loss.

    Returns:
        Dataset of ``sharpness`` (lambda_max) and ``stable_rate`` (2 / lambda_max, or the optimizer's factor over it)
        as that of `meanfield.stable_rate`: means over draws with NAME_stderr and NAME_largest_share, and
        ``stable_rate_quantile``. Dimensionless.

    Raises:
        TypeError, ValueError: as `step_scales`; outputs of several tensors; a loss without curvature in some draw; an
            optimizer of another kind, or one whose groups differ in momentum.

    Source: docs/theory.md section 21; Cohen et al. 2021 and 2022 for momentum and second moments.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> import meanfield.torch as mft
        >>> def model():
        ...     return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
        >>> batches = [(torch.randn(16, 8), torch.randint(3, (16,)))]
        >>> found = mft.stable_rate(model, nn.functional.cross_entropy, batches, draws=2)
        >>> found["stable_rate_quantile"].dims
        ('quantile',)
    """
    step = step_of(optimizer, model)
    require_live_weights(step, reinit)
    sharpness: list[float] = []
    rates: list[float] = []
    for own, task in tasks(model, loss, batches, forward, reinit, draws, seed, precision):
        shown = Described.of(own)
        divisors, factor = _divisors(step, own, task)
        sharpness.append(_largest(own, task, divisors))
        if not sharpness[-1] > 0:
            raise ValueError(
                f"the loss has no curvature in draw {task.draw}, so that every rate is stable: units have died, or the "
                "loss is linear in the outputs"
            )
        rates.append(factor / sharpness[-1])
    estimates: dict[str, Estimate | Means | DrawStatistic] = {
        "sharpness": summarise(np.array(sharpness)[:, None]),
        "stable_rate": summarise(np.array(rates)[:, None]),
        "stable_rate_quantile": quantiles(np.array(rates), np.array(SHARES)),
    }
    how = {"optimizer": step.name, "loss": name_of(loss), "precision": precision, "seed": str(seed), "draws": draws}
    return measured_dataset(shown, estimates, {"level": "measured", "torch": torch.__version__, **how})


def _divisors(step: Step, model: nn.Module, task: Task) -> tuple[dict[str, torch.Tensor], float]:
    """p of every parameter, over its group's learning rate, and the factor of the limit."""
    parameters = trained(model)
    if isinstance(step, NamedStep) and isinstance(named := IN_USE.get(step.name), SGD):
        ones = {name: torch.ones_like(parameter) for name, parameter in parameters.items()}
        return ones, stable_limit(named.momentum, averages=False)
    if not isinstance(step, StepOfPyTorch):
        raise ValueError(f"no limit of stable rates is known of {step.name}; {TAKES}")
    slopes, _ = gradients(model, task, ())
    behind = step.stepped(model, slopes)
    factors = {_factor(each) for each in behind.values()}
    if len(factors) > 1:
        raise ValueError(f"groups of {step.name} differ in momentum, so that no limit of stable rates is known")
    divisors = {name: (_root_of_moments(each) / each.rate).to(parameters[name]) for name, each in behind.items()}
    return divisors, factors.pop()


def _factor(behind: Stepped) -> float:
    """By which a stable rate times lambda_max is limited."""
    group = behind.group
    if issubclass(behind.optimizer, ADAM):
        return stable_limit(float(group["betas"][0]), averages=True)
    if not issubclass(behind.optimizer, torch.optim.SGD | torch.optim.RMSprop):
        raise ValueError(f"no limit of stable rates is known of {behind.optimizer.__name__}; {TAKES}")
    if group.get("nesterov") or group.get("dampening") or group.get("centered"):
        raise ValueError("no limit is taken of nesterov, dampening or centered: leave them out")
    return stable_limit(group["momentum"], averages=False)


def _root_of_moments(behind: Stepped) -> torch.Tensor:
    """What a gradient is divided by."""
    group, state = behind.group, behind.state
    if issubclass(behind.optimizer, torch.optim.SGD):
        return torch.ones_like(behind.weights)
    if issubclass(behind.optimizer, torch.optim.RMSprop):
        return state["square_avg"].sqrt() + group["eps"]
    moments = state["max_exp_avg_sq" if group["amsgrad"] else "exp_avg_sq"]
    return (moments / (1 - group["betas"][1] ** float(state["step"]))).sqrt() + group["eps"]


def _largest(model: nn.Module, task: Task, divisors: dict[str, torch.Tensor]) -> float:
    """The largest eigenvalue of p^(-1/2) J^T H J p^(-1/2), by products with vectors of all parameters."""
    parameters, outputs = trained(model), outputs_of(model, task)
    curved = _curvature(task, outputs.detach())
    sizes = [parameter.numel() for parameter in parameters.values()]
    unit = {name: divisors[name].rsqrt() for name in parameters}

    def times(vector: Array) -> Array:
        parts = torch.as_tensor(vector).to(outputs).split(sizes)
        directions = {
            name: part.reshape(parameter.shape) * unit[name]
            for part, (name, parameter) in zip(parts, parameters.items(), strict=True)
        }
        errors = curved(changes(model, task, directions, ()).change)
        slopes = torch.autograd.grad(outputs, list(parameters.values()), errors, retain_graph=True)
        scaled = (slope * unit[name] for name, slope in zip(parameters, slopes, strict=True))
        return torch.cat([slope.reshape(-1) for slope in scaled]).double().cpu().numpy()

    start = stream(task.seed, "curvature", task.draw).standard_normal(sum(sizes))
    if not times(start).any():
        return 0.0
    operator = LinearOperator((len(start), len(start)), matvec=times, dtype=np.float64)
    return float(eigsh(operator, k=1, which="LA", v0=start, tol=TOLERANCE, return_eigenvectors=False)[0])


def _curvature(task: Task, outputs: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """H as a function of a change of the outputs."""
    outputs.requires_grad_()
    (slope,) = torch.autograd.grad(task.loss(outputs, task.targets), outputs, create_graph=True)
    if not slope.requires_grad:
        return torch.zeros_like
    return lambda change: torch.autograd.grad(slope, outputs, change, retain_graph=True)[0]
