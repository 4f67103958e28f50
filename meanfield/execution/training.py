"""What users call to train nets side by side under many learning rates, or to make the first step of training alone.

The first step says how far it moves a net, and the rates at which it moves it by 1.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.common.validation import require_choice, require_count, unmasked
from meanfield.execution.run import Run, simulate_all, store_in
from meanfield.execution.workers import Workers
from meanfield.nets.net import Net
from meanfield.nets.recognised import require_net
from meanfield.optimizers.base import Optimizer
from meanfield.optimizers.by_name import IN_USE, Hybrid
from meanfield.optimizers.schedules import SCHEDULES, Schedule
from meanfield.simulation.measures.step_scales import StepScales
from meanfield.simulation.training.trained import TrainedLosses, checked_rates, checked_seeds

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How nets train: the options that `meanfield.train` and `meanfield.tuned_rate` share.

    Attributes:
        steps, epochs: how long to train; give one of them. An epoch visits the samples once in a random order, in
            whole mini-batches: the last samples, fewer than a batch, are left out.
        batch_size: samples of a mini-batch; all of them if left out.
        optimizer: "sgd", gradient descent without momentum, or "sgd_momentum", with a momentum of 0.9; another name of
            the library's optimizers, "adamw", "lion", "sophia", "muon", "muon_kimi", "shampoo", "soap" or "sso", with
            its usual momentum ("muon" with the factor sqrt(max(1, n_out / n_in)) of the published program); two of them
            as "muon-adamw", of which the first steps hidden matrices; or an optimizer with settings of its own, such as
            `SGD(0.99)`. "sophia" sums the curvature over all outputs; `Sophia(sampled=True)` takes it at labels that a
            seed keys, as in practice.
        loss: "cross_entropy", -log p of the class; or "squared", |z_out - y|^2 / (2 M) over M outputs; means over
            samples and output sites.
        weight_decay: lambda.
        epsilon: of optimizers that divide by the size of gradients.
        schedule: how the rate goes over the steps: "constant"; "warmup_cosine", linearly up to it over a tenth of the
            steps and by half a cosine down towards 0; or `WarmupCosine` with settings of its own. The rate is the peak.
            Weight decay follows it.
        precision: "float64" or "float32", of weights, values and gradients; losses are summed in double precision.
        backend: "numpy", or "cupy", a CUDA device through CuPy, on which nets train in larger groups; they begin at the
            same weights, and meet the same mini-batches, on both.
        role_factors: role of weights -> "learning_rate", "weight_decay" or "epsilon" -> what multiplies it for these
            weights, as a table of hyperparameters says it (`transfer_hyperparameters` with base values of 1). Rates,
            weight decay and epsilon that are given are then those of the base model. Roles are "input", "hidden",
            "output" and with "_bias" behind; a factor that is left out is 1. Variances and multipliers are the net's
            own.
    """

    steps: int | None = None
    epochs: int | None = None
    batch_size: int | None = None
    optimizer: str | Optimizer | Hybrid = "sgd"
    loss: str = "cross_entropy"
    weight_decay: float = 0.0
    epsilon: float = 1e-8
    schedule: str | Schedule = "constant"
    precision: str = "float64"
    backend: str = "numpy"
    role_factors: Mapping[str, Mapping[str, float]] | None = None

    @classmethod
    def named(cls, options: Mapping[str, Any]) -> Self:
        """Of options by name, or TypeError for a name that is none."""
        known = [field.name for field in fields(cls)]
        for name in options:
            if name not in known:
                raise TypeError(f"{name} is no option of training; choose among {', '.join(known)}")
        return cls(**options)

    @property
    def method(self) -> Optimizer | Hybrid:
        """The optimizer; ValueError for an unknown name."""
        if not isinstance(self.optimizer, str):
            return self.optimizer
        require_choice("optimizer", self.optimizer, IN_USE)
        return IN_USE[self.optimizer]

    @property
    def course(self) -> Schedule:
        """The schedule; ValueError for an unknown name."""
        if not isinstance(self.schedule, str):
            return self.schedule
        require_choice("schedule", self.schedule, SCHEDULES)
        return SCHEDULES[self.schedule]

    def steps_of(self, batches: int) -> int:
        """Steps of training, for so many mini-batches in an epoch."""
        if (self.steps is None) == (self.epochs is None):
            raise ValueError(f"steps is {self.steps} and epochs is {self.epochs}; give one of them, how long to train")
        if self.steps is not None:
            return require_count("steps", self.steps, why="steps of training")
        return batches * require_count("epochs", self.epochs, why="times that every sample is visited")


def with_training_options(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose signature shows `TrainingOptions` by name where it takes ``**options``."""
    own = inspect.signature(function)
    first = [each for each in own.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    named = list(inspect.signature(TrainingOptions).parameters.values())
    function.__signature__ = own.replace(parameters=[*first, *named])  # type: ignore[attr-defined]
    return function


@with_training_options
def train(
    net: Net,
    data: tuple[ArrayLike, ArrayLike],
    *,
    rates: float | Sequence[float],
    seeds: int | Sequence[int] = 1,
    weights: Sequence[ArrayLike] | None = None,
    workers: int | Workers = 1,
    resume_in: Path | None = None,
    **options: Any,
) -> xr.Dataset:
    """Train a net from every seed under every learning rate, and give the losses.

    A step changes every weight by -rate (A + weight_decay W), with A the optimizer's direction; for "sgd" A is the
    gradient of the mini-batch's loss. Under a schedule a step takes its share of the rate. A seed keys the initial
    weights, which have the net's own law, and the order of the mini-batches (and the masks of dropout), so all rates
    meet the same random numbers. No run depends on those beside it, nor on ``workers``.

    Args:
        net: any net or loop; its own number of samples counts for nothing here.
        data: inputs and targets. Inputs are vectors (samples, width), images (samples, channels, *grid) or embedded
            tokens (samples, width, tokens). Targets are whole labels from 0, (samples,), for the cross-entropy, or
            values (samples, outputs) for the squared loss; under a readout with a grid they have that grid behind.
        rates: learning rates of all weights, positive; with ``role_factors``, of the base model.
        seeds: whole numbers; or how many there are, for 0 .. seeds - 1.
        weights: initial weights in place of drawn ones, in the order of `net.weights`, of shapes `net.weight_shapes`.
            Seeds then key the order of the mini-batches alone.
        workers: number of processes, where 1 computes in this one; or `Workers`, for a Dask scheduler.
        resume_in: as for `simulate`, a folder for finished runs.
        options: those of `TrainingOptions`: ``steps``, ``epochs``, ``batch_size``, ``optimizer``, ``loss``,
            ``weight_decay``, ``epsilon``, ``schedule``, ``precision``, ``backend`` and ``role_factors``.

    Returns:
        Dataset over ``rate`` and ``seed``: ``loss``, also over ``step`` = 1, 2, .., of the mini-batch of a step before
        that step; and ``final_loss``, on all samples after the last step (without dropout; under batch normalisation
        the mean over the mini-batches of one more epoch, each normalised by itself). A run that leaves the range of
        floats has infinite losses from there on. One whose units have all died has not: its loss stays where outputs
        are 0, at log M under cross-entropy of M classes. Losses are dimensionless.

    Raises:
        TypeError, ValueError: what is no net, data that do not fit it, labels that it has no output for, a batch larger
            than the data, rates that are not positive and finite, both of steps and epochs or neither, unknown names,
            factors that are negative or lack a role of the net.
        MemoryError: more than the machine has.
        ModuleNotFoundError, OSError: a backend without its library or its device. All before any work.

    Source: Zhang et al. 2026, section 4; Zheng et al. 2026, appendix C, for the optimizers.

    Examples:
        >>> import numpy as np
        >>> import meanfield as mf
        >>> rng = np.random.default_rng(0)
        >>> data = rng.standard_normal((64, 8)), rng.integers(0, 3, 64)
        >>> net = mf.MLP(depth=2, width=16, input_width=8, outputs=3)
        >>> trained = mf.train(net, data, rates=[0.01, 0.1], steps=5, batch_size=16, seeds=2)
        >>> trained["loss"].dims
        ('rate', 'seed', 'step')
    """
    run = training_run(net, data, rates=rates, seeds=seeds, weights=weights, **options)
    return simulate_all([run], workers=workers, store=store_in(resume_in))[0]


def training_run(
    net: Net,
    data: tuple[ArrayLike, ArrayLike],
    *,
    rates: float | Sequence[float],
    seeds: int | Sequence[int] = 1,
    weights: Sequence[ArrayLike] | None = None,
    **options: Any,
) -> Run:
    """What `train` computes, for `simulate_all`; arguments and errors as there."""
    how = TrainingOptions.named(options)
    require_net(net, units=True)
    inputs, targets = checked_pair(data)
    optimizer, samples = how.method, len(inputs)
    size = samples if how.batch_size is None else require_count("batch_size", how.batch_size, maximum=samples)
    measure = TrainedLosses(
        inputs=inputs,
        targets=targets,
        loss=how.loss,
        optimizer=optimizer,
        rates=checked_rates(rates),
        seeds=checked_seeds(range(require_count("seeds", seeds)) if np.ndim(seeds) == 0 else seeds),
        steps=how.steps_of(samples // size),
        batch_size=size,
        start=weights,
        weight_decay=how.weight_decay,
        epsilon=how.epsilon,
        schedule=how.course,
        precision=how.precision,
        backend=how.backend,
        role_factors={} if how.role_factors is None else how.role_factors,
    )
    return Run(net, measure, measure.runs, 0)


def checked_pair(data: Any) -> tuple[Any, Any]:
    """Inputs and targets as arrays, or TypeError, ValueError."""
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise TypeError(f"data is of type {type(data).__name__}; give a pair (inputs, targets) of arrays")
    inputs, targets = (unmasked(name, values) for name, values in zip(("inputs", "targets"), data, strict=True))
    if not inputs.ndim or not len(inputs):
        raise ValueError(f"inputs have shape {inputs.shape}; give one sample or more, (samples, channels, *grid)")
    return inputs, targets


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
