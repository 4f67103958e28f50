"""One step of any optimizer from rest in plain nets, at leading order in 1/channels.

The recursion is that of docs/theory.md sections 9 and 18. A channel's change is a part along its values, a part along
its errors U, which is what weights hand up that errors came down through, a rest, and the births of its own layer:

    T_l(p) = y_l(p) + sum_r K_l(p, r) U_l(r) + (D_l X_l)(p),    T_{l+1} = W (s' T_l)

Only the births depend on the optimizer (`meanfield.theory.mean_field.step_terms`). Those that are linear in U join
K; signs add averages of their own. Neither is linear in the errors at the outputs. Of one place, a sample and site,
only the size of the errors differs from draw to draw, which neither signs nor polar factors see. Of several, what the
errors of two places share differs, too, so that errors are drawn, and outputs with them; given both, the readout's
weights are Gaussian but for their part along the features, which is what outputs drive.

Averages over one channel of a layer are taken at even points, of what outputs drive and of births that are signs.
What errors at the outputs have along the outputs drives a layer along its features: H(p) = sum_r mu(p, r) s(z_r),
with any mu of N x N numbers. With gates such averages run over up to five points, and with signs over all of them at
once. They are taken over points of one channel's z and v, and of one row of features, the same for every layer. Parts
that are closed are left out of them, so that what is sampled vanishes where nothing is driven and births are linear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from math import pi, sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from meanfield.common.gaussian_averages import even_normals
from meanfield.common.machine import on_one_thread, progress
from meanfield.common.seeds import stream
from meanfield.common.validation import Array, takes
from meanfield.nets.activations import Activation
from meanfield.nets.lattice import OUTSIDE, neighbours
from meanfield.nets.layered import Sequential
from meanfield.optimizers.first_steps import GRADIENT, POLAR, SIGN, FirstStep
from meanfield.theory.mean_field.label_term import (
    LayerAverages,
    LayerKernel,
    errors_below,
    factor_below,
    output_covariance,
    quadratic_sums,
)
from meanfield.theory.mean_field.layers import given_product, input_variance
from meanfield.theory.mean_field.output_term import Drive, DrivenChange, drive_of, mean_square_probability
from meanfield.theory.mean_field.step_terms import (
    Channel,
    OnePointSigns,
    SignTerms,
    StepTerms,
    form_refusal,
    forms,
    mean_share,
    polar_births,
    roots,
    sign_births,
)
from meanfield.theory.two_points import EveryPair, Patches

# Points of a channel, and of a row of features.
CHANNEL_POINTS, FEATURE_POINTS = 512, 512

Pull = Callable[[Array], Array]


class ChannelPoints(NamedTuple):
    """Points of one channel, (points, N) each: v, s', s, the change before births but for its rest, and the births."""

    fresh: Array
    gate: Array
    features: Array
    before: Array
    births: Array

    def signs(self, channel: Channel) -> SignTerms:
        """What the births add."""
        count, gated = len(self.births), self.gate * self.births
        added = (2 * self.before + self.births) * self.births
        _, inverse = roots(channel.errors)
        with_features = gated.T @ self.features / count
        return SignTerms(
            np.mean(added, axis=0)[:, None],
            np.mean(self.gate**2 * added, axis=0)[:, None],
            with_features if channel.along.any() else np.zeros_like(with_features),  # rounding of what is odd
            gated.T @ self.fresh / count @ (inverse @ inverse),
        )

    def products(self, channel: Channel, rest: Array, gate_product: Array) -> Array:
        """E s'(p) T(p) s'(r) T(r) over pairs, from E y y', the ``rest``, and E s' s'."""
        along_z = channel.with_z @ np.linalg.lstsq(channel.covariance, channel.with_z.T, rcond=None)[0]
        gated = self.gate * (self.before + self.births)
        return np.asarray(gate_product * (rest - along_z) + gated.T @ gated / len(gated))


class SampledChannels:
    """A `Drive` and a source of `SignTerms` for any mu over pairs of N points.

    Args:
        sigma: the activation.
        points: N.
        pulled_back: (1/k) sum_D A(p - D, r - D) over pairs.
        replicate: which scrambling of the even points.
    """

    def __init__(self, sigma: Activation, points: int, pulled_back: Pull, replicate: int) -> None:
        self._sigma, self._pulled_back = sigma, pulled_back
        normals, self._features = _normals(points, replicate)
        self._values, self._errors = normals[:, :points], normals[:, points:]

    def features(self, covariance: Array) -> Array:
        """Points of the features of a layer of this covariance, (points, N)."""
        return self._sigma.function(self._features @ roots(covariance)[0])

    def square(self, layer: LayerAverages, along: Array) -> Array:
        """E[s'(p) H(p) s'(r) H(r)] over pairs."""
        _, driven = self._driven(layer, along)
        return np.asarray(driven.T @ driven / len(driven))

    def below(self, layer: LayerAverages, along: Array) -> Array:
        """(1/k) sum_D S_D^T E[d(s' H)/dz] S_D: by parts E[s' H z] c^-1."""
        z, driven = self._driven(layer, along)
        slopes = np.linalg.lstsq(layer.covariance, z.T @ driven / len(z), rcond=None)[0].T
        return self._pulled_back(np.asarray(slopes, dtype=float))

    def change(self, layer: LayerAverages, along: Array, kernel: Array, with_z: Array) -> DrivenChange:
        """What m + w does, m the part of the change along z and w = K s' H."""
        z, driven = self._driven(layer, along)
        before = _along_values(z, layer.covariance, with_z)
        both, gate = before + driven @ kernel.T, self._sigma.gate(z)
        own = np.mean(before**2, axis=0)[:, None]
        return DrivenChange(
            np.mean(both**2, axis=0)[:, None] - own,
            np.mean((gate * both) ** 2, axis=0)[:, None] - np.diagonal(layer.gate)[:, None] * own,
            (gate * both).T @ self._sigma.function(z) / len(z),
        )

    def quadratic_sums(self, layer: LayerKernel, errors: Array) -> tuple[Array, Array]:
        """sum_rs K(p, r) K(p, s) C(r, s) E[s'(r) s'(s)], and with E[s'(p)^2 s'(r) s'(s)], of any activation."""
        (averages, kernel), root = layer, roots(errors)[0]
        gate = self._sigma.gate(self._values @ roots(averages.covariance)[0])
        carried = (gate[:, None] * kernel) @ root
        gated = np.mean(gate**2 * np.sum(carried**2, axis=2), axis=0)
        fresh = np.sum(kernel * (kernel @ (errors * averages.gate)), axis=1)
        return fresh[:, None], gated[:, None]

    def at(self, channel: Channel, seen: Array | None, fan_in: int) -> ChannelPoints:
        """The channel at its points, which have v of both signs, so that what is odd in it vanishes exactly.

        Births are signs where ``seen`` has points of the features that the matrix sees, (points, N), and 0 elsewhere.
        """
        z = self._values @ roots(channel.covariance)[0]
        v = self._errors @ roots(channel.errors)[0]
        z, v = np.concatenate([z, z]), np.concatenate([v, -v])
        gate, features = self._sigma.gate(z), self._sigma.function(z)
        errors = gate * (v + features @ channel.along.T)
        before = _along_values(z, channel.covariance, channel.with_z) + errors @ channel.kernel.T
        births = np.zeros_like(errors) if seen is None else fan_in * sign_births(errors, seen)
        return ChannelPoints(v, gate, features, before, births)

    def _driven(self, layer: LayerAverages, along: Array) -> tuple[Array, Array]:
        """z and s' H at the points."""
        z = self._values @ roots(layer.covariance)[0]
        return z, self._sigma.gate(z) * (self._sigma.function(z) @ along.T)


def _along_values(z: Array, covariance: Array, with_z: Array) -> Array:
    """m = R c^-1 z."""
    return np.asarray(z @ np.linalg.lstsq(covariance, with_z.T, rcond=None)[0])


@lru_cache(maxsize=64)
def _normals(points: int, replicate: int) -> tuple[Array, Array]:
    """Even points of z and v, (points, 2 N), and of features, (points, N): the same for all errors of a net."""
    channels, features = even_normals(2 * points, 2 * replicate), even_normals(points, 2 * replicate + 1)
    return channels.random(CHANNEL_POINTS), features.random(FEATURE_POINTS)


# Samples times sites that errors are drawn for, and how often.
MOST_PLACES, DRAWS = 16, 64
# The share of finitely many channels that is worth a warning: one in ten of a learning-rate scale.
NOTABLE = 0.2
# The largest mean square of a layer's values, and one over the smallest: energies are products of a few of them.
LARGEST = 1e70
LABELS, OUTPUTS, WHOLE = KINDS = ("labels", "outputs", "whole")


@takes(Sequential)
def plain_step_terms(
    net: Sequential,
    step: FirstStep,
    inputs: Array | None = None,
    loss: str = "squared",
    kinds: tuple[str, ...] = KINDS,
) -> StepTerms:
    """The terms of one step of this optimizer from rest, at learning rate 1, under these kinds of errors.

    `WHOLE` is one of them: those of labels alone and of outputs alone may be left out.

    Of several samples or sites the attributes say how many draws of the errors are averaged over, and the largest
    relative error of an energy that follows from their scatter.

    Raises:
        ValueError: a net, an input or an optimizer without this theory, saying why.
        OverflowError: values whose energies no float holds.

    Source: docs/theory.md section 24.
    """
    if why := plain_step_refusal(net, step, inputs):
        raise ValueError(why)
    with np.errstate(over="ignore", invalid="ignore"):  # seen below
        forward = EveryPairAverages(net, inputs)
    value = np.array([np.diagonal(layer.covariance).mean() for layer in forward.layers])
    if not np.all((value > 1 / LARGEST) & (value < LARGEST)):
        raise OverflowError(
            f"mean squares of the values of layers go from {value[0]:.3g} to {value[-1]:.3g}, whose products no float "
            "holds: lower the depth, or bring the variance of the weights closer to the fan-in rule"
        )
    means, error = {}, 0.0
    for kind in kinds:
        with on_one_thread():
            errors = progress(_errors(forward, step, kind, loss), DRAWS, "draw")
            rows = np.array([Walk(forward, step, each, draw).energies() for draw, each in enumerate(errors)])
        means[kind] = rows.mean(axis=0)
        if len(rows) > 1:
            spread = rows.std(axis=0, ddof=1) / np.sqrt(len(rows)) / means[kind]
            error = max(error, float(np.max(spread if kind == WHOLE else spread[:-1])))
    return StepTerms(
        update=means[WHOLE][:-1],
        value=value,
        label=means[LABELS][:-1] if LABELS in means else None,
        output=means[OUTPUTS][:-1] if OUTPUTS in means else None,
        outputs=float(means[WHOLE][-1]),
        attrs={"error_draws": DRAWS, "relative_error": error} if error else {},
    )


def plain_step_refusal(net: Sequential, step: FirstStep, inputs: Array | None = None) -> str:
    """Why `plain_step_terms` does not serve this net and this optimizer, and what to take; empty if it does."""
    draw = "draw it with `simulate`"
    if net.has_skips or not net.follows_one_rule:
        return (
            f"one step of {step.name!r} is predicted for plain nets whose layers follow one rule; this is none: {draw}"
        )
    if why := form_refusal(net, step):
        return why
    places = net.inputs * net.sites
    least = min(net.channels_by_layer[inputs is not None :])  # those of inputs that are given need not be many
    if places > min(MOST_PLACES, least):
        return (
            f"the step of {step.name!r} joins the errors of all samples and sites, whose averages are taken for up to "
            f"{MOST_PLACES} of them and no more than channels; these are {places} under {least} channels: take fewer "
            f"inputs or a smaller grid, or {draw}"
        )
    return ""


def few_channels_warning(net: Sequential) -> str:
    """What to say where draws of a net with its channels differ from its step by more than `NOTABLE`; or ""."""
    places, least = net.inputs * net.sites, min(net.channels_by_layer[1:])
    layers = len(net.unit_ends) - sum(layer.skip is not None for layer in net.layers)  # blocks keep most of a stream
    share = (layers + places) / least
    if share <= NOTABLE:
        return ""
    return (
        "one step of an optimizer is predicted at leading order in 1/channels, and draws differ from it by up to about "
        f"(layers outside blocks + samples x sites) / channels, here ({layers} + {places}) / {least} = {share:.0%}; "
        "`simulate` has that of drawn nets"
    )


class OutputError(NamedTuple):
    """Errors e = z_out - y, or C (p - y), per output coordinate.

    Attributes:
        covariance: E e e' over pairs of points; of one draw, the mean over its coordinates.
        slope: by how much errors rise with the outputs.
        values, outputs: e and z_out of one draw, (coordinates, places); None where they follow a law of mean 0.
    """

    covariance: Array
    slope: float
    values: Array | None = None
    outputs: Array | None = None


class EveryPairAverages:
    """What does not depend on errors: averages of every layer over every pair of points."""

    def __init__(self, net: Sequential, inputs: Array | None) -> None:
        self.net, self.inputs, self.points = net, inputs, EveryPair(net)
        self.patches, self.readout = Patches(net), Patches(net, net.readout)
        self.input_covariance = input_variance(net) * np.eye(self.points.count)
        product = net.sigma.product(*self.points.variances(self.input_covariance), self.input_covariance)
        self.products = [product if inputs is None else given_product(net, inputs)[1]]
        self.layers: list[LayerAverages] = []
        for layer in net.layers:
            covariance = layer.variance_factor / net.sigma.gain * self.points.diagonal(self.products[-1])
            self.layers.append(LayerAverages.at(net, self.points, covariance))
            self.products.append(self.layers[-1].product)

    def covariance_below(self, place: int) -> Array:
        """c of the values that matrix ``place`` reads, from 0."""
        return self.layers[place - 1].covariance if place else self.input_covariance

    def features(self, place: int) -> Array:
        """X^T X of the features that matrix ``place`` sees."""
        return self.net.channels_by_layer[place] * self.net.taps * self.points.diagonal(self.products[place])

    def given(self, place: int) -> Array | None:
        """The features themselves, (channels, N), where they are given."""
        if place or self.inputs is None:
            return None
        values = self.net.sigma.function(self.inputs)
        return values.swapaxes(0, 1).reshape(values.shape[1], -1)

    def absolute(self, place: int) -> float:
        """The sum of all |x| that matrix ``place`` sees of one point."""
        net, given = self.net, self.given(place)
        inside = int((neighbours(net.grid, net.kernel, net.padding) != OUTSIDE).sum()) if net.grid else 1
        if given is not None:
            return float(inside * np.abs(given).sum())
        each = net.sigma.gain * sqrt(2 / pi * self.covariance_below(place).item())
        return net.channels_by_layer[place] * inside * each

    @cached_property
    def outputs(self) -> Array:
        """E z z' of an output coordinate over pairs of output places."""
        return self.by_output(output_covariance(self.net, self.points, self.layers[-1]))

    def by_output(self, pairs: Array) -> Array:
        """Over pairs of output places, from pairs of points that are the same at all sites of a sample."""
        step = 1 if self.net.output_grid else self.net.sites
        return pairs[::step, ::step]

    def to_points(self, pairs: Array) -> Array:
        """Over pairs of points, from pairs of output places."""
        sites = 1 if self.net.output_grid else self.net.sites
        return np.asarray(np.kron(pairs, np.ones((sites, sites))))


def _errors(forward: EveryPairAverages, step: FirstStep, kind: str, loss: str) -> Iterator[OutputError]:
    """The errors of this kind: one law for all, or draws."""
    net = forward.net
    is_descent = forms(net, step) == {GRADIENT}
    joined = net.is_pooled and net.sigma.name != "linear"  # what outputs drive at a gate comes from all sites
    is_linear = is_descent and not joined and loss == "squared"  # in the covariance of the errors
    if net.sigma.triple is not None and (forward.points.count == 1 or is_linear):
        yield _law(forward, kind, loss)
        return
    sizes, axes = np.linalg.eigh(forward.outputs)
    root, slope = (axes * np.sqrt(np.maximum(sizes, 0.0))) @ axes.T, float(kind != LABELS)
    for draw in range(DRAWS):
        generator = stream(0, "errors at the outputs", draw)
        outputs = generator.standard_normal((net.outputs, len(root))) @ root
        if loss == "cross_entropy":
            label = -net.outputs * np.eye(net.outputs)[:, generator.integers(net.outputs, size=len(root))]
            own = net.outputs * softmax(outputs, axis=0)
            values = {LABELS: label + 1, OUTPUTS: own - 1, WHOLE: own + label}[kind]
        else:
            label = -generator.standard_normal(outputs.shape)
            values = {LABELS: label, OUTPUTS: outputs, WHOLE: outputs + label}[kind]
        yield OutputError(forward.to_points(values.T @ values / net.outputs), slope, values, outputs)


def _law(forward: EveryPairAverages, kind: str, loss: str) -> OutputError:
    """Covariance and slope over all draws."""
    net = forward.net
    label, output, slope = np.eye(len(forward.outputs)), forward.outputs, 1.0
    if loss == "cross_entropy":
        square = mean_square_probability(net.outputs, output.item())
        label, slope = (net.outputs - 1) * label, 1 - net.outputs * square
        output = np.full_like(output, net.outputs**2 * square - 1)
    if kind == LABELS:
        return OutputError(forward.to_points(label), 0.0)
    return OutputError(forward.to_points(output + (label if kind == WHOLE else 0.0)), slope)


class Upward(NamedTuple):
    """What has come to a layer's change over pairs of points: E y y', of which off the diagonal only a pooled readout
    asks, R = E y z and K."""

    rest: Array
    with_z: Array
    kernel: Array


class Walk:
    """One step of an optimizer under one law, or one draw, of errors at the outputs."""

    def __init__(self, forward: EveryPairAverages, step: FirstStep, error: OutputError, draw: int) -> None:
        net, points = forward.net, forward.points
        self.forward, self.step, self.error = forward, step, error
        self.channels = SampledChannels(net.sigma, points.count, points.pulled_back, draw)
        self.is_drawn = error.values is not None
        self.drive: Drive | SampledChannels = self.channels if self.is_drawn else drive_of(net, points)
        depth = net.depth
        self.errors, self.along, self.seen = ([np.empty(0)] * depth for _ in range(3))
        self.errors[-1] = errors_below(net, points, error.covariance)
        self.along[-1] = self._along_outputs()
        for place in range(depth - 1, -1, -1):
            layer = forward.layers[place]
            self.seen[place] = layer.gate * self.errors[place] + self.drive.square(layer, self.along[place])
            if place:
                factor = factor_below(net, place)
                self.errors[place - 1] = factor * points.pulled_back(self.seen[place])
                self.along[place - 1] = factor * self.drive.below(layer, self.along[place])

    def energies(self) -> Array:
        """S_1 .. S_L and the mean square change of the outputs."""
        forward, net, points = self.forward, self.forward.net, self.forward.points
        zero = np.zeros((points.count, points.count))
        up, energies = Upward(zero, zero, zero), []
        for place in range(net.depth):
            energy, gated = self._layer(place, up)
            energies.append(float(energy.mean()))
            if place < net.depth - 1:
                factor = net.layers[place + 1].variance_factor / net.sigma.gain
                up = Upward(*(factor * points.diagonal(pairs) for pairs in gated))
        factor = net.head_variance * net.channels_by_layer[-1]
        top = Upward(*(factor * forward.readout.sum_over_rows(pairs) for pairs in gated))
        return np.array([*energies, self._outputs(top)])

    def _layer(self, place: int, up: Upward) -> tuple[Array, Upward]:
        """E T^2 by point, and what weights above average over w = s' T: E w w', E w s(z) and E dw/dv."""
        forward, net, points = self.forward, self.forward.net, self.forward.points
        layer, covariance, along = forward.layers[place], self.errors[place], self.along[place]
        name = f"W{place + 1}"
        gram = net.channels_by_layer[place + 1] * self.seen[place]
        kernel = up.kernel + self._linear_births(name, gram, forward.features(place))
        rest, own_gate = np.diagonal(up.rest)[:, None], np.diagonal(layer.gate)[:, None]
        own = LayerKernel(layer, kernel)
        if net.sigma.triple is None:
            fresh, gated = self.channels.quadratic_sums(own, covariance)
        else:
            fresh, gated = quadratic_sums(net.sigma, points, own, covariance)
        change = self.drive.change(layer, along, kernel, up.with_z)
        energy = rest + fresh + change.energy
        gated = own_gate * rest + gated + change.gated_energy
        with_features, slope = change.gated_with_features, layer.gate * kernel
        channel = Channel(net.sigma, layer.covariance, covariance, along, kernel, up.with_z)
        is_sign, pairs = self.step.form_of(net.role_of(name)) == SIGN, None
        if is_sign and not self.is_drawn:
            added = OnePointSigns(forward.absolute(place)).terms(channel)
        elif is_sign or (net.is_pooled and self.is_drawn):
            seen = forward.patches.seen(self._feature_points(place)) if is_sign else None
            at_points = self.channels.at(channel, seen, net.channels_by_layer[place] * net.taps)
            added = at_points.signs(channel)
            pairs = at_points.products(channel, up.rest, layer.gate) if net.is_pooled else None
        if is_sign:
            energy, gated = energy + added.energy, gated + added.gated_energy
            with_features, slope = with_features + added.gated_with_features, slope + added.slope
        if pairs is None:
            pairs = np.zeros_like(slope)
        np.fill_diagonal(pairs, gated)
        return energy, Upward(pairs, with_features, slope)

    def _linear_births(self, name: str, errors: Array, features: Array) -> Array:
        """What births that are linear in the errors add to K, from U^T U and X^T X."""
        net = self.forward.net
        role = net.role_of(name)
        form = self.step.form_of(role)
        if form == POLAR:
            outputs, *inputs = net.weights[name].shape
            return self.step.factor_of(role, outputs, int(np.prod(inputs))) * polar_births(errors, features).T
        return features if form == GRADIENT else np.zeros_like(features)

    def _feature_points(self, place: int) -> Array:
        given = self.forward.given(place)
        return self.channels.features(self.forward.covariance_below(place)) if given is None else given

    def _along_outputs(self) -> Array:
        """mu of the last layer: by the mean of the weights given the outputs, X (X^T X)^-1 z_out^T for a readout."""
        forward, net, error = self.forward, self.forward.net, self.error
        if error.values is None or error.outputs is None:
            return error.slope * drive_of(net, forward.points).top()
        if not error.slope:
            return np.zeros_like(error.covariance)
        scaled = error.values / (net.outputs * len(forward.outputs))
        mean = net.head_variance * np.linalg.lstsq(forward.outputs, error.outputs.T @ scaled, rcond=None)[0]
        if net.readout == "convolution":
            return net.taps * forward.points.pulled_back(np.asarray(mean, dtype=float)).T
        shared = np.full((net.sites, net.sites), net.sites**-2.0) if net.is_pooled else np.eye(net.sites)
        return np.asarray(np.kron(mean.T, shared))

    def _outputs(self, up: Upward) -> float:
        """The mean square change of the outputs, the step of their own matrix included."""
        forward, net, error = self.forward, self.forward.net, self.error
        scale = net.outputs * len(forward.outputs)
        own = forward.by_output(error.covariance) / scale**2
        features = net.channels_by_layer[-1] * forward.readout.sum_over_rows(forward.products[-1])
        kernel = up.kernel + self._linear_births("readout", net.outputs * own, features)
        form = self.step.form_of(net.role_of("readout"))
        along = np.linalg.lstsq(forward.outputs, up.with_z.T, rcond=None)[0].T
        along_z = np.trace(along @ up.with_z.T)
        rest = (along_z + (np.trace(up.rest) - along_z) * self._unseen_share()) / len(own)
        if error.values is None or error.outputs is None:
            with_outputs = error.slope * forward.outputs / scale
            energy = np.trace(kernel @ own @ kernel.T + 2 * along @ with_outputs @ kernel.T) / len(own)
            if form == SIGN:
                size = forward.absolute(net.depth)
                turned = kernel.item() + along.item() * with_outputs.item() / own.item()
                energy += size**2 + 2 * size * turned * sqrt(own.item() * net.outputs) * mean_share(net.outputs)
            return float(rest + energy)
        rows = error.values / scale
        change = rows @ kernel.T
        if form == SIGN:
            seen = forward.readout.seen(self._feature_points(net.depth))
            change = change + net.head_fan_in * sign_births(rows, seen)
        return float(rest + np.mean(change**2 + 2 * (error.outputs @ along.T) * change))

    def _unseen_share(self) -> float:
        """The share of the readout's weights that no error came down through: rows beside those that errors span."""
        net, error = self.forward.net, self.error
        taps = net.taps if net.readout == "convolution" else 1
        seen = min(len(self.forward.outputs), net.outputs * taps)
        if taps == 1 and error.values is not None:
            seen = int(np.linalg.matrix_rank(error.values))
        return 1.0 - seen / (net.outputs * taps)
