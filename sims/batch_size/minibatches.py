"""The mini-batch identity in numbers: every batch of a small population, and batches sampled from a larger one."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from meanfield.nets import MLP
from meanfield.simulation import all_batches, drawn_population, random_batches

# Populations out of which batches are enumerated and sampled, sizes of those, and how many are sampled.
ENUMERATED, SAMPLED = 4, 64
SIZES, DRAWN_BATCHES = (1, 4, 16, 64), 256
DRAWINGS = {"with replacement": True, "without": False}


def identity(seed: int) -> xr.Dataset:
    """P0 eq. 25: relative gaps of enumerated batches with and without its 1/B, and energies of sampled ones."""
    return xr.merge([enumerated(seed), sampled(seed)])


def enumerated(seed: int) -> xr.Dataset:
    """Largest gap over pairs of units, relative to the largest second moment, by drawing and batch size."""
    population = drawn_population(MLP(depth=3, width=8, outputs=2), ENUMERATED, seed)
    sizes = range(1, ENUMERATED + 1)
    gaps = np.empty((2, len(DRAWINGS), len(sizes)))
    for (row, replacement), size in product(enumerate(DRAWINGS.values()), sizes):
        moment = population.second_moment(all_batches(ENUMERATED, size, replacement=replacement))
        square, correction = population.identity(size, replacement=replacement)
        missing = moment - square
        found = [np.abs(gap).max() / np.abs(moment).max() for gap in (missing - correction, missing)]
        gaps[:, row, size - 1] = found
    dims = ("drawing", "enumerated_batch")
    variables = {"enumerated_gap": (dims, gaps[0]), "uncorrected_gap": (dims, gaps[1])}
    return xr.Dataset(variables, {"drawing": list(DRAWINGS), "enumerated_batch": list(sizes)})


def sampled(seed: int) -> xr.Dataset:
    """Mean square change of the top layer over sampled batches, beside the identity and its limit."""
    population = drawn_population(MLP(depth=4, width=64, outputs=2), SAMPLED, seed)
    rows = []
    for size in SIZES:
        batches = random_batches(SAMPLED, size, DRAWN_BATCHES, seed)
        energy = np.array([np.square(population.change(batch)).mean() for batch in batches])
        square, correction = (np.trace(part) / len(part) for part in population.identity(size))
        rows.append([energy.mean(), energy.std(ddof=1) / np.sqrt(DRAWN_BATCHES), square + correction, square])
    names = ("sampled_energy", "sampled_energy_stderr", "sampled_energy_identity", "sampled_energy_limit")
    columns = zip(names, np.array(rows).T, strict=True)
    variables: dict[str, Any] = {name: ("sampled_batch", column) for name, column in columns}
    return xr.Dataset(variables, {"sampled_batch": list(SIZES)})
