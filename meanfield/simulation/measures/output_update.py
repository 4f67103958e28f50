"""How far one step of plain SGD moves a net's outputs, with the update of the readout's own weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import xarray as xr

from meanfield.common.estimates import summarise
from meanfield.common.validation import inputs_described, require_choice
from meanfield.nets.inputs import LOSS_NAMES, checked_inputs, require_classes
from meanfield.nets.net import Chain, Net
from meanfield.quantities.registry import measured_dataset
from meanfield.simulation.arrays import overflow_silent, require_energies
from meanfield.simulation.cost import passes_bytes, step_operations, weight_bytes
from meanfield.simulation.measures.base import Cost, Measure, Pieces
from meanfield.simulation.measures.energies import Energies, drawn_passes, inverse_root
from meanfield.simulation.passes import gradient_changes

# The readout is one more unit, whose value are the outputs: labels and outputs each drive a column of errors.
COLUMNS = 2


@dataclass(frozen=True, kw_only=True)
class OutputUpdate(Measure):
    """Mean square of the one-step change of the outputs at learning rate 1, and the rate at which it is 1.

    Of a net without a readout they are its last value. Draws have the weights, inputs and labels of `Energies` with
    "dense" weights, which measures the layers below. The readout's own weights move as all others do.

    Args:
        inputs: a fixed batch (samples, channels, *grid) instead of the net's input law.
        loss: "squared" or "cross_entropy", as for `Energies`.

    Gives output_update_energy and output_learning_rate_scale, each with NAME_stderr and NAME_largest_share.

    Source: Zhang et al. 2026, eq. 8, at the outputs.
    """

    weights: ClassVar[str] = "dense"  # type: ignore[misc]

    inputs: Any = None
    loss: str = "squared"

    def settled(self, net: Net) -> Self:
        require_choice("loss", self.loss, LOSS_NAMES)
        require_classes(self.loss, net.output_shape[1])
        return replace(self, inputs=checked_inputs(net, self.inputs))

    def cost(self, net: Net) -> Cost:
        held = weight_bytes(net) + passes_bytes(net, net.inputs, COLUMNS, "float64")
        return Cost(COLUMNS * step_operations(net, net.inputs), 2 * held, 1)

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """output_update_energy of every draw, (draws,)."""
        whole = Chain.of(net, units=net.all_units, readout_unit=None)
        asked = Energies(weights=self.weights, inputs=self.inputs, loss=self.loss)
        with overflow_silent():
            state, gradient = drawn_passes(whole, seed, draws, asked)
            *_, moved = gradient_changes(state, gradient)
            change = np.square(moved.reshape(len(draws), moved.shape[1], COLUMNS, -1))
            energies = {"output_update_energy": change.mean(axis=(1, 3)).sum(axis=1)}
        require_energies(energies, may_vanish=True)
        return energies

    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        energy = summarise(np.asarray(values["output_update_energy"])[:, None])
        estimates = {"output_update_energy": energy, "output_learning_rate_scale": inverse_root(energy)}
        own = {"weights": self.weights, "loss": self.loss} | inputs_described(self.inputs)
        return measured_dataset(net, estimates, own | dict(attrs))
