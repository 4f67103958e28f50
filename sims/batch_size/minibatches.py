"""The mini-batch identity in numbers: every batch of a small population, and batches sampled from a larger one."""

from itertools import product

import numpy as np
import xarray as xr

from meanfield.nets import MLP
from meanfield.simulation import all_batches, drawn_population, random_batches
from sims.common.datasets import Axes, over

# Populations out of which batches are enumerated and sampled, sizes of those, and how many are sampled.
ENUMERATED, SAMPLED = 4, 64
SIZES, DRAWN_BATCHES = (1, 4, 16, 64), 256
DRAWINGS = {"with replacement": True, "without": False}


def identity(seed: int) -> xr.Dataset:
    """Zhang et al. 2026, eq. 25: gaps of enumerated batches with and without its 1/B, and energies of sampled ones."""
    return xr.merge([enumerated(seed), sampled(seed)])


def enumerated(seed: int) -> xr.Dataset:
    """Largest gap over pairs of units, relative to the largest second moment, by drawing and batch size."""
    population = drawn_population(MLP(depth=3, width=8, outputs=2), ENUMERATED, seed)
    axes: Axes = {"drawing": list(DRAWINGS), "enumerated_batch": list(range(1, ENUMERATED + 1))}
    rows = []
    for drawing, size in product(*axes.values()):
        replacement = DRAWINGS[drawing]
        moment = population.second_moment(all_batches(ENUMERATED, size, replacement=replacement))
        square, correction = population.identity(size, replacement=replacement)
        gaps = {"enumerated_gap": moment - square - correction, "uncorrected_gap": moment - square}
        rows.append({name: np.abs(gap).max() / np.abs(moment).max() for name, gap in gaps.items()})
    return over(axes, rows)


def sampled(seed: int) -> xr.Dataset:
    """Mean square change of the top layer over sampled batches, beside the identity and its limit."""
    population = drawn_population(MLP(depth=4, width=64, outputs=2), SAMPLED, seed)
    rows = []
    for size in SIZES:
        batches = random_batches(SAMPLED, size, DRAWN_BATCHES, seed)
        energy = np.array([np.square(population.change(batch)).mean() for batch in batches])
        square, correction = (np.trace(part) / len(part) for part in population.identity(size))
        drawn = {"": energy.mean(), "_stderr": energy.std(ddof=1) / np.sqrt(DRAWN_BATCHES)}
        expected = {"_identity": square + correction, "_limit": square}
        rows.append({f"sampled_energy{end}": number for end, number in (drawn | expected).items()})
    return over({"sampled_batch": list(SIZES)}, rows)
