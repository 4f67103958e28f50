"""Mean field of the label term under a pooled readout, where a label reaches all sites of its sample alike.

The covariance C of the errors between two sites then has more than a diagonal, and B_l takes the second moment of the
tangent kernel with ONE site above and TWO below. At leading order in 1/channels, per channel, with c and K of
`meanfield.theory.mean_field.layers`, g = E[s' s'] of a pair of sites and s_h, S, M, B head
variance, sites, outputs, samples:

    C_L(p', p'') = g s_h / (M S^2 B^2)
    C_{l-1}(p', p'') = g C^(p', p''),   C^ = f n_l / (q n_{l-1} k) sum_D C_l(p' - D, p'' - D)
    B_l = mean_p { sum C_l(p', p'') K(p, p') K(p, p'') + v_l(p) }
    v_l = f / (q k) sum_D S_D { E[s'(p)^2] v_{l-1}(p) + sum C^(p', p'') K(p, p') K(p, p'') t(p, p', p'') }

t = E[s'(p)^2 s'(p') s'(p'')], sums over p' and p''. v_l is what different channels add, n_l sum C_l V, V(p; p', p'')
their second moment: as C comes down by the adjoint of what carries V up, V itself, S^3 numbers, is never formed. And as
t is a sum over pairs of its three gates, sums over p', p'' are products of S x S matrices, on a torus convolutions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.nets.families.layered import Sequential
from meanfield.theory.mean_field.inputs import input_products
from meanfield.theory.mean_field.layers import layer_moments
from meanfield.theory.mean_field.transport import Transport


def pooled_label_term(net: Sequential, inputs: ArrayLike | None = None) -> Array:
    """B_1 .. B_L of a plain net with a pooled readout, for labels of variance 1: (L,).

    Raises:
        ValueError: skip connections, whose gates remember, or an activation whose averages over three gates are not
            known.

    Source: docs/theory.md section 9.
    """
    if why := pooled_theory_refusal(net):
        raise ValueError(why)
    transport, product = input_products(net, inputs)
    layers = list(layer_moments(net, transport, product))
    gates = [net.sigma.gate_product(*transport.variances(c), c) for c in (moments.covariance for moments in layers)]
    arriving = _arriving_errors(net, transport, gates)
    terms, between_channels = [], np.zeros(())  # v_l
    for place, moments in enumerate(layers):
        if place:
            below = layers[place - 1].kernel, gates[place - 1], arriving[place - 1]
            scale = net.layers[place].variance_factor / net.sigma.gain
            between_channels = scale * transport.moved(_between_channels(net, transport, *below, between_channels))
        own = transport.bilinear(moments.kernel, arriving[place] * transport.within(gates[place]), moments.kernel)
        terms.append(np.mean(own + between_channels))
    return np.array(terms)


def pooled_theory_refusal(net: Sequential) -> str:
    """Why `pooled_label_term` does not serve this net, and what to take; empty if it does."""
    if not net.has_skips and net.sigma.triple is not None:
        return ""
    return (
        "the label term under a pooled readout is predicted for plain nets of 'relu' and 'linear'; this is a "
        f"{type(net).__name__} of {net.activation!r}: take readout='convolution'"
    )


def _arriving_errors(net: Sequential, transport: Transport, gates: list[Array]) -> list[Array]:
    """C^ of layers 1 .. L, before the layer's own gates, per pair of sites of one sample."""
    widths, gain = net.channels_by_layer, net.sigma.gain
    samples = net.outputs * (net.sites * net.inputs) ** 2
    arriving = [np.full_like(transport.within(gates[-1]), net.head_variance / samples)]
    for place in range(len(gates) - 1, 0, -1):
        factor = net.layers[place].variance_factor * widths[place + 1] / (gain * widths[place])
        arriving.append(factor * transport.pulled_back(arriving[-1] * transport.within(gates[place])))
    return arriving[::-1]


def _between_channels(
    net: Sequential, transport: Transport, kernel: Array, gate: Array, errors: Array, below: Array
) -> Array:
    """What one layer's units pass on to other channels above, by site p: E[s'(p)^2] v + sum C^ K K t."""
    alone, shared = net.sigma.triple or (0.0, 0.0)
    form = (alone + shared * transport.within(gate)) * errors
    fresh = transport.bilinear(kernel, form, kernel)
    if shared:
        fresh = fresh + 2 * shared * transport.bilinear(gate * kernel, errors, kernel)
    return transport.at_site(gate) * below + fresh
