"""Small nets of several heads, outputs and depths, drawn for the ratio of output to label term."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from meanfield.common import derived_seed
from meanfield.execution import Run
from meanfield.nets import HEADS
from meanfield.simulation import Energies
from meanfield.theory import label_spread
from meanfield.verification import LABEL_SPREAD, share_row
from sims.common.beside import predictions

if TYPE_CHECKING:
    from meanfield.nets import MLP

WIDTH = 256
DEPTHS = (2, 8)
OUTPUTS = (1, 10, WIDTH)
DIMS = ("head", "drawn_outputs", "drawn_depth")


def sweep_runs(net: MLP, draws: int, seed: int, arrays: dict[str, Any]) -> list[Run]:
    """One run for each head, number of outputs and depth; independent of each other, as each has its own seed."""
    runs = []
    for head, outputs, depth in product(HEADS, OUTPUTS, DEPTHS):
        small = replace(net, depth=depth, width=WIDTH, outputs=outputs, head=head)
        own = derived_seed(seed, f"{head} head, {outputs} outputs, depth {depth}")
        runs.append(Run(small, Energies(**arrays), draws, own))
    return runs


def sweep_dataset(runs: list[Run], measured: list[xr.Dataset]) -> xr.Dataset:
    """The rows of all runs over head, outputs and depth."""
    rows = []
    for run, found in zip(runs, measured, strict=True):
        known = xr.Dataset({LABEL_SPREAD: ("layer", label_spread(run.net))})
        beside = xr.merge([found, *predictions(run.net, ("exact",)), known], combine_attrs="override")
        rows.append(share_row(beside))
    shape = (len(HEADS), len(OUTPUTS), len(DEPTHS))
    values = {name: (DIMS, np.array([row[name] for row in rows]).reshape(shape)) for name in rows[0]}
    return xr.Dataset(values, {"head": list(HEADS), "drawn_outputs": list(OUTPUTS), "drawn_depth": list(DEPTHS)})
