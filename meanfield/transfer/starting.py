"""A learning rate to start from, with nothing tuned: by a scale of the optimizer's first step on the data."""

import warnings
from collections.abc import Iterable
from math import exp, hypot, isfinite, log
from pathlib import Path
from typing import Any

import xarray as xr
from numpy.typing import ArrayLike

from meanfield.common.validation import PremiseWarning
from meanfield.execution.training import step_scales
from meanfield.execution.workers import Workers
from meanfield.nets.net import Net
from meanfield.nets.recognised import as_family, require_net
from meanfield.optimizers.base import Optimizer
from meanfield.simulation.step_moves import EpsilonWarning
from meanfield.transfer.medians import median_scale
from meanfield.transfer.premises import NOTABLE
from meanfield.transfer.trials import (
    CALIBRATIONS,
    CONSTANT,
    LONGER,
    SCALES,
    Calibration,
    calibration_of,
    departures,
    misses,
    trial_name,
)

# Standard errors of the median that the interval takes in.
ERRORS_HELD = 2.0
DYING = (
    "a tenth or more of the drawn nets do not move at their first step, as their gradients are 0 and units have died: "
    "their rates have no end, and so has the interval; give a larger width or a smaller depth"
)
WORDS = {
    "rate": "learning rate to start from",
    "low": "lower end of the learning rates to expect",
    "high": "upper end of the learning rates to expect",
}


def starting_rate(
    net: Net,
    data: tuple[ArrayLike, ArrayLike],
    *,
    loss: str = "cross_entropy",
    optimizer: str | Optimizer = "sgd",
    epsilon: float = 0.0,
    batch_size: int | None = None,
    draws: int = 32,
    seed: int = 0,
    workers: int | Workers = 1,
    resume_in: Path | None = None,
) -> xr.Dataset:
    """A learning rate for a net on data under an optimizer, with nothing tuned, and the interval to expect it in.

        rate = median over draws of a scale / c

    The scale is the rate at which the optimizer's first step moves the outputs by 1 (descent, Muon) or the last layer
    by its own size (AdamW, Lion), in mean squares (`step_scales`). The constant c is that of trials of small nets, and
    so is the factor either way that the interval holds. Under AdamW and Lion kinds of nets have constants of their own:
    that of fully-connected nets is six times that of convolutional ones (claim E2). The attributes say which nets,
    data and steps these were. Tune around the rate where you can, and carry what you tuned over depth by
    `transfer_learning_rate`, which needs no constant.

    Args:
        net, data, loss, epsilon, batch_size, draws, seed, workers, resume_in: as for `step_scales`. Take the batch size
            that you will train with.
        optimizer: "sgd" (without momentum), "adamw", "lion" or "muon"; or one of `meanfield.optimizers` of these kinds.

    Returns:
        Dataset of ``rate``, ``low`` and ``high``, with all that `step_scales` gives beside. The interval is the factor
        of the trials and two standard errors of the median, in squares of their logarithms; 0 to infinity where a tenth
        or more of the drawn nets do not move. Attributes: ``scale``, the
        name of the scale, ``scale_over_rate`` c, ``factor``, ``rests_on``, ``premises`` and ``warnings``, which are
        given as a `PremiseWarning`, too.

    Raises:
        TypeError, ValueError: as `step_scales`; an optimizer that no trial has a constant for; nets that no rate moves,
            in half or more of the draws.
        MemoryError, OverflowError: as `step_scales`.

    Source: Zhang et al. 2026, eqs. 7 - 9, under the loss and the optimizer of training; constants by own trials.

    Examples:
        >>> import numpy as np
        >>> import meanfield as mf
        >>> rng = np.random.default_rng(0)
        >>> data = rng.standard_normal((64, 8)), rng.integers(0, 3, 64)
        >>> net = mf.ResidualMLP(depth=3, width=16, stem=1, input_width=8, outputs=3)
        >>> found = mf.starting_rate(net, data, optimizer="adamw", batch_size=16)
        >>> bool(found["low"] < found["rate"] < found["high"]), found.attrs["scale"]
        (True, 'last_learning_rate_scale')
    """
    require_net(net, units=True)
    name = calibrated(trial_name(optimizer))
    spec: Any = as_family(net)
    calibration = calibration_of(spec, name)
    how: dict[str, Any] = {"loss": loss, "epsilon": epsilon, "batch_size": batch_size, "draws": draws, "seed": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EpsilonWarning)  # said below, with what it means here
        scales = step_scales(net, data, optimizer=optimizer, workers=workers, resume_in=resume_in, **how)
    sentences = (softened(scales), *misses(spec, name), *departures(spec, name))
    return with_rate(scales, calibration, premises_of(name, loss), sentences)


def with_rate(
    scales: xr.Dataset, calibration: Calibration, premises: Iterable[str], sentences: Iterable[str]
) -> xr.Dataset:
    """The rate that scales of a first step name by a calibration beside them, as `starting_rate` gives it.

    Args:
        scales: as `step_scales` gives them.
        calibration: that of the net and the optimizer.
        premises: what the rate assumes.
        sentences: what speaks against it, beside what the calibration says and what the scales show; some may be empty.
    """
    median, error = median_scale(scales, SCALES[calibration.of])
    rate, factor = median / calibration.ratio, exp(hypot(log(calibration.factor), ERRORS_HELD * error))
    against = tuple(filter(None, (calibration.warning, "" if isfinite(error) else DYING, *sentences)))
    for sentence in against:
        warnings.warn(sentence, PremiseWarning, stacklevel=3)
    numbers = {"rate": rate, "low": rate / factor, "high": rate * factor}
    variables = {which: ((), number, {"long_name": WORDS[which], "units": "1"}) for which, number in numbers.items()}
    described = {
        "scale": SCALES[calibration.of],
        "scale_over_rate": calibration.ratio,
        "factor": calibration.factor,
        "rests_on": calibration.trials,
        "premises": "; ".join(premises),
        "warnings": "; ".join(against),
    }
    return scales.assign(variables).assign_attrs(described)


def named_rate(scales: xr.Dataset, net: Net, optimizer: str | Optimizer) -> tuple[float, float]:
    """The rate that the scales of a first step name, with nothing tuned, and the relative error of their median.

    Args:
        scales: as `step_scales` gives them for the net.
        optimizer: as for `starting_rate`.

    Raises:
        ValueError: an optimizer that no trial has a constant for; nets that half or more of which no rate moves.
    """
    calibration = calibration_of(net, calibrated(trial_name(optimizer)))
    median, error = median_scale(scales, SCALES[calibration.of])
    return median / calibration.ratio, error


def softened(scales: xr.Dataset) -> str:
    """That epsilon changes the first step, as the constants are those of steps that it leaves alone; empty if not."""
    share = scales.attrs.get("kept_share", 1.0)
    if share * NOTABLE > 1:
        return ""
    return (
        f"epsilon {scales.attrs['epsilon']:g} leaves {share:.2g} of the signs of the first step, the mean of "
        "|G| / (|G| + epsilon): gradients are not far above it, and the constant is that of steps that epsilon leaves "
        "alone"
    )


def calibrated(name: str) -> str:
    """The name of an optimizer (`trial_name`), or a ValueError where no trial has a constant for it."""
    if name not in CALIBRATIONS:
        raise ValueError(
            f"no trial has a constant for {name}: there are starting rates for {', '.join(map(repr, CALIBRATIONS))}, "
            "for 'sgd' without momentum alone; take one of these, or `meanfield.tuned_rate`"
        )
    return name


def premises_of(name: str, loss: str) -> tuple[str, ...]:
    """What a starting rate under an optimizer of `CALIBRATIONS` assumes."""
    kind = {"sgd": "descent without momentum", "muon": "Muon with momentum 0.95"}.get(
        name, f"{name} at its usual betas"
    )
    trained = () if loss == "cross_entropy" else (f"the trials were of cross-entropy; this loss is {loss}",)
    return (
        f"nets of the size of those of the trials, trained by {kind}, without weight decay",
        CONSTANT,
        "inputs of mean 0 and variance 1",
        *trained,
        LONGER,
    )
