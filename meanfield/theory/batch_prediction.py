"""What `predict` says of a net whose batch has a law of its own, or another loss than the squared one."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.common.validation import require_array
from meanfield.nets.families.layered import INPUT_LAYOUT, Sequential
from meanfield.nets.inputs.batches import Batch, require_batch
from meanfield.theory.mean_field import label_term as mean_field
from meanfield.theory.mean_field.batches import label_term
from meanfield.theory.mean_field.softmax import mean_square_probability
from meanfield.theory.net_prediction import require_floats


def batch_values(architecture: Sequential, inputs: ArrayLike | None, batch: Batch, loss: str) -> dict[str, Array]:
    """Terms of plain nets at leading order in 1/channels, those of the outputs where there is one site."""
    require_batch(batch, loss, inputs is not None)
    layers, rho = len(architecture.layers), batch.input_correlation
    with np.errstate(over="ignore", invalid="ignore"):  # seen below
        overlap, label = mean_field.overlap_and_label_terms(architecture, inputs, layers, rho)
    require_floats(architecture, overlap, label)
    classes = architecture.outputs
    output = _output_term(architecture, inputs, label, rho, loss)
    means = {} if output is None else {"output_error": _output_error(architecture, inputs, batch, loss)}
    if loss == "cross_entropy":
        label = (classes - 1) * label
    elif not batch.has_plain_labels:
        label = correlated_term(architecture, inputs, rho, label_covariance(architecture, inputs, batch))
    values = {"overlap_energy": overlap, "label_term": label}
    means["label_learning_rate_scale"] = label.mean() ** -0.5
    if output is not None:
        update = label + output
        values |= {"output_term": output, "update_energy": update}
        means |= {"mean_update_energy": update.mean(), "learning_rate_scale": update.mean() ** -0.5}
    return values | means


def label_covariance(architecture: Sequential, inputs: ArrayLike | None, batch: Batch) -> Array:
    """E y_i y_j at one output coordinate, over samples and sites: (B, B, S or 1), or of two alike samples."""
    _, product = mean_field.input_products(architecture, inputs, batch.input_correlation)
    identity = np.eye(len(product))[..., None]
    if batch.labels == "independent":
        covariance = identity
    elif inputs is None:
        rho = batch.input_correlation
        covariance = mean_field.input_variance(architecture) * ((1 - rho) * identity + rho)
    else:
        given = require_array("inputs", inputs, architecture.input_shape, INPUT_LAYOUT)
        flat = given.reshape(architecture.inputs, -1, architecture.sites)
        covariance = np.einsum("ics,jcs->ijs", flat, flat) / flat.shape[1]
    return np.asarray(covariance + batch.label_mean**2)


def output_covariance(architecture: Sequential, inputs: ArrayLike | None, correlation: float) -> Array:
    """E z_i z_j of the outputs of a net of one site: (B, B, 1), or two samples where all are alike."""
    transport, product = mean_field.input_products(architecture, inputs, correlation)
    *_, (_, top) = mean_field.forward_moments(architecture, transport, product)
    pairs = architecture.sigma.product(*transport.variances(top), top)
    gamma = architecture.head_variance * architecture.head_fan_in
    if pairs.ndim == 4:
        return np.asarray(gamma * pairs[:, 0, :, 0, None])
    same, other = pairs[0, 0], pairs[-1, 0]
    return np.asarray(gamma * ((same - other) * np.eye(len(pairs)) + other)[..., None])


def correlated_term(architecture: Sequential, inputs: ArrayLike | None, correlation: float, errors: Array) -> Array:
    """B_1 .. B_L for errors of such a covariance between samples."""
    transport, product = mean_field.input_products(architecture, inputs, correlation)
    return label_term(architecture, transport, product, errors)


def _output_error(architecture: Sequential, inputs: ArrayLike | None, batch: Batch, loss: str) -> Array:
    """E |z_out - y|^2, or E |p - y|^2 = 1 - 1/C + C (E p^2 - 1/C^2), for Gaussian outputs of a net of one site."""
    outputs = output_covariance(architecture, inputs, batch.input_correlation)
    classes = architecture.outputs
    if loss == "cross_entropy":
        return np.asarray(1 - 2 / classes + classes * mean_square_probability(classes, float(outputs[0, 0, 0])))
    own = np.einsum("iis->is", outputs + label_covariance(architecture, inputs, batch))
    return np.asarray(classes * own.mean())


def _output_term(
    architecture: Sequential, inputs: ArrayLike | None, label: Array, correlation: float, loss: str
) -> Array | None:
    """A_1 .. A_L at leading order in M L / n: outputs act as labels of their covariance; None beyond one site.

    ``label`` is the plain label term, which a single sample's is proportional to.
    """
    if architecture.sites > 1:
        return None
    covariance = output_covariance(architecture, inputs, correlation)
    if loss == "cross_entropy":
        if architecture.inputs > 1:
            return None
        classes = architecture.outputs
        return label * (classes**2 * mean_square_probability(classes, float(covariance[0, 0, 0])) - 1)
    if architecture.inputs == 1:
        return label * covariance[0, 0, 0]
    if architecture.sigma.triple is None:
        return None
    return correlated_term(architecture, inputs, correlation, covariance)
