"""What one draw of a network says: label term, output term and overlap energy of every layer.

The cross term between label and output column is odd in the labels, so averaging a draw over the sign of y leaves
S_l = A_l + B_l exactly; both parts come from the same three passes.

Source: docs/theory.md section 2; Zhang et al. 2026, Lemma 2.
"""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from meanfield.common.arrays import Array
from meanfield.common.seeds import streams_by_purpose, streams_of_draws
from meanfield.nets.families.layered import Sequential
from meanfield.nets.inputs.batches import PLAIN, Batch
from meanfield.nets.net import Net
from meanfield.simulation import passes
from meanfield.simulation.arrays.arrays import NUMPY, Arrays
from meanfield.simulation.arrays.revealed import draw_device_weights
from meanfield.simulation.errors import error_at_output, output_gradients
from meanfield.simulation.inputs import draw_inputs, repeated_inputs
from meanfield.simulation.kernels.normals import NormalSource
from meanfield.simulation.measures.estimates.controls import CONTROLS, forward_controls
from meanfield.simulation.measures.overlap_methods import (
    LABELS,
    LEFT_OUT,
    ColumnEnergies,
    OverlapMethod,
    overlap_method,
    overlap_per_label_term,
)
from meanfield.simulation.weights.gram_process import draw_gram_energies
from meanfield.simulation.weights.matrices import Weights, draw_weights

# Largest pre-activation of every layer, by which draws in single precision tell whether its range has sufficed.
LARGEST = "largest_pre_activation"


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """What energies are drawn of, besides the net; the arguments are those of `meanfield.simulate`."""

    inputs: Any = None
    weights: str = "dense"
    batch: Batch = PLAIN
    loss: str = "squared"
    by_site: bool = False
    controls: bool = False

    def overlap_method(self, net: Net) -> OverlapMethod:
        """That of the net beside white labels; none beside others, which neither move nor tell the overlap energy."""
        if self.weights == "gram":
            return LABELS
        return overlap_method(net) if self.batch.has_plain_labels and self.loss == "squared" else LEFT_OUT


def draw_energies(net: Net, seed: int, draws: range, arrays: Arrays = NUMPY, **conditions: Any) -> dict[str, Array]:
    """label_term, output_term and, beside white labels, overlap_energy of every draw, (D, L); output_error (D, 1).

    ``conditions`` are fields of `Conditions`. With ``by_site`` the first two at every site too, as NAME_by_site
    (D, L, S); with ``controls`` those of `meanfield.simulation.measures.estimates.controls`. In single precision also
    largest_pre_activation (D, N + 1).
    """
    asked = Conditions(**conditions)
    if asked.weights == "gram":
        return _gram_energies(cast(Sequential, net), seed, draws, asked)
    state, gradient = drawn_passes(net, seed, draws, asked, arrays)
    method = asked.overlap_method(net)

    def probes() -> NormalSource:
        return NormalSource(streams_of_draws(seed, "probe", draws))

    numbers = {"output_error": error_at_output(gradient, asked.loss, arrays)[:, None]}
    if arrays.precision == "float32":
        numbers[LARGEST] = arrays.xp.stack([arrays.xp.abs(z).max(axis=(1, 2, 3)) for z in state.read()], axis=1)
    if asked.controls:
        numbers |= forward_controls(state)
    top, _ = passes.through_readout(state, gradient)
    columns, overlap = method.measured(state, top, probes, asked)
    numbers |= terms(columns) if overlap is None else terms(columns) | {"overlap_energy": overlap}
    return {name: arrays.fetched(values) for name, values in numbers.items()}


def terms(columns: ColumnEnergies) -> dict[str, Array]:
    """label_term and output_term from the first two columns, and the controls as they are."""
    names = {"label_term": 0, "output_term": 1}
    energies = {at: values for at, values in columns.items() if at not in CONTROLS}
    controls = {name: values for name, values in columns.items() if name in CONTROLS}
    return controls | {
        f"{name}{at}": values[:, :, place] for at, values in energies.items() for name, place in names.items()
    }


def _gram_energies(net: Sequential, seed: int, draws: range, asked: Conditions) -> dict[str, Array]:
    """The same by the Gram process of a net of one site, the overlap energy by the reduction from the label term."""
    numbers = draw_gram_energies(net, seed, draws, asked.inputs)
    layers_above = np.arange(net.depth)[::-1]
    per_label_term = overlap_per_label_term(net) / net.variance_factor**layers_above
    numbers["overlap_energy"] = numbers["label_term"] * per_label_term
    if asked.by_site:
        numbers |= {f"{name}_by_site": numbers[name][:, :, None] for name in ("label_term", "output_term")}
    return numbers


def drawn_passes(
    net: Net, seed: int, draws: range, asked: Conditions, arrays: Arrays = NUMPY
) -> tuple[passes.Forward, Array]:
    """The forward pass of every draw, and the gradients at its outputs under the columns labels and outputs."""
    streams = streams_by_purpose(seed, draws)
    matrices = drawn_weights(net, seed, draws, asked.weights, arrays)
    if asked.inputs is None:
        values = draw_inputs(net, streams, asked.batch.input_correlation)
    else:
        values = repeated_inputs(net, asked.inputs, len(draws))
    state = passes.forward(net, matrices, arrays.moved(values), arrays)
    return state, output_gradients(streams, values, state.output, asked.batch, asked.loss, arrays)


def drawn_weights(net: Net, seed: int, draws: range, kind: str, arrays: Arrays) -> Weights:
    """The weights of every draw: on the host from a stream for each draw, on a device from one for the group."""
    if arrays.normals is None:
        return draw_weights(net, streams_of_draws(seed, "weights", draws), kind, arrays.precision)
    normals = arrays.normals(seed, "weights", draws, arrays.precision)
    return draw_device_weights(net, normals, kind, arrays, len(draws))
