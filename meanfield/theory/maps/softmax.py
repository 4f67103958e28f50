"""Softmax attention whose logits stay random: averages over Gaussian logits of all sites, by quasi-Monte Carlo.

With scale "inverse_sqrt" and large heads the logits of a head are Gaussian of covariance c_q(i, j) c_k(k, l) between
row i, column k and row j, column l, whatever the size. Every head draws its own, and their averages are

    c'(i, j) = E (A c_v A')(i, j)
    t'(i, j) = E (A t_v A')(i, j) + sum_rs E[D_i c_v D_j]_rs (t_q(i, j) c_k(r, s) + c_q(i, j) t_k(r, s)),

rows A of softmaxes and their derivatives D_i = diag(A_i) - A_i A_i'.

Source: Hron et al. 2020 (arXiv 2006.10540); docs/theory.md section 19.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy.special import softmax

from meanfield.common.arrays import Array
from meanfield.common.machine import progress
from meanfield.common.quasi_random import even_normals
from meanfield.nets.maps import Attention
from meanfield.theory.maps.base import Kind, Kinds, NoTransport

# Points of the average, those that are made at once, and the most dimensions that the sequence has.
POINTS, TOGETHER, MOST_DIMENSIONS = 2048, 256, 21201


def through_softmax(attention: Attention, queries: Kind, keys: Kind, values: Kinds) -> Kinds:
    """Values (kinds) averaged over heads, of queries and keys of one kind each; errors of averages are about 1e-3."""
    if attention.rotary:
        raise NoTransport(
            "rotary positions turn queries and keys channel by channel, so that logits of two rows do "
            "not have a product for their covariance; take rotary=False"
        )
    shape = queries.covariance.shape
    points = shape[0] * shape[1]
    require_room(points)
    flat = {
        name: getattr(kind, which).reshape(points, points)
        for name, kind, which in (
            ("c_q", queries, "covariance"),
            ("c_k", keys, "covariance"),
            ("t_q", queries, "kernel"),
            ("t_k", keys, "kernel"),
        )
    }
    return tuple(_averaged(attention, kind, flat, shape) for kind in values)


def require_room(points: int) -> None:
    """Raise NoTransport if random logits of so many sites, samples included, have no averages."""
    if points**2 > MOST_DIMENSIONS:
        most = int(np.sqrt(MOST_DIMENSIONS))
        raise NoTransport(
            f"logits of {points} sites (samples included) are averaged over by quasi-Monte Carlo, which has "
            f"room for {most}; take fewer sites or samples, or scale 'inverse', which is closed"
        )


def _averaged(attention: Attention, values: Kind, flat: dict[str, Array], shape: tuple[int, ...]) -> Kind:
    points = shape[0] * shape[1]
    covariance, kernel = (pairs.reshape(points, points) for pairs in (values.covariance, values.kernel))
    sums = np.zeros((4, points, points))
    shares_sum = np.zeros((points, points))
    drawn = drawn_shares(attention, flat["c_q"], flat["c_k"], shape)
    for shares, _ in progress(drawn, POINTS // TOGETHER, "batch"):
        turned = shares.swapaxes(1, 2)
        means = [shares @ pairs @ turned for pairs in (covariance, kernel)]
        responses = [response(shares, covariance, flat[name]) for name in ("c_k", "t_k")]
        sums += [part.sum(axis=0) for part in (*means, *responses)]
        shares_sum += shares.sum(axis=0)
    above, carried, by_queries, by_keys = sums / POINTS
    moved = carried + flat["t_q"] * by_queries + flat["c_q"] * by_keys
    mean = (values.mean.ravel() @ (shares_sum / POINTS).T).reshape(values.mean.shape)
    return replace(
        values, covariance=above.reshape(shape), kernel=moved.reshape(shape), mean=mean, gaussian=False, given=None
    )


def drawn_shares(
    attention: Attention, queries: Array, keys: Array, shape: tuple[int, ...], others: int = 0, points: int = POINTS
) -> Iterator[tuple[Array, Array]]:
    """So many ``points`` in all: rows of softmaxes (TOGETHER, B S, B S), 0 between samples and where a site would look
    ahead, and with each of them so many ``others``, standard normals (TOGETHER, others)."""
    samples, sites = shape[:2]
    allowed = np.kron(np.eye(samples), np.tri(sites) if attention.causal else np.ones((sites, sites))) > 0
    roots = [root(covariance) for covariance in (queries, keys)]
    normals = even_normals(allowed.size + others)
    for _ in range(points // TOGETHER):
        logits, rest = np.split(normals.random(TOGETHER), [allowed.size], axis=1)
        drawn = roots[0] @ logits.reshape(TOGETHER, *allowed.shape) @ roots[1].T
        yield softmax(np.where(allowed, drawn, -np.inf), axis=2), rest


def response(shares: Array, values: Array, logits: Array) -> Array:
    """sum_rs [D_i c D_j]_rs m_rs of every two rows i, j, for c the ``values`` and m the ``logits``."""
    turned = shares.swapaxes(1, 2)
    seen, weighed = shares @ values, shares @ logits
    cross = (seen * weighed) @ turned
    both = (seen @ turned) * (weighed @ turned)
    return shares @ (values * logits) @ turned - cross - cross.swapaxes(1, 2) + both


def root(covariance: Array) -> Array:
    """R with R R' = c."""
    sizes, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(sizes, 0.0))
