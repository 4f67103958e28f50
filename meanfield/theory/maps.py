"""How every map carries covariance and tangent kernel at infinite width, or why not: found by the map's type.

Values are channels of one or several kinds, those of a stack of weights side by side. Of every kind there are second
moments over all pairs of samples and sites, (B, S, B, S), per channel:

    covariance  c = E[x x']
    kernel      t = Theta within the channel: the sum over all parameters below, at learning rate 1 each, of dx dx'

of order 1 and of the order of the channels below. Between channels Theta is smaller than t by the root of the
channels (`meanfield.theory.mean_field.layers`) and does not enter t above. Both are the leading order: at finite
width they are off by a share of order 1/channels, except where all maps are linear, whose means are exact.

Softmax attention of scale "inverse_sqrt" keeps random logits: with large heads those of a head are Gaussian of
covariance c_q(i, j) c_k(k, l) between row i, column k and row j, column l, whatever the size. Every head draws its
own, and their averages are

    c'(i, j) = E (A c_v A')(i, j)
    t'(i, j) = E (A t_v A')(i, j) + sum_rs E[D_i c_v D_j]_rs (t_q(i, j) c_k(r, s) + c_q(i, j) t_k(r, s)),

rows A of softmaxes and their derivatives D_i = diag(A_i) - A_i A_i'. Averages are over `POINTS` points of a
low-discrepancy sequence, and what they are worth is estimated. Of T tokens there are T^2 logits: for 2 tokens
relative errors are below 1e-3, for 12 they are those of as many random points, 1 to 2 %. Where an accuracy is asked
(`accurate_averages`), further scramblings of the sequence are added until their scatter says that it is reached.

Source: Hron et al. 2020 (arXiv 2006.10540); docs/theory.md sections 16, 19.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, NoReturn

import numpy as np
from scipy.special import softmax

from meanfield.common.gaussian_averages import even_normals
from meanfield.common.machine import progress
from meanfield.common.validation import Array
from meanfield.nets.activations import Activation, activation_named
from meanfield.nets.maps import (
    Attention,
    AveragePooling,
    BatchNormalisation,
    Bias,
    Dropout,
    Flatten,
    Gain,
    Gate,
    Linear,
    Map,
    Normalisation,
    Pointwise,
    Pooling,
    Weight,
)
from meanfield.nets.net import Net
from meanfield.theory.two_points import sum_over_stencil


class NoTransport(ValueError):
    """Covariance and kernel do not close here. ``reason`` says why, ``unit`` and ``map`` where, once that is known."""

    def __init__(self, reason: str, unit: str = "", map: Any = None) -> None:
        place = [unit, type(map).__name__ if map is not None else ""]
        super().__init__(": ".join([", ".join(filter(None, place)), reason]) if any(place) else reason)
        self.reason, self.unit, self.map = reason, unit, map


@dataclass(frozen=True)
class ChannelKind:
    """So many channels of one law.

    Attributes:
        channels: how many.
        covariance, kernel: c and t, (B, S, B, S).
        mean: the mean over channels, (B, S).
        gaussian: whether every channel is a centred Gaussian, independent of the others and of all channels before.
        given: the values themselves, (channels, B, S), where they are no draw.
    """

    channels: int
    covariance: Array
    kernel: Array
    mean: Array
    gaussian: bool = True
    given: Array | None = None


# Kinds in the order of their channels.
Kinds = tuple[ChannelKind, ...]


def given_kind(values: Array) -> ChannelKind:
    """Values (channels, B, S) that are no draw, without parameters below them."""
    covariance = np.einsum("ibp,icr->bpcr", values, values, optimize=True) / len(values)
    return ChannelKind(len(values), covariance, np.zeros_like(covariance), values.mean(axis=0), False, values)


def count(kinds: Kinds) -> int:
    """Channels of all kinds."""
    return sum(kind.channels for kind in kinds)


def total(kinds: Kinds, name: str) -> Array:
    """The sum over channels of one of their attributes."""
    return np.asarray(sum(kind.channels * getattr(kind, name) for kind in kinds))


def between(kinds: Kinds, first: int, last: int) -> Kinds:
    """Channels ``first`` .. ``last`` - 1."""
    cut, start = [], 0
    for kind in kinds:
        low, high = max(first - start, 0), min(last - start, kind.channels)
        if low < high:
            given = kind.given
            cut.append(replace(kind, channels=high - low) if given is None else given_kind(given[low:high]))
        start += kind.channels
    return tuple(cut)


def abreast(*stacks: Kinds) -> Iterator[Kinds]:
    """Kinds of the same channels of several stacks, which are cut wherever one of them changes kind."""
    edges = {edge for stack in stacks for edge in accumulate(kind.channels for kind in stack)}
    for first, last in pairwise([0, *sorted(edges)]):
        yield tuple(between(stack, first, last)[0] for stack in stacks)


def averaged(kind: ChannelKind, shares: Array) -> ChannelKind:
    """Channels that take fixed ``shares`` (S', S) of the sites: sum_r shares_pr x(r)."""
    covariance, kernel = (
        np.einsum("pr,brcs,qs->bpcq", shares, pairs, shares, optimize=True) for pairs in (kind.covariance, kind.kernel)
    )
    given = None if kind.given is None else kind.given @ shares.T
    return replace(kind, covariance=covariance, kernel=kernel, mean=kind.mean @ shares.T, given=given)


def through_linear(linear: Linear, below: Kinds, grid: tuple[int, ...]) -> Kinds:
    """Each weight makes a kind of its own. With s its variance, sums over the channels i that it sees and its taps D,

        own(p, p') = sum_i sum_D E[x_i(p + D) x_i(p' + D)]                 (p, p' every stride-th site)
        c' = s own,    t' = own + s sum_i sum_D t_i(p + D, p' + D)

    What it makes is Gaussian where it sees many channels, or given values; a single channel that is itself a draw makes
    products of Gaussians at any width.
    """
    return tuple(kind for weight in linear.weights for kind in _stacked(linear, weight, below, grid))


def _stacked(linear: Linear, weight: Weight, below: Kinds, grid: tuple[int, ...]) -> Iterator[ChannelKind]:
    groups, variance = _groups(weight, below), weight.variance
    for kinds in groups:
        own, carried = (_summed(linear, total(kinds, name), grid) for name in ("covariance", "kernel"))
        gaussian = weight.shape[1] > 1 or all(kind.given is not None for kind in kinds)
        channels, mean = weight.shape[0] // len(groups), np.zeros(own.shape[:2])
        yield ChannelKind(channels, variance * own, own + variance * carried, mean, gaussian)


def _groups(weight: Weight, below: Kinds) -> list[Kinds]:
    """What each group sees; one entry for all of them, where all of them see alike."""
    size = weight.shape[1]
    if len(below) == 1 and below[0].given is None:
        return [between(below, 0, size)]
    return [between(below, group * size, (group + 1) * size) for group in range(weight.groups)]


def _summed(linear: Linear, pairs: Array, grid: tuple[int, ...]) -> Array:
    if linear.taps > 1:
        pairs = sum_over_stencil(pairs, (0, 1), grid, linear.kernel, linear.padding, linear.dilation)
    if linear.stays or not linear.stride:
        return pairs
    kept = np.arange(pairs.shape[1]).reshape(grid)[tuple(slice(None, None, step) for step in linear.stride)].ravel()
    return pairs[:, kept][..., kept]


def through_bias(bias: Bias, below: Kinds, grid: tuple[int, ...]) -> Kinds:
    """The bias's variance on c of all pairs, as it is the same everywhere, and 1 on t."""
    variance = bias.weight.variance
    return tuple(
        replace(kind, covariance=kind.covariance + variance, kernel=kind.kernel + 1.0, given=None) for kind in below
    )


NOT_GAUSSIAN = (
    "its input is not Gaussian, of which second moments are all that is known; put a linear map that sees many "
    "channels before it"
)


def through_pointwise(pointwise: Pointwise, below: Kinds, grid: tuple[int, ...]) -> Kinds:
    """c' = E[sigma(u) sigma(v)], t' = E[sigma'(u) sigma'(v)] t for Gaussians u, v of covariance c."""
    if pointwise.activation == "linear":
        return below
    return tuple(_activated(activation_named(pointwise.activation), kind) for kind in below)


def _activated(sigma: Activation, kind: ChannelKind) -> ChannelKind:
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


def _gated(sigma: Activation, gating: ChannelKind, gated: ChannelKind) -> ChannelKind:
    if not gated.gaussian:
        raise NoTransport(NOT_GAUSSIAN)
    product, gate_product = _averages(sigma, gating)
    kernel = gate_product * gated.covariance * gating.kernel + product * gated.kernel
    return replace(gated, covariance=product * gated.covariance, kernel=kernel, gaussian=False)


def _averages(sigma: Activation, kind: ChannelKind) -> tuple[Array, Array]:
    """E[sigma sigma] and E[sigma' sigma'] of a kind, which must be Gaussian."""
    if not kind.gaussian:
        raise NoTransport(NOT_GAUSSIAN)
    here, there = both_sides(np.einsum("bpbp->bp", kind.covariance))
    return sigma.product(here, there, kind.covariance), sigma.gate_product(here, there, kind.covariance)


def both_sides(by_site: Array) -> tuple[Array, Array]:
    """Numbers of every sample and site (B, S) at the first and at the second site of pairs, broadcastable to them."""
    return by_site[:, :, None, None], by_site[None, None]


def mean_of(sigma: Activation, variance: Array) -> Array:
    """E sigma(u), u of these variances, which no activation of the library has below zero: the root of two apart."""
    return np.sqrt(np.maximum(sigma.product(variance, variance, np.zeros_like(variance)), 0.0))


def through_normalisation(normalisation: Normalisation, below: Kinds, grid: tuple[int, ...]) -> Kinds:
    """c' = (c - m m') / (s s'), t' = t / (s s'), m the mean over channels ("layer") or 0 ("rms"), s^2 = c(p, p) - m^2.

    Over many channels m and s are numbers. What the Jacobian (P - y y^T / channels) / s (Zhang et al. 2026, eq. 38)
    takes out of a channel's tangent, its mean over channels and its part along the values y, is a share of order
    1/channels of t.
    """
    return divided(below, *mean_and_deviation(normalisation, below))


def mean_and_deviation(normalisation: Normalisation, below: Kinds) -> tuple[Array, Array]:
    """m and s of every sample and site, (B, S) each."""
    channels = count(below)
    mean = total(below, "mean") / channels * (normalisation.kind == "layer")
    square = np.einsum("bpbp->bp", total(below, "covariance")) / channels - mean**2 + normalisation.epsilon
    if not np.all(square > 0):
        raise NoTransport("its input vanishes at some site, which has no size to divide by; give epsilon > 0")
    return mean, np.sqrt(square)


def divided(below: Kinds, mean: Array, deviation: Array) -> Kinds:
    """(x - mean) / deviation of all channels, two numbers of every sample and site, (B, S), as any normalisation has
    them over many channels."""
    return tuple(_divided(kind, mean, deviation) for kind in below)


def _divided(kind: ChannelKind, mean: Array, deviation: Array) -> ChannelKind:
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
    (`meanfield.theory.maps`), up to shares of order 1/size and one over the number of heads.

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


def through_flatten(flatten: Flatten, below: Kinds, grid: tuple[int, ...]) -> Kinds:
    """The mean over sites of c and t at one site, (B, 1, B, 1), as what sees all channels sees all sites alike.

    Channels of different sites may have other moments, so that no activation may follow before a linear map.
    """
    return tuple(_flattened(kind) for kind in below)


def _flattened(kind: ChannelKind) -> ChannelKind:
    samples, sites = kind.mean.shape
    if kind.given is not None:
        return given_kind(kind.given.swapaxes(1, 2).reshape(-1, samples, 1))
    covariance, kernel = (
        np.einsum("bpcp->bc", pairs).reshape(samples, 1, samples, 1) / sites for pairs in (kind.covariance, kind.kernel)
    )
    mean = kind.mean.mean(axis=1, keepdims=True)
    return ChannelKind(kind.channels * sites, covariance, kernel, mean, gaussian=False)


def through_average_pooling(pooling: AveragePooling, below: Kinds, grid: tuple[int, ...]) -> Kinds:
    """The mean of c and t over both windows of a pair."""
    shares = window_shares(grid, pooling.window)
    return tuple(averaged(kind, shares) for kind in below)


def window_shares(grid: tuple[int, ...], window: tuple[int, ...]) -> Array:
    """What every site of the grid has in the mean of every window, (S', S): 0 outside it."""
    shares = np.ones((1, 1), dtype=float)
    for length, size in zip(grid, window, strict=True):
        along_axis = np.kron(np.eye(length // size), np.full((1, size), 1.0 / size))
        shares = np.asarray(np.kron(shares, along_axis), dtype=float).reshape(len(shares) * len(along_axis), -1)
    return shares


# Points of an average, those that are made at once, and the most dimensions that the sequence has.
POINTS, TOGETHER, MOST_DIMENSIONS = 2048, 256, 21201
# Scramblings whose scatter is an error, and the most that are averaged over.
SCATTERED, MOST_REPLICATES = 4, 1024


@dataclass
class SoftmaxAccuracy:
    """How accurate averages over softmaxes are to be, and what they have come to.

    Attributes:
        wanted: standard error of an average, relative to the largest of its kind; None: that of `POINTS` points.
        error: the largest estimate of it so far; 0 before any average is made.
        replicates: scramblings of the sequence, `POINTS` each, that the last average took.
    """

    wanted: float | None = None
    error: float = 0.0
    replicates: int = 1


_ASKED: ContextVar[SoftmaxAccuracy | None] = ContextVar("averages", default=None)


@contextmanager
def accurate_averages(wanted: float | None) -> Iterator[SoftmaxAccuracy]:
    """What is averaged over softmaxes in this context has this accuracy, and its error is in what is yielded."""
    asked = SoftmaxAccuracy(wanted)
    token = _ASKED.set(asked)
    try:
        yield asked
    finally:
        _ASKED.reset(token)


def replicates_in_use() -> int:
    """Scramblings that the last average over softmaxes of this context took."""
    asked = _ASKED.get()
    return 1 if asked is None else asked.replicates


def through_softmax(attention: Attention, queries: ChannelKind, keys: ChannelKind, values: Kinds) -> Kinds:
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


def _averaged(attention: Attention, values: ChannelKind, flat: dict[str, Array], shape: tuple[int, ...]) -> ChannelKind:
    asked = _ASKED.get() or SoftmaxAccuracy()
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
    attention: Attention, values: ChannelKind, flat: dict[str, Array], shape: tuple[int, ...], replicate: int
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


UNKNOWN = "nothing is known of what it makes of covariances; give it an entry in TRANSPORTS, or simulate this net"
REASONS: dict[type, str] = {
    BatchNormalisation: "it divides every channel by its own deviation over the batch, which is random at any width: "
    "what is above is not Gaussian, and covariances do not follow from covariances; train or simulate this net",
    Dropout: "its masks are those of steps of training, and predictions are made of nets before any; predict the net "
    "without dropout, or train it",
    Gain: "its one number multiplies all channels, so that a step of it moves them together, and no kernel of a single "
    "channel tells how far; train or simulate this net",
}


def not_through(spec: Map, below: Kinds, grid: tuple[int, ...]) -> NoReturn:
    """Raise `NoTransport` with the reason."""
    raise NoTransport(REASONS.get(type(spec), UNKNOWN))


def require_predictable(net: Net) -> None:
    """Raise `NoTransport` for a net with such a map."""
    for number, unit in enumerate(net.units, start=1):
        for spec in unit.maps:
            if TRANSPORTS.get(type(spec), not_through) is not_through:
                raise NoTransport(REASONS.get(type(spec), UNKNOWN), f"unit {number}", spec)


# Values above a map on a grid of sites from those below it; raises `NoTransport` where they do not close, or, as
# `not_through` does, for a map that is not here.
TRANSPORTS: dict[type, Callable[[Any, Kinds, tuple[int, ...]], Kinds]] = {
    Linear: through_linear,
    Bias: through_bias,
    Pointwise: through_pointwise,
    Gate: through_gate,
    Normalisation: through_normalisation,
    Attention: through_attention,
    Pooling: through_pooling,
    Flatten: through_flatten,
    AveragePooling: through_average_pooling,
    BatchNormalisation: not_through,
    Dropout: not_through,
    Gain: not_through,
}
