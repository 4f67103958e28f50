"""What studies of tuned rates share: seeds of each net, scales of one step, who learns, checks by optimizer."""

from collections.abc import Sequence
from itertools import product

import xarray as xr

from meanfield.common import derived_seed
from meanfield.transfer import SCALES
from meanfield.verification import Check, JudgeOfRun

# A net learns where its loss is below so much of that of equal probabilities.
LEARNED = 1 / 3
# Nets that are drawn for the scales of one step.
STEP_DRAWS = 64
# What moves by 1 at the rate that a scale is.
MOVED = {
    "absolute": "layers",
    "relative": "layers, each over its own size,",
    "last": "the last layer over its own size",
    "outputs": "the outputs",
}
MIDDLE = 0.5
# Seeds of training are whole numbers of 63 bits.
SEED_BITS = 62


def own_seeds(seed: int, place: str, count: int) -> range:
    """So many seeds of training that no other place has, so that errors of different places are independent."""
    first = derived_seed(seed, place) % 2**SEED_BITS
    return range(first, first + count)


def median_scales(of_step: xr.Dataset, whose: str = "") -> dict[str, float]:
    """The four scales of one step as `step_scales` has them, medians over drawn nets, with their errors."""
    middle = of_step.sel(quantile=MIDDLE)
    named = product(SCALES.items(), ("", "_stderr"))
    return {f"{whose}{of}_scale{end}": float(middle[f"{name}_quantile{end}"]) for (of, name), end in named}


def checks_of_optimizers(simulation: str, judge: JudgeOfRun, optimizers: Sequence[str]) -> tuple[Check, ...]:
    """The judge's checks on a study's runs of these optimizers, of which descent is the one without arguments."""
    arguments = [() if name == "sgd" else ("--optimizer", name) for name in optimizers]
    return tuple(Check(simulation, judge, of_optimizer) for of_optimizer in arguments)
