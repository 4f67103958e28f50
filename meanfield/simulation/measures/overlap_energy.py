"""How the overlap energy of a draw is measured beside its label and output terms.

n_l = channels x samples x sites of value l, and F_l = |Theta^(l)|_F^2 / n_l^2. The tangent kernel Theta itself costs
O(n_l^2) memory. Between two values, u and v, it is held as columns at u: (D, C_u, n_v B, S_u), a column for every
unit of v by channel, sample and site, as the passes take columns. Kernels are symmetric: between v and u it is the
same, turned.

The top-layer reduction costs one error column: let a white error stand at z^(L). The layers above l turn it into an
error at z^(l) that is white in mean (ReLU gates are fair coins up to the sign of a weight row, and every site is
visited equally often) and n_L / n_l times as strong, so that the mean square of the change it causes is F_l n_L. The
reduction needs evenly covered grids and gates that know only the sign, as those of homogeneous activations do.

Energies whose means are known exactly at any width, measured beside the terms that rise and fall with them.

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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import numpy as np

from meanfield.common.estimates import adjusted
from meanfield.common.validation import Array
from meanfield.nets.lattice import neighbours
from meanfield.nets.layered import Sequential
from meanfield.nets.net import Net
from meanfield.simulation.kernels.gaussians import NormalSource
from meanfield.simulation.maps.base import operation_of, weighted_operation_of
from meanfield.simulation.passes import Forward, GradientMoves, MapPlace, Passage, backward, tangent

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

    def of(self, place: MapPlace) -> Any:
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


# Units per layer up to which the tangent kernel itself is formed; it costs units / columns times the arithmetic.
DENSE_UNITS = 128

# Makes what white errors are drawn from, for the methods that need them.
Probes = Callable[[], NormalSource]
# Energies (D, L, r) of every column of errors under "", and if asked for at every site, (D, L, r, S), "_by_site"; and
# energies of the label column with known means, (D, L), by their own names.
ColumnEnergies = dict[str, Array]
# They, and F_1 .. F_L, (D, L), if it is measured.
MeasuredColumns = tuple[ColumnEnergies, Array | None]


@dataclass(frozen=True)
class OverlapMethod:
    """How the overlap energy is measured.

    Attributes:
        name: as datasets record it.
        columns: r, the error columns that are carried: labels, outputs, and for some methods a probe.
    """

    name: str
    columns: int = 2


# It is left out, or comes from the tangent kernel itself; by the top-layer reduction, from the label column or from one
# white error at the last value; or from a white error at every value: E |Theta xi|^2 = |Theta|_F^2, over O(L^2) layers.
LEFT_OUT, KERNEL = OverlapMethod("none"), OverlapMethod("dense")
LABELS, PROBE, PROBES = OverlapMethod("reduction"), OverlapMethod("probe", columns=3), OverlapMethod("probes")


def overlap_method(net: Net) -> OverlapMethod:
    """The method for nets of this kind.

    No single column serves beyond dense sizes where padding loses signal at edges, where smooth gates are no fair
    coins, and where weights off the fan-in rule carry energy up or down: a column then stays white at no layer but its
    own. Skip connections break the reduction too, as all gates see the same stream; one column for each of many blocks
    would cost too much, so F_l is left out there, and where weights are tied, whose kernel is no sum over layers.
    """
    if max(net.value_sizes) <= DENSE_UNITS and not net.is_tied:
        return KERNEL
    if net.has_skips or net.is_tied:
        return LEFT_OUT
    if not net.reduces_to_top:
        return PROBES
    return PROBE if net.is_pooled else LABELS


def measured(
    method: OverlapMethod, state: Forward, top: Any, probes: Probes, by_site: bool = False, controls: bool = False
) -> MeasuredColumns:
    """What errors at the last value cause, and the overlap energy, if it is measured.

    The state is used up: what the passes leave behind is let go.
    """
    overlap = None
    if method is KERNEL:
        overlap = dense_overlap_energy(state)
    elif method is PROBES:
        overlap = _probed_overlap_energy(state, probes())
    elif method is PROBE:
        white = _white_errors(state, len(state.net.units), probes())
        top = state.arrays.xp.concatenate([top, white], axis=2)
    energies = column_energies(state, top, by_site, controls)
    if method is LABELS:
        overlap = energies[""][:, :, 0] * overlap_per_label_term(cast(Sequential, state.net))
    elif method is PROBE:
        overlap = energies[""][:, :, 2] / state.net.value_sizes[-1]
    return energies, overlap


def _probed_overlap_energy(state: Forward, normals: NormalSource) -> Array:
    """F_1 .. F_D of every draw in mean over white errors at every value."""
    overlap = []
    for value, units in enumerate(state.net.value_sizes, start=1):
        errors = backward(state, _white_errors(state, value, normals), value)
        *_, change = tangent(state, GradientMoves(state, errors), value, columns=1)
        overlap.append(state.arrays.squared_norms(change.reshape(len(change), units)) / units**2)
    return state.arrays.xp.stack(overlap, axis=1)


def overlap_per_label_term(net: Sequential) -> float:
    """F_l / B_l in mean where the reduction holds: M / gamma, gamma = head variance x fan-in x gain."""
    gamma = net.head_variance * net.head_fan_in * net.sigma.gain
    return net.output_units * net.inputs / gamma


def column_energies(state: Forward, top: Any, by_site: bool = False, controls: bool = False) -> ColumnEnergies:
    """Mean squares over channels and samples of the change that every column of errors at the last value causes.

    The state is used up: what the tangent has passed is let go, so that its memory serves the layers above.
    """
    net, xp, depth = state.net, state.arrays.xp, len(state.net.units)
    errors = backward(state, top, depth)
    recorded = RecordedMoves(state, errors) if controls else None
    moves = recorded or GradientMoves(state, errors)
    energies, profiles = [], []
    for number, change in enumerate(tangent(state, moves, depth, top.shape[2] // net.inputs), start=1):
        state.let_go(number)
        draws, channels = change.shape[:2]
        columns = change.reshape(draws, channels, -1, net.inputs * change.shape[3])
        flat = xp.ascontiguousarray(columns.swapaxes(1, 2)).reshape(draws, columns.shape[2], -1)
        energies.append(state.arrays.squared_norms(flat) / flat.shape[2])
        if by_site:
            of_site = flat.reshape(*flat.shape[:2], -1, net.sites).swapaxes(2, 3)
            profiles.append(state.arrays.squared_norms(of_site) / of_site.shape[3])
    columns = {"": xp.stack(energies, axis=1)}
    if profiles:
        columns["_by_site"] = xp.stack(profiles, axis=1)
    if recorded:
        columns["label_error_energy"] = xp.stack(recorded.error_energies, axis=1)
        columns["label_gradient_energy"] = xp.stack(recorded.gradient_energies, axis=1)
    return columns


def _white_errors(state: Forward, value: int, normals: NormalSource) -> Array:
    """One column of independent N(0, 1) at every unit of a value."""
    return state.arrays.moved(normals.drawn(state.values[value].shape[1:]))


# Channels and sites of a value.
ValueShape = tuple[int, int]
# The value at the end of a unit's branch, among others by number.
BRANCH = -1


def tangent_kernels(state: Forward) -> Iterator[Any]:
    """Yield Theta^(1) .. Theta^(L) of the values, (D, n_u, n_u), units ordered (channel, sample, site).

    n_u = channels x samples x sites of value u; a kernel takes O(n_u^2) memory. Up to a map with weights
    Theta <- J Theta J^T, J the linear part of the maps; then the weights' own (X^T X) x identity over channels is
    added. Where a unit adds its branch b to a value s, as s + a b, the kernel is
    Theta_ss + a (Theta_bs + Theta_sb) + a^2 Theta_bb, s behind its shortcut if there is one; where it sets it beside s,
    these are its blocks.

    Raises:
        ValueError: a weight is used in several places, so that the kernel is no sum over them.
    """
    for columns in _by_columns(state):
        by_sample = state.setting.by_sample(columns)
        units = by_sample.shape[2]
        yield state.arrays.xp.moveaxis(by_sample, 2, 4).reshape(len(columns), units, units)


def _by_columns(state: Forward) -> Iterator[Any]:
    if state.net.is_tied:
        raise ValueError("a weight is used in several places of this net; its tangent kernel is no sum over layers")
    units = state.net.units
    last_use = {unit.skip: number for number, unit in enumerate(units) if unit.skip}
    own: Any = None  # Theta of the current value
    crossed: dict[int, Any] = {}  # between it and the values that a skip still asks for
    between: dict[tuple[int, int], Any] = {}  # between those, the later one first
    shapes: dict[int, ValueShape] = {}  # of those
    for number, (unit, passage) in enumerate(zip(units, state.passages, strict=True)):
        if number in last_use:
            crossed[number], shapes[number] = own, _shape(own)
            between |= {(number, other): kernel for other, kernel in crossed.items()}
        branch, shortcut, after = unit.places
        own, crossed = _kernels_along(branch, passage, own, crossed, state)
        own *= unit.multiplier**2
        met = crossed
        crossed = {other: unit.multiplier * kernel for other, kernel in met.items() if last_use[other] > number}
        if unit.skip is not None and unit.concatenates:
            cross = unit.multiplier * met[unit.skip] if unit.skip else None
            own = _side_by_side(between.get((unit.skip, unit.skip)), cross, own, unit.skip, state)
            for other, kernel in crossed.items():
                of_skip = _known(between, shapes, unit.skip, other, state) if unit.skip else None
                crossed[other] = _above(of_skip, kernel, state.net.value_channels[unit.skip], state)
        elif unit.skip:
            skipped = {other: _known(between, shapes, unit.skip, other, state) for other in crossed}
            skipped[BRANCH] = _turned(met[unit.skip], shapes[unit.skip], state)
            at_skip, skipped = _kernels_along(shortcut, passage, between[unit.skip, unit.skip], skipped, state)
            cross = skipped.pop(BRANCH)
            own += at_skip + unit.multiplier * (cross + _turned(cross, _shape(own), state))
            for other, kernel in skipped.items():
                crossed[other] += kernel
        elif unit.shortcut and (at_input := _kernels_along(shortcut, passage, None, {}, state)[0]) is not None:
            own += at_input
        if unit.after:
            own, crossed = _kernels_along(after, passage, own, crossed, state)
        yield own


def _known(
    between: dict[tuple[int, int], Any], shapes: dict[int, ValueShape], value: int, other: int, state: Forward
) -> Any:
    """The kernel between a value and another one, on the side of the first."""
    earlier, later = sorted((value, other))
    kernel = between[later, earlier]
    return kernel if other == earlier else _turned(kernel, shapes[earlier], state)


def _side_by_side(first: Any, cross: Any, second: Any, value: int, state: Forward) -> Any:
    """The kernel of two values side by side, from that of each and that of the second with the units of the first.

    The first is that of this number; the input, which nothing moves, has neither a kernel nor a cross.
    """
    xp, (draws, channels, _, sites) = state.arrays.xp, second.shape
    if first is None:
        rows = state.net.value_channels[value] * sites * state.setting.samples**2
        cross = xp.zeros((draws, channels, rows, sites), dtype=second.dtype)
        first = _above(None, cross, state.net.value_channels[value], state)[:, :-channels]
    rows_of_first = xp.concatenate([first, _turned(cross, _shape(first), state)], axis=2)
    return xp.concatenate([rows_of_first, xp.concatenate([cross, second], axis=2)], axis=1)


def _above(first: Any, second: Any, channels: int, state: Forward) -> Any:
    """Columns at two values side by side; the first, of so many channels, is 0 if not given."""
    draws, _, rows, sites = second.shape
    if first is None:
        first = state.arrays.xp.zeros((draws, channels, rows, sites), dtype=second.dtype)
    return state.arrays.xp.concatenate([first, second], axis=1)


def _shape(columns: Any) -> ValueShape:
    return columns.shape[1], columns.shape[3]


def _turned(columns: Any, other: ValueShape, state: Forward) -> Any:
    """Columns at u, one for every unit of a value v of this shape, as columns at v."""
    draws, channels, _, sites = columns.shape
    pairs = columns.reshape(draws, channels, other[0], -1, other[1], state.setting.samples, sites)
    return pairs.transpose(0, 2, 1, 5, 6, 3, 4).reshape(draws, other[0], -1, other[1])


def _kernels_along(
    places: Sequence[int], passage: Passage, own: Any, crossed: dict[int, Any], state: Forward
) -> tuple[Any, dict[int, Any]]:
    """Kernels through maps: that of the value on both sides, those between it and others on its side."""
    start = 0
    for end, place in enumerate(places, start=1):
        holds = bool(passage.unit.maps[place].weights)
        if not holds and end < len(places):
            continue
        run = places[start:end]
        start = end
        if own is not None:
            below = _shape(own)
            own = _carried(run, passage, _turned(_carried(run, passage, own, state), below, state), state)
        if holds:
            spec, setting = passage.unit.maps[place], passage.settings[place]
            kernel = weighted_operation_of(spec).kernel(spec, passage.input_of(place), setting)
            kernel = kernel.reshape(*kernel.shape[:2], -1, prod(spec.grid_above(setting.grid)))
            if own is not None:
                kernel += own
            own = kernel
        crossed = {source: _carried(run, passage, kernel, state) for source, kernel in crossed.items()}
    return own, crossed


def _carried(run: Sequence[int], passage: Passage, columns: Any, state: Forward) -> Any:
    """Every column through maps."""
    for place in run:
        spec, operation = passage.unit.maps[place], operation_of(passage.unit.maps[place])
        values = passage.input_of(place) if operation.reads else None
        columns = operation.tangent(spec, values, passage.kept[place], columns, passage.settings[place])
    return columns


def dense_overlap_energy(state: Forward) -> Array:
    """F_1 .. F_D of every draw, exactly: (D, values)."""
    squares = []
    for columns in _by_columns(state):
        flat = columns.reshape(len(columns), -1)
        squares.append(state.arrays.squared_norms(flat) / flat.shape[1])
    return state.arrays.xp.stack(squares, axis=1)
