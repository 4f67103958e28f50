"""The output term A_l of plain nets at leading order in 1/channels, while outputs over channels stay fixed.

Outputs that are as many as channels drive the net along its own features, as the mean of W^T W is s_h M. Every
channel is alike, so all is Gaussian averages over the points p (samples and sites) of one channel. Its error is

    U_l(p) = s'(z_p) [v(p) + H(p)],   H(p) = sum_r mu_l(p, r) s(z_r)

with v Gaussian of covariance C_l, independent of z; and its change is

    T_l(p) = y(p) + sum_r U_l(r) K_l(r, p),   y jointly Gaussian with z, R = E y z, Y = E y^2,

K the tangent kernel of docs/theory.md section 6. Write m = R c^-1 z for the part of y along z and w(p) = sum_r K(p,
r) s'(z_r) H(r) for what the outputs' mean adds. With S_D the shifts of the stencil's k taps, f variance factor of the
weights between two layers, n channels, q gain, s_h, B, S, M head variance, samples, sites and outputs,

    C_L = s_h / (M B^2 S^2) sum_D S_D^T c_out S_D,   c_out = s_h n_L sum_D S_D xx S_D^T    (pooled: means over sites)
    C_{l-1} = f n_l / (q n_{l-1} k) sum_D S_D^T [C g + E s' H s' H] S_D
    mu_{l-1} = f n_l / (q n_{l-1} k) sum_D S_D^T E[d(s' H) / dz] S_D
    A_l = mean_p { Y + E (m + w)^2 - E m^2 + sum_rs K(p, r) K(p, s) C(r, s) g(r, s) }
    Y <- f / (q k) sum_D S_D { q (Y - E m^2) + E s'^2 (m + w)^2 + sum_rs K K C E[s'(p)^2 s'(r) s'(s)] }
    R <- f / (q k) sum_D S_D E[ s'(p) (m + w)(p) s(p') ] S_D^T

What a batch's labels and its loss leave at the outputs, and what the outputs then add, follows from the same outputs.
Under cross-entropy they pass a softmax. That of independent Gaussian logits has

    E p_t^2 = E e^{2 z_t} / (sum_s e^{z_s})^2 = int_0^inf u E[e^{2z} e^{-u e^z}] phi(u)^{C-1} du,  phi(u) = E e^{-u e^z}

by 1/x^2 = int u e^{-ux} du, so that the C logits come apart and one average over z and one over u remain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.machine import progress
from meanfield.common.validation import Array, require_array, require_count, takes
from meanfield.nets.inputs import Batch
from meanfield.nets.layered import INPUT_LAYOUT, Sequential
from meanfield.theory.mean_field.drives import ConvolutionDrive, Drive, LinearPooledDrive, PooledDrive
from meanfield.theory.mean_field.label_term import (
    LayerKernel,
    batch_points,
    correlated_term,
    driven_terms,
    errors_below,
    factor_below,
    forward_layers,
    label_term_refusal,
    output_covariance,
)
from meanfield.theory.mean_field.layers import input_variance
from meanfield.theory.two_points import Exchangeable, Points


@takes(Sequential)
def output_term(net: Sequential, inputs: ArrayLike | None = None) -> Array:
    """A_1 .. A_L of a plain net at learning rate 1, the means over sites of `output_profiles`: (L,)."""
    return output_profiles(net, inputs).mean(axis=1)


@takes(Sequential)
def output_profiles(
    net: Sequential, inputs: ArrayLike | None = None, correlation: float = 0.0, loss: str = "squared"
) -> Array:
    """The output term of layers 1 .. L at every site, the mean over samples, at learning rate 1: (L, S).

    Relative corrections are of the order L^2 / n at any number of outputs. Inputs that are drawn have this
    ``correlation`` between samples. Under the ``loss`` "cross_entropy", of one softmax, errors are C (p - 1/C) for z:
    of mean square C^2 E p_t^2 - 1 for E z^2, and along z by the mean slope C E[p_t (1 - p_t)].

    Raises:
        ValueError: a net or an input whose averages do not close, saying why.
        MemoryError: more pairs of points at so many layers than the machine can hold.

    Source: docs/theory.md section 18.
    """
    if why := output_term_refusal(net, inputs, correlation, loss):
        raise ValueError(why)
    points, product = batch_points(net, inputs, correlation)
    upward = progress(forward_layers(net, points, product), net.depth, "layer")
    drive, layers = _drive(net, points), list(upward)
    outputs = output_covariance(net, points, layers[-1].averages)
    slope = 1.0
    if loss == "cross_entropy":
        square = mean_square_probability(net.outputs, float(outputs.flat[0]))
        slope = 1 - net.outputs * square
        outputs = np.full_like(outputs, net.outputs**2 * square - 1)
    along = _along(net, drive, layers, slope)
    both = progress(zip(layers, along, strict=True), len(layers), "layer")
    driven = [drive.square(layer.averages, each) for layer, each in both]
    fresh = driven_terms(net, points, layers, errors_below(net, points, outputs), driven)
    coherent = _coherent_terms(net, points, drive, layers, along)
    summands = progress(zip(fresh, coherent, strict=True), net.depth, "layer")
    terms = [points.by_site(first + second) for first, second in summands]
    return np.broadcast_to(terms, (net.depth, net.sites))


@takes(Sequential)
def output_term_refusal(
    net: Sequential, inputs: ArrayLike | None = None, correlation: float = 0.0, loss: str = "squared"
) -> str:
    """Why `output_term` does not serve this net with this input, and what to take; empty if it does."""
    given = f"this is a {type(net).__name__} of activation {net.activation!r}"
    if net.has_skips:
        return f"the output term is predicted for plain nets; {given}, whose gates remember: draw it with `simulate`"
    if net.sigma.triple is None:
        return f"the output term is predicted for 'relu' and 'linear'; {given}: draw it with `simulate`"
    if loss == "cross_entropy" and net.inputs * net.output_units > net.outputs:
        return (
            "under cross-entropy the output term is predicted for one softmax, as several are correlated; "
            f"{given} with {net.inputs} sample(s): draw it with `simulate`"
        )
    alike = inputs is None and net.padding == "circular" and not correlation
    if net.is_pooled and net.activation != "linear" and not alike:
        return (
            "under a pooled readout a gate meets the features of all sites, and averages over four sites close only "
            "in linear nets or where all sites are alike (circular padding, independent samples of the net's law); "
            f"{given}, padding {net.padding!r}: take readout='convolution', or draw it with `simulate`"
        )
    return ""


def _drive(net: Sequential, points: Points) -> Drive:
    if not net.is_pooled:
        return ConvolutionDrive(net, points)
    if isinstance(points, Exchangeable) and net.activation != "linear":
        return PooledDrive(net, points)
    return LinearPooledDrive(net, points)


def _along(net: Sequential, drive: Drive, layers: Sequence[LayerKernel], slope: float) -> list[Array]:
    """mu of layers 1 .. L, for errors that rise with the outputs by ``slope``."""
    along = [slope * drive.top()]
    for place in range(len(layers) - 1, 0, -1):
        along.append(factor_below(net, place) * drive.below(layers[place].averages, along[-1]))
    return along[::-1]


def _coherent_terms(
    net: Sequential, points: Points, drive: Drive, layers: Sequence[LayerKernel], along: Sequence[Array]
) -> Iterator[Array]:
    """What m + w adds to the output term of every layer by point, with R carried up beside its part of Y."""
    energy, with_z, gain = points.constant(0.0), np.zeros_like(layers[0].kernel), net.sigma.gain
    for place, ((averages, kernel), drives) in enumerate(zip(layers, along, strict=True), start=1):
        change = drive.change(averages, drives, kernel, with_z)
        yield energy + change.energy
        if place < len(layers):
            factor = net.layers[place].variance_factor / gain
            energy = factor * points.moved(gain * energy + change.gated_energy)
            with_z = factor * points.diagonal(change.gated_with_features)


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


# Beyond, an average over N(0, 1) is below rounding; the step resolves exp(sqrt(v) x) and exp(-u e^z) for v up to 25.
LOGIT_REACH = 9.0
LOGIT_STEP = 0.02
LARGEST_LOGIT_VARIANCE = 25.0


def mean_square_probability(classes: int, variance: float) -> float:
    """E p_1^2 of softmax over ``classes`` logits z ~ N(0, variance): 1 / classes^2 at variance 0.

    E |p - y|^2 = 1 - 1/C + C (E p_1^2 - 1/C^2) for a label y drawn uniformly, of which the paper has the first two
    terms.

    Raises:
        ValueError: a variance that is negative or above `LARGEST_VARIANCE`.

    Source: Zhang et al. 2026, section G.
    """
    require_count("classes", classes)
    if not 0 <= variance <= LARGEST_LOGIT_VARIANCE:
        raise ValueError(f"variance of the logits is {variance:g}; it must be from 0 to {LARGEST_LOGIT_VARIANCE:g}")
    logits = np.arange(-LOGIT_REACH, LOGIT_REACH + LOGIT_STEP / 2, LOGIT_STEP)
    weights = np.exp(-logits * logits / 2) * (LOGIT_STEP / np.sqrt(2 * np.pi))
    logits = np.sqrt(variance) * logits
    # u runs over what an e^z can be the inverse of, and further down, as the integrand falls like u^2 only.
    spread = np.sqrt(variance) * LOGIT_REACH
    log_u = np.arange(-spread - 20.0 - np.log(classes), spread + 6.0, LOGIT_STEP)
    decay = np.exp(-np.exp(log_u[:, None] + logits))
    squared = decay @ (weights * np.exp(2 * logits))
    integrand = np.exp(2 * log_u) * squared * (decay @ weights) ** (classes - 1)
    return float(integrand.sum() * LOGIT_STEP)
