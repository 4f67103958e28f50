"""What errors at the outputs drive where they are independent of the features: labels, and the fresh part of outputs.

Per channel, between two points r and s (samples and sites) of the batch, errors have the covariance C(r, s). With c and
K of docs/theory.md section 6, g = E[s' s'] and f, q, n, k, S_D variance factor, gain, channels, taps and shifts

    C_{l-1} = f n_l / (q n_{l-1} k) sum_D S_D^T [g C_l + ...] S_D        (... what outputs drive coherently)
    B_l(p) = Y_l(p) + sum_rs K(p, r) K(p, s) C_l(r, s) g(r, s)
    Y <- f / (q k) sum_D S_D { E[s'(p)^2] Y + sum_rs K(p, r) K(p, s) C(r, s) t(p, r, s) },  Y_1 = 0

t = E[s'(p)^2 s'(r) s'(s)]. Y is what different channels add, n_l sum C_l V with V(p; r, s) the second moment of the
kernel between them. As C comes down by the adjoint of what carries V up, V itself, N^3 numbers, is never formed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.families.layered import Sequential
from meanfield.theory.outputs.batch_points import Forward
from meanfield.theory.outputs.exchangeable import Exchangeable
from meanfield.theory.outputs.points import Points
from meanfield.theory.outputs.three_gates import AlikeGates


def driven_terms(
    net: Sequential, points: Points, layers: Sequence[Forward], top: Array, driven: Sequence[Array] = ()
) -> Iterator[Array]:
    """B_1 .. B_L by point, for errors of covariance ``top`` that arrive at layer L.

    ``driven`` has E[s' H s' H] of layers 1 .. L, what the outputs' mean adds to g C (docs/theory.md section 18).
    """
    errors = _errors(net, layers, points, top, driven)
    energy = points.constant(0.0)
    for place, (layer, arriving) in enumerate(zip(layers, reversed(errors), strict=True), start=1):
        fresh, gated = _quadratic(net, points, layer, arriving)
        yield energy + fresh
        if place < len(layers):
            own, _ = points.variances(layer.averages.gate)
            energy = net.layers[place].variance_factor / net.sigma.gain * points.moved(own * energy + gated)


def _errors(
    net: Sequential, layers: Sequence[Forward], points: Points, top: Array, driven: Sequence[Array]
) -> list[Array]:
    """C of layers L .. 1."""
    errors = [top]
    for place in range(len(layers) - 1, 0, -1):
        gated = layers[place].averages.gate * errors[-1] + (driven[place] if driven else 0.0)
        errors.append(factor_below(net, place) * points.pulled_back(gated))
    return errors


def factor_below(net: Sequential, place: int) -> float:
    """f n_l / (q n_{l-1}) of what comes down through the matrix of layer l, number ``place`` from 0."""
    above, below = net.channels_by_layer[place + 1], net.channels_by_layer[place]
    return net.layers[place].variance_factor * above / (net.sigma.gain * below)


def _quadratic(net: Sequential, points: Points, layer: Forward, errors: Array) -> tuple[Array, Array]:
    """sum_rs K(p, r) K(p, s) C(r, s) g(r, s), and the same with t(p, r, s) for g."""
    (averages, kernel), triple = layer, net.sigma.triple
    fresh = points.contracted(points.product(kernel, errors * averages.gate), kernel)
    both = points.product(kernel, errors)
    if triple is None:
        assert isinstance(points, Exchangeable)
        return fresh, AlikeGates.at(net.sigma, averages.covariance).quadratic(points, kernel, errors, both)
    alone, shared = triple
    gated = alone * points.contracted(both, kernel) + shared * fresh
    return fresh, np.asarray(gated + 2 * shared * points.contracted(both, averages.gate * kernel))
