"""First updates, or several steps, of nets of blocks, draw by draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, Self

import numpy as np
import xarray as xr

from meanfield.common.machine_memory import NUMBER_BYTES
from meanfield.common.validation import require_choice
from meanfield.nets.net import Net
from meanfield.quantities.registry import QUANTITIES
from meanfield.simulation.measures.base import Measure, Pieces
from meanfield.simulation.measures.blocks.assumptions import draw_training_assumptions
from meanfield.simulation.measures.blocks.first_updates import draw_first_updates
from meanfield.simulation.measures.blocks.training import draw_trained_streams, draw_update_orders

# What a step costs per element of a matrix and per matrix, in operations of a large matrix product.
OPERATIONS_PER_ELEMENT = 400
OPERATIONS_PER_MATRIX = 4e7

# Arrays of the size of all matrices that a draw holds: weights twice, two moments, a gradient, a direction, spare.
ARRAYS = 8

# Draws side by side share what a step costs besides arithmetic: so many, as long as their weights are so few in all.
MOST_TOGETHER, NUMBERS_TOGETHER = 4, 1 << 22

DRAWN: dict[str, Callable[..., Pieces]] = {
    "trained streams": draw_trained_streams,
    "first updates": draw_first_updates,
    "update orders": draw_update_orders,
    "training assumptions": draw_training_assumptions,
}

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
class BlockTraining(Measure):
    """Which of the measures in `DIMS` is taken of a net that trains, with what options.

    Its dataset keeps every draw, as slopes over sizes are taken draw by draw: NAME over ``draw`` and what the measure
    has (`DIMS`), from ``block`` 0, the stream below all blocks, and ``step`` 0, before the first step.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def settled(self, net: Net) -> Self:
        require_choice("measure", self.name, DIMS)
        return self

    def kind(self, net: Net) -> str:
        return "dense"

    def operations(self, net: Net) -> float:
        visits = np.max(self.options.get("steps", len(self.options["hyperparameters"])))
        matrices = sum(len(shape) > 1 for shape in net.weight_shapes)
        return float(visits * (OPERATIONS_PER_ELEMENT * _numbers(net) + OPERATIONS_PER_MATRIX * matrices))

    def together(self, net: Net) -> int:
        return max(1, min(MOST_TOGETHER, NUMBERS_TOGETHER // _numbers(net)))

    def bytes(self, net: Net, draws: int) -> int:
        return min(draws, self.together(net)) * ARRAYS * NUMBER_BYTES * _numbers(net)

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        return DRAWN[self.name](net, seed=seed, draws=draws, **self.options)

    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        variables = {
            name: xr.DataArray(
                value,
                dims=("draw", *DIMS[self.name][name]),
                attrs={"long_name": QUANTITIES[name].long_name, "symbol": QUANTITIES[name].symbol, "units": "1"},
            )
            for name, value in values.items()
        }
        return xr.Dataset(variables, attrs=dict(attrs))


def _numbers(net: Net) -> int:
    return sum(map(prod, net.weight_shapes))
