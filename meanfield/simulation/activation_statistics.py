"""What a draw says of its activations: the energy of every layer's pre-activations and gates, beside the update's.

The update energies are those of `meanfield.simulation.update_energy`, of the very same draws. The overlap energy is
left out: away from homogeneous activations no single column measures it, and one for every layer costs far more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meanfield.nets.layered import Sequential
from meanfield.simulation.passes import through_readout
from meanfield.simulation.update_energy import column_energies, drawn_passes

Array = NDArray[np.float64]


def draw_activation_statistics(
    net: Sequential, seed: int, draws: range, inputs: Array | None = None, weights: str = "dense"
) -> dict[str, Array]:
    """pre_activation_energy, gate_energy, label_term and output_term of every draw, each (D, L)."""
    state, gradient = drawn_passes(net, seed, draws, inputs, weights)
    gate = net.sigma.gate
    found = {
        "pre_activation_energy": np.stack([_mean_square(values) for values in state.values[1:]], axis=1),
        "gate_energy": np.stack([_mean_square(gate(values)) for values in state.values[1:]], axis=1),
    }
    top, _ = through_readout(state, gradient)
    energies, _ = column_energies(state, top, by_site=False)
    return found | {"label_term": energies[:, :, 0], "output_term": energies[:, :, 1]}


def _mean_square(values: Array) -> Array:
    """Over channels, samples and sites: (D,)."""
    return np.asarray(np.square(values).reshape(len(values), -1).mean(axis=1))
