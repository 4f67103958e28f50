"""What studies of tuned rates share: seeds of nets, scales of one step, losses between rates, checks by optimizer."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import xarray as xr

from meanfield.common import Array, derived_seed
from meanfield.transfer import SCALES, median_over_draws
from meanfield.verification import Check, JudgeOfRun

# Nets that are drawn for the scales of one step.
STEP_DRAWS = 64
# What moves by 1 at the rate that a scale is.
MOVED = {
    "absolute": "layers",
    "relative": "layers, each over its own size,",
    "last": "the last layer over its own size",
    "outputs": "the outputs",
}
# Seeds of training are whole numbers of 63 bits.
SEED_BITS = 62


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


def losses_at(log_rates: Sequence[float], losses: xr.DataArray, chance: float) -> Array:
    """Losses of every seed at log10 of some rates, (seed, rate): interpolated between the rates that it was tried at.

    Beyond them they are constant. Losses above that of ``chance`` count as that. ``losses``: (rate, seed), NaN where a
    seed was not tried.
    """
    logs, bounded = np.log10(losses["rate"].values), np.minimum(losses.values, chance)
    tried = [(logs[~np.isnan(of_seed)], of_seed[~np.isnan(of_seed)]) for of_seed in bounded.T]
    return np.array([np.interp(log_rates, *of_seed) for of_seed in tried])


def checks_of_optimizers(simulation: str, judge: JudgeOfRun, optimizers: Sequence[str]) -> tuple[Check, ...]:
    """The judge's checks on a study's runs of these optimizers, of which descent is the one without arguments."""
    arguments = [() if name == "sgd" else ("--optimizer", name) for name in optimizers]
    return tuple(Check(simulation, judge, of_optimizer) for of_optimizer in arguments)
