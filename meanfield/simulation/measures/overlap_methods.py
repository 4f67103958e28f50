"""How the overlap energy of a draw is measured beside its label and output terms: one class for every method.

n_l = channels x samples x sites of value l, and F_l = |Theta^(l)|_F^2 / n_l^2. The tangent kernel Theta itself costs
O(n_l^2) memory (`meanfield.simulation.measures.tangent_kernel`). The top-layer reduction costs one error column: let a
white error stand at z^(L). The layers above l turn it into an error at z^(l) that is white in mean (ReLU gates are fair
coins up to the sign of a weight row, and every site is visited equally often) and n_L / n_l times as strong, so that
the mean square of the change it causes is F_l n_L. The reduction needs evenly covered grids and gates that know only
the sign, as those of homogeneous activations do.
"""

from collections.abc import Callable
from typing import Any, Protocol, cast

from meanfield.common.arrays import Array
from meanfield.nets.families.layered import Sequential
from meanfield.nets.net import Net
from meanfield.simulation.kernels.normals import NormalSource
from meanfield.simulation.measures.estimates.controls import RecordedMoves
from meanfield.simulation.measures.tangent_kernel import dense_overlap_energy
from meanfield.simulation.passes import Forward, backward, tangent
from meanfield.simulation.weights.moves import GradientMoves

# Units per layer up to which the tangent kernel itself is formed; it costs units / columns times the arithmetic.
DENSE_UNITS = 128

# Makes what white errors are drawn from, for the methods that need them.
Probes = Callable[[], NormalSource]
# Energies (D, L, r) of every column of errors under "", and if asked for at every site, (D, L, r, S), "_by_site"; and
# energies of the label column with known means, (D, L), by their own names.
ColumnEnergies = dict[str, Array]
# They, and F_1 .. F_L, (D, L), if it is measured.
Measured = tuple[ColumnEnergies, Array | None]


class Asked(Protocol):
    """What is measured of the columns besides their energies: profiles over sites, and controls."""

    @property
    def by_site(self) -> bool: ...

    @property
    def controls(self) -> bool: ...


class OverlapMethod:
    """The overlap energy is left out ("none"); the other methods measure it.

    Attributes:
        name: as datasets record it.
        columns: r, the error columns that are carried: labels, outputs, and for some methods a probe.
    """

    name = "none"
    columns = 2

    def measured(self, state: Forward, top: Any, probes: Probes, asked: Asked) -> Measured:
        """From errors at the last value. The state is used up: what the passes leave behind is let go."""
        return column_energies(state, top, asked), None


class FromKernel(OverlapMethod):
    """From the tangent kernel itself."""

    name = "dense"

    def measured(self, state: Forward, top: Any, probes: Probes, asked: Asked) -> Measured:
        overlap = dense_overlap_energy(state)
        return column_energies(state, top, asked), overlap


class FromLabels(OverlapMethod):
    """From the label column, by the top-layer reduction."""

    name = "reduction"

    def measured(self, state: Forward, top: Any, probes: Probes, asked: Asked) -> Measured:
        energies = column_energies(state, top, asked)
        return energies, energies[""][:, :, 0] * overlap_per_label_term(cast(Sequential, state.net))


class FromProbe(OverlapMethod):
    """From one white error at the last value, by the top-layer reduction."""

    name = "probe"
    columns = 3

    def measured(self, state: Forward, top: Any, probes: Probes, asked: Asked) -> Measured:
        white = _white_errors(state, len(state.net.units), probes())
        energies = column_energies(state, state.arrays.xp.concatenate([top, white], axis=2), asked)
        return energies, energies[""][:, :, 2] / state.net.value_sizes[-1]


class FromProbes(OverlapMethod):
    """From a white error at every value: E |Theta xi|^2 = |Theta|_F^2, at a cost of O(L^2) layers."""

    name = "probes"

    def measured(self, state: Forward, top: Any, probes: Probes, asked: Asked) -> Measured:
        overlap, normals = [], probes()
        for value, units in enumerate(state.net.value_sizes, start=1):
            errors = backward(state, _white_errors(state, value, normals), value)
            *_, change = tangent(state, GradientMoves(state, errors), value, columns=1)
            overlap.append(state.arrays.squared_norms(change.reshape(len(change), units)) / units**2)
        return column_energies(state, top, asked), state.arrays.xp.stack(overlap, axis=1)


LEFT_OUT, KERNEL, LABELS, PROBE, PROBES = OverlapMethod(), FromKernel(), FromLabels(), FromProbe(), FromProbes()


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


def overlap_per_label_term(net: Sequential) -> float:
    """F_l / B_l in mean where the reduction holds: M / gamma, gamma = head variance x fan-in x gain."""
    gamma = net.head_variance * net.head_fan_in * net.sigma.gain
    return net.output_units * net.inputs / gamma


def column_energies(state: Forward, top: Any, asked: Asked | None = None) -> ColumnEnergies:
    """Mean squares over channels and samples of the change that every column of errors at the last value causes.

    The state is used up: what the tangent has passed is let go, so that its memory serves the layers above.
    """
    net, xp, depth = state.net, state.arrays.xp, len(state.net.units)
    errors = backward(state, top, depth)
    recorded = RecordedMoves(state, errors) if asked and asked.controls else None
    moves = recorded or GradientMoves(state, errors)
    energies, profiles = [], []
    for number, change in enumerate(tangent(state, moves, depth, top.shape[2] // net.inputs), start=1):
        state.let_go(number)
        draws, channels = change.shape[:2]
        columns = change.reshape(draws, channels, -1, net.places)
        flat = xp.ascontiguousarray(columns.swapaxes(1, 2)).reshape(draws, columns.shape[2], -1)
        energies.append(state.arrays.squared_norms(flat) / flat.shape[2])
        if asked and asked.by_site:
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
