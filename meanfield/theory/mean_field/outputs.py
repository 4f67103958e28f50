"""What the outputs of a net add at leading order in 1/channels: their covariance, and the error that they leave.

Softmax of independent Gaussian logits has

    E p_t^2 = E e^{2 z_t} / (sum_s e^{z_s})^2 = int_0^inf u E[e^{2z} e^{-u e^z}] phi(u)^{C-1} du,  phi(u) = E e^{-u e^z}

by 1/x^2 = int u e^{-ux} du, so that the C logits come apart and one average over z and one over u remain.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.common.validation import require_array, require_count
from meanfield.nets.families.layered import INPUT_LAYOUT, Sequential
from meanfield.nets.inputs.batches import Batch
from meanfield.theory.mean_field.batches import correlated_label_term
from meanfield.theory.mean_field.inputs import input_products, input_variance
from meanfield.theory.mean_field.layers import forward_moments

# Beyond, an average over N(0, 1) is below rounding; the step resolves exp(sqrt(v) x) and exp(-u e^z) for v up to 25.
REACH = 9.0
STEP = 0.02
LARGEST_VARIANCE = 25.0


def correlated_term(net: Sequential, inputs: ArrayLike | None, correlation: float, errors: Array) -> Array:
    """B_1 .. B_L of a plain net for errors of this covariance between samples (`label_covariance`): (L,).

    Source: docs/theory.md section 10.
    """
    transport, product = input_products(net, inputs, correlation)
    return correlated_label_term(net, transport, product, errors)


def label_covariance(net: Sequential, inputs: ArrayLike | None, batch: Batch) -> Array:
    """E y_i y_j at one output coordinate, over samples and sites: (B, B, S or 1), or of two alike samples."""
    _, product = input_products(net, inputs, batch.input_correlation)
    identity = np.eye(len(product))[..., None]
    if batch.labels == "independent":
        covariance = identity
    elif inputs is None:
        rho = batch.input_correlation
        covariance = input_variance(net) * ((1 - rho) * identity + rho)
    else:
        given = require_array("inputs", inputs, net.input_shape, INPUT_LAYOUT)
        flat = given.reshape(net.inputs, -1, net.sites)
        covariance = np.einsum("ics,jcs->ijs", flat, flat) / flat.shape[1]
    return np.asarray(covariance + batch.label_mean**2)


def output_covariance(net: Sequential, inputs: ArrayLike | None, correlation: float) -> Array:
    """E z_i z_j of the outputs of a net of one site: (B, B, 1), or two samples where all are alike."""
    transport, product = input_products(net, inputs, correlation)
    *_, (_, top) = forward_moments(net, transport, product)
    pairs = net.sigma.product(*transport.variances(top), top)
    gamma = net.head_variance * net.head_fan_in
    if pairs.ndim == 4:
        return np.asarray(gamma * pairs[:, 0, :, 0, None])
    same, across = pairs[0, 0], pairs[-1, 0]
    return np.asarray(gamma * ((same - across) * np.eye(len(pairs)) + across)[..., None])


def output_error(net: Sequential, inputs: ArrayLike | None, batch: Batch, loss: str) -> Array:
    """E |z_out - y|^2, or E |p - y|^2 = 1 - 1/C + C (E p^2 - 1/C^2), for Gaussian outputs of a net of one site."""
    outputs = output_covariance(net, inputs, batch.input_correlation)
    classes = net.outputs
    if loss == "cross_entropy":
        return np.asarray(1 - 2 / classes + classes * mean_square_probability(classes, float(outputs[0, 0, 0])))
    own = np.einsum("iis->is", outputs + label_covariance(net, inputs, batch))
    return np.asarray(classes * own.mean())


def few_outputs_term(
    net: Sequential, inputs: ArrayLike | None, label: Array, correlation: float, loss: str
) -> Array | None:
    """A_1 .. A_L at leading order in M L / n: outputs act as labels of their covariance; None beyond one site.

    ``label`` is the plain label term, which a single sample's is proportional to.
    """
    if net.sites > 1:
        return None
    covariance = output_covariance(net, inputs, correlation)
    if loss == "cross_entropy":
        if net.inputs > 1:
            return None
        classes = net.outputs
        return label * (classes**2 * mean_square_probability(classes, float(covariance[0, 0, 0])) - 1)
    if net.inputs == 1:
        return label * covariance[0, 0, 0]
    return None if net.sigma.triple is None else correlated_term(net, inputs, correlation, covariance)


def mean_square_probability(classes: int, variance: float) -> float:
    """E p_1^2 of softmax over ``classes`` logits z ~ N(0, variance): 1 / classes^2 at variance 0.

    E |p - y|^2 = 1 - 1/C + C (E p_1^2 - 1/C^2) for a label y drawn uniformly, of which the paper has the first two
    terms.

    Raises:
        ValueError: a variance that is negative or above `LARGEST_VARIANCE`.

    Source: Zhang et al. 2026, section G.
    """
    require_count("classes", classes)
    if not 0 <= variance <= LARGEST_VARIANCE:
        raise ValueError(f"variance of the logits is {variance:g}; it must be from 0 to {LARGEST_VARIANCE:g}")
    logits = np.arange(-REACH, REACH + STEP / 2, STEP)
    weights = np.exp(-logits * logits / 2) * (STEP / np.sqrt(2 * np.pi))
    logits = np.sqrt(variance) * logits
    # u runs over what an e^z can be the inverse of, and further down, as the integrand falls like u^2 only.
    spread = np.sqrt(variance) * REACH
    log_u = np.arange(-spread - 20.0 - np.log(classes), spread + 6.0, STEP)
    decay = np.exp(-np.exp(log_u[:, None] + logits))
    squared = decay @ (weights * np.exp(2 * logits))
    integrand = np.exp(2 * log_u) * squared * (decay @ weights) ** (classes - 1)
    return float(integrand.sum() * STEP)
