"""Softmax attention whose logits stay random: averages over Gaussian logits of all sites, by quasi-Monte Carlo.

With scale "inverse_sqrt" and large heads the logits of a head are Gaussian of covariance c_q(i, j) c_k(k, l) between
row i, column k and row j, column l, whatever the size. Every head draws its own, and their averages are

    c'(i, j) = E (A c_v A')(i, j)
    t'(i, j) = E (A t_v A')(i, j) + sum_rs E[D_i c_v D_j]_rs (t_q(i, j) c_k(r, s) + c_q(i, j) t_k(r, s)),

rows A of softmaxes and their derivatives D_i = diag(A_i) - A_i A_i'.

Averages are over `POINTS` points of a low-discrepancy sequence, and what they are worth is estimated. Of T tokens there
are T^2 logits: for 2 tokens relative errors are below 1e-3, for 12 they are those of as many random points, 1 to 2 %.
Where an accuracy is asked (`accurate_averages`), further scramblings of the sequence are added until their scatter says
that it is reached.

Source: Hron et al. 2020 (arXiv 2006.10540); docs/theory.md sections 16, 19.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from meanfield.common.arrays import Array
from meanfield.common.machine import progress
from meanfield.common.quasi_random import even_normals
from meanfield.nets.maps import Attention
from meanfield.theory.maps.base import Kind, Kinds, NoTransport

# Points of an average, those that are made at once, and the most dimensions that the sequence has.
POINTS, TOGETHER, MOST_DIMENSIONS = 2048, 256, 21201
# Scramblings whose scatter is an error, and the most that are averaged over.
SCATTERED, MOST_REPLICATES = 4, 1024


@dataclass
class Averages:
    """How accurate averages over softmaxes are to be, and what they have come to.

    Attributes:
        wanted: standard error of an average, relative to the largest of its kind; None: that of `POINTS` points.
        error: the largest estimate of it so far; 0 before any average is made.
        replicates: scramblings of the sequence, `POINTS` each, that the last average took.
    """

    wanted: float | None = None
    error: float = 0.0
    replicates: int = 1


_ASKED: ContextVar[Averages | None] = ContextVar("averages", default=None)


@contextmanager
def accurate_averages(wanted: float | None) -> Iterator[Averages]:
    """What is averaged over softmaxes in this context has this accuracy, and its error is in what is yielded."""
    asked = Averages(wanted)
    token = _ASKED.set(asked)
    try:
        yield asked
    finally:
        _ASKED.reset(token)


def replicates_in_use() -> int:
    """Scramblings that the last average over softmaxes of this context took."""
    asked = _ASKED.get()
    return 1 if asked is None else asked.replicates


def through_softmax(attention: Attention, queries: Kind, keys: Kind, values: Kinds) -> Kinds:
    """Values (kinds) averaged over heads, of queries and keys of one kind each.

    Raises:
        NoTransport: rotary positions, or more sites than the sequence has dimensions for.
        ArithmeticError: an accuracy that `MOST_REPLICATES` scramblings do not reach.
    """
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
    asked = _ASKED.get() or Averages()
    parts = _batch_means(attention, values, flat, shape, 0)
    means = [parts.mean(axis=0)]
    while (error := _relative_error(parts)) > (asked.wanted or np.inf):
        if len(means) >= MOST_REPLICATES:
            raise ArithmeticError(
                f"averages over softmaxes of {shape[0] * shape[1]} sites have a relative error of {error:.2g} after "
                f"{len(means) * POINTS:,} points, more than the accuracy {asked.wanted:g} that was asked; ask for less"
            )
        for replicate in range(len(means), max(SCATTERED, 2 * len(means))):
            means.append(_batch_means(attention, values, flat, shape, replicate).mean(axis=0))
        parts = np.array(means)
    asked.error, asked.replicates = max(asked.error, error), len(means)
    above, moved, shares = np.mean(means, axis=0)
    mean = (values.mean.ravel() @ shares.T).reshape(values.mean.shape)
    return replace(
        values, covariance=above.reshape(shape), kernel=moved.reshape(shape), mean=mean, gaussian=False, given=None
    )


def _batch_means(
    attention: Attention, values: Kind, flat: dict[str, Array], shape: tuple[int, ...], replicate: int
) -> Array:
    """c', t' and the rows A, each over pairs of sites, averaged over every batch of points: (batches, 3, N, N)."""
    points = shape[0] * shape[1]
    covariance, kernel = (pairs.reshape(points, points) for pairs in (values.covariance, values.kernel))
    batches = []
    drawn = drawn_shares(attention, flat["c_q"], flat["c_k"], shape, replicate=replicate)
    for shares, _ in progress(drawn, POINTS // TOGETHER, "batch"):
        turned = shares.swapaxes(1, 2)
        above, carried = (shares @ pairs @ turned for pairs in (covariance, kernel))
        by_queries, by_keys = (response(shares, covariance, flat[name]) for name in ("c_k", "t_k"))
        moved = carried + flat["t_q"] * by_queries + flat["c_q"] * by_keys
        batches.append([part.mean(axis=0) for part in (above, moved, shares)])
    return np.array(batches)


def _relative_error(parts: Array) -> float:
    """Largest standard error of c' and t', each over its largest value, from the scatter of parts of their mean.

    Parts are replicates or, where there is one alone, its batches, whose scatter errs on the safe side in few
    dimensions.
    """
    stderr = parts[:, :2].std(axis=0, ddof=1) / np.sqrt(len(parts))
    largest = np.abs(parts[:, :2].mean(axis=0)).max(axis=(1, 2))
    return float(np.max(stderr.max(axis=(1, 2)) / np.where(largest > 0, largest, 1.0)))


def drawn_shares(
    attention: Attention,
    queries: Array,
    keys: Array,
    shape: tuple[int, ...],
    others: int = 0,
    points: int = POINTS,
    replicate: int = 0,
) -> Iterator[tuple[Array, Array]]:
    """So many ``points`` of one ``replicate`` in all: rows of softmaxes (TOGETHER, B S, B S), 0 between samples and
    where a site would look ahead, and with each of them so many ``others``, standard normals (TOGETHER, others)."""
    samples, sites = shape[:2]
    allowed = np.kron(np.eye(samples), np.tri(sites) if attention.causal else np.ones((sites, sites))) > 0
    roots = [root(covariance) for covariance in (queries, keys)]
    normals = even_normals(allowed.size + others, replicate)
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
