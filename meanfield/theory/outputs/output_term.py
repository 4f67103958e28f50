"""The output term A_l of plain nets at leading order in 1/channels, while outputs over channels stay fixed.

Outputs that are as many as channels drive the net along its own features, as the mean of W^T W is s_h M. Every channel
is alike, so all is Gaussian averages over the points p (samples and sites) of one channel. Its error is

    U_l(p) = s'(z_p) [v(p) + H(p)],   H(p) = sum_r mu_l(p, r) s(z_r)

with v Gaussian of covariance C_l, independent of z; and its change is

    T_l(p) = y(p) + sum_r U_l(r) K_l(r, p),   y jointly Gaussian with z, R = E y z, Y = E y^2,

K the tangent kernel of docs/theory.md section 6. Write m = R c^-1 z for the part of y along z and
w(p) = sum_r K(p, r) s'(z_r) H(r) for what the outputs' mean adds. With S_D the shifts of the stencil's k taps,
f variance factor of the weights between two layers, n channels, q gain, s_h, B, S, M head variance, samples, sites and
outputs,

    C_L = s_h / (M B^2 S^2) sum_D S_D^T c_out S_D,   c_out = s_h n_L sum_D S_D xx S_D^T    (pooled: means over sites)
    C_{l-1} = f n_l / (q n_{l-1} k) sum_D S_D^T [C g + E s' H s' H] S_D
    mu_{l-1} = f n_l / (q n_{l-1} k) sum_D S_D^T E[d(s' H) / dz] S_D
    A_l = mean_p { Y + E (m + w)^2 - E m^2 + sum_rs K(p, r) K(p, s) C(r, s) g(r, s) }
    Y <- f / (q k) sum_D S_D { q (Y - E m^2) + E s'^2 (m + w)^2 + sum_rs K K C E[s'(p)^2 s'(r) s'(s)] }
    R <- f / (q k) sum_D S_D E[ s'(p) (m + w)(p) s(p') ] S_D^T
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.common.machine_memory import NUMBER_BYTES, require_bytes
from meanfield.nets.families.layered import Sequential
from meanfield.theory.mean_field.inputs import input_products
from meanfield.theory.outputs.drives import ConvolutionDrive, Drive, LayerAverages, LinearPooledDrive
from meanfield.theory.outputs.points import EveryPair, Exchangeable, Points
from meanfield.theory.outputs.pooled_drive import PooledDrive

# Square arrays over pairs of points that a layer's recursion holds at once, beside one for every layer.
WORKING_ARRAYS = 24


def output_term(architecture: Sequential, inputs: ArrayLike | None = None) -> Array:
    """A_1 .. A_L of a plain net at learning rate 1, the means over sites of `output_profiles`: (L,)."""
    return output_profiles(architecture, inputs).mean(axis=1)


def output_profiles(architecture: Sequential, inputs: ArrayLike | None = None) -> Array:
    """The output term of layers 1 .. L at every site, the mean over samples, at learning rate 1: (L, S).

    Relative corrections are of the order L^2 / n at any number of outputs.

    Raises:
        ValueError: a net or an input whose averages do not close, saying why.
        MemoryError: more pairs of points at so many layers than the machine can hold.

    Source: docs/theory.md section 18.
    """
    if why := output_term_refusal(architecture, inputs):
        raise ValueError(why)
    points, product = _points(architecture, inputs)
    drive = _drive(architecture, points)
    errors = _errors(architecture, points, drive, product)
    terms = [points.by_site(term) for term in _terms(architecture, points, drive, product, errors)]
    return np.broadcast_to(terms, (architecture.depth, architecture.sites))


def output_term_refusal(architecture: Sequential, inputs: ArrayLike | None = None) -> str:
    """Why `output_term` does not serve this net with this input, and what to take; empty if it does."""
    given = f"this is a {type(architecture).__name__} of activation {architecture.activation!r}"
    if architecture.has_skips:
        return f"the output term is predicted for plain nets; {given}, whose gates remember: draw it with `simulate`"
    if architecture.sigma.triple is None:
        return f"the output term is predicted for 'relu' and 'linear'; {given}: draw it with `simulate`"
    alike = inputs is None and architecture.padding == "circular"
    if architecture.is_pooled and architecture.activation != "linear" and not alike:
        return (
            "under a pooled readout a gate meets the features of all sites, and averages over four sites close only "
            "where all sites are alike (circular padding, the net's own inputs) or in linear nets; "
            f"{given}, padding {architecture.padding!r}: take readout='convolution', or draw it with `simulate`"
        )
    return ""


def _points(architecture: Sequential, inputs: ArrayLike | None) -> tuple[Points, Array]:
    """The leanest representation of the batch's points, and E[s(x) s(x')] of the input over pairs of them."""
    _, product = input_products(architecture, inputs)
    if inputs is None and architecture.padding == "circular":
        across = product[-1, -1] if product.size > 1 else 0.0
        return Exchangeable(architecture.inputs, architecture.sites), np.array([product[0, 0], across, across])
    count = architecture.inputs * architecture.sites
    needed = (architecture.depth + WORKING_ARRAYS) * NUMBER_BYTES * count**2
    require_bytes(needed, "the output term over all pairs of sites", "grid, samples or depth")
    odd = all(taps % 2 for taps in architecture.kernel)
    return EveryPair(architecture, inputs is None and odd), product.reshape(count, count)


def _drive(architecture: Sequential, points: Points) -> Drive:
    if not architecture.is_pooled:
        return ConvolutionDrive(architecture, points)
    if isinstance(points, Exchangeable) and architecture.activation != "linear":
        return PooledDrive(architecture, points)
    return LinearPooledDrive(architecture, points)


def _forward(net: Sequential, points: Points, product: Array) -> Iterator[tuple[Array, Array]]:
    """sum_D S_D xx S_D^T / k below layers 1 .. L, and their covariance c."""
    for layer in net.layers:
        carried = points.diagonal(product)
        covariance = layer.variance_factor / net.sigma.gain * carried
        yield carried, covariance
        product = net.sigma.product(*points.variances(covariance), covariance)


def _errors(net: Sequential, points: Points, drive: Drive, product: Array) -> list[tuple[Array, Array]]:
    """C and mu of layers L .. 1, the top one first: a list to pop from."""
    covariances = [covariance for _, covariance in _forward(net, points, product)]
    layer = LayerAverages.at(net, points, covariances.pop())
    errors = [drive.top(layer)]
    while covariances:
        place = len(covariances)
        variance, along = errors[-1]
        factor = net.layers[place].variance_factor * net.channels_by_layer[place + 1]
        factor /= net.sigma.gain * net.channels_by_layer[place]
        arriving = factor * points.pulled_back(variance * layer.gate + drive.square(layer, along))
        errors.append((arriving, factor * drive.below(layer, along)))
        layer = LayerAverages.at(net, points, covariances.pop())
    return errors


def _terms(
    net: Sequential, points: Points, drive: Drive, product: Array, errors: list[tuple[Array, Array]]
) -> Iterator[Array]:
    """The output term of every layer by point, with K, Y and R carried up beside it; ``errors`` are used up."""
    gain = net.sigma.gain
    energy, with_z, gated_kernel = points.constant(0.0), np.zeros_like(product), np.zeros_like(product)
    for place, (carried, covariance) in enumerate(_forward(net, points, product)):
        kernel = net.layers[place].variance_factor / gain * points.diagonal(gated_kernel)
        kernel = kernel + net.channels_by_layer[place] * net.taps * carried
        layer = LayerAverages.at(net, points, covariance)
        variance, along = errors.pop()
        change = drive.change(layer, along, kernel, with_z)
        fresh, gated_fresh = _fresh_energies(net, points, layer, kernel, variance)
        yield energy + change.energy + fresh
        gated_kernel = layer.gate * kernel
        if errors:
            factor = net.layers[place + 1].variance_factor / gain
            energy = factor * points.moved(gain * energy + change.gated_energy + gated_fresh)
            with_z = factor * points.diagonal(change.gated_with_features)


def _fresh_energies(
    net: Sequential, points: Points, layer: LayerAverages, kernel: Array, errors: Array
) -> tuple[Array, Array]:
    """What v drives, sum_rs K(p, r) K(p, s) C(r, s) g(r, s), and the same with s'(p)^2 in the average."""
    alone, shared = net.sigma.triple or (0.0, 0.0)
    both = points.product(kernel, errors)
    fresh = points.contracted(points.product(kernel, errors * layer.gate), kernel)
    gated = alone * points.contracted(both, kernel) + shared * fresh
    return fresh, gated + 2 * shared * points.contracted(both, layer.gate * kernel)
