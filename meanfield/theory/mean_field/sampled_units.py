"""One step of any optimizer from rest over a sample of the units of wide layers: several samples, any activation, any
number of outputs over the width.

At leading order in 1/width the units of a layer are independent and alike, given averages over all of them. So a layer
is a sample of its units, without weights: what a matrix W of variance s gives to a vector is Gaussian, but for what it
gave before. With columns over the samples of a batch, X and H = W X of the forward pass, U and G = W^T U of the
backward one, and V what the step changes below,

    H   = Gaussian of covariance s X^T X over samples, new for every unit
    G   = X (X^T X)^-1 (H^T U) + Gaussian of covariance s U^T U
    W V = H A + U R + Gaussian of covariance s (V^T V - V^T X A),
          A = (X^T X)^-1 X^T V,  R = (U^T U)^-1 (G^T V - G^T X A)

in which the sums over units are the widths times means over the sample. The first two say how the features of a unit
drive its own error, which matters where outputs are not few against the width; the last is what W hands up along the
errors that came down through it. The move of W itself adds the births

    descent  U X^T X,   polar factor  f U M, M = B^(1/2) (B^(1/2) U^T U B^(1/2))^(-1/2) B^(1/2) with B = X^T X,
    signs    sum_x sign(u . x) x over the units x below, for each unit u above.

Values of a stream keep their units over all blocks, and so remember their gates. The outputs are a layer of M units,
whose errors are z - y over M and the number of samples.

Averages over P units err by about P^(-1/2), and by 1/P in the mean; the scatter between replicates says by how much.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.common.gaussian_averages import even_normals
from meanfield.common.validation import Array
from meanfield.nets.layered import Sequential
from meanfield.optimizers.first_steps import POLAR, SIGN, FirstStep
from meanfield.theory.mean_field.layers import input_variance

# Singular values of Gram matrices below this share of the largest are rounding.
RANK = 1e-10
# Products of a unit above and one below that are held at once.
SIGNS_AT_ONCE = 2**22


class Errors(NamedTuple):
    """Errors at the outputs of a matrix, U, and what it sends down to the values that it reads, G: (units, samples)."""

    above: Array
    below: Array


class Moved(NamedTuple):
    """What a matrix adds to changes above it: that which errors and features give to a unit, (units, samples), and the
    covariance over samples of the rest."""

    given: Array
    fresh: Array


class SampledNet:
    """The layers of a net in so many sampled units, before anything moves."""

    def __init__(self, net: Sequential, inputs: Array | None, count: int, replicate: int) -> None:
        self.net, samples, layers = net, net.inputs, net.layers
        normals = even_normals((2 * len(layers) + 4) * samples, replicate).random(count)
        self._normals = iter(np.moveaxis(normals.reshape(count, -1, samples), 1, 0))
        start = next(self._normals) * np.sqrt(input_variance(net))
        values = [start if inputs is None else inputs.reshape(samples, -1).T]
        self.features, self.gates, self.raised = list[Array](), list[Array](), list[Array]()
        for number in range(len(layers) + 1):
            sigma = net.sigma_at(number)
            self.features.append(sigma.function(values[-1]))
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

    def variance(self, number: int) -> float:
        """That of the weights which read value ``number``."""
        net = self.net
        if number == len(net.layers):
            return net.head_variance
        return net.layers[number].variance_factor / (net.sigma_at(number).gain * self.widths[number])

    def gram(self, number: int) -> Array:
        """X^T X over samples of the features of a value."""
        return self.widths[number] * mean_product(self.features[number], self.features[number])

    def errors_down(self, of_outputs: float, of_labels: float) -> list[Errors]:
        """Errors at the matrices of layers 1 .. N and at the readout, for these shares of outputs and of labels."""
        net, outputs = self.net, self.raised[-1]
        count = len(outputs) if net.inputs == 1 else net.outputs
        above = (of_outputs * outputs - of_labels * self._labels)[:count] / (net.outputs * net.inputs)
        errors = [self._sent_down(len(net.layers), above)]
        arriving: dict[int, Array] = {}  # by value, through the skip that starts there
        for number in reversed(range(len(net.layers))):
            layer, gated = net.layers[number], self.gates[number + 1] * errors[-1].below
            at_value = gated + arriving.pop(number + 1, 0.0)
            if layer.skip is not None:
                arriving[layer.skip] = at_value
            errors.append(self._sent_down(number, layer.multiplier * at_value))
        return errors[::-1]

    def _sent_down(self, number: int, above: Array) -> Errors:
        width = self.widths[number + 1]
        along = np.linalg.pinv(self.gram(number), RANK, hermitian=True) @ (
            width * mean_product(self.raised[number][: len(above)], above)
        )
        noise = self._noise(number) @ root(self.variance(number) * width * mean_product(above, above))
        return Errors(above, self.features[number] @ along + noise)

    def _noise(self, number: int) -> Array:
        """Normals of the units below a matrix, the same under all errors."""
        return self._backward[number]


def mean_product(first: Array, second: Array) -> Array:
    """Means over units of products between samples."""
    return first.T @ second / len(first)


def root(matrix: Array, power: float = 0.5) -> Array:
    """The symmetric root of a covariance, or that power of it; 0 on what is rounding."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    kept = values > RANK * max(values[-1], 0.0)
    powers = np.where(kept, np.abs(np.where(kept, values, 1.0)) ** power, 0.0)
    return np.asarray((vectors * powers) @ vectors.T)


class SampledStep:
    """One step of an optimizer on a `SampledNet` under given errors."""

    def __init__(self, sampled: SampledNet, step: FirstStep, errors: list[Errors]) -> None:
        self._sampled, self._step, self._errors = sampled, step, errors
        self._names = list(sampled.net.weights)

    def energies(self) -> Array:
        """S_l of every unit, means over samples, and the mean square change of the outputs: (L + 1,)."""
        net, nothing = self._sampled.net, np.zeros((self._sampled.net.inputs,) * 2)
        changes = [Moved(np.zeros_like(self._sampled.features[0]), nothing)]
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
        sampled, widths = self._sampled, self._sampled.widths
        features, gates, raised = (of[number] for of in (sampled.features, sampled.gates, sampled.raised))
        above, below = self._errors[number]
        met, inverse = gates * change.given, np.linalg.pinv(sampled.gram(number), RANK, hermitian=True)
        with_features = widths[number] * mean_product(features, met)
        along = inverse @ with_features
        errors = widths[number + 1] * mean_product(above, above)
        with_errors = widths[number] * (mean_product(below, met) - mean_product(below, features) @ along)
        returned = np.linalg.pinv(errors, RANK, hermitian=True) @ with_errors
        energy = widths[number] * (mean_product(met, met) + mean_product(gates, gates) * change.fresh)
        fresh = sampled.variance(number) * (energy - with_features.T @ along)
        if number == len(sampled.net.layers):  # what errors do not span
            fresh = fresh * max(0.0, 1 - np.linalg.matrix_rank(errors, hermitian=True) / widths[-1])
        return Moved(raised[: len(above)] @ along + above @ returned + self._births(number), fresh)

    def _births(self, number: int) -> Array:
        """What the move of a matrix adds to its output."""
        sampled, widths, name = self._sampled, self._sampled.widths, self._names[number]
        above, features = self._errors[number].above, self._sampled.features[number]
        role = sampled.net.role_of(name)
        form = self._step.form_of(role)
        if form == SIGN:
            return widths[number] * signed_features(above, features)
        gram = sampled.gram(number)
        if form == POLAR:
            half = root(gram)
            middle = root(half @ (widths[number + 1] * mean_product(above, above)) @ half, -0.5)
            factor = self._step.factor_of(role, widths[number + 1], widths[number])
            return np.asarray(factor * above @ (half @ middle @ half))
        return np.asarray(above @ gram)


def signed_features(above: Array, features: Array) -> Array:
    """The mean of sign(u . x) x over the units x below, for every unit u above."""
    if above.shape[1] == 1:  # sign(u) |x|
        return np.sign(above) * np.abs(features).mean()
    rows = max(1, SIGNS_AT_ONCE // len(features))
    parts = [np.sign(above[start : start + rows] @ features.T) @ features for start in range(0, len(above), rows)]
    return np.concatenate(parts) / len(features)


def _energy(change: Moved) -> float:
    return float((change.given**2).mean() + np.trace(change.fresh) / len(change.fresh))
