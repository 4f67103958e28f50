"""What studies of tuned rates share: seeds of each net's own, scales of one step in the median net, and who learns."""

from itertools import product

import xarray as xr

from meanfield.common import derived_seed
from meanfield.transfer import SCALES

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
