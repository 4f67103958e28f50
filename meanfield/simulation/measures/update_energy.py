"""What one draw of a network says: label term, output term and overlap energy of every layer.

The cross term between label and output column is odd in the labels, so averaging a draw over the sign of y
leaves S_l = A_l + B_l exactly; both parts come from the same three passes (docs/theory.md section 2, P0 Lemma 2).
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.random import Generator

from meanfield.common.arrays import Array
from meanfield.common.seeds import stream
from meanfield.nets.families.layered import Sequential
from meanfield.nets.inputs.batches import PLAIN, Batch
from meanfield.nets.net import Net
from meanfield.simulation import passes
from meanfield.simulation.arrays.arrays import NUMPY, Arrays
from meanfield.simulation.arrays.revealed import draw_device_weights
from meanfield.simulation.errors import error_at_output, output_gradients
from meanfield.simulation.inputs import draw_inputs, repeated_inputs
from meanfield.simulation.measures.tangent_kernel import dense_overlap_energy
from meanfield.simulation.weights.gram_process import draw_gram_energies
from meanfield.simulation.weights.matrices import Weights, draw_weights
from meanfield.simulation.weights.moves import GradientMoves

# What draws in single precision say of their size.
LARGEST = "largest_pre_activation"

# Units per layer up to which the tangent kernel itself is formed; it costs units / columns times the arithmetic.
DENSE_UNITS = 128


def overlap_method(net: Net) -> str:
    """How F_l is measured: "dense", "reduction" (from the labels), "probe" (an extra column), "probes" or "none".

    "probes", one extra column at every layer, is for what no single column serves beyond dense sizes: under zero
    padding edges lose signal, gates of smooth activations are no fair coins, and weights off the fan-in rule carry
    energy up or down, so a column stays white at no layer but its own. Nor does one above skip connections, whose gates
    see the same stream over and over; there F_l is left out ("none"), as a column for every one of many blocks costs
    too much, and where weights are tied, whose kernel is no sum over layers.
    """
    if max(net.value_sizes) <= DENSE_UNITS and not net.is_tied:
        return "dense"
    if net.has_skips or net.is_tied:
        return "none"
    if not net.reduces_to_top:
        return "probes"
    return "probe" if net.is_pooled else "reduction"


def overlap_method_under(net: Net, batch: Batch, loss: str, weights: str) -> str:
    """`overlap_method` beside white labels; "none" beside others, which do not move F_l nor tell it."""
    if weights == "gram":
        return "reduction"
    return overlap_method(net) if batch.has_plain_labels and loss == "squared" else "none"


def error_columns(net: Net) -> int:
    """r: labels, outputs and, where the overlap energy needs its own, a probe."""
    return 3 if overlap_method(net) == "probe" else 2


def draw_energies(
    net: Net,
    seed: int,
    draws: range,
    inputs: Array | None = None,
    weights: str = "dense",
    batch: Batch = PLAIN,
    loss: str = "squared",
    by_site: bool = False,
    arrays: Arrays = NUMPY,
) -> dict[str, Array]:
    """label_term, output_term and, beside white labels, overlap_energy of every draw, (D, L); output_error (D, 1).

    With ``by_site`` the first two at every site too, as NAME_by_site (D, L, S). In single precision also
    largest_pre_activation (D, N + 1), by which to tell whether its range has sufficed.
    """
    if weights == "gram":
        return _gram_energies(cast(Sequential, net), seed, draws, inputs, by_site)
    state, gradient = drawn_passes(net, seed, draws, inputs, weights, batch, loss, arrays)
    method = overlap_method_under(net, batch, loss, weights)
    probes = [stream(seed, "probe", draw) for draw in draws] if method in ("probe", "probes") else []
    found = {"output_error": error_at_output(gradient, loss, arrays)[:, None]}
    if arrays.precision == "float32":
        found[LARGEST] = arrays.xp.stack([arrays.xp.abs(z).max(axis=(1, 2, 3)) for z in state.read()], axis=1)
    found |= energies_of(state, gradient, method, probes, by_site)
    return {name: arrays.fetched(values) for name, values in found.items()}


def _gram_energies(net: Sequential, seed: int, draws: range, inputs: Array | None, by_site: bool) -> dict[str, Array]:
    """The same by the Gram process of a net of one site, the overlap energy by the reduction from the label term."""
    found = draw_gram_energies(net, seed, draws, inputs)
    layers_above = np.arange(net.depth)[::-1]
    per_label_term = overlap_per_label_term(net) / net.variance_factor**layers_above
    found["overlap_energy"] = found["label_term"] * per_label_term
    if by_site:
        found |= {f"{name}_by_site": found[name][:, :, None] for name in ("label_term", "output_term")}
    return found


def energies_of(
    state: passes.Forward, gradient: Array, method: str, probes: list[Generator], by_site: bool = False
) -> dict[str, Array]:
    """label_term, output_term and overlap_energy of every draw from its forward pass and its gradient at the outputs.

    The last look at the draws: weights and values are let go on the way.
    """
    net, xp = state.net, state.arrays.xp
    top, _ = passes.through_readout(state, gradient)
    if method == "probe":
        top = xp.concatenate([top, _white_errors(state, len(net.units), probes)], axis=2)
    if method == "dense":
        overlap = dense_overlap_energy(state)
    elif method == "probes":
        overlap = _probed_overlap_energy(state, probes)
    energies, profiles = column_energies(state, top, by_site)
    found = {"label_term": energies[:, :, 0], "output_term": energies[:, :, 1]}
    if by_site:
        found |= {"label_term_by_site": profiles[:, :, 0], "output_term_by_site": profiles[:, :, 1]}
    if method == "probe":
        overlap = energies[:, :, 2] / net.value_sizes[-1]
    elif method == "reduction":
        overlap = energies[:, :, 0] * overlap_per_label_term(cast(Sequential, net))
    return found if method == "none" else found | {"overlap_energy": overlap}


def drawn_passes(
    net: Net,
    seed: int,
    draws: range,
    inputs: Array | None = None,
    weights: str = "dense",
    batch: Batch = PLAIN,
    loss: str = "squared",
    arrays: Arrays = NUMPY,
) -> tuple[passes.Forward, Array]:
    """The forward pass of every draw, and the gradients at its outputs under the columns labels and outputs."""

    def streams(purpose: str) -> list[Generator]:
        return [stream(seed, purpose, draw) for draw in draws]

    matrices = drawn_weights(net, seed, draws, weights, arrays)
    if inputs is None:
        values = draw_inputs(net, streams("inputs"), batch.input_correlation, streams("shared input"))
    else:
        values = repeated_inputs(net, inputs, len(draws))
    state = passes.forward(net, matrices, arrays.moved(values), arrays)
    return state, output_gradients(streams, values, state.output, batch, loss, arrays)


def drawn_weights(net: Net, seed: int, draws: range, kind: str, arrays: Arrays) -> Weights:
    """The weights of every draw: on the host from a stream for each draw, on a device from one for the group."""
    if arrays.normals is None:
        return draw_weights(net, [stream(seed, "weights", draw) for draw in draws], kind, arrays.precision)
    normals = arrays.normals(seed, "weights", draws, arrays.precision)
    return draw_device_weights(net, normals, kind, arrays, len(draws))


def _white_errors(state: passes.Forward, value: int, generators: list[Generator]) -> Array:
    """One column of independent N(0, 1) at every unit of a value."""
    shape = state.values[value].shape[1:]
    return state.arrays.moved(np.stack([generator.standard_normal(shape) for generator in generators]))


def _probed_overlap_energy(state: passes.Forward, generators: list[Generator]) -> Array:
    """F of every value from a white error of its own: E |Theta xi|^2 = |Theta|_F^2, at a cost of O(L^2) layers."""
    energies = []
    for value, units in enumerate(state.net.value_sizes, start=1):
        errors = passes.backward(state, _white_errors(state, value, generators), value)
        *_, change = passes.tangent(state, GradientMoves(state, errors), value, columns=1)
        energies.append(state.arrays.squared_norms(change.reshape(len(change), units)) / units**2)
    return state.arrays.xp.stack(energies, axis=1)


def overlap_per_label_term(net: Sequential) -> float:
    """F_l / B_l in mean where the reduction holds: M / gamma, gamma = head variance x fan-in x gain."""
    gamma = net.head_variance * net.head_fan_in * net.sigma.gain
    return net.output_units * net.inputs / gamma


def column_energies(state: passes.Forward, top: Array, by_site: bool) -> tuple[Array, Array]:
    """Mean square over channels and samples of every column's change: (D, L, r), and at each site (D, L, r, S).

    The second is empty unless asked for. The last look at a draw: what the tangent has passed is let go, so that its
    memory serves the layers above.
    """
    net, xp, depth = state.net, state.arrays.xp, len(state.net.units)
    errors = passes.backward(state, top, depth)
    energies, profiles = [], []
    changes = passes.tangent(state, GradientMoves(state, errors), depth, top.shape[2] // net.inputs)
    for number, change in enumerate(changes, start=1):
        passes.let_go(state, errors, number)
        draws, channels = change.shape[:2]
        columns = change.reshape(draws, channels, -1, net.places)
        flat = xp.ascontiguousarray(columns.swapaxes(1, 2)).reshape(draws, columns.shape[2], -1)
        energies.append(state.arrays.squared_norms(flat) / flat.shape[2])
        if by_site:
            of_site = flat.reshape(*flat.shape[:2], -1, net.sites).swapaxes(2, 3)
            profiles.append(state.arrays.squared_norms(of_site) / of_site.shape[3])
    return xp.stack(energies, axis=1), xp.stack(profiles, axis=1) if by_site else xp.empty(0)
