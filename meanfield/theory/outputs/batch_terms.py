"""What a batch's labels and its loss leave at the outputs, and what the outputs then add."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.common.validation import require_array, takes
from meanfield.nets.families.layered import INPUT_LAYOUT, Sequential
from meanfield.nets.inputs.batches import Batch
from meanfield.theory.mean_field.inputs import input_variance
from meanfield.theory.mean_field.softmax import mean_square_probability
from meanfield.theory.outputs.batch_points import batch_points, forward_layers, output_covariance
from meanfield.theory.outputs.label_term import correlated_term, label_term_refusal
from meanfield.theory.outputs.output_term import output_profiles, output_term_refusal


@takes(Sequential)
def label_covariance(net: Sequential, inputs: ArrayLike | None, batch: Batch) -> Array:
    """E y_i y_j at one output coordinate, over samples and sites: (B, B, S or 1), or of two alike samples."""
    alike = inputs is None and net.padding == "circular"
    identity = np.eye(min(net.inputs, 2) if alike else net.inputs)[..., None]
    if batch.labels == "independent":
        covariance = identity
    elif inputs is None:
        rho = batch.input_correlation
        covariance = input_variance(net) * ((1 - rho) * identity + rho)
    else:
        given = require_array("inputs", inputs, net.input_shape, INPUT_LAYOUT)
        flat = given.reshape(net.inputs, -1, 1 if net.is_pooled else net.sites)
        covariance = np.einsum("ics,jcs->ijs", flat, flat) / flat.shape[1]
    return np.asarray(covariance + batch.label_mean**2)


def output_error(net: Sequential, inputs: ArrayLike | None, batch: Batch, loss: str) -> Array:
    """E |z_out - y|^2, or of one softmax E |p - y|^2 = 1 - 1/C + C (E p^2 - 1/C^2), for Gaussian outputs."""
    outputs, classes = _output_variances(net, inputs, batch.input_correlation), net.outputs
    if loss == "cross_entropy":
        return np.asarray(1 - 2 / classes + classes * mean_square_probability(classes, float(outputs.flat[0])))
    labels = np.einsum("iis->is", label_covariance(net, inputs, batch))
    return np.asarray(classes * (outputs.mean() + labels.mean()))


def batch_output_term(
    net: Sequential, inputs: ArrayLike | None, label: Array, correlation: float, loss: str
) -> Array | None:
    """A_1 .. A_L under a batch's inputs and a loss: (L,); None where it is not predicted.

    With smooth gates there is one site's alone, at leading order in M L / n, where outputs act as labels of their
    covariance; ``label`` is the plain label term, which a single sample's is proportional to.
    """
    if not output_term_refusal(net, inputs, correlation, loss):
        try:
            return output_profiles(net, inputs, correlation, loss).mean(axis=1)
        except MemoryError:
            return None
    if net.sites > 1 or net.sigma.triple is not None:
        return None
    own = float(_output_variances(net, inputs, correlation).flat[0])
    if loss == "cross_entropy":
        square = net.outputs**2 * mean_square_probability(net.outputs, own)
        return label * (square - 1) if net.inputs == 1 else None
    if net.inputs == 1:
        return label * own
    if label_term_refusal(net, inputs, correlation):
        return None
    points, product = batch_points(net, inputs, correlation)
    *_, top = forward_layers(net, points, product)
    own, _, other, _ = output_covariance(net, points, top.averages)
    return correlated_term(net, inputs, correlation, np.array([[own, other], [other, own]])[..., None])


def _output_variances(net: Sequential, inputs: ArrayLike | None, correlation: float) -> Array:
    """E z^2 of an output at every point."""
    points, product = batch_points(net, inputs, correlation)
    *_, top = forward_layers(net, points, product)
    return points.variances(output_covariance(net, points, top.averages))[0]
