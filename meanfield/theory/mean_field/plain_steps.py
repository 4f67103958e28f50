"""One step of any optimizer from rest in plain nets, at leading order in 1/channels.

The recursion is that of sections 9 and 18 of docs/theory.md. A channel's change is a part along its values, a part
along its errors U, which is what weights hand up that errors came down through, and a rest:

    T_l(p) = y(p) + sum_r K_l(p, r) U_l(r) + (D_l X_l)(p),    T_{l+1} = W (s' T_l)

Only the births D X depend on the optimizer (`meanfield.theory.mean_field.births`). Those that are linear in U join K;
signs add averages of their own to every step. As neither is linear in the errors at the outputs, these are drawn
where several samples or sites have errors of their own: with M outputs, what errors of two places have in common
differs from draw to draw. Of one place only their size would, which neither signs nor polar factors see.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import lgamma, pi
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from meanfield.common.machine import progress
from meanfield.common.seeds import stream
from meanfield.common.validation import Array, takes
from meanfield.nets.lattice import OUTSIDE, neighbours
from meanfield.nets.layered import Sequential
from meanfield.optimizers.first_steps import GRADIENT, POLAR, SIGN, FirstStep
from meanfield.theory.mean_field.births import Channel, OnePointSigns, SampledSigns, polar_births, sign_births
from meanfield.theory.mean_field.label_term import (
    LayerAverages,
    LayerKernel,
    errors_below,
    factor_below,
    output_covariance,
    quadratic_sums,
)
from meanfield.theory.mean_field.layers import given_product, input_variance
from meanfield.theory.mean_field.optimizer_terms import StepTerms
from meanfield.theory.mean_field.output_term import drive_of, mean_square_probability, output_term_refusal
from meanfield.theory.two_points import EveryPair

# Samples times sites that errors are drawn for, and how often, where births are signs, and where they are linear.
MOST_PLACES, SIGN_DRAWS, POLAR_DRAWS = 16, 64, 128
ALONE, OUTPUTS, WHOLE = KINDS = ("label", "output", "whole")


@takes(Sequential)
def plain_step_terms(
    net: Sequential, step: FirstStep, inputs: Array | None = None, loss: str = "squared"
) -> StepTerms:
    """The terms of one step of this optimizer from rest, at learning rate 1.

    Raises:
        ValueError: a net, an input or an optimizer without this theory, saying why.

    Source: docs/theory.md section 24.
    """
    if why := plain_step_refusal(net, step, inputs):
        raise ValueError(why)
    forward = Forward(net, inputs)
    walk = Walk(forward, step)
    found, attrs = {}, {}
    for kind in KINDS:
        draws = list(walk.energies(error, replicate) for replicate, error in enumerate(_errors(forward, step, kind, loss)))
        rows = np.array([[*energies, outputs] for energies, outputs in draws])
        found[kind] = rows.mean(axis=0)
        if len(rows) > 1:
            spread = rows.std(axis=0, ddof=1) / np.sqrt(len(rows)) / found[kind]
            attrs = {"error_draws": len(rows), "relative_error": float(np.nanmax(spread[:-1]))}
    value = np.array([np.diagonal(layer.covariance).mean() for layer in forward.layers])
    outputs = found[WHOLE][-1]
    left_out = {} if np.isfinite(outputs) else {"output_update_energy": walk.no_outputs}
    return StepTerms(
        update=found[WHOLE][:-1],
        value=value,
        label=found[ALONE][:-1],
        output=found[OUTPUTS][:-1],
        outputs=float(outputs) if np.isfinite(outputs) else None,
        left_out=left_out,
        attrs=attrs,
    )


def plain_step_refusal(net: Sequential, step: FirstStep, inputs: Array | None = None) -> str:
    """Why `plain_step_terms` does not serve this net and this optimizer, and what to take; empty if it does."""
    draw = "draw it with `simulate`"
    if net.has_skips or not net.follows_one_rule:
        return f"one step of {step.name} is predicted for plain nets of one rule; this is none: {draw}"
    for name in net.weights:
        if step.form_of(net.role_of(name)) is None:
            return (
                f"the step of {step.name} at {name} is no function of the gradient's signs or polar factor alone, of "
                f"which steps are predicted: take it without Newton-Schulz iterations and epsilon, or {draw}"
            )
    if why := output_term_refusal(net, inputs):
        return f"a step needs what outputs drive: {why}"
    if net.inputs * net.sites > MOST_PLACES:
        return (
            f"the step of {step.name} joins all samples and sites, and averages over them are taken up to "
            f"{MOST_PLACES}; here are {net.inputs * net.sites}: take fewer, or {draw}"
        )
    return ""


class OutputError(NamedTuple):
    """Errors e = z_out - y, or C (p - y), over pairs of output places: their ``covariance`` of one coordinate, and by
    how much they rise with the outputs. Of one draw, its ``values`` (M, places) and those of the ``outputs``, too."""

    covariance: Array
    slope: float
    values: Array | None = None
    outputs: Array | None = None


class Forward:
    """What does not depend on errors: averages of every layer over every pair of points."""

    def __init__(self, net: Sequential, inputs: Array | None) -> None:
        self.net, self.inputs, self.points = net, inputs, EveryPair(net)
        count = self.points.count
        self.input_covariance = input_variance(net) * np.eye(count)
        product = net.sigma.product(*self.points.variances(self.input_covariance), self.input_covariance)
        if inputs is not None:
            _, product = given_product(net, inputs)
        self.layers: list[LayerAverages] = []
        self.products = [product]
        for layer in net.layers:
            covariance = layer.variance_factor / net.sigma.gain * self.points.diagonal(self.products[-1])
            self.layers.append(LayerAverages.at(net, self.points, covariance))
            self.products.append(self.layers[-1].product)

    def features(self, place: int) -> Array:
        """X^T X of what matrix ``place`` sees, from 0."""
        return self.net.channels_by_layer[place] * self.net.taps * self.points.diagonal(self.products[place])

    def patched(self, features: Array) -> Array:
        """Features (points, N) as a stencil sees them: (k points, N)."""
        net = self.net
        if net.taps == 1:
            return features
        by_site = features.reshape(len(features), net.inputs, net.sites)
        rows = [np.where(row == OUTSIDE, 0.0, by_site[..., row]) for row in neighbours(net.grid, net.kernel, net.padding)]
        return np.concatenate(rows).reshape(-1, features.shape[1])

    @cached_property
    def outputs(self) -> Array:
        """E z z' of an output coordinate over pairs of points."""
        return output_covariance(self.net, self.points, self.layers[-1])


def _errors(forward: Forward, step: FirstStep, kind: str, loss: str) -> Iterator[OutputError]:
    """The errors of this kind: one law for all, or draws."""
    net, places = forward.net, forward.points.count
    forms = {step.form_of(net.role_of(name)) for name in net.weights}
    if places == 1 or forms == {GRADIENT}:
        yield _error_law(forward, kind, loss)
        return
    samples = places if net.readout == "convolution" else net.inputs
    spacing = 1 if net.readout == "convolution" else net.sites
    covariance = forward.outputs[::spacing, ::spacing]
    sizes, axes = np.linalg.eigh(covariance)
    root = (axes * np.sqrt(np.maximum(sizes, 0.0))) @ axes.T
    slope = _error_law(forward, kind, loss).slope
    for draw in range(SIGN_DRAWS if SIGN in forms else POLAR_DRAWS):
        generator = stream(0, "errors at the outputs", draw)
        outputs = generator.standard_normal((net.outputs, samples)) @ root
        if loss == "cross_entropy":
            label = -net.outputs * np.eye(net.outputs)[:, generator.integers(net.outputs, size=samples)]
            own = net.outputs * softmax(outputs, axis=0)
            values = {ALONE: label + 1, OUTPUTS: own - 1, WHOLE: own + label}[kind]
        else:
            label = -generator.standard_normal((net.outputs, samples))
            values = {ALONE: label, OUTPUTS: outputs, WHOLE: outputs + label}[kind]
        shared = np.ones((spacing, spacing))
        yield OutputError(np.kron(values.T @ values / net.outputs, shared), slope, values, outputs)


def _error_law(forward: Forward, kind: str, loss: str) -> OutputError:
    """Covariance and slope over all draws."""
    net, points = forward.net, forward.points
    own = np.eye(net.inputs)[:, :, None]
    label, output, slope = points.labels(own, not net.output_grid), forward.outputs, 1.0
    if loss == "cross_entropy":
        square = mean_square_probability(net.outputs, float(output.flat[0]))
        label, slope = (net.outputs - 1) * label, 1 - net.outputs * square
        output = np.full_like(output, net.outputs**2 * square - 1)
    return {
        ALONE: OutputError(label, 0.0),
        OUTPUTS: OutputError(output, slope),
        WHOLE: OutputError(label + output, slope),
    }[kind]


class Upward(NamedTuple):
    """What has come to a layer's change: Y = E y^2 by point, R = E y z and K over pairs."""

    rest: Array
    with_z: Array
    kernel: Array


@dataclass(frozen=True)
class Walk:
    """The step of one optimizer in one net, for any errors at the outputs."""

    forward: Forward
    step: FirstStep

    @property
    def no_outputs(self) -> str:
        return (
            "behind a readout of all sites the change of an output joins the changes of its sites, whose covariances "
            "are not followed"
        )

    def energies(self, error: OutputError, replicate: int) -> tuple[Array, float]:
        """S_1 .. S_L, and the mean square change of the outputs (NaN where not known)."""
        forward, net, points = self.forward, self.forward.net, self.forward.points
        drive = drive_of(net, points)
        errors = [errors_below(net, points, error.covariance)]
        along = [error.slope * drive.top()]
        seen: list[Array] = []
        for place in range(net.depth - 1, -1, -1):
            layer = forward.layers[place]
            seen.append(layer.gate * errors[-1] + drive.square(layer, along[-1]))
            if place:
                factor = factor_below(net, place)
                errors.append(factor * points.pulled_back(seen[-1]))
                along.append(factor * drive.below(layer, along[-1]))
        zero = np.zeros_like(errors[0])
        up = Upward(points.constant(0.0), zero, zero)
        sampled = SampledSigns(points.count, replicate)
        energies = []
        for place, layer in enumerate(forward.layers):
            name = f"W{place + 1}"
            covariance, own_along, gram = errors[-1 - place], along[-1 - place], seen[-1 - place]
            channels = net.channels_by_layer[place + 1]
            form = self.step.form_of(net.role_of(name))
            kernel = up.kernel + self._linear_births(name, place, channels * gram)
            fresh, gated = quadratic_sums(net.sigma, points, LayerKernel(layer, kernel), covariance)
            change = drive.change(layer, own_along, kernel, up.with_z)
            energy = up.rest + fresh + change.energy
            gated = net.sigma.gain * up.rest + gated + change.gated_energy
            with_features, slope = change.gated_with_features, layer.gate * kernel
            if form == SIGN:
                channel = Channel(net.sigma, layer.covariance, covariance, own_along, kernel, up.with_z)
                added = self._signs(place, channel, sampled)
                energy, gated = energy + added.energy, gated + added.gated_energy
                with_features, slope = with_features + added.gated_with_features, slope + added.slope
            energies.append(float(energy.mean()))
            top = place == net.depth - 1
            factor = (
                net.head_variance * net.channels_by_layer[-1] * net.taps
                if top
                else net.layers[place + 1].variance_factor / net.sigma.gain
            )
            up = Upward(
                factor * points.moved(gated), factor * points.diagonal(with_features), factor * points.diagonal(slope)
            )
        return np.array(energies), self._outputs(error, up, sampled)

    def _linear_births(self, name: str, place: int, gram: Array) -> Array:
        """What births that are linear in the errors add to K, from U^T U."""
        net = self.forward.net
        form = self.step.form_of(net.role_of(name))
        features = self.forward.features(place)
        if form == GRADIENT:
            return features
        if form == POLAR:
            shape = net.weights[name].shape
            factor = self.step.factor_of(net.role_of(name), shape[0], int(np.prod(shape[1:])))
            return factor * polar_births(gram, features).T
        return np.zeros_like(features)

    def _signs(self, place: int, channel: Channel, sampled: SampledSigns):
        fan_in = self.forward.net.channels_by_layer[place] * self.forward.net.taps
        features = self.forward.patched(self._feature_points(place, sampled))
        if len(channel.covariance) == 1:
            size = fan_in * np.abs(features).mean() if self._given(place) else self._absolute(place)
            return OnePointSigns(float(size)).terms(channel)
        return sampled.terms(channel, features, fan_in)

    def _given(self, place: int) -> bool:
        return place == 0 and self.forward.inputs is not None

    def _absolute(self, place: int) -> float:
        """The sum of all |x| that a matrix sees of one place."""
        net, forward = self.forward.net, self.forward
        covariance = forward.layers[place - 1].covariance if place else forward.input_covariance
        each = net.sigma.gain * np.sqrt(2 / pi * covariance.item())
        inside = (neighbours(net.grid, net.kernel, net.padding) != OUTSIDE).sum() if net.grid else 1
        return float(net.channels_by_layer[place] * inside * each)

    def _feature_points(self, place: int, sampled: SampledSigns) -> Array:
        net, forward = self.forward.net, self.forward
        if self._given(place):
            assert forward.inputs is not None
            values = net.sigma.function(forward.inputs)
            return values.reshape(*values.shape[:2], -1).swapaxes(0, 1).reshape(values.shape[1], -1)
        covariance = forward.layers[place - 1].covariance if place else forward.input_covariance
        return sampled.features(net.sigma, covariance)

    def _outputs(self, error: OutputError, up: Upward, sampled: SampledSigns) -> float:
        """The mean square change of the outputs, their own matrix's step included."""
        net, forward = self.forward.net, self.forward
        if net.readout != "convolution":
            return float("nan")
        places = forward.points.count
        per_row = error.covariance / (net.outputs * places) ** 2
        form = self.step.form_of(net.role_of("readout"))
        kernel = up.kernel + self._linear_births("readout", net.depth, net.outputs * per_row)
        if error.values is None:
            return self._outputs_in_law(error, up, kernel, per_row, form)
        rows = error.values / (net.outputs * places)
        change = rows @ kernel.T
        if form == SIGN:
            fan_in = net.channels_by_layer[-1] * net.taps
            change = change + fan_in * sign_births(rows, forward.patched(self._feature_points(net.depth, sampled)))
        along_z = error.outputs @ np.linalg.lstsq(forward.outputs, up.with_z.T, rcond=None)[0]
        return float(up.rest.mean() + (change**2 + 2 * along_z * change).mean())

    def _outputs_in_law(self, error: OutputError, up: Upward, kernel: Array, per_row: Array, form: str | None) -> float:
        net = self.forward.net
        variance = self.forward.outputs
        # E z e of one output coordinate
        crossed = variance * error.slope / (net.outputs * self.forward.points.count)
        along = np.linalg.lstsq(variance, up.with_z.T, rcond=None)[0].T
        points = self.forward.points
        energy = up.rest + points.contracted(kernel @ per_row, kernel) + 2 * points.contracted(along @ crossed, kernel)
        if form == SIGN:
            size, own = self._absolute(net.depth), per_row.item()
            mean = np.sqrt(own * net.outputs) * np.exp(
                lgamma(net.outputs / 2) - lgamma((net.outputs + 1) / 2)
            ) / np.sqrt(pi)
            energy = energy + size**2 + 2 * size * mean * (kernel.item() + along.item() * crossed.item() / own)
        return float(energy.mean())
