"""The energy of every layer's pre-activations and gates, beside that of the update.

The update energies are those of `meanfield.simulation.measures.update_energy`, of the very same draws. The overlap
energy is left out: away from homogeneous activations no single column measures it, and one for every layer costs far
more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import xarray as xr

from meanfield.common.arrays import Array
from meanfield.nets.families.layered import Sequential
from meanfield.nets.net import Net
from meanfield.quantities.datasets import measured_dataset
from meanfield.simulation.cost import batch_bytes, chosen_weights, draw_operations, draws_per_batch
from meanfield.simulation.measures.base import Measure, Pieces
from meanfield.simulation.measures.energy_estimates import energy_estimates
from meanfield.simulation.measures.update_energy import column_energies, drawn_passes
from meanfield.simulation.passes import through_readout


@dataclass(frozen=True)
class ActivationStatistics(Measure):
    """Those of a fully-connected net of any activation and weight variance.

    Its dataset is that of `meanfield.simulate`, with pre_activation_energy and gate_energy in place of the overlap
    energy.
    """

    def kind(self, net: Net) -> str:
        return chosen_weights(_priced(net), "auto")

    def operations(self, net: Net) -> float:
        return draw_operations(_priced(net), self.kind(net))

    def together(self, net: Net) -> int:
        return draws_per_batch(_priced(net), self.kind(net))

    def bytes(self, net: Net, draws: int) -> int:
        return batch_bytes(_priced(net), draws, self.kind(net))

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """pre_activation_energy, gate_energy, label_term and output_term of every draw, each (D, L)."""
        state, gradient = drawn_passes(net, seed, draws, weights=self.kind(net))
        gate = cast(Sequential, net).sigma.gate
        found = {
            "pre_activation_energy": np.stack([_mean_square(values) for values in state.values[1:]], axis=1),
            "gate_energy": np.stack([_mean_square(gate(values)) for values in state.values[1:]], axis=1),
        }
        top, _ = through_readout(state, gradient)
        energies, _ = column_energies(state, top, by_site=False)
        return found | {"label_term": energies[:, :, 0], "output_term": energies[:, :, 1]}

    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        return measured_dataset(net, energy_estimates(values), {"weights": self.kind(net)} | dict(attrs))


def _priced(net: Any) -> Net:
    """The net whose draws cost as much: ReLU's, whose overlap energy takes no pass of its own."""
    return cast(Net, replace(net, activation="relu", weight_variance=None))


def _mean_square(values: Array) -> Array:
    """Over channels, samples and sites: (D,)."""
    return np.asarray(np.square(values).reshape(len(values), -1).mean(axis=1))
