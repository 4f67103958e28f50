"""Normalisation over channels, which at infinite width divides by a number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.maps import Normalisation
from meanfield.theory.maps.base import Kind, Kinds, NoTransport, Transport, count, given_kind, total
from meanfield.theory.mean_field.transport import both_sides


class NormalisationTransport(Transport):
    """c' = (c - m m') / (s s'), t' = t / (s s'), m the mean over channels ("layer") or 0 ("rms"), s^2 = c(p, p) - m^2.

    Over many channels m and s are numbers. What the Jacobian (P - y y^T / channels) / s (P0 eq. 38) takes out of a
    channel's tangent, its mean over channels and its part along the values y, is a share of order 1/channels of t.
    """

    def through(self, one: Normalisation, below: Kinds, grid: tuple[int, ...]) -> Kinds:
        channels = count(below)
        mean = total(below, "mean") / channels * (one.kind == "layer")
        square = np.einsum("bpbp->bp", total(below, "covariance")) / channels - mean**2 + one.epsilon
        if not np.all(square > 0):
            raise NoTransport("its input vanishes at some site, which has no size to divide by; give epsilon > 0")
        return tuple(_divided(kind, mean, np.sqrt(square)) for kind in below)


def _divided(kind: Kind, mean: Array, deviation: Array) -> Kind:
    if kind.given is not None:
        return given_kind((kind.given - mean) / deviation)
    here, there = both_sides(deviation)
    first, second = both_sides(mean)
    own_first, own_second = both_sides(kind.mean)
    centred = kind.covariance - own_first * second - first * own_second + first * second
    sizes = here * there
    return replace(kind, covariance=centred / sizes, kernel=kind.kernel / sizes, mean=(kind.mean - mean) / deviation)
