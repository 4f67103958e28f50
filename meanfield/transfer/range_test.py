"""The learning-rate finder: one run whose rate grows until training diverges, and the rates that its losses suggest."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.common.validation import Array, PremiseWarning, require_count, require_positive
from meanfield.execution.run import Run, simulate_all, store_in
from meanfield.execution.training import training_run
from meanfield.execution.workers import Workers
from meanfield.nets.net import Net
from meanfield.optimizers.base import Optimizer
from meanfield.optimizers.by_name import Hybrid
from meanfield.optimizers.schedules import Exponential
from meanfield.transfer.starting import trial_name
from meanfield.transfer.trials import FINDERS

# As torch-lr-finder has them: the weight of a new loss in the smoothed one; how many times the least smoothed loss is
# divergence; and the first and the last steps, where the steepest descent is not looked for.
SMOOTHING, DIVERGED, SKIPPED_FIRST, SKIPPED_LAST = 0.05, 5.0, 10, 5
# A slope takes two losses.
FEWEST_STEPS = SKIPPED_FIRST + SKIPPED_LAST + 2
# A suggestion below the rate of the least smoothed loss, which is at the edge of divergence.
BELOW = 10.0
WORDS = {
    "tested_rate": "learning rate of a step",
    "loss": "loss on the mini-batch of a step, before the step",
    "smoothed_loss": "exponentially smoothed loss",
    "seed_steepest_rate": "rate at which the smoothed loss of one seed falls most steeply",
    "seed_tenth_rate": "a tenth of the rate at which the smoothed loss of one seed is least",
    "steepest_rate": "median over seeds of the rate of steepest descent",
    "tenth_rate": "median over seeds of a tenth of the rate of the least smoothed loss",
}


@dataclass(frozen=True)
class RangeTest:
    """The rates that a range test goes through; as `range_test` has them by default, which are torch-lr-finder's.

    Attributes:
        steps: of the whole range. ``low``, ``high``: learning rates of the first and the last of them.
    """

    steps: int = 100
    low: float = 1e-7
    high: float = 10.0

    def run(self, net: Net, data: tuple[ArrayLike, ArrayLike], **options: Any) -> Run:
        """The training under these rates, for `simulate_all`; ``options``: of `train`, seeds among them."""
        return training_run(net, data, rates=self.high, steps=self.steps, schedule=self._schedule, **options)

    def suggested(self, trained: xr.Dataset) -> xr.Dataset:
        """What the losses of that training suggest, as `range_test` returns it."""
        losses = trained["loss"].sel(rate=self.high, drop=True)
        return _read(losses, self.high * self._schedule.shares(self.steps))

    @property
    def _schedule(self) -> Exponential:
        return Exponential(self.low / self.high)


def range_test(
    net: Net,
    data: tuple[ArrayLike, ArrayLike],
    *,
    seeds: int | Sequence[int] = 4,
    steps: int = 100,
    low: float = 1e-7,
    high: float = 10.0,
    batch_size: int | None = None,
    optimizer: str | Optimizer | Hybrid = "sgd",
    loss: str = "cross_entropy",
    weight_decay: float = 0.0,
    epsilon: float = 1e-8,
    precision: str = "float64",
    backend: str = "numpy",
    workers: int | Workers = 1,
    resume_in: Path | None = None,
) -> xr.Dataset:
    """Learning rates that a range test suggests: the learning-rate finder of PyTorch's users.

    From every seed a net trains once, while its rate grows from ``low`` to ``high`` by one factor a step. Losses of the
    mini-batches are smoothed, s <- 0.05 C + 0.95 s, and the test ends at the first step where s exceeds five times the
    least s before. Two rates are suggested: that of the steepest descent of s from step to step, without the first ten
    steps and the last five, and a tenth of that of the least s.

    These are the rules of torch-lr-finder; the tenth is that of fastai, which smooths and stops a little otherwise. A
    smoothed loss lags by about twenty steps, so that both rates depend on how many there are. After a divergence from
    which the loss comes back, the steepest descent may be that way back: look at the losses.

    In small residual nets that learn (claim E2c) both rules were off the tuned rate by a factor of 7 or more under
    AdamW, on average, where one step was off by 1.2; under descent a tenth of the least was by 1.7, one step by 1.4.

    Args:
        net, data: as for `train`.
        seeds: of initial weights and mini-batches; or how many.
        steps: of the whole range, at least 17.
        low, high: learning rates of the first and the last step.
        batch_size, optimizer, loss, weight_decay, epsilon, precision, backend: as for `train`.
        workers, resume_in: as for `train`.

    Returns:
        Dataset of ``tested_rate`` over ``step``; ``loss`` and ``smoothed_loss`` over ``seed`` and ``step``, NaN once
        the test of a seed has ended; ``seed_steepest_rate`` and ``seed_tenth_rate``, NaN where the smoothed loss never
        falls or, of the steepest, fewer than 17 steps were taken; and ``steepest_rate`` and ``tenth_rate``, their
        medians (of logarithms) over the seeds that have one. Attribute ``diverged``: the seeds whose test has ended by
        divergence. A tenth of ``high`` means that the loss still fell there.

    Warns:
        PremiseWarning: under AdamW, where range tests were far from tuned rates.

    Raises:
        TypeError, ValueError, MemoryError: as `train`; fewer steps than 17, rates that do not grow.

    Source: Smith 2017, section 3.3, with an exponential in place of a linear range.

    Examples:
        >>> import numpy as np
        >>> import meanfield as mf
        >>> rng = np.random.default_rng(0)
        >>> data = rng.standard_normal((64, 8)), rng.integers(0, 3, 64)
        >>> net = mf.MLP(depth=2, width=16, input_width=8, outputs=3)
        >>> found = mf.range_test(net, data, batch_size=16)
        >>> bool(1e-7 < found["steepest_rate"] < 10), found["smoothed_loss"].dims
        (True, ('seed', 'step'))
    """
    why = f"the first {SKIPPED_FIRST} and the last {SKIPPED_LAST} are left out, and a slope takes two more"
    steps = require_count("steps", steps, minimum=FEWEST_STEPS, why=why)
    low, high = (
        require_positive(name, rate, why="it is a learning rate") for name, rate in (("low", low), ("high", high))
    )
    if not 0 < low / high < 1:
        raise ValueError(f"low is {low:g} and high is {high:g}; the rate grows by a factor: low / high lies in (0, 1)")
    if known := FINDERS.get(trial_name(optimizer)):
        warnings.warn(known, PremiseWarning, stacklevel=2)
    test = RangeTest(steps, low, high)
    run = test.run(
        net,
        data,
        seeds=seeds,
        batch_size=batch_size,
        optimizer=optimizer,
        loss=loss,
        weight_decay=weight_decay,
        epsilon=epsilon,
        precision=precision,
        backend=backend,
    )
    (trained,) = simulate_all([run], workers=workers, store=store_in(resume_in))
    tested = test.suggested(trained)
    if missing := [name for name in ("steepest_rate", "tenth_rate") if np.isnan(tested[name])]:
        warnings.warn(
            f"no seed has a {' or a '.join(missing)}: from {low:g} to {high:g} the smoothed loss does not fall, or "
            f"training diverges within {FEWEST_STEPS} steps; try another low and high, or more steps",
            RuntimeWarning,
            stacklevel=2,
        )
    return tested.assign_attrs(trained.attrs | tested.attrs)


def _read(losses: xr.DataArray, rates: Array) -> xr.Dataset:
    """What the losses (S, T) of a test at these rates (T,) say."""
    smoothed = _smoothed(losses.values)
    over = smoothed > DIVERGED * np.minimum.accumulate(smoothed, axis=1)
    tested = np.cumsum(over, axis=1) <= over  # up to the first that is over, which is the last
    kept = [of_seed[there] for of_seed, there in zip(smoothed, tested, strict=True)]
    values: dict[str, tuple[str | tuple[str, ...], Any]] = {
        "tested_rate": ("step", rates),
        "loss": (("seed", "step"), np.where(tested, losses.values, np.nan)),
        "smoothed_loss": (("seed", "step"), np.where(tested, smoothed, np.nan)),
    }
    for name, suggested in (("steepest_rate", _steepest), ("tenth_rate", _tenth)):
        of_seeds = np.array([suggested(of_seed, rates) for of_seed in kept])
        values |= {f"seed_{name}": ("seed", of_seeds), name: ((), _median(of_seeds))}
    labelled = {name: (*value, {"long_name": WORDS[name], "units": "1"}) for name, value in values.items()}
    return xr.Dataset(labelled, losses.coords, {"diverged": int(over.any(axis=1).sum())})


def _smoothed(losses: Array) -> Array:
    """s <- s + 0.05 (C - s) of every row, from the first loss on, which leaves a loss that stays to the bit."""
    rows = [losses[:, 0]]
    with np.errstate(invalid="ignore"):  # beyond an infinite loss, where the test has ended
        for loss in losses.T[1:]:
            rows.append(rows[-1] + SMOOTHING * (loss - rows[-1]))
    return np.stack(rows, axis=1)


def _steepest(smoothed: Array, rates: Array) -> float:
    """The rate at which the smoothed loss of one seed falls most steeply; NaN where it does not fall."""
    if len(smoothed) < FEWEST_STEPS:
        return float("nan")
    with np.errstate(invalid="ignore"):  # a net whose outputs are infinite from the start falls nowhere
        slopes = np.gradient(smoothed[SKIPPED_FIRST:-SKIPPED_LAST])
    steepest = int(np.argmin(slopes))
    return float(rates[SKIPPED_FIRST + steepest]) if slopes[steepest] < 0 else float("nan")


def _tenth(smoothed: Array, rates: Array) -> float:
    """A tenth of the rate at which the smoothed loss of one seed is least; NaN where it never falls."""
    least = int(np.argmin(smoothed))
    return float(rates[least] / BELOW) if smoothed[least] < smoothed[0] else float("nan")


def _median(rates: Array) -> float:
    """The median of the logarithms of those that are numbers; NaN where none is."""
    logs = np.log(rates[np.isfinite(rates)])
    return float(np.exp(np.median(logs))) if len(logs) else float("nan")
