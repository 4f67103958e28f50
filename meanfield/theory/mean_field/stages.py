"""The mean field of nets in stages: second moments of the tangent kernel where grid and channels change.

A linear map of a stride stands at some sites alone. With the site shifts S_Delta of these rows, c, K and V of
`meanfield.theory.mean_field.layers` go from one grid to the next as they go from layer to layer. All pairs of points
are kept.

Streams. Values that identity skips link are one stream, which a gate reads at every value; what it remembers, R_j and
R_mean, ends where the stream does. A plain net is streams of one value each. Where a block changes the stage, the
shortcut W_s, of variance 1/n over the n channels of the stream, mixes all of them,

    z'_a(p') = sum_i W_s,ai z_i(s p') + a branch_a(p'),

so that unit a of the new stream knows no gate of the old one. With A, R_mean, R_l and K of the old one, w =
E[sigma'^2]/q, T_s A = A at the sites s p' and B the branch's (f Pk/k w)^(k-1) f Pk/k, which moves the first site,

    A' = T_s [A + R_mean + R_mean^T + K K / n] T_s^T + a^2 (D + D^T) + a^4 V_b,   R' = 0
    D  = B [ w (A + R_mean + K K / n) + R_l^T / q ] T_s^T
    K' = T_s [K + n c] T_s^T + a^2 K_b,   c' = T_s c T_s^T + a^2 c_b

V_b, K_b, c_b of the branch as in any block. D is the kernel between a unit of the branch and one of the shortcut: the
shortcut takes the mean over all units of the old stream, where an identity takes one, with what that one remembers.

Labels come down by the transposed steps. Under a convolutional readout what comes through the shortcut, omega_s, has
passed no gate, and adds omega_s R_mean / n to the terms omega_j R_j / n of the gates of a stream. Under a pooled one
the errors' covariance between sites is followed, in plain nets (`meanfield.theory.mean_field.label_term`).

Means over windows between stages take more. One weight multiplies several sites, so that the second moment above needs
that of the kernel between two pairs of sites, behind four gates, and not between each pair and itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from meanfield.common.machine import NUMBER_BYTES, progress, require_bytes, seconds_refusal
from meanfield.common.validation import Array, takes
from meanfield.nets.activations import Activation, activation_named
from meanfield.nets.net import Shape
from meanfield.nets.staged import Staged
from meanfield.theory.mean_field.label_term import LayerAverages, LayerKernel, quadratic_sums
from meanfield.theory.mean_field.layers import LayerMoments, Matrix, StreamState, through_weights
from meanfield.theory.mean_field.output_term import weighted_change
from meanfield.theory.mean_field.whole_update import LogTerms
from meanfield.theory.two_points import AllPairs, GridStep

# Square arrays over pairs of points that are held at once, and for every value.
WORKING_ARRAYS, ARRAYS_PER_VALUE = 16, 6
# Of a processor, for a pair of points at a unit, of all terms.
LAYER_SECONDS = 3e-6


def stages_refusal(net: Staged) -> str:
    """Why the kernel between channels is not known of this net, and what to take; empty if it is."""
    if net.downsampling == "pooling" and len(net.depth_by_stage) > 1:
        return (
            "means over windows between stages take the tangent kernel between two pairs of sites, behind four gates, "
            "which does not close: take downsampling='stride', or draw the net with `simulate`"
        )
    return ""


def staged_label_refusal(net: Staged) -> str:
    """Why the label term is not known of this net, and what to take; empty if it is."""
    if not net.is_pooled:
        return ""
    given = f"this is a {type(net).__name__} of activation {net.activation!r}"
    take = "take readout='convolution', or draw it with `simulate`"
    if net.has_skips:
        return (
            f"a pooled label joins what several sites did, which is predicted for plain nets; {given}, whose gates "
            f"remember: {take}"
        )
    if net.sigma.triple is None:
        return f"a pooled label takes averages over three gates, known for 'relu' and 'linear'; {given}: {take}"
    return ""


def staged_output_refusal(net: Staged) -> str:
    """Why the output term is not known of this net, and what to take; empty if it is."""
    given = f"this is a {type(net).__name__} of activation {net.activation!r} and readout {net.readout!r}"
    if net.has_skips or net.is_pooled or net.sigma.triple is None:
        return (
            "the output term of nets in stages is predicted for plain ones of 'relu' or 'linear' under a convolutional "
            f"readout, where it takes averages over three sites; {given}: draw it with `simulate`"
        )
    return ""


@takes(Staged)
def staged_terms(net: Staged, inputs: Array | None = None) -> LogTerms:
    """The terms of a net under plain labels and the squared loss, means over sites.

    Raises:
        ValueError: a net or an input whose averages do not close, saying why.
        MemoryError: more pairs of points than the machine can hold.
        OverflowError: energies outside the range of floats.

    Source: docs/theory.md section 23.
    """
    if why := stages_refusal(net):
        raise ValueError(why)
    label: Array | None = None
    with np.errstate(over="ignore", invalid="ignore"):  # seen below
        stages = Stages(net, inputs)
        states = enumerate(progress(stages.states(), len(net.units), "unit"), start=1)
        terms = [(stages.overlap(value, state), stages.label_term(value, state)) for value, state in states]
        overlap = np.array([energy for energy, _ in terms])
        if not staged_label_refusal(net):
            label = stages.pooled_label_terms() if net.is_pooled else np.array([energy for _, energy in terms])
        output = None if staged_output_refusal(net) else stages.output_terms()
    for energies in (overlap, label, output):
        if energies is not None and not np.all((energies > 0) & (energies < np.inf)):
            raise OverflowError(
                f"the mean field of this {type(net).__name__} of depth {net.depth} is outside what a float holds, as "
                "it grows or decays exponentially with depth: lower the depth, or scale branches"
            )
    by_site = [None if energies is None else np.log(energies)[:, None] for energies in (label, output)]
    return LogTerms(np.log(overlap), *by_site)


@dataclass(frozen=True)
class StagedLayer:
    """One weight matrix with its step between grids."""

    matrix: Matrix
    step: GridStep


@dataclass(frozen=True)
class StagedUnit:
    """One depth unit: the layers of its branch, its shortcut if that is no identity, whether it skips, and a^2."""

    branch: list[StagedLayer]
    shortcut: StagedLayer | None
    skips: bool
    square: float

    @property
    def goes_on(self) -> bool:
        """Whether it adds to the stream below, rather than beginning one."""
        return self.skips and self.shortcut is None


def layers_of(maps: Sequence[Any], below: Shape, sigma: Activation, inputs: int) -> list[StagedLayer]:
    """The weight matrices of a branch, an activation before each, or of a shortcut."""
    layers: list[StagedLayer] = []
    for part in maps:
        channels, grid = below
        if part.mixes_channels:
            (weight,) = part.weights
            factor = weight.variance * weight.fan_in * sigma.gain
            step = GridStep(inputs, grid, part.kernel, part.padding, part.stride)
            layers.append(StagedLayer(Matrix(sigma, channels, part.taps, factor), step))
        below = part.channels_above(channels), part.grid_above(grid)
    return layers


class Stages:
    """A net in stages with the covariances of all its values, which later gates need before the first."""

    def __init__(self, net: Staged, inputs: Array | None) -> None:
        pairs = [(net.inputs * prod(grid)) ** 2 for grid in net.value_grids]
        needed = NUMBER_BYTES * (WORKING_ARRAYS * max(pairs) + ARRAYS_PER_VALUE * sum(pairs))
        require_bytes(needed, "the mean field over all pairs of sites", "grid, samples or depth")
        what = f"the mean field over up to {max(pairs):,} pairs of sites at {len(pairs) - 1:,} units"
        if why := seconds_refusal(LAYER_SECONDS * sum(pairs), what, "lower grid, samples or depth"):
            raise ValueError(why)
        if inputs is not None and net.units[0].skip is not None:
            raise ValueError("a stream that starts from given values is not Gaussian; put a layer before it: stem=1")
        self.net, self.sigma, linear = net, net.sigma, activation_named("linear")
        self.units = []
        for unit, below in zip(net.units, net.value_shapes, strict=False):
            shortcut = layers_of(unit.shortcut, below, linear, net.inputs)
            branch = layers_of(unit.branch, below, net.sigma, net.inputs)
            skips = unit.skip is not None
            self.units.append(StagedUnit(branch, shortcut[0] if shortcut else None, skips, unit.multiplier**2))
        (self.readout,) = layers_of(net.readout_unit.branch, net.value_shapes[-1], net.sigma, net.inputs)
        self._walk_up(inputs)

    def _walk_up(self, inputs: Array | None) -> None:
        """Tr(xx)/k and c of every layer of every unit, and c of the values."""
        net = self.net
        start = np.eye(net.inputs * net.sites)
        self.covariances: list[Array] = [start]
        self.inside: list[list[tuple[Array, Array]]] = []
        product = self._product(start)
        if inputs is not None:
            features = net.sigma.function(inputs).reshape(net.inputs, net.first_channels, net.sites)
            flat = features.swapaxes(0, 1).reshape(net.first_channels, -1)
            product = flat.T @ flat / net.first_channels
        for unit in self.units:
            layers: list[tuple[Array, Array]] = []
            for layer in unit.branch:
                carried = layer.step.diagonal(product)
                layers.append((carried, layer.matrix.factor * carried / net.sigma.gain))
                product = self._product(layers[-1][1])
            covariance = unit.square * layers[-1][1]
            if unit.skips:
                below = self.covariances[-1]
                covariance = covariance + (below if unit.shortcut is None else unit.shortcut.step.diagonal(below))
            self.inside.append(layers)
            self.covariances.append(covariance)
            product = self._product(covariance)

    def _product(self, covariance: Array) -> Array:
        return self.sigma.product(*AllPairs().variances(covariance), covariance)

    @cached_property
    def energies(self) -> list[Array]:
        """E[sigma'^2]/q of the gate at every value, by point: (N, 1)."""
        return [self._energy(covariance) for covariance in self.covariances]

    def _energy(self, covariance: Array) -> Array:
        variance, _ = AllPairs().variances(covariance)
        return self.sigma.gate_product(variance, variance, variance) / self.sigma.gain

    @cached_property
    def ends(self) -> list[int]:
        """The last value of the stream of every value."""
        ends = [len(self.units)] * (len(self.units) + 1)
        for value in range(len(self.units) - 1, -1, -1):
            ends[value] = ends[value + 1] if self.units[value].goes_on else value
        return ends

    def states(self) -> Iterator[StreamState]:
        """Those of values 1 .. L."""
        nothing = np.zeros_like(self.covariances[0])
        state = self._fresh(0, LayerMoments(self.covariances[0], nothing, nothing))
        for number, unit in enumerate(self.units):
            branch = self._branch(number, state)
            if unit.goes_on:
                state = self._added(number, state, branch)
            elif unit.shortcut is not None:
                state = self._fresh(number + 1, self._changed(number, unit.shortcut, state, branch))
            else:
                state = self._fresh(number + 1, branch)
            yield state

    def _fresh(self, value: int, moments: LayerMoments) -> StreamState:
        """A stream that begins, and remembers nothing."""
        nothing = np.zeros_like(moments.kernel)
        return StreamState(moments, nothing, np.zeros((self.ends[value] - value + 1, *nothing.shape)))

    def _branch(self, number: int, state: StreamState) -> LayerMoments:
        """What the branch of unit ``number``, from 0, makes of the stream below it, before its multiplier."""
        energy, moments = self.energies[number], state.moments
        met = energy * state.ahead[0] / self.sigma.gain
        through_gates = energy * energy.T * moments.cross_channel + met + met.T
        for layer, (features, covariance) in zip(self.units[number].branch, self.inside[number], strict=True):
            moved = through_weights(layer.matrix, layer.step, features, moments, through_gates)
            moments, energy = LayerMoments(covariance, *moved), self._energy(covariance)
            through_gates = energy * energy.T * moments.cross_channel
        return moments

    def _added(self, number: int, state: StreamState, branch: LayerMoments) -> StreamState:
        """The same stream one block further."""
        square, below, energy = self.units[number].square, state.moments, self.energies[number]
        own = below.kernel**2 / self.net.value_channels[number]
        here, _ = AllPairs().variances(self.covariances[number])
        later = np.array([np.diagonal(c)[None] for c in self.covariances[number + 1 : self.ends[number] + 1]])
        gates = self.sigma.gate_square_product(here, later, self.covariances[number]) / self.sigma.gain
        crossing = self._carried(number, self._between(number, state))
        mean = self._carried(number, energy * (state.mean + own))
        ahead = self._carried(number, energy * state.ahead[1:] + gates * own)
        joined = LayerMoments(
            self.covariances[number + 1],
            below.kernel + square * branch.kernel,
            below.cross_channel + square * (crossing + crossing.T) + square**2 * branch.cross_channel,
        )
        return StreamState(joined, state.mean + square * mean, state.ahead[1:] + square * ahead)

    def _changed(self, number: int, shortcut: StagedLayer, state: StreamState, branch: LayerMoments) -> LayerMoments:
        """The first value of the next stream, where the shortcut has mixed the units of this one."""
        square, below = self.units[number].square, state.moments
        own = below.kernel**2 / self.net.value_channels[number]
        together = below.cross_channel + state.mean + state.mean.T
        features = shortcut.step.diagonal(below.covariance)
        kernel, cross = through_weights(shortcut.matrix, shortcut.step, features, below, together)
        met = self._between(number, state) + self.energies[number] * (state.mean + own)
        crossing = shortcut.step.first(self._carried(number, met).T).T
        cross = cross + square * (crossing + crossing.T) + square**2 * branch.cross_channel
        return LayerMoments(self.covariances[number + 1], kernel + square * branch.kernel, cross)

    def _between(self, number: int, state: StreamState) -> Array:
        """What is common to all units of the kernel between a gated unit (first site) and one of the stream."""
        return self.energies[number] * state.moments.cross_channel + state.ahead[0].T / self.sigma.gain

    def _carried(self, number: int, gated: Array) -> Array:
        """Moments from behind the first gate of a branch, at the first site, above all of its matrices."""
        first, *others = self.units[number].branch
        carried = first.matrix.factor * first.step.first(gated)
        for layer, (_, covariance) in zip(others, self.inside[number], strict=False):
            carried = layer.matrix.factor * layer.step.first(self._energy(covariance) * carried)
        return carried

    def overlap(self, value: int, state: StreamState) -> float:
        """F of this value."""
        second_moment = state.moments.overlap(self.net.value_channels[value]) + state.mean + state.mean.T
        return float(second_moment.mean())

    def label_term(self, value: int, state: StreamState) -> float:
        """B of this value under a convolutional readout; nan under a pooled one."""
        net, end = self.net, self.ends[value]
        if net.is_pooled:
            return float("nan")
        channels, fresh = net.value_channels[value], state.moments.overlap(net.value_channels[value])
        weights, through_gates, through_shortcut = self._labels
        label = weights[value].T / channels * (fresh + state.mean.T)
        for gate, ahead in zip(range(value, end + 1), state.ahead, strict=True):
            label = label + through_gates[gate].T * ahead / (self.sigma.gain * channels)
        if end in through_shortcut:
            label = label + through_shortcut[end].T * state.mean / channels
        outputs = net.inputs * prod(net.output_shape[1:])
        return float(channels * len(fresh) * label.mean() / outputs**2)

    @cached_property
    def _labels(self) -> tuple[list[Array], list[Array], dict[int, Array]]:
        """n w of every value, and what of it arrives through its gate, before that, and its shortcut: (N, 1) each."""
        net, depth = self.net, len(self.units)
        gamma = net.head_variance * self.readout.matrix.taps * net.value_channels[-1] * net.sigma.gain
        outputs = np.full((net.inputs * prod(net.output_shape[2:]), 1), gamma * net.outputs)
        arriving = [self.readout.step.moved_back(outputs)]
        weights, through_shortcut = [self.energies[depth] * arriving[0]], {}
        for number in range(depth - 1, -1, -1):
            unit, above = self.units[number], weights[0]
            down = unit.square * above
            for place in range(len(unit.branch) - 1, -1, -1):
                layer = unit.branch[place]
                down = layer.matrix.factor * layer.step.moved_back(down)
                if place:
                    down = self._energy(self.inside[number][place - 1][1]) * down
            weight = self.energies[number] * down
            if unit.shortcut is not None:
                through_shortcut[number] = unit.shortcut.step.moved_back(above)
                weight = weight + through_shortcut[number]
            elif unit.skips:
                weight = weight + above
            arriving.insert(0, down)
            weights.insert(0, weight)
        return weights, arriving, through_shortcut

    @cached_property
    def _layer_kernels(self) -> list[LayerKernel]:
        """Averages and kernel within a channel of values 1 .. L of a plain net."""
        kernels, kernel, gate = [], np.zeros_like(self.covariances[0]), np.ones((1, 1))
        for unit, ((features, _),), covariance in zip(self.units, self.inside, self.covariances[1:], strict=True):
            _, channels, taps, factor, _ = unit.branch[0].matrix
            carried = factor * unit.branch[0].step.diagonal(gate * kernel) / self.sigma.gain
            kernel, ends = carried + channels * taps * features, AllPairs().variances(covariance)
            gate = self.sigma.gate_product(*ends, covariance)
            kernels.append(LayerKernel(LayerAverages(covariance, gate, self._product(covariance)), kernel))
        return kernels

    def pooled_label_terms(self) -> Array:
        """B_l of a plain net under a pooled readout."""
        net = self.net
        shared = np.kron(np.eye(net.inputs), np.ones((prod(net.value_grids[-1]),) * 2))
        return self._driven_terms(net.head_variance * shared / (net.outputs * len(shared) ** 2))

    def output_terms(self) -> Array:
        """A_l of a plain net under a convolutional readout (docs/theory.md section 18)."""
        net, step, taps = self.net, self.readout.step, self.readout.matrix.taps
        top = self._layer_kernels[-1].averages.product
        outputs = net.head_variance * net.value_channels[-1] * taps * step.diagonal(top)
        errors = net.head_variance * taps * step.pulled_back(outputs) / (net.outputs * len(outputs) ** 2)
        along = [net.head_variance * taps / len(outputs) * step.moved_back(np.ones((len(outputs), 1)))]
        for number in range(len(self.units) - 1, 0, -1):
            along.insert(0, self._factor_below(number) * self.sigma.gain * self._step(number).moved_back(along[0]))
        driven = [mu * mu.T * own.averages.product for mu, own in zip(along, self._layer_kernels, strict=True)]
        return self._driven_terms(errors, driven) + self._coherent_terms(along)

    def _step(self, number: int) -> GridStep:
        return self.units[number].branch[0].step

    def _factor_below(self, number: int) -> float:
        """f n_l / (q n_{l-1}) of what comes down through the matrix of a plain unit, from 0."""
        above, below = self.net.value_channels[number + 1], self.net.value_channels[number]
        return self.units[number].branch[0].matrix.factor * above / (self.sigma.gain * below)

    def _driven_terms(self, top: Array, driven: Sequence[Array] = ()) -> Array:
        """What errors of covariance ``top`` at value L do; ``driven`` is what the outputs' mean adds to g C."""
        kernels, errors = self._layer_kernels, [top]
        for number in range(len(kernels) - 1, 0, -1):
            gated = kernels[number].averages.gate * errors[0] + (driven[number] if driven else 0.0)
            errors.insert(0, self._factor_below(number) * self._step(number).pulled_back(gated))
        terms, energy = [], np.zeros((1, 1))
        for number, (own, arriving) in enumerate(zip(kernels, errors, strict=True), start=1):
            fresh, gated = quadratic_sums(self.sigma, AllPairs(), own, arriving)
            terms.append((energy + fresh).mean())
            if number < len(kernels):
                gate, _ = AllPairs().variances(own.averages.gate)
                energy = self._moved_up(number, gate * energy + gated)
        return np.array(terms)

    def _coherent_terms(self, along: Sequence[Array]) -> Array:
        """What outputs drive along the features adds, mu by value and point being ``along``."""
        terms, energy, gain = [], np.zeros((1, 1)), self.sigma.gain
        with_z = np.zeros_like(self.covariances[1])
        for number, (mu, (averages, kernel)) in enumerate(zip(along, self._layer_kernels, strict=True), start=1):
            change = weighted_change(self.sigma, AllPairs(), averages, kernel * mu.T, with_z)
            terms.append((energy + change.energy).mean())
            if number < len(along):
                energy = self._moved_up(number, gain * energy + change.gated_energy)
                factor = self.units[number].branch[0].matrix.factor / gain
                with_z = factor * self._step(number).diagonal(change.gated_with_features)
        return np.array(terms)

    def _moved_up(self, number: int, energy: Array) -> Array:
        return self.units[number].branch[0].matrix.factor / self.sigma.gain * self._step(number).moved(energy)
