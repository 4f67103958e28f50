"""What one draw of a network says: label term, output term and overlap energy of every layer.

The cross term between label and output column is odd in the labels, so averaging a draw over the sign of y
leaves S_l = A_l + B_l exactly; both parts come from the same three passes (THEORY section 2, P0 Lemma 2).
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from meanfield.architectures import Sequential
from meanfield.batches import PLAIN, Batch
from meanfield.seeds import stream
from meanfield.simulation import passes
from meanfield.simulation.errors import error_at_output, output_gradients
from meanfield.simulation.inputs import draw_inputs, repeated_inputs
from meanfield.simulation.overlap import dense_overlap_energy, unit_counts
from meanfield.simulation.weights import WeightMatrix, draw_weights

Array = NDArray[np.float64]

# Units per layer up to which the tangent kernel itself is formed; it costs units / columns times the arithmetic.
DENSE_UNITS = 128


def overlap_method(architecture: Sequential) -> str:
    """How F_l is measured: "dense", "reduction" (from the labels), "probe" (an extra column), "probes" or "none".

    "probes", one extra column at every layer, is for what no single column serves beyond dense sizes: under zero
    padding edges lose signal, gates of smooth activations are no fair coins, and weights off the fan-in rule carry
    energy up or down, so a column stays white at no layer but its own. Nor does one above skip connections, whose gates
    see the same stream over and over; there F_l is left out ("none"), as a column for every one of many blocks costs
    too much.
    """
    if max(unit_counts(architecture)) <= DENSE_UNITS:
        return "dense"
    if architecture.has_skips:
        return "none"
    if not architecture.reduces_to_top:
        return "probes"
    return "probe" if architecture.is_pooled else "reduction"


def overlap_method_under(architecture: Sequential, batch: Batch, loss: str) -> str:
    """`overlap_method` beside white labels; "none" beside others, which do not move F_l nor tell it."""
    return overlap_method(architecture) if batch.has_plain_labels and loss == "squared" else "none"


def error_columns(architecture: Sequential) -> int:
    """r: labels, outputs and, where the overlap energy needs its own, a probe."""
    return 3 if overlap_method(architecture) == "probe" else 2


def draw_energies(
    architecture: Sequential,
    seed: int,
    draws: range,
    inputs: Array | None = None,
    weights: str = "dense",
    batch: Batch = PLAIN,
    loss: str = "squared",
    by_site: bool = False,
) -> dict[str, Array]:
    """label_term, output_term and, beside white labels, overlap_energy of every draw, (D, L); output_error (D, 1).

    With ``by_site`` the first two at every site too, as NAME_by_site (D, L, S).
    """

    def streams(purpose: str) -> list[Generator]:
        return [stream(seed, purpose, draw) for draw in draws]

    matrices, state, gradient = drawn_passes(architecture, seed, draws, inputs, weights, batch, loss)
    method = overlap_method_under(architecture, batch, loss)

    error = error_at_output(architecture, gradient, loss)
    top = passes.through_readout(architecture, matrices, state, gradient)
    if method == "probe":
        shape = state.hidden[-1].shape[1:]
        top = np.concatenate([top, np.stack([g.standard_normal(shape) for g in streams("probe")])], axis=2)

    if method == "dense":
        overlap = dense_overlap_energy(architecture, matrices, state)
    elif method == "probes":
        overlap = _probed_overlap_energy(architecture, matrices, state, streams("probe"))
    energies, profiles = column_energies(architecture, matrices, state, top, by_site)
    found = {"label_term": energies[:, :, 0], "output_term": energies[:, :, 1], "output_error": error[:, None]}
    if by_site:
        found |= {"label_term_by_site": profiles[:, :, 0], "output_term_by_site": profiles[:, :, 1]}
    if method == "probe":
        overlap = energies[:, :, 2] / unit_counts(architecture)[-1]
    elif method == "reduction":
        overlap = energies[:, :, 0] * overlap_per_label_term(architecture)
    return found if method == "none" else found | {"overlap_energy": overlap}


def drawn_passes(
    architecture: Sequential,
    seed: int,
    draws: range,
    inputs: Array | None = None,
    weights: str = "dense",
    batch: Batch = PLAIN,
    loss: str = "squared",
) -> tuple[list[WeightMatrix], passes.Forward, Array]:
    """Weights, pre-activations and the gradients at the outputs of every draw, under the columns labels and outputs."""

    def streams(purpose: str) -> list[Generator]:
        return [stream(seed, purpose, draw) for draw in draws]

    matrices = draw_weights(architecture, streams("weights"), weights)
    if inputs is None:
        values = draw_inputs(architecture, streams("inputs"), batch.input_correlation, streams("shared input"))
    else:
        values = repeated_inputs(architecture, inputs, len(draws))
    state = passes.forward(architecture, matrices, values)
    return matrices, state, output_gradients(architecture, streams, values, state.output, batch, loss)


def _probed_overlap_energy(
    architecture: Sequential, weights: list[WeightMatrix], state: passes.Forward, generators: list[Generator]
) -> Array:
    """F_l of every layer from a white error of its own: E |Theta xi|^2 = |Theta|_F^2, at a cost of O(L^2) layers."""
    energies = []
    for layer, units in zip(architecture.unit_ends, unit_counts(architecture), strict=True):
        shape = state.hidden[layer].shape[1:]
        probe = np.stack([generator.standard_normal(shape) for generator in generators])
        errors = passes.backward(architecture, weights, state, probe, layer)
        *_, change = passes.tangent(architecture, weights, state, errors)
        flat = change.reshape(len(change), units)
        energies.append(np.vecdot(flat, flat) / units**2)
    return np.stack(energies, axis=1)


def overlap_per_label_term(architecture: Sequential) -> float:
    """F_l / B_l in mean where the reduction holds: M / gamma, gamma = head variance x fan-in x gain."""
    gamma = architecture.head_variance * architecture.head_fan_in * architecture.sigma.gain
    return architecture.output_units * architecture.inputs / gamma


def column_energies(
    architecture: Sequential, weights: list[WeightMatrix], state: passes.Forward, top: Array, by_site: bool
) -> tuple[Array, Array]:
    """Mean square over channels and samples of every column's change: (D, L, r), and at each site (D, L, r, S).

    The second is empty unless asked for. The last look at a draw: what the tangent has passed is let go, so that its
    memory serves the layers above.
    """
    errors = passes.backward(architecture, weights, state, top, len(architecture.layers))
    energies, profiles = [], []
    for layer, change in enumerate(passes.tangent(architecture, weights, state, errors)):
        for kept in (weights, errors, state.hidden):
            kept[layer] = None  # type: ignore[call-overload]
        if layer + 1 not in architecture.unit_ends:
            continue
        draws, channels = change.shape[:2]
        columns = change.reshape(draws, channels, -1, architecture.inputs * architecture.sites)
        flat = np.ascontiguousarray(columns.swapaxes(1, 2)).reshape(draws, columns.shape[2], -1)
        energies.append(np.vecdot(flat, flat) / flat.shape[2])
        if by_site:
            profiles.append(np.square(flat.reshape(*flat.shape[:2], -1, architecture.sites)).mean(axis=2))
    return np.stack(energies, axis=1), np.stack(profiles, axis=1) if by_site else np.empty(0)
