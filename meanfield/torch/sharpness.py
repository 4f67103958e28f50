"""The learning rate at which gradient descent on a batch is just stable, of a PyTorch model."""

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
from meanfield.quantities.registry import SHARES, measured_dataset
from meanfield.torch.models import RESET, call, trained
from meanfield.torch.passes import Task, changes, outputs_of
from meanfield.torch.scales import DRAWS, Described, name_of, tasks

# Relative residual at which an eigenvalue is known, as for `meanfield.stable_rate`.
TOLERANCE = 1e-6


def stable_rate(
    model: nn.Module | Callable[[], nn.Module],
    loss: Callable[[Any, Any], torch.Tensor],
    batches: Iterable[tuple[Any, Any]],
    *,
    forward: Callable[[nn.Module, Any], Any] = call,
    reinit: Callable[[nn.Module], Any] | str | None = RESET,
    draws: int = DRAWS,
    seed: int = 0,
    precision: str = "float64",
) -> xr.Dataset:
    """2 / lambda_max of a PyTorch model: the rate above which gradient descent on a batch leaves a quadratic minimum.

    lambda_max is the largest eigenvalue of the Gauss-Newton matrix J^T H J, with J the derivative of the outputs with
    respect to all parameters that train and H the loss's second derivative with respect to the outputs. It is found by
    Lanczos iterations, each of a forward derivative and a backward pass; some tens of them make a draw.

    Args:
        model, loss, batches, forward, reinit, draws, seed, precision: as for `step_scales`; the outputs are one tensor.

    Returns:
        Dataset of ``sharpness`` (lambda_max) and ``stable_rate`` (2 / lambda_max) as that of `meanfield.stable_rate`:
        means over draws with NAME_stderr and NAME_largest_share, and ``stable_rate_quantile``. Dimensionless.

    Raises:
        TypeError, ValueError: as `step_scales`; outputs of several tensors; a loss without curvature in some draw.

    Source: docs/theory.md section 21.

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
    sharpness: list[float] = []
    for own, task in tasks(model, loss, batches, forward, reinit, draws, seed, precision):
        shown = Described.of(own)
        sharpness.append(_largest(own, task))
        if not sharpness[-1] > 0:
            raise ValueError(
                f"the loss has no curvature in draw {task.draw}, so that every rate is stable: units have died, or the "
                "loss is linear in the outputs"
            )
    largest = np.array(sharpness)
    estimates: dict[str, Estimate | Means | DrawStatistic] = {
        "sharpness": summarise(largest[:, None]),
        "stable_rate": summarise(2 / largest[:, None]),
        "stable_rate_quantile": quantiles(2 / largest, np.array(SHARES)),
    }
    how = {"loss": name_of(loss), "precision": precision, "seed": str(seed), "draws": len(largest)}
    return measured_dataset(shown, estimates, {"level": "measured", "torch": torch.__version__, **how})


def _largest(model: nn.Module, task: Task) -> float:
    """The largest eigenvalue of J^T H J, by products with vectors of all parameters."""
    parameters, outputs = trained(model), outputs_of(model, task)
    curved = _curvature(task, outputs.detach())
    sizes = [parameter.numel() for parameter in parameters.values()]

    def times(vector: Array) -> Array:
        parts = torch.as_tensor(vector).to(outputs).split(sizes)
        directions = {
            name: part.reshape(parameter.shape)
            for part, (name, parameter) in zip(parts, parameters.items(), strict=True)
        }
        errors = curved(changes(model, task, directions, ()).change)
        slopes = torch.autograd.grad(outputs, list(parameters.values()), errors, retain_graph=True)
        return torch.cat([slope.reshape(-1) for slope in slopes]).double().cpu().numpy()

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
