"""The energy of every layer's pre-activations and gates, beside that of the update.

The update energies are those of `meanfield.simulation.measures.update_energy`, from the same draws. The overlap energy
is left out: without homogeneous activations no single column measures it, and one for every layer costs far more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from meanfield.common.arrays import Array
from meanfield.common.validation import require_choice
from meanfield.nets.families.known import require_net
from meanfield.nets.families.layered import Sequential
from meanfield.nets.net import Net
from meanfield.quantities.datasets import measured_dataset
from meanfield.simulation.cost import chosen_weights, draw_cost
from meanfield.simulation.measures.base import Cost, Measure, Pieces
from meanfield.simulation.measures.estimates.energy_estimates import energy_estimates
from meanfield.simulation.measures.overlap_methods import column_energies
from meanfield.simulation.measures.update_energy import Conditions, drawn_passes, terms
from meanfield.simulation.passes import through_readout
from meanfield.simulation.weights.matrices import KINDS

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class ActivationStatistics(Measure):
    """Energies of pre-activations and gates of every layer, and the update energies of the same draws.

    For nets of layers of any activation and weight variance. Gives what `Energies` gives, with pre_activation_energy
    c_l, the mean square of z^(l), and gate_energy q_l, that of sigma'(z^(l)), in place of the overlap energy.

    Raises:
        TypeError: a loop or a list of units.

    Source: Zhang et al. 2026, appendix F; docs/theory.md section 6.
    """

    weights: str = "auto"

    def settled(self, net: Net) -> Self:
        require_net(net)
        require_choice("weights", self.weights, ("auto", *KINDS))
        return replace(self, weights=chosen_weights(_priced(net), self.weights))

    def cost(self, net: Net) -> Cost:
        return draw_cost(_priced(net), self.weights)

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """pre_activation_energy, gate_energy, label_term and output_term of every draw, each (D, L)."""
        state, gradient = drawn_passes(net, seed, draws, Conditions(weights=self.weights))
        gate = cast(Sequential, net).sigma.gate
        squares = {
            "pre_activation_energy": np.stack([_mean_square(values) for values in state.values[1:]], axis=1),
            "gate_energy": np.stack([_mean_square(gate(values)) for values in state.values[1:]], axis=1),
        }
        top, _ = through_readout(state, gradient)
        return squares | terms(column_energies(state, top))

    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        return measured_dataset(net, energy_estimates(values), {"weights": self.weights} | dict(attrs))


def _priced(net: Any) -> Net:
    """A net whose draws cost the same: with ReLU, the overlap energy takes no pass of its own."""
    return cast(Net, replace(net, activation="relu", weight_variance=None))


def _mean_square(values: Array) -> Array:
    """Over channels, samples and sites: (D,)."""
    return np.asarray(np.square(values).reshape(len(values), -1).mean(axis=1))
