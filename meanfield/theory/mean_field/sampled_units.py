"""One step of any optimizer from rest over a sample of the units of wide layers: several samples and sites, skip
connections, any activation, any number of outputs over the width.

At leading order in 1/width the units of a layer are independent and alike, given averages over all of them. So a layer
is a sample of its units, without weights: what a matrix W of variance s gives to a vector is Gaussian, but for what it
gave before. With columns over the places of a batch, samples and sites, X the features that W sees and H = W X of the
forward pass, U and G = W^T U of the backward one, and V what the step changes of X,

    H   = Gaussian of covariance s X^T X over places, new for every unit
    G   = X (X^T X)^-1 (H^T U) + Gaussian of covariance s U^T U
    W V = H A + U R + Gaussian of covariance s (V^T V - V^T X A),
          A = (X^T X)^-1 X^T V,  R = (U^T U)^-1 (G^T V - G^T X A)

in which the sums over units are the widths times means over the sample. The first two say how the features of a unit
drive its own error, which matters where outputs are not few against the width; the last is what W hands up along the
errors that came down through it. The move of W itself adds the births

    descent  U X^T X,   polar factor  f U M, M = B^(1/2) (B^(1/2) U^T U B^(1/2))^(-1/2) B^(1/2) with B = X^T X,
    signs    sum_x sign(u . x) x over the rows x of X, for each unit u above.

On a grid a unit below has a row of X for every tap of the stencil, its values at shifted places, and its error is the
sum of what G sends to its rows, shifted back (`meanfield.theory.two_points`). A place is one more sample to a
matrix; the stencil alone joins them.

Values of a stream keep their units over all blocks, and so remember their gates. The outputs are a layer of M units,
whose errors are z - y over M and the number of their places.

Averages over P units err by about P^(-1/2), and by 1/P in the mean; the scatter between replicates says by how much.

One step of any optimizer from rest in loops, over a sample of the units of a wide stream.

h_{t+1} = h_t + e W phi(h_t) with one matrix W for all steps: its gradient is e sum_t U_{t+1} x_t^T, x_t = phi(h_t), of
rank L, so that signs are those of sums over the steps and a polar factor joins all of them, as samples are joined
above. At leading order in 1/width the matrix is no more than what it gave so far:
after right queries X with R = W X and left ones U with G = W^T U, the next ones are

    W v    = R a + U (U^T U)^-1 G^T v' + Gaussian of variance s |v'|^2,   v = X a + v',   v' orthogonal to X
    W^T u  = G b + X (X^T X)^-1 R^T u' + Gaussian of variance s |u'|^2,   u = U b + u',   u' orthogonal to U

in which sums over units are the width times means over a sample of them. Forward, x_0 .. x_{L-1} are asked; backward,
U_L .. U_2; then the gated changes T_t of the steps, T_{t+1} = T_t + e [W (gate T_t) + births]. With weights of its own
every step asks its own matrix, one column each way. The outputs of a loop are its stream, as many as units.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from meanfield.common.gaussian_averages import even_normals
from meanfield.common.machine import NUMBER_BYTES, on_one_thread, progress, require_bytes
from meanfield.common.validation import Array, require_array, takes
from meanfield.nets.layered import INPUT_LAYOUT, Sequential
from meanfield.nets.loop import Loop
from meanfield.optimizers.first_steps import POLAR, SIGN, FirstStep
from meanfield.theory.mean_field.layers import input_variance
from meanfield.theory.mean_field.step_terms import StepTerms, form_refusal, forms
from meanfield.theory.two_points import Patches

# Units of a layer and replicates: of one place; of several, whose errors at few outputs differ from draw to draw, and
# with signs of sums over them, which take the square of the units; of many, as averages err by places over units.
ONE_PLACE, SEVERAL, SIGNS_OF_SEVERAL, MANY = (2**12, 4), (2**10, 32), (2**9, 32), (2**11, 16)
FEW_PLACES, MOST_PLACES = 16, 32
# Normals of a unit that can be spread evenly.
MOST_NORMALS = 21_201
# Numbers that a unit has at a layer and a sample, of two replicates at once, as measured.
HELD = 32
# Singular values of Gram matrices below this share of the largest are rounding.
RANK = 1e-10
# Products of a unit above and one below that are held at once.
SIGNS_AT_ONCE = 2**22


class Averages(NamedTuple):
    """S_l of every unit and the mean square change of the outputs under the error of the labels, of the outputs, and of
    both, (3, L + 1), and their standard errors; mean squares of the values, (L,); and how they were taken."""

    energies: Array
    errors: Array
    values: Array
    attrs: Mapping[str, float]


@takes(Sequential)
def sampled_averages(net: Sequential, step: FirstStep, inputs: Array | None = None, loss: str = "squared") -> Averages:
    """One step of this optimizer from rest.

    Raises:
        ValueError: a net, an input or an optimizer that is not served, saying why.
        MemoryError: more layers than the machine can hold the units of.
    """
    if why := sampled_step_refusal(net, step, inputs):
        raise ValueError(why)
    given = None if inputs is None else require_array("inputs", inputs, net.input_shape, INPUT_LAYOUT)
    places = net.inputs * net.sites
    count, replicates = _units_for(places, signs=SIGN in forms(net, step))
    held = NUMBER_BYTES * HELD * count * len(net.layers) * places * net.taps
    require_bytes(held, f"following {count:,} units through {len(net.layers):,} layers", "depth or samples")
    runs, values = [], []
    with on_one_thread(), np.errstate(over="ignore", invalid="ignore"):  # seen in sums over units
        for replicate in progress(range(replicates), replicates, "replicate"):
            sampled = SampledNet(net, given, count, replicate)
            kinds = sampled.errors_of_all_kinds(loss)
            runs.append([SampledStep(sampled, step, errors).energies() for errors in kinds])
            values.append([float((sampled.values[end] ** 2).mean()) for end in net.unit_ends])
    attrs = {"sampled_units": count, "replicates": replicates}
    error = np.std(runs, axis=0, ddof=1) / sqrt(replicates)
    return Averages(np.mean(runs, axis=0), error, np.mean(values, axis=0), attrs)


@takes(Sequential)
def sampled_step_refusal(net: Sequential, step: FirstStep, inputs: Array | None = None) -> str:
    """Why `sampled_step_terms` does not serve this net and this optimizer, and what to take; empty if it does."""
    given, take = f"this is a {type(net).__name__}", "draw it with `simulate`"
    if any(net.normalised_at(place) is not None for place in range(len(net.layers) + 1)):
        return f"one step of {step.name} is not predicted behind normalisations of layers that differ: {take}"
    if net.readout_unit.multiplier != 1:
        return f"one step of {step.name} is not predicted of readouts with a multiplier: {take}"
    least, places = min(net.channels_by_layer[inputs is not None :]), net.inputs * net.sites
    if places > min(MOST_PLACES, least):
        return (
            f"one step of {step.name} joins the errors of all samples and sites, whose averages are taken for up to "
            f"{MOST_PLACES} of them and no more than channels; these are {places} under {least} channels: take fewer "
            f"inputs or a smaller grid, or {take}"
        )
    if sum(_normals_of(net)) > MOST_NORMALS:
        return (
            f"one step of {step.name} follows a unit through all layers, up to {MOST_NORMALS:,} numbers; {given} of "
            f"{len(net.layers):,} layers and {places} sample(s) times site(s): lower the depth"
        )
    if why := form_refusal(net, step):
        return why
    if inputs is not None and any(layer.skip == 0 for layer in net.layers):
        return "a stream that starts from given values is not Gaussian; put a layer before it: stem=1"
    return ""


def _normals_of(net: Sequential) -> list[int]:
    """How many of one unit its input takes, its value in every layer and at the outputs, its label, and its errors."""
    patches = [*[Patches(net)] * len(net.layers), Patches(net, net.readout)]
    columns = [each.columns for each in patches]
    return [net.inputs * net.sites, *columns, columns[-1], *(each.rows * each.columns for each in patches)]


def _units_for(places: int, *, signs: bool) -> tuple[int, int]:
    """How many are sampled, and how often."""
    if places == 1:
        return ONE_PLACE
    if places > FEW_PLACES:
        return MANY
    return SIGNS_OF_SEVERAL if signs else SEVERAL


class Errors(NamedTuple):
    """Errors at the outputs of a matrix, U, and what it sends down to the rows of features that it sees, G."""

    above: Array
    below: Array


class Moved(NamedTuple):
    """What a matrix adds to changes above it: that which errors and features give to a unit, (units, places), and the
    covariance over places of the rest."""

    given: Array
    fresh: Array


class SampledNet:
    """The layers of a net in so many sampled units, before anything moves."""

    def __init__(self, net: Sequential, inputs: Array | None, count: int, replicate: int) -> None:
        self.net, self._given, layers = net, inputs is not None, net.layers
        self.patches = [*[Patches(net)] * len(layers), Patches(net, net.readout)]
        sizes = _normals_of(net)
        normals = even_normals(sum(sizes), replicate).random(count)
        self._normals = iter(np.split(normals, np.cumsum(sizes)[:-1], axis=1))
        start = next(self._normals) * np.sqrt(input_variance(net))
        values = self.values = [start if inputs is None else inputs.swapaxes(0, 1).reshape(inputs.shape[1], -1)]
        self.features, self.gates, self.raised = list[Array](), list[Array](), list[Array]()
        for number in range(len(layers) + 1):
            sigma = net.sigma_at(number)
            self.features.append(self.patches[number].seen(sigma.function(values[-1])))
            self.gates.append(sigma.gate(values[-1]))
            self.raised.append(next(self._normals) @ root(self.variance(number) * self.gram(number)))
            if number < len(layers):
                skip = layers[number].skip
                branch = layers[number].multiplier * self.raised[-1]
                values.append(branch if skip is None else values[skip] + branch)
        self._labels, self._backward = next(self._normals), list(self._normals)

    @property
    def widths(self) -> tuple[int, ...]:
        """Units of values 0 .. N and of the outputs."""
        return (*self.net.channels_by_layer, self.net.outputs)

    def fan_in(self, number: int) -> int:
        """Rows of features that the matrix on value ``number`` sees."""
        return self.widths[number] * self.patches[number].rows

    def variance(self, number: int) -> float:
        """That of the weights which read value ``number``."""
        net = self.net
        if number == len(net.layers):
            return net.head_variance
        return net.layers[number].variance_factor / (net.sigma_at(number).gain * self.fan_in(number))

    def gram(self, number: int) -> Array:
        """X^T X over places of the features of a value."""
        return self.fan_in(number) * mean_product(self.features[number], self.features[number])

    def few_features(self, number: int) -> Array:
        """Features of about as many rows as units, where more would be averaged over for every unit above."""
        patches, value = self.patches[number], self.values[number]
        if patches.rows == 1 or (self._given and number == 0):
            return self.features[number]
        return patches.seen(self.net.sigma_at(number).function(value[: max(1, len(value) // patches.rows)]))

    def errors_of_all_kinds(self, loss: str) -> list[list[Errors]]:
        """Errors at the matrices of layers 1 .. N and at the readout: of the labels, of the outputs, and of both.

        Of one place and the squared loss they are those of many outputs, times what M of them are; else those of M.
        """
        net, columns = self.net, self.patches[-1].columns
        count = len(self._labels) if net.inputs * net.sites == 1 and loss == "squared" else net.outputs
        outputs, labels = self.raised[-1][:count], -self._labels[:count]
        if loss == "cross_entropy":  # labels are drawn evenly: the largest of M normals
            labels = -net.outputs * (labels == labels.max(axis=0)) + 1.0
            outputs = net.outputs * softmax(outputs, axis=0) - 1.0
        scale = net.outputs * columns
        return [self._errors_down(above / scale) for above in (labels, outputs, outputs + labels)]

    def _errors_down(self, above: Array) -> list[Errors]:
        net, errors = self.net, [self._sent_down(len(self.net.layers), above)]
        arriving: dict[int, Array] = {}  # by value, through the skip that starts there
        for number in reversed(range(len(net.layers))):
            layer, sent = net.layers[number], self.patches[number + 1].sent_back(errors[-1].below)
            at_value = self.gates[number + 1] * sent + arriving.pop(number + 1, 0.0)
            if layer.skip is not None:
                arriving[layer.skip] = at_value
            errors.append(self._sent_down(number, layer.multiplier * at_value))
        return errors[::-1]

    def _sent_down(self, number: int, above: Array) -> Errors:
        if number == 0:  # inputs do not change
            return Errors(above, np.zeros_like(self.features[0]))
        width, raised = self.widths[number + 1], self.raised[number][: len(above)]
        along = inverse(self.gram(number)) @ (width * mean_product(raised, above))
        noise = self.patches[number].as_rows(self._backward[number]) @ root(
            self.variance(number) * width * mean_product(above, above)
        )
        return Errors(above, self.features[number] @ along + noise)


def mean_product(first: Array, second: Array) -> Array:
    """Means over units of products between places."""
    return np.asarray(first.T @ second / len(first))


def inverse(matrix: Array) -> Array:
    """That of a symmetric matrix; 0 on what is rounding."""
    return np.asarray(np.linalg.pinv(_finite(matrix), RANK, hermitian=True))


def root(matrix: Array, power: float = 0.5) -> Array:
    """The symmetric root of a covariance, or that power of it; 0 on what is rounding."""
    values, vectors = np.linalg.eigh(_finite(matrix + matrix.T) / 2)
    kept = values > RANK * max(values[-1], 0.0)
    powers = np.where(kept, np.abs(np.where(kept, values, 1.0)) ** power, 0.0)
    return np.asarray((vectors * powers) @ vectors.T)


def _finite(matrix: Array) -> Array:
    if not np.all(np.isfinite(matrix)):
        raise OverflowError(
            "sums over the units of a layer leave the range of floats: lower the depth, or scale branches or weights"
        )
    return matrix


class SampledStep:
    """One step of an optimizer on a `SampledNet` under given errors."""

    def __init__(self, sampled: SampledNet, step: FirstStep, errors: list[Errors]) -> None:
        self._sampled, self._step, self._errors = sampled, step, errors
        self._names = list(sampled.net.weights)

    def energies(self) -> Array:
        """S_l of every unit, means over places, and the mean square change of the outputs: (L + 1,)."""
        net, start = self._sampled.net, np.zeros_like(self._sampled.values[0])
        changes = [Moved(start, np.zeros((start.shape[1],) * 2))]
        for number, layer in enumerate(net.layers):
            moved = self._through(number, changes[-1])
            given, fresh = layer.multiplier * moved.given, layer.multiplier**2 * moved.fresh
            if layer.skip is not None:
                given, fresh = given + changes[layer.skip].given, fresh + changes[layer.skip].fresh
            changes.append(Moved(given, fresh))
        outputs = self._through(len(net.layers), changes[-1])
        return np.array([_energy(changes[end]) for end in net.unit_ends] + [_energy(outputs)])

    def _through(self, number: int, change: Moved) -> Moved:
        """W V and the births of a matrix, from the change of the value that it reads."""
        sampled, width, fan_in = self._sampled, self._sampled.widths[number + 1], self._sampled.fan_in(number)
        patches = sampled.patches[number]
        features, gates, raised = (of[number] for of in (sampled.features, sampled.gates, sampled.raised))
        above, below = self._errors[number]
        met = patches.seen(gates * change.given)
        with_features = fan_in * mean_product(features, met)
        along = inverse(sampled.gram(number)) @ with_features
        errors = width * mean_product(above, above)
        with_errors = fan_in * (mean_product(below, met) - mean_product(below, features) @ along)
        returned = inverse(errors) @ with_errors
        rest = patches.sum_over_rows(mean_product(gates, gates) * change.fresh)
        energy = fan_in * (mean_product(met, met) + rest / patches.rows)
        fresh = sampled.variance(number) * (energy - with_features.T @ along)
        if number == len(sampled.net.layers):  # what errors do not span
            fresh = fresh * max(0.0, 1 - np.linalg.matrix_rank(errors, hermitian=True) / width)
        return Moved(raised[: len(above)] @ along + above @ returned + self._births(number), fresh)

    def _births(self, number: int) -> Array:
        """What the move of a matrix adds to its output."""
        sampled, outputs = self._sampled, self._sampled.widths[number + 1]
        role, above = sampled.net.role_of(self._names[number]), self._errors[number].above
        features = sampled.few_features(number) if self._step.form_of(role) == SIGN else sampled.features[number]
        return births(self._step, role, above, features, (outputs, sampled.fan_in(number)))


def births(step: FirstStep, role: str, above: Array, features: Array, shape: tuple[int, int]) -> Array:
    """What the move of a matrix of this role and shape adds to its output, (units above, places)."""
    outputs, inputs = shape
    form = step.form_of(role)
    if form == SIGN:
        return inputs * signed_features(above, features)
    gram = inputs * mean_product(features, features)
    if form == POLAR:
        half = root(gram)
        middle = root(half @ (outputs * mean_product(above, above)) @ half, -0.5)
        return np.asarray(step.factor_of(role, outputs, inputs) * above @ (half @ middle @ half))
    return np.asarray(above @ gram)


def signed_features(above: Array, features: Array) -> Array:
    """The mean of sign(u . x) x over the units x below, for every unit u above."""
    if above.shape[1] == 1:  # sign(u) |x|
        return np.sign(above) * np.abs(features).mean()
    rows = max(1, SIGNS_AT_ONCE // len(features))
    # Single precision holds no error of 1e-40, and signs know no size; of sums that rounding decides they say nothing.
    sized = np.ldexp(above, -np.frexp(np.abs(above).max())[1])
    narrow, parts = features.astype(np.float32), []
    for start in range(0, len(above), rows):
        sums = sized[start : start + rows].astype(np.float32) @ narrow.T
        parts.append(np.sign(sums, out=sums) @ narrow)
    return np.concatenate(parts).astype(np.float64) / len(features)


def _energy(change: Moved) -> float:
    return float((change.given**2).mean() + np.trace(change.fresh) / len(change.fresh))


# Units of the stream and replicates; with signs of sums over steps, which take the square of the units.
UNITS, UNITS_UNDER_SIGNS, REPLICATES = 2**12, 2**10, 8
MOST_STEPS = 64
# Shares of labels and of outputs in the error.
KINDS = ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0))


@takes(Loop)
def loop_step_terms(loop: Loop, step: FirstStep) -> StepTerms:
    """The terms of one step of this optimizer from rest, for labels of the stream of variance 1.

    Raises:
        ValueError: a loop or an optimizer that is not served, saying why.
    """
    if why := loop_step_refusal(loop, step):
        raise ValueError(why)
    signs = SIGN in forms(loop, step)
    count, runs, values = UNITS_UNDER_SIGNS if signs and loop.tied else UNITS, [], []
    with on_one_thread(), np.errstate(over="ignore", invalid="ignore"):  # seen in sums over units
        for replicate in progress(range(REPLICATES), REPLICATES, "replicate"):
            anew = [SampledLoop(loop, step, count, replicate) for _ in KINDS]  # a matrix keeps what it has been asked
            runs.append([sampled.energies(*shares) for sampled, shares in zip(anew, KINDS, strict=True)])
            values.append(anew[0].values)
    label, output, update = means = np.mean(runs, axis=0)
    scatter = np.std(runs, axis=0, ddof=1) / sqrt(REPLICATES) / means
    attrs = {"sampled_units": count, "replicates": REPLICATES, "relative_error": float(scatter.max())}
    return StepTerms(
        update=update, value=np.mean(values, axis=0), label=label, output=output, outputs=float(update[-1]), attrs=attrs
    )


@takes(Loop)
def loop_step_refusal(loop: Loop, step: FirstStep) -> str:
    """Why `loop_step_terms` does not serve this loop and this optimizer, and what to take; empty if it does."""
    if why := form_refusal(loop, step):
        return why
    if loop.depth > min(MOST_STEPS, loop.width):
        return (
            f"one step of {step.name} joins all steps of a loop, up to {MOST_STEPS} of them and no more than units; "
            f"these are {loop.depth} of {loop.width} units: take fewer, or draw it with `simulate`"
        )
    return ""


class Queried:
    """A Gaussian matrix by what it gave to columns over sampled units, from the right (W v) and from the left (W^T u).

    Columns are kept orthonormal, in mean squares over the sample, each with its answer.
    """

    def __init__(self, width: int, variance: float, count: int, most: int) -> None:
        self._size = sqrt(width * variance)
        self._right, self._left = _Answered(count, most), _Answered(count, most)

    def raise_(self, column: Array, noise: Array) -> Array:
        """W v."""
        return self._answer(column, noise, self._right, self._left)

    def lower(self, column: Array, noise: Array) -> Array:
        """W^T u."""
        return self._answer(column, noise, self._left, self._right)

    def _answer(self, column: Array, noise: Array, same: _Answered, other: _Answered) -> Array:
        along = same.columns @ column / len(column)
        rest = column - along @ same.columns
        again = same.columns @ rest / len(column)  # what rounding has left
        along, rest = along + again, rest - again @ same.columns
        size = sqrt(float((rest**2).mean()))
        of_rest = (other.answers @ rest / len(column)) @ other.columns + self._size * size * noise
        known = along @ same.answers
        if size**2 > RANK * float((column**2).mean()):
            same.add(rest / size, of_rest / size)
        return np.asarray(known + of_rest)


class _Answered:
    """Orthonormal columns and what a matrix gave to each, as rows."""

    def __init__(self, count: int, most: int) -> None:
        self._columns, self._answers, self._known = np.empty((most, count)), np.empty((most, count)), 0

    @property
    def columns(self) -> Array:
        return self._columns[: self._known]

    @property
    def answers(self) -> Array:
        return self._answers[: self._known]

    def add(self, column: Array, answer: Array) -> None:
        self._columns[self._known], self._answers[self._known] = column, answer
        self._known += 1


class SampledLoop:
    """A loop in so many sampled units of its stream."""

    def __init__(self, loop: Loop, step: FirstStep, count: int, replicate: int) -> None:
        self._loop, self._step = loop, step
        normals = even_normals(3 * loop.depth + 2, replicate).random(count).T
        self._labels, start, self._noise = normals[0], normals[1], normals[2:].reshape(3, loop.depth, count)
        uses = loop.depth if loop.tied else 1
        matrices = [
            Queried(loop.width, loop.element_variance, count, 2 * uses) for _ in range(1 if loop.tied else loop.depth)
        ]
        self._matrices = [matrices[place % len(matrices)] for place in range(loop.depth)]
        stream = [start]
        self._features, self._gates = list[Array](), list[Array]()
        for matrix, noise in zip(self._matrices, self._noise[0], strict=True):
            self._features.append(loop.sigma.function(stream[-1]))
            self._gates.append(loop.sigma.gate(stream[-1]))
            stream.append(stream[-1] + loop.step_size * matrix.raise_(self._features[-1], noise))
        self._last = stream[-1]
        self.values = np.array([float((value**2).mean()) for value in stream[1:]])

    def energies(self, labels: float, outputs: float) -> Array:
        """S of steps 1 .. L for an error with these shares of labels and outputs: (L,)."""
        loop, size = self._loop, self._loop.step_size
        errors = [(outputs * self._last - labels * self._labels) / loop.width]
        for place in reversed(range(1, loop.depth)):
            above = size * errors[-1]
            lowered = self._matrices[place].lower(above, self._noise[1][place])
            errors.append(errors[-1] + self._gates[place] * lowered)
        births = self._births(size * np.column_stack(errors[::-1]), np.column_stack(self._features))
        change, energies = np.zeros_like(self._last), []
        for place, matrix in enumerate(self._matrices):
            met = self._gates[place] * change
            raised = matrix.raise_(met, self._noise[2][place]) if place else np.zeros_like(change)
            change = change + size * (raised + births[:, place])
            energies.append(float((change**2).mean()))
        return np.array(energies)

    def _births(self, above: Array, features: Array) -> Array:
        """What the move of the weights adds to their output at every step: columns."""
        shape, roles = (self._loop.width,) * 2, [self._loop.role_of(name) for name in self._loop.weights]
        if self._loop.tied:
            return births(self._step, roles[0], above, features, shape)
        columns = [births(self._step, role, above[:, [at]], features[:, [at]], shape) for at, role in enumerate(roles)]
        return np.concatenate(columns, axis=1)
