"""`BlockRun`: first updates or several steps of nets of blocks, draw by draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from meanfield.execution.chunks import Chunk, Pieces, plan
from meanfield.execution.draws import Draws
from meanfield.memory import NUMBER_BYTES, require_bytes
from meanfield.nets.block_net import BlockNet
from meanfield.quantities import QUANTITIES
from meanfield.validation import require_choice

# What a step costs per element of a matrix and per matrix, in operations of a large matrix product.
OPERATIONS_PER_ELEMENT = 400
OPERATIONS_PER_MATRIX = 4e7

# Arrays of the size of all matrices that a draw holds: weights twice, two moments, a gradient, a direction, spare.
ARRAYS = 8

# Draws side by side share what a step costs besides arithmetic: so many, as long as their weights are so few in all.
MOST_TOGETHER, NUMBERS_TOGETHER = 4, 1 << 22

# Dims of what the measures give, behind the draw.
DIMS: dict[str, dict[str, tuple[str, ...]]] = {
    "trained streams": {"feature_norm": ("step", "block"), "feature_update_norm": ("step", "block")},
    "update orders": {"order_norm": ("step", "order"), "feature_update_norm": ("step",)},
    "training assumptions": {
        "training_loss": ("step",),
        "weight_step_ratio": ("step", "matrix"),
        "weight_travel_ratio": ("step", "matrix"),
        "feature_step_ratio": ("step", "block"),
        "feature_travel_ratio": ("step", "block"),
        "activation_ratio": ("step", "activation"),
        "sample_update_ratio": ("step", "matrix"),
        "weight_alignment": ("step", "matrix"),
        "update_alignment": ("step", "matrix"),
    },
    "first updates": {
        "feature_norm": ("block",),
        "feature_update_norm": ("optimizer", "block"),
        "order_norm": ("optimizer", "order"),
        "weight_norm": ("matrix",),
        "update_norm": ("optimizer", "matrix"),
        "weight_alignment": ("matrix",),
        "update_alignment": ("optimizer", "matrix"),
        "bias_norm": ("bias",),
        "bias_update_norm": ("optimizer", "bias"),
    },
}


@dataclass(frozen=True)
class BlockRun(Draws):
    """One net to train: which of the measures in `DIMS` is taken, with what options.

    Its dataset keeps every draw, as slopes over sizes are taken draw by draw: NAME over ``draw`` and what the measure
    has (`DIMS`), from ``block`` 0, the stream below all blocks, and ``step`` 0, before the first step.
    """

    net: BlockNet
    draws: int
    seed: int
    measure: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def _numbers(self) -> int:
        return sum(outputs * inputs for outputs, inputs in self.net.shapes)

    @property
    def _together(self) -> int:
        return max(1, min(MOST_TOGETHER, self.draws, NUMBERS_TOGETHER // self._numbers))

    def chunks(self) -> list[Chunk]:
        """The checked plan of this run."""
        require_choice("measure", self.measure, DIMS)
        visits = np.max(self.options.get("steps", len(self.options["hyperparameters"])))
        cost = OPERATIONS_PER_ELEMENT * self._numbers + OPERATIONS_PER_MATRIX * len(self.net.shapes)
        whole = Chunk(self.net, self.measure, self.options, self.seed, 0, self.draws, "dense", self._together)
        return plan(whole, visits * cost, self._together)

    def require_memory(self, workers: int) -> None:
        """Raise MemoryError unless so many workers can train at once."""
        needed = workers * self._together * ARRAYS * NUMBER_BYTES * self._numbers
        require_bytes(needed, f"training with {workers} worker(s)", "width, depth or workers")

    def dataset(self, pieces: list[Pieces]) -> xr.Dataset:
        """All finished chunks, in order."""
        dims = DIMS[self.measure]
        variables = {
            name: xr.DataArray(
                np.concatenate([piece[name] for piece in pieces]),
                dims=("draw", *dims[name]),
                attrs={"long_name": QUANTITIES[name].long_name, "symbol": QUANTITIES[name].symbol, "units": "1"},
            )
            for name in pieces[0]
        }
        return xr.Dataset(variables, attrs=self.attrs())
