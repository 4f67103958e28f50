"""One step of any optimizer from rest in fully-connected residual nets, one sample, at leading order in 1/width.

A weight matrix moves by -eta D, and with one sample its gradient G = u x^T has rank one, u the error of its output and
x the features that it reads. What its own move adds to its output, its birth, is along u and along its signs:

    D x = lambda u + beta sign(u):   descent  lambda = |x|^2,   signs  beta = |x|_1,   polar  lambda = f |x| / |u|

with f the shape factor. Weights were used by the backward pass too, as g = W^T u, so that what passes them upwards is

    W v = r u + fresh,   r = g.v / |u|^2,   fresh ~ N(0, s |v|^2) on every unit, s the variance of the weights.

**On the stream** z_{l+1} = z_l + a branch(z_l) one unit keeps its gates: over the blocks they are the signs of a
Gaussian z_0 .. z_K with independent increments, E z_l z_m = c_min(l,m). Its error U_l = U_{l+1} + gate_l g_l, U_K =
gate_K g_K, gathers independent Gaussians of variance delta_l where gates are open, so that given the gates

    Var(U_l | gates) = V_l = sum_{m >= l} gate_m delta_m,   and U_l - U_m is independent of U_m for l < m.

Its change is T_l = sum_{m <= l} [B_m U_m + A_m sign(U_m)] + fresh, as a block ends with u = a U_{l+1} and its output is
multiplied by a: B_{l+1} = a^2 (r + lambda), A_{l+1} = |a| beta. Given the gates, for m <= l,

    E U_m U_l = V_l,   E sign(U_m) U_l = (2 / pi)^(1/2) V_l / V_m^(1/2),   E U_m sign(U_l) = (2 V_l / pi)^(1/2),
    E sign(U_m) sign(U_l) = (2 / pi) arcsin (V_l / V_m)^(1/2),   E g_l gate_l T_l = gate_l delta_l dT_l / dg_l,
    dT_l / dg_l = gate_l sum_m [B_m + A_m (2 / (pi V_m))^(1/2)]

(a unit all of whose gates are closed has U = sign(U) = 0), and M_l = E[T_l^2 | gates] follows block by block. S_l is
its mean over the gates. Births of different blocks at one unit are almost alike, U_m being almost the same for all m:
they add up coherently, where those of descent and of polar factors do, too, but with a factor a^2 against a.

**Averages over gates.** If nothing has a sign, all is linear in gates, and pairs of gates say it all: the theory is
exact at leading order, and with lambda = |x|^2 it is the label term of `predict` under descent. With signs it takes
averages of functions of all gates of a unit at once, over evenly spread walks z (`meanfield.theory.mean_field.
stream_gates`); their scatter between scramblings says how far off they are. Without gates they are exact.

**A plain layer** is a stream without blocks: T = B U + A sign(U) + fresh with U = gate g. So all values of a net are
places on streams, and one rule serves all matrices.

**Whose error.** With few outputs against the width, the outputs' error is independent of the layers' features, as the
labels' is: labels, outputs and their difference act alike, up to their size. Signs and polar factors do not know it.
The readout has M errors e, of which it takes the shares E|e_t| / |e|, and its fresh part misses one direction of M.

Source: docs/theory.md section 24.

The gates that one unit of a stream passes, block by block, and averages over them.

Over the blocks a unit's values z_0 .. z_K are a Gaussian walk: increments are independent, E z_l z_m = c_min(l,m). Its
gates are 1 where z is positive (all are 1 without gates), and neighbouring ones mostly agree. Two ways to average over
them share one interface, in which a variable is an array that may be added to another and multiplied by a number:

    `PairGates`   variables linear in gates, as their coefficients of (1, gate_0 .. gate_K): exact, from the
                  probabilities 1/4 + arcsin(rho) / (2 pi) that two gates are open
    `GatePaths`   any functions of all gates, as their values on evenly spread walks, each with its mirror image
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import pi, sqrt
from typing import NamedTuple, Protocol

import numpy as np

from meanfield.common.gaussian_averages import even_normals, points_within
from meanfield.common.machine import on_one_thread, progress, seconds_refusal
from meanfield.common.validation import Array, require_array, takes
from meanfield.nets.layered import INPUT_LAYOUT, Sequential
from meanfield.optimizers.first_steps import GRADIENT, POLAR, SIGN, FirstStep
from meanfield.theory.mean_field.step_terms import StepTerms, form_refusal, forms, mean_share


class GateWalk:
    """The walk z_0 .. z_K of one unit over the values of a stream, of these variances, and whether it meets gates."""

    def __init__(self, variances: Array, *, gated: bool) -> None:
        self.variances, self.gated = variances, gated

    @cached_property
    def axes(self) -> Array:
        """A root of the covariance, (values, axes), the widest axis first; it takes K^3 and serves all scramblings."""
        strengths, directions = np.linalg.eigh(np.minimum.outer(self.variances, self.variances))
        return np.asarray(directions[:, ::-1] * np.sqrt(np.maximum(strengths[::-1], 0.0)))


class StreamGates(Protocol):
    """Averages over the gates of one unit."""

    def constant(self, value: float) -> Array:
        """A variable that does not depend on gates."""

    def gate(self, place: int) -> Array:
        """The gate at this place as a variable."""

    def mean(self, variable: Array) -> float:
        """Its expectation."""

    def mean_open(self, place: int, variable: Array) -> float:
        """The expectation of its product with the gate at this place."""


class PairGates:
    """Variables that are linear in gates; averages are exact."""

    def __init__(self, walk: GateWalk) -> None:
        variances = walk.variances
        both = np.ones((len(variances),) * 2)
        if walk.gated:
            ratio = np.minimum.outer(variances, variances) / np.maximum.outer(variances, variances)
            both = 1 / 4 + np.arcsin(np.sqrt(ratio)) / (2 * pi)
        open_ = np.diag(both)
        self._means = np.concatenate([[1.0], open_])
        self._with_gate = np.concatenate([open_[:, None], both], axis=1)

    def constant(self, value: float) -> Array:
        return self._unit(0) * value

    def gate(self, place: int) -> Array:
        return self._unit(place + 1)

    def mean(self, variable: Array) -> float:
        return float(self._means @ variable)

    def mean_open(self, place: int, variable: Array) -> float:
        return float(self._with_gate[place] @ variable)

    def _unit(self, entry: int) -> Array:
        unit = np.zeros(len(self._means))
        unit[entry] = 1.0
        return unit


class GatePaths:
    """Variables on so many pairs of walks; two walks hold all that one gate can do, and one all that none can."""

    def __init__(self, walk: GateWalk, paths: int, replicate: int) -> None:
        places = len(walk.variances)
        if not walk.gated or places == 1:
            self._gates = np.array([[1.0, 0.0]] if walk.gated else [[1.0]]).repeat(places, axis=0)
            return
        normals = even_normals(places, replicate).random(paths)  # the first coordinates are the most even
        is_open = walk.axes @ normals.T > 0
        self._gates = np.concatenate([is_open, ~is_open], axis=1).astype(np.float64)

    def constant(self, value: float) -> Array:
        return np.full(self._gates.shape[1], value)

    def gate(self, place: int) -> Array:
        return self._gates[place]

    def mean(self, variable: Array) -> float:
        return float(variable.mean())

    def mean_open(self, place: int, variable: Array) -> float:
        return float((self._gates[place] * variable).mean())


# E |g| of a Gaussian over its standard deviation.
SIZE = sqrt(2 / pi)
# Walks of gates in one scrambling, by walks times pairs of blocks, and scramblings.
FEWEST_PATHS, MOST_PATHS, PATH_PAIRS, SCRAMBLINGS = 256, 2**13, 5e6, 4
# Of a processor, for a walk at a pair of blocks; and for the axes of all walks, times blocks^3.
PAIR_SECONDS, AXES_SECONDS = 7e-9, 8e-10
# Overlaps of signs that are held at once: what the nearest memory of a processor holds.
OVERLAPS_AT_ONCE = 2**15
# Below all variances of errors.
TINY = 1e-300


@takes(Sequential)
def residual_step_terms(net: Sequential, step: FirstStep, inputs: Array | None = None) -> StepTerms:
    """The terms of one step of this optimizer from rest, for one sample and few outputs against the width.

    Raises:
        ValueError: a net, an input or an optimizer that is not served, saying why.
    """
    if why := residual_step_refusal(net, step, inputs):
        raise ValueError(why)
    used = forms(net, step)
    gated = net.sigma_at(0).name != "linear"
    averaged = SIGN in used and gated and net.has_skips
    own = _features(net, inputs)
    streams = [(values, GateWalk(np.array(own.variances)[values], gated=gated)) for values in _streams(net)]
    replicates = range(SCRAMBLINGS if averaged else 1)
    # what leaves the range of floats is seen where energies are taken up
    with on_one_thread(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        of_outputs = net.head_variance * net.head_fan_in * net.sigma_at(0).gain * own.variances[-1]
        errors = {"label": 1.0, "output": of_outputs, "update": 1.0 + of_outputs}
        scales = errors if GRADIENT in used else {"label": 1.0}  # the other forms do not know the size of the error
        runs = np.array(
            [
                [_Walk(net, step, own, streams, SIGN in used, run).energies(error) for error in scales.values()]
                for run in progress(replicates, len(replicates), "scrambling")
            ]
        )
    energies = dict(zip(scales, runs.mean(axis=0), strict=True))
    first = energies["label"]
    attrs = {}
    if averaged:
        scatter = runs[:, 0].std(axis=0, ddof=1) / first / sqrt(SCRAMBLINGS)
        attrs = {"gate_paths": 2 * SCRAMBLINGS * paths_for(net), "relative_error": float(scatter.max())}
    return StepTerms(
        update=energies.get("update", first)[:-1],
        value=np.array(own.variances)[[*net.unit_ends]],
        label=first[:-1],
        output=energies.get("output", first)[:-1],
        outputs=float(energies.get("update", first)[-1]),
        attrs=attrs,
    )


@takes(Sequential)
def residual_step_refusal(net: Sequential, step: FirstStep, inputs: Array | None = None) -> str:
    """Why `residual_step_terms` does not serve this net and this optimizer, and what to take; empty if it does."""
    given, take = f"this is a {type(net).__name__}", "draw it with `simulate`"
    if net.inputs > 1 or net.sites > 1 or net.taps > 1:
        return (
            f"one step of {step.name} is predicted in residual nets of one sample and one site, where gradients have "
            f"rank one; {given} of {net.inputs} sample(s), {net.sites} site(s) and {net.taps} tap(s): {take}"
        )
    if net.sigma_at(0).name not in ("relu", "linear"):
        return (
            f"one step of {step.name} is predicted in residual nets of 'relu' and 'linear', whose gates are open or "
            f"closed; {given} of activation {net.activation!r}: {take}"
        )
    if why := form_refusal(net, step):
        return why
    if inputs is not None and any(layer.skip == 0 for layer in net.layers):
        return "a stream that starts from given values is not Gaussian; put a layer before it: stem=1"
    if SIGN in forms(net, step) and net.sigma_at(0).name != "linear":
        blocks = sum(layer.skip is not None for layer in net.layers)
        pairs = SCRAMBLINGS * 2 * FEWEST_PATHS * blocks**2 / 2
        needed = PAIR_SECONDS * pairs + AXES_SECONDS * blocks**3
        remedy = "lower the depth, or take linear units or an optimizer of polar factors"
        return seconds_refusal(needed, f"averages over walks of {blocks:,} gates", remedy)
    return ""


def paths_for(net: Sequential) -> int:
    """Walks, without their mirror images, that one scrambling takes."""
    blocks = sum(layer.skip is not None for layer in net.layers)
    return points_within(PATH_PAIRS / max(blocks, 1) ** 2, FEWEST_PATHS, MOST_PATHS)


class ValueVariances(NamedTuple):
    """Variances of values 0 .. N, with E sigma(z)^2 = q times theirs; and E |sigma| of the input."""

    variances: list[float]
    input_size: float


def _features(net: Sequential, inputs: Array | None) -> ValueVariances:
    sigma = net.sigma_at(0)
    start = net.input_energy / sigma.gain
    size = SIZE * sqrt(start) * sigma.gain
    if inputs is not None:
        values = sigma.function(require_array("inputs", inputs, net.input_shape, INPUT_LAYOUT))
        start, size = float((values**2).mean()) / sigma.gain, float(np.abs(values).mean())
    variances = [start]
    for layer in net.layers:
        branch = layer.multiplier**2 * layer.variance_factor * variances[-1]
        variances.append(branch + (0.0 if layer.skip is None else variances[layer.skip]))
    return ValueVariances(variances, size)


class Read(NamedTuple):
    """What a matrix meets where a value's change passes its gates, per unit.

    Attributes:
        along: E g v, v = gate T, with the error g that the matrix sends back to the value.
        energy: E v^2.
    """

    along: float
    energy: float


class Stream:
    """Errors and changes of values that identity skips link, of one unit given its gates.

    A matrix reads the value at every level, or a readout that of the last; each sends an error back.
    """

    def __init__(self, gates: StreamGates, levels: int, *, signs: bool) -> None:
        self._gates, self._signs = gates, signs
        self._sent_back = np.zeros(levels)  # delta_l
        self._errors = np.tile(gates.constant(0.0), (levels, 1))  # V_l
        self._energy = gates.constant(0.0)  # M_l
        self._linear, self._signed = np.zeros(levels), np.zeros(levels)  # B_m, A_m
        self._steepness = gates.constant(0.0)  # sum_m A_m (2 / (pi V_m))^(1/2)

    def receive(self, level: int, variance: float) -> None:
        """An error of this variance arrives behind the gate at a level; those above have arrived before."""
        above = self._errors[level + 1] if level + 1 < len(self._errors) else 0.0
        self._sent_back[level] = variance
        self._errors[level] = above + variance * self._gates.gate(level)

    def error(self, level: int) -> float:
        """E U_l^2."""
        return self._gates.mean(self._errors[level])

    def change(self, level: int, linear: float, signed: float, fresh: float) -> float:
        """Add linear U_l + signed sign(U_l) + fresh, of that variance, to the change, and return S_l."""
        errors, before = self._errors[level], float(self._linear.sum())
        self._energy = self._energy + self._gates.constant(fresh) + linear * (linear + 2 * before) * errors
        if self._signs:
            self._add_signs(level, linear + before, linear, signed)
        self._linear[level], self._signed[level] = linear, signed
        return self._gates.mean(self._energy)

    def _add_signs(self, level: int, along: float, linear: float, signed: float) -> None:
        """What signs add to the energy: earlier ones with linear U_l, and sign(U_l) with all."""
        errors = self._errors[level]
        sizes = np.sqrt(errors)
        inverse = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0)
        overlaps = signed / 2 * (errors > 0)
        rows = max(1, OVERLAPS_AT_ONCE // len(errors))
        for start in range(0, level, rows):
            earlier = slice(start, min(start + rows, level))
            ratio = errors / np.maximum(self._errors[earlier], TINY)  # 0 / 0 is 0: with V_m, V_l is 0
            overlaps += self._signed[earlier] @ np.arcsin(np.sqrt(ratio, out=ratio), out=ratio) * (2 / pi)
        self._energy = self._energy + 2 * linear * self._steepness * errors
        self._energy = self._energy + 2 * signed * (along * SIZE * sizes + overlaps)
        self._steepness = self._steepness + signed * SIZE * inverse

    def read(self, level: int) -> Read:
        """What the matrix that reads this level meets."""
        slope = self._gates.constant(float(self._linear.sum())) + self._steepness
        return Read(
            self._sent_back[level] * self._gates.mean_open(level, slope), self._gates.mean_open(level, self._energy)
        )


@dataclass(frozen=True)
class StreamLevel:
    """A level of a stream."""

    stream: Stream
    level: int


class _Walk:
    """All values of a net as places on streams, and its matrices down and up between them."""

    def __init__(
        self,
        net: Sequential,
        step: FirstStep,
        features: ValueVariances,
        streams: list[tuple[list[int], GateWalk]],
        signs: bool,
        replicate: int,
    ) -> None:
        self._net, self._step, self._features = net, step, features
        self._names, self._gain = list(net.weights), net.sigma_at(0).gain
        self._places: dict[int, StreamLevel] = {}
        for values, walk in streams:
            gates: StreamGates = GatePaths(walk, paths_for(net), replicate) if signs else PairGates(walk)
            stream = Stream(gates, len(values), signs=signs)
            self._places |= {value: StreamLevel(stream, level) for level, value in enumerate(values)}

    def energies(self, error: float) -> Array:
        """S_l of every unit and the mean square change of the outputs, for errors M e of this variance: (L + 1,)."""
        norms = self._errors_down(error / self._net.outputs)
        widths, changes = self._net.channels_by_layer, []
        for number, layer in enumerate(self._net.layers):
            linear, signed, fresh = self._through(number, norms[number], widths[number + 1])
            place, square = self._places[number + 1], layer.multiplier**2
            changed = place.stream.change(place.level, square * linear, abs(layer.multiplier) * signed, square * fresh)
            changes.append(changed)
        by_unit = [changes[end - 1] for end in self._net.unit_ends]
        return np.array([*by_unit, self._output_change(norms[-1])])

    def _errors_down(self, readout: float) -> list[float]:
        """|u|^2 of layers 1 .. N and of the readout, which are sent back to the values below."""
        net, widths, norms = self._net, self._net.channels_by_layer, [readout]
        top = self._places[len(net.layers)]
        top.stream.receive(top.level, net.head_variance * readout)
        for number in reversed(range(len(net.layers))):
            layer, above, below = net.layers[number], self._places[number + 1], self._places[number]
            norms.append(layer.multiplier**2 * widths[number + 1] * above.stream.error(above.level))
            below.stream.receive(below.level, layer.variance_factor / (self._gain * widths[number]) * norms[-1])
        return norms[::-1]

    def _through(self, number: int, norm: float, outputs: int) -> tuple[float, float, float]:
        """r + lambda, beta and the fresh variance of what a matrix passes on, its own move included."""
        net, name = self._net, self._names[number]
        inputs, value = net.channels_by_layer[number], self._features.variances[number]
        place = self._places[number]
        met = place.stream.read(place.level)
        is_readout = number == len(net.layers)
        variance = net.head_variance if is_readout else net.layers[number].variance_factor / (self._gain * inputs)
        square, role = inputs * self._gain * value, net.role_of(name)
        passed, fresh, form = inputs * met.along / norm, variance * inputs * met.energy, self._step.form_of(role)
        if form == SIGN:
            size = SIZE * sqrt(value) * self._gain if number else self._features.input_size
            return passed, inputs * size, fresh
        if form == POLAR:
            return passed + self._step.factor_of(role, outputs, inputs) * sqrt(square / norm), 0.0, fresh
        return passed + square, 0.0, fresh

    def _output_change(self, norm: float) -> float:
        """The mean square change of M outputs: its fresh part is orthogonal to the errors."""
        count = self._net.outputs
        linear, signed, fresh = self._through(len(self._net.layers), norm, count)
        mixed = 2 * linear * sqrt(norm) * signed * mean_share(count)
        return linear**2 * norm / count + mixed + signed**2 + (1 - 1 / count) * fresh


def _streams(net: Sequential) -> list[list[int]]:
    """The values of every stream, from below: those that skips link, and every other one by itself."""
    starts: dict[int, list[int]] = {0: [0]}
    for value, layer in enumerate(net.layers, start=1):
        if layer.skip is None:
            starts[value] = [value]
        else:
            starts[value] = starts[layer.skip]
            starts[value].append(value)
    return [values for value, values in starts.items() if values[0] == value]
