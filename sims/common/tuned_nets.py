"""What studies of tuned rates share: options, seeds of nets, scales of one step, losses between rates, checks."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import xarray as xr

from meanfield.common import Array, derived_seed, require_positive
from meanfield.transfer import SCALES, median_over_draws
from meanfield.verification import Check, JudgeOfRun
from sims.common.command import Option, counted, positive
from sims.common.images import MOST_SIDES
from sims.common.tables import MISSING

DATA_OPTIONS = (
    Option(
        "data",
        "digits (default; needs the extra data), mnist, text, or FILE.npz with inputs and labels",
        default="digits",
        metavar="SOURCE",
        group="training",
    ),
    Option(
        "sides",
        f"most pixels along a side of images on grids and in rows (default: {MOST_SIDES}, to which blocks are "
        "averaged: 4 of digits and 7 of MNIST)",
        int,
        MOST_SIDES,
        metavar="N",
        check=counted("pixels along a side of an image", minimum=2),
        group="training",
    ),
    Option("samples", "samples of the data", int, group="training"),
)
SPACING = Option("spacing", "finest steps between rates, in decades", float, 0.25, group="training")
TUNING_SEEDS = Option(
    "tuning_seeds",
    "nets that every rate is tuned on, 2 or more",
    int,
    metavar="S",
    check=counted("one seed has no standard error", minimum=2),
    group="training",
)

WHOLE_CHANNELS = "nets have a channel or more"
# Units or channels of nets that are trained, and by how much a product of two numbers misses a whole one.
WIDEST, ROUNDING = 1_000_000, 1e-9
WIDER = Option(
    "wider", "times so many channels and units (default: 1)", float, 1.0, metavar="M", check=positive(WHOLE_CHANNELS)
)

# Nets that are drawn for the scales of one step.
STEP_DRAWS = 64
# What moves by 1 at the rate that a scale is.
MOVED = {
    "absolute": "layers",
    "relative": "layers, each over its own size,",
    "last": "the last layer over its own size",
    "outputs": "the outputs",
}
# Scales of one step, in the order of the tables.
OF = ("outputs", "relative", "last", "absolute")
# Families of residual nets that are fully connected.
RESIDUAL = ["residual mlp init", "residual mlp multiplier", "residual mlp k=2"]
# Seeds of training are whole numbers of 63 bits.
SEED_BITS = 62


def times_as_wide(written: str, times: float, name: str, size: int) -> int:
    """So many times a size, channels or units, or a ValueError where that is no whole number; as it was written."""
    wider = require_positive(written, times, why=WHOLE_CHANNELS) * size
    if wider > WIDEST or abs(wider - round(wider)) > ROUNDING * wider:
        allowed = f"a whole number up to {WIDEST:,}"
        raise ValueError(f"{written} makes {wider:g} of {name} {size}; give a factor that makes {allowed}")
    return round(wider)


def own_seeds(seed: int, place: str, count: int) -> range:
    """So many seeds of training that no other place has, so that errors of different places are independent."""
    first = derived_seed(seed, place) % 2**SEED_BITS
    return range(first, first + count)


def median_scales(of_step: xr.Dataset, whose: str = "") -> dict[str, float]:
    """The four scales of one step as `step_scales` has them, medians over drawn nets, with their errors."""
    medians = {of: median_over_draws(of_step, name) for of, name in SCALES.items()}
    named = product(medians.items(), enumerate(("", "_stderr")))
    return {f"{whose}{of}_scale{end}": both[which] for (of, both), (which, end) in named}


def mean_scale(of_step: xr.Dataset) -> dict[str, float]:
    """The rate at which the mean over drawn nets of what a step moves the layers by is 1, with its error."""
    return {f"absolute_mean_scale{end}": float(of_step[f"{SCALES['absolute']}{end}"]) for end in ("", "_stderr")}


def decades(at: xr.Dataset) -> str:
    """The error of a tuned rate, as a cell."""
    error = float(at["tuned_rate_log10_stderr"])
    return MISSING if np.isnan(error) else f"{error:.2f}"


def losses_at(log_rates: Sequence[float], losses: xr.DataArray, chance: float) -> Array:
    """Losses of every seed at log10 of some rates, (seed, rate): interpolated between the rates that it was tried at.

    Beyond them they are constant. Losses above that of ``chance`` count as that. ``losses``: (rate, seed), NaN where a
    seed was not tried.
    """
    logs, bounded = np.log10(losses["rate"].values), np.minimum(losses.values, chance)
    tried = [(logs[~np.isnan(of_seed)], of_seed[~np.isnan(of_seed)]) for of_seed in bounded.T]
    return np.array([np.interp(log_rates, *of_seed) for of_seed in tried])


def checks_of_optimizers(
    simulation: str, judge: JudgeOfRun, optimizers: Sequence[str], shared: tuple[str, ...] = ()
) -> tuple[Check, ...]:
    """The judge's checks on a study's runs of these optimizers, of which descent is the one that is not named.

    ``shared``: what all of these runs are told.
    """
    arguments = [() if name == "sgd" else ("--optimizer", name) for name in optimizers]
    return tuple(Check(simulation, judge, (*shared, *of_optimizer)) for of_optimizer in arguments)
