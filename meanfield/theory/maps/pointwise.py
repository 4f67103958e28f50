"""Activations and gates: averages over Gaussian channels, whose results are not Gaussian."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.activations import Activation, activation_named
from meanfield.nets.maps import Gate, Pointwise
from meanfield.theory.maps.base import Kind, Kinds, NoTransport, abreast, between, count, given_kind
from meanfield.theory.mean_field.transport import both_sides

NOT_GAUSSIAN = (
    "its input is not Gaussian, of which second moments are all that is known; put a linear map that sees many "
    "channels before it"
)


def through_pointwise(pointwise: Pointwise, below: Kinds, grid: tuple[int, ...]) -> Kinds:
    """c' = E[sigma(u) sigma(v)], t' = E[sigma'(u) sigma'(v)] t for Gaussians u, v of covariance c."""
    if pointwise.activation == "linear":
        return below
    return tuple(_activated(activation_named(pointwise.activation), kind) for kind in below)


def _activated(sigma: Activation, kind: Kind) -> Kind:
    if kind.given is not None:
        return given_kind(sigma.function(kind.given))
    product, gate_product = _averages(sigma, kind)
    mean = mean_of(sigma, np.einsum("bpbp->bp", kind.covariance))
    return replace(kind, covariance=product, kernel=gate_product * kind.kernel, mean=mean, gaussian=False)


def through_gate(gate: Gate, below: Kinds, grid: tuple[int, ...]) -> Kinds:
    """c' = E[sigma(u) sigma(v)] c_2, t' = E[sigma'(u) sigma'(v)] c_2 t_1 + E[sigma(u) sigma(v)] t_2.

    The halves 1, in which u and v lie, and 2 are independent Gaussians.
    """
    sigma, middle = activation_named(gate.activation), count(below) // 2
    halves = between(below, 0, middle), between(below, middle, 2 * middle)
    return tuple(_gated(sigma, *pair) for pair in abreast(*halves))


def _gated(sigma: Activation, gating: Kind, gated: Kind) -> Kind:
    if not gated.gaussian:
        raise NoTransport(NOT_GAUSSIAN)
    product, gate_product = _averages(sigma, gating)
    kernel = gate_product * gated.covariance * gating.kernel + product * gated.kernel
    return replace(gated, covariance=product * gated.covariance, kernel=kernel, gaussian=False)


def _averages(sigma: Activation, kind: Kind) -> tuple[Array, Array]:
    """E[sigma sigma] and E[sigma' sigma'] of a kind, which must be Gaussian."""
    if not kind.gaussian:
        raise NoTransport(NOT_GAUSSIAN)
    here, there = both_sides(np.einsum("bpbp->bp", kind.covariance))
    return sigma.product(here, there, kind.covariance), sigma.gate_product(here, there, kind.covariance)


def mean_of(sigma: Activation, variance: Array) -> Array:
    """E sigma(u), u of these variances, which no activation of the library has below zero: the root of two apart."""
    return np.sqrt(np.maximum(sigma.product(variance, variance, np.zeros_like(variance)), 0.0))
