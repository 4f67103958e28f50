"""Energies whose means are known exactly at any width, measured beside the terms that rise and fall with them.

Let the net be plain, its grid circular, its gates homogeneous (ReLU or linear), its weights by the fan-in rule, its
readout convolutional, its labels white. Let x_l be the features of layer l and t_l the error that labels send to
them. Then, given everything up to layer l, at any number of channels,

    E[t_l(p) t_l(p')^T | x_l] = tau_l 1 if p = p', else 0 .

At the readout this holds because labels are white and the taps of W independent. If it holds at layer l + 1, then
t_l(p) = sum_D W_D^T g(p - D) t_{l+1}(p - D) has the covariance tau_{l+1} sum_{D, D'} E[W_D^T g W_D'] where p - D = p'
- D'. A weight row and its negative are equally likely, and one of them opens a ReLU gate, so that E[w w' g] = E[w w']
/ 2, which is 0 between different taps. (Units that see nothing but 0 open no gate. Of C channels all are off with the
chance 2^-C, and given inputs may have such patches: both are refused.) Hence all of these have exact means, with
gamma = head variance x fan-in x q, M outputs, B samples, S sites, c_0 q the mean square of sigma(input):

    pre-activation energy  mean z_l^2                              c_0
    output energy          mean z_out^2                            gamma c_0
    label error energy     |dL_y/dz_l|^2                           gamma / (M B S)
    label gradient energy  |dL_y/dW_l|^2 = <dL_y/dz_l, its move>   gamma / (M B S) . q fan_in c_0

where L_y is the loss to first order in the labels. The label term follows the gradients: it is the mean square of the
change that they cause.
"""

from typing import Any

import numpy as np

from meanfield.common.estimates import adjusted
from meanfield.common.validation import Array
from meanfield.nets.lattice import neighbours
from meanfield.nets.layered import Sequential
from meanfield.simulation.passes import Forward, GradientMoves, Place

# So many units are never all off: the chance is 2^-20.
FEWEST = 20

# As pieces of a run name them, each (D, L) or, of the outputs, (D, 1).
CONTROLS = ("pre_activation_energy", "output_energy", "label_error_energy", "label_gradient_energy")


def controls_refusal(net: Any, inputs: Array | None = None) -> str:
    """Why the means are not known of this net with these inputs; empty where they are."""
    if not isinstance(net, Sequential) or net.has_skips or net.is_tied:
        return f"they are known of plain nets, and this {type(net).__name__} is none"
    if not net.reduces_to_top:
        return (
            "they are known where no edge loses signal, gates are homogeneous and weights follow the fan-in rule; "
            f"padding is {net.padding!r}, activation {net.activation!r}, weight_variance {net.weight_variance}"
        )
    if net.is_pooled and net.sites > 1:
        return "a pooled readout sends one error to all sites, whose gates are correlated"
    if net.activation != "linear" and _may_see_nothing(net, inputs):
        return (
            f"ReLU units may see nothing but 0, where layers or the patches of drawn inputs have fewer than {FEWEST} "
            "channels, or patches of given inputs are 0 after the activation"
        )
    return ""


def _may_see_nothing(net: Sequential, inputs: Array | None) -> bool:
    """Whether features may all be 0 in some patch, by more than a chance of 2^-FEWEST."""
    first, *hidden = net.channels_by_layer
    if min(hidden) < FEWEST:
        return True
    if inputs is None:
        return net.input_law != "normalised" and first * net.taps < FEWEST
    energies = np.square(net.sigma.function(inputs)).sum(axis=1).reshape(len(inputs), -1)
    return not energies[:, neighbours(net.grid, net.kernel, net.padding)].sum(axis=1).all()


class RecordedMoves(GradientMoves):
    """Gradient moves that keep |U|^2 and <U, Delta W X> of the label column, each (D,), by layer from the first."""

    def __init__(self, state: Forward, errors: Any) -> None:
        super().__init__(state, errors)
        self.error_energies: list[Any] = []
        self.gradient_energies: list[Any] = []

    def of(self, place: Place) -> Any:
        error = self._labels(self._errors[place])
        moved = super().of(place)
        self.error_energies.append((error * error).sum(axis=(1, 2), dtype="float64"))
        self.gradient_energies.append((error * self._labels(moved)).sum(axis=(1, 2), dtype="float64"))
        return moved

    def _labels(self, columns: Any) -> Any:
        """The first column, (D, C, B S)."""
        places = self._state.net.places
        return columns.reshape(*columns.shape[:2], -1, places)[:, :, 0]


def forward_controls(state: Forward) -> dict[str, Any]:
    """Energies of the pre-activations, (D, L), and of the outputs, (D, 1), before the tangent lets values go."""
    energies = [state.arrays.squared_norms(_flat(value)) / _flat(value).shape[1] for value in state.values[1:]]
    outputs = _flat(state.output)
    return {
        "pre_activation_energy": state.arrays.xp.stack(energies, axis=1),
        "output_energy": (state.arrays.squared_norms(outputs) / outputs.shape[1])[:, None],
    }


def _flat(values: Any) -> Any:
    return values.reshape(len(values), -1)


def known_means(net: Sequential, inputs: Array | None) -> dict[str, Array]:
    """The exact means of the controls, by name: (L,), of the output energy (1,)."""
    gain, gamma = net.sigma.gain, net.head_variance * net.head_fan_in * net.sigma.gain
    start = 1.0 if inputs is None else float(np.square(net.sigma.function(inputs)).mean()) / gain
    error = gamma / (net.output_units * net.inputs)
    fan_in = net.taps * np.array(net.channels_by_layer[:-1], dtype=float)
    return {
        "pre_activation_energy": np.full(net.depth, start),
        "output_energy": np.array([gamma * start]),
        "label_error_energy": np.full(net.depth, error),
        "label_gradient_energy": error * gain * start * fan_in,
    }


def adjusted_terms(values: dict[str, Array], net: Sequential, inputs: Array | None) -> dict[str, Array]:
    """Label term, overlap energy and output term of every draw, (N, L), less what the controls tell of them.

    Controls of layer l are, for terms that the labels drive, the label gradients up to l, the error there and the
    pre-activations there; for the output term the outputs, the last pre-activations and the gradients up to l.
    """
    drawn, means = {name: values[name] for name in CONTROLS}, known_means(net, inputs)
    columns = [_columns(drawn, layer) for layer in range(net.depth)]
    known = [_columns({name: mean[None] for name, mean in means.items()}, layer) for layer in range(net.depth)]
    terms = {}
    for name, which in {"label_term": "labels", "overlap_energy": "labels", "output_term": "outputs"}.items():
        by_layer = zip(values[name].T, columns, known, strict=True)
        terms[name] = np.stack([adjusted(term, at[which], mean[which][0]) for term, at, mean in by_layer], axis=1)
    return terms


def _columns(energies: dict[str, Array], layer: int) -> dict[str, Array]:
    """What the terms of one layer, counted from 0, are adjusted by: (N, 3) for those of labels and of outputs."""
    forward, outputs, errors, gradients = (energies[name] for name in CONTROLS)
    below = gradients[:, : layer + 1].sum(axis=1)
    return {
        "labels": np.stack([below, errors[:, layer], forward[:, layer]], axis=1),
        "outputs": np.stack([outputs[:, 0], forward[:, -1], below], axis=1),
    }
