"""Maps that take values together: normalisation over channels, softmax attention and pooling over sites."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.maps import Attention, Normalisation, Pooling
from meanfield.theory.maps.base import Kind, Kinds, NoTransport, averaged, between, count, given_kind, total
from meanfield.theory.maps.softmax import through_softmax
from meanfield.theory.mean_field.transport import both_sides


def through_normalisation(normalisation: Normalisation, below: Kinds, grid: tuple[int, ...]) -> Kinds:
    """c' = (c - m m') / (s s'), t' = t / (s s'), m the mean over channels ("layer") or 0 ("rms"), s^2 = c(p, p) - m^2.

    Over many channels m and s are numbers. What the Jacobian (P - y y^T / channels) / s (Zhang et al. 2026, eq. 38)
    takes out of a channel's tangent, its mean over channels and its part along the values y, is a share of order
    1/channels of t.
    """
    mean, deviation = mean_and_deviation(normalisation, below)
    return tuple(_divided(kind, mean, deviation) for kind in below)


def mean_and_deviation(normalisation: Normalisation, below: Kinds) -> tuple[Array, Array]:
    """m and s of every sample and site, (B, S) each."""
    channels = count(below)
    mean = total(below, "mean") / channels * (normalisation.kind == "layer")
    square = np.einsum("bpbp->bp", total(below, "covariance")) / channels - mean**2 + normalisation.epsilon
    if not np.all(square > 0):
        raise NoTransport("its input vanishes at some site, which has no size to divide by; give epsilon > 0")
    return mean, np.sqrt(square)


def _divided(kind: Kind, mean: Array, deviation: Array) -> Kind:
    if kind.given is not None:
        return given_kind((kind.given - mean) / deviation)
    here, there = both_sides(deviation)
    first, second = both_sides(mean)
    own_first, own_second = both_sides(kind.mean)
    centred = kind.covariance - own_first * second - first * own_second + first * second
    sizes = here * there
    return replace(kind, covariance=centred / sizes, kernel=kind.kernel / sizes, mean=(kind.mean - mean) / deviation)


def through_attention(attention: Attention, below: Kinds, grid: tuple[int, ...]) -> Kinds:
    """With scale "inverse", the mean over all sites, or over those before and the site itself (``causal``).

    Queries q and keys k are independent Gaussian channels, so the logit q . k / size has variance c_q c_k / size: as
    heads grow it vanishes, with what queries and keys, turned by positions or not, hand on of the kernel. So c and t of
    the values are averaged on each side by itself, exactly in the limit, up to a share of order 1/size.

    With scale "inverse_sqrt" the logits keep variance c_q c_k at any size, and c and t are averages over them
    (`meanfield.theory.maps.softmax`), up to shares of order 1/size and one over the number of heads.

    Source: docs/theory.md sections 16, 19.
    """
    size = count(below) // 3
    queries, keys, values = (between(below, part * size, (part + 1) * size) for part in range(3))
    if not all(kind.gaussian for kind in (*queries, *keys)):
        raise NoTransport("queries or keys are not Gaussian, so logits need not be; let a linear map make them")
    if attention.scale == "inverse_sqrt":
        if len(queries) + len(keys) > 2 or any(kind.given is not None for kind in values):
            raise NoTransport("queries, keys or values differ from head to head; let one linear map make them")
        return through_softmax(attention, queries[0], keys[0], values)
    shares = even_shares(attention, below[0].mean.shape[1])
    return tuple(averaged(kind, shares) for kind in values)


def even_shares(attention: Attention, sites: int) -> Array:
    """The rows of a softmax of logits that vanish, (S, S)."""
    allowed = np.tri(sites) if attention.causal else np.ones((sites, sites))
    return np.asarray(allowed / allowed.sum(axis=1, keepdims=True))


def through_pooling(pooling: Pooling, below: Kinds, grid: tuple[int, ...]) -> Kinds:
    """The mean of c and t over both sites of a pair, or those of the last: (B, 1, B, 1)."""
    sites = below[0].mean.shape[1]
    shares = np.full((1, sites), 1.0 / sites) if pooling.kind == "mean" else np.eye(sites)[-1:]
    return tuple(averaged(kind, shares) for kind in below)
