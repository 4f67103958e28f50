"""How far the first step of training on data moves a net, and the rates at which it moves it by 1."""

from pathlib import Path
from typing import Any

import xarray as xr
from numpy.typing import ArrayLike

from meanfield.execution.run import Run, simulate_all, store_in
from meanfield.execution.training import checked_pair
from meanfield.execution.workers import Workers
from meanfield.nets.net import Net
from meanfield.nets.recognised import require_net
from meanfield.optimizers.base import Optimizer
from meanfield.optimizers.by_name import Hybrid
from meanfield.simulation.measures.step_scales import StepScales


def step_scales(
    net: Net,
    data: tuple[ArrayLike, ArrayLike],
    *,
    loss: str = "cross_entropy",
    optimizer: str | Optimizer | Hybrid = "sgd",
    epsilon: float = 0.0,
    batch_size: int | None = None,
    draws: int = 32,
    seed: int = 0,
    precision: str = "float64",
    backend: str = "numpy",
    workers: int | Workers = 1,
    resume_in: Path | None = None,
) -> xr.Dataset:
    """How far the first step of an optimizer on data moves every layer and the outputs, at learning rate 1.

    Every draw takes initial weights by the net's own law and a mini-batch of the data, and makes the step that training
    makes first, to first order in its rate and without weight decay. Four scales follow, the rates at which a mean
    square is 1: that of the layers' changes (learning_rate_scale), of the same over the layers' values (relative_), of
    the last layer's alone (last_) and of the outputs' (output_learning_rate_scale).

    Args:
        net: any net or loop; its own number of samples counts for nothing here.
        data: inputs and targets, as for `train`.
        loss: "cross_entropy" or "squared".
        optimizer, epsilon: as for `one_step`: a name, of the first step from rest without momentum, or one of
            `meanfield.optimizers`.
        batch_size: samples of a mini-batch; all of them if left out.
        draws: at least 2; errors come from the spread over draws.
        seed: root of all streams.
        precision: "float64" or "float32", of weights and passes.
        backend: where the passes run, "numpy", or "cupy", a CUDA device; draw i is the same net and batch on both.
        workers, resume_in: as for `simulate`.

    Returns:
        Dataset over ``layer``: update_energy S_l and relative_update_energy S_l / c_l, with output_update_energy,
        mean_update_energy and the four scales, each with NAME_stderr and NAME_largest_share, and NAME_quantile over
        draws of all but mean_update_energy. Means are made by rare nets where energies scatter much: the quantile 0.5,
        the median, is what a net meets. Dimensionless; `meanfield.QUANTITIES` has how they scale with width and depth.

    Raises:
        TypeError, ValueError: what is no net, data that do not fit it, labels that it has no output for, a batch larger
            than the data, unknown names, an optimizer without a first step from rest, an epsilon that it has not.
        MemoryError: more than the machine has.
        ModuleNotFoundError, OSError: a backend without its library or its device. All before any work.
        ValueError: nets that do not move in any draw, as their gradients are 0. A scale is infinite where some move.
        OverflowError: changes outside the range of floats.

    Source: Zhang et al. 2026, eqs. 7 - 9, under the loss and the optimizer of training.

    Examples:
        >>> import numpy as np
        >>> import meanfield as mf
        >>> rng = np.random.default_rng(0)
        >>> data = rng.standard_normal((64, 8)), rng.integers(0, 3, 64)
        >>> net = mf.MLP(depth=3, width=16, input_width=8, outputs=3)
        >>> scales = mf.step_scales(net, data, optimizer="adamw", batch_size=16, draws=8)
        >>> scales["relative_update_energy"].dims, scales["output_learning_rate_scale"].dims
        (('layer',), ())
    """
    run = scales_run(
        net,
        data,
        draws=draws,
        seed=seed,
        loss=loss,
        optimizer=optimizer,
        epsilon=epsilon,
        batch_size=batch_size,
        precision=precision,
        backend=backend,
    )
    scales = simulate_all([run], workers=workers, store=store_in(resume_in))[0]
    if not (scales["update_energy"].any() or scales["output_update_energy"].any()):
        raise ValueError(f"nothing moves in any of the {draws} draws, and no rate moves it by 1: {_why(run.measure)}")
    return scales


def _why(measure: Any) -> str:
    """Why all gradients of all draws are 0."""
    if not measure.inputs.any():
        return "all inputs are 0, and so are the gradients; give inputs of the size of 1"
    return (
        "the gradients are 0, as units have died, or too small for floats; give a larger width, a smaller depth, or "
        "inputs and initial weights of the size of 1"
    )


def scales_run(net: Net, data: tuple[ArrayLike, ArrayLike], *, draws: int, seed: int, **options: Any) -> Run:
    """What `step_scales` computes, for `simulate_all`; arguments and errors as there."""
    require_net(net, units=True)
    inputs, targets = checked_pair(data)
    return Run(net, StepScales(inputs=inputs, targets=targets, **options), draws, seed)
