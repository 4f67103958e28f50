"""The stream of tokens of a Transformer with tied blocks: its covariance between all pairs of steps, at infinite
width.

Its energies by step, what they split into, and what the increments of two steps share follow from that.

Step p adds a r_p to the stream, r_p = W x_p with W the last matrix of its branch. With g_u the product of the
divisors of the normalisations behind the joins up to step u (post-norm; 1 in pre-norm nets)

    g_u z_u = z_0 + a sum_{p<=u} g_{p-1} r_p,      E r_p r_q' = s E x_p x_q'  if p and q share W, 0 if they do not.

The features x_p are functions of the value below, so that row u of the covariance of r needs row u - 1 of that of z
alone. L steps take O(L^2) work and O(L) memory, times the numbers that a pair of steps has over tokens
(`TokenPairs`): two where tokens are exchangeable, a matrix where they are not.

Branches. For a step and all steps with the same weights, itself the last, a branch takes the covariance c of the
values below it between the step and the others (k, *E) and those of every other value with itself (k, *E), E as in
`TokenPairs`. It gives s E x x', s the variance of an element of its last matrix times the fan-in, and s' that of its
first:

    hidden units            E sigma(u) sigma(u')             u of covariance s' c
    gated hidden units      E sigma(u) sigma(u') E w w'      u, w independent, of covariance s' c
    attention, 1/size       s' times the mean of c over the tokens that both tokens see

Attention at the scale size^(-1/2) follows at the end.

Growth with depth. The energy of a tied pre-norm stream is H ~ q (a D)^2 after D blocks, however large a D is.
Normalised branches have one size whatever the stream. Let a block of a long stream add a r to it, with E r r' = S(c)
where the normalised values below have correlation c. For t = a times the blocks, the covariance of the streams at t
and t' solves d^2 Q / dt dt' = S(Q / sqrt(H H')). For large t it tends to Q = t t' q(x), x = ln(t / t'), with

    q - q'' = S(q / q(0)),   q'(0) = 0,   q -> q(0) C = S(C) at large x,

a particle in a potential, whose energy is conserved: q(0) = 2 int_C^1 S dc / (1 - C^2). Where the slope of S at 1 is
at most S(1), directions converge, C = 1 and q(0) = S(1). Where it is larger, directions of the stream never settle.

Source: docs/theory.md section 22; Wang et al. 2026, eq. 2.

Softmax attention with the same heads at every step: logits of two steps correlate, at the scale size^(-1/2).

Exchangeable tokens. Logits of a head at steps u, v, rows i, j and columns k, l have covariance s^2 c_uv(i, j) c_uv(k,
l), as both steps have the head's queries and keys. With c = d + (e - d) delta, what all columns share drops out: rows
are softmaxes of T independent Gaussians of standard deviations alpha, beta and correlation r by column,

    alpha^2 = s^2 c_uu(i, i) (e_uu - d_uu),   beta^2 likewise of v,   alpha beta r = s^2 c_uv(i, j) (e_uv - d_uv)

and E A c A' = d + (e - d) Y with the agreement Y(alpha, beta, r) = E sum_k A_k A'_k, tabulated once as a Chebyshev
series in all three by averages over points of a low-discrepancy sequence.

Tokens that differ: heads are drawn with their queries and keys at all steps. At infinite width these are Gaussian
over steps and tokens, channel by channel, of covariance s c, c being that of the normalised stream. They are drawn
step by step given those before, for so many heads of the net's own size. Rotary positions and causal masks act on
them as in the net, and what values contribute is averaged exactly,

    E x_u(i) x_v(j) = s sum_kl E[A_u(i, k) A_v(j, l)] c_uv(k, l).

So the limit is that of many heads of this size, up to the error of an average over the heads that are drawn.

Source: docs/theory.md section 22.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev
from scipy.integrate import quad
from scipy.linalg import solve_triangular
from scipy.optimize import brentq
from scipy.special import softmax

from meanfield.common.compiled import compiled
from meanfield.common.gaussian_averages import even_normals, points_within
from meanfield.common.machine import NUMBER_BYTES, on_one_thread, require_bytes
from meanfield.common.validation import Array, takes
from meanfield.nets.activations import activation_named
from meanfield.nets.maps import ROTARY_BASE, Attention
from meanfield.nets.transformer import TokenBranch, TokenStream
from meanfield.theory.maps import even_shares
from meanfield.theory.transformers.averages import chebyshev_rule
from meanfield.theory.transformers.terms import refusal_of_parts

# Degrees of the series in a standard deviation and in the correlation.
SIZE_DEGREE, CORRELATION_DEGREE = 8, 10
# Points of the averages, a power of 2, and the numbers that all of them hold.
LEAST_POINTS, MOST_POINTS, TABLE_NUMBERS = 2**9, 2**13, 2**19


class ExchangeableSoftmax:
    """The covariance of what softmaxes of exchangeable tokens make of values between steps."""

    def __init__(self, tokens: int, gain: float) -> None:
        self._gain, self._table = gain, agreement_table(tokens, gain)

    def mixed(self, covariance: Array, own: Array) -> Array:
        """E A c A' between a step and others, (k, 2), from c between them and of the others with themselves."""
        apart = covariance[:, 0] - covariance[:, 1]
        deviations = self._gain * np.sqrt(np.maximum(own[:, 0] * (own[:, 0] - own[:, 1]), 0.0))
        shared = self._gain**2 * covariance * apart[:, None]
        sizes = deviations[-1] * deviations
        correlation = np.divide(shared, sizes[:, None], out=np.zeros_like(shared), where=sizes[:, None] > 0)
        agreement = agreements(self._table, self._gain, deviations, np.clip(correlation, 0.0, 1.0))
        return covariance[:, 1:] + apart[:, None] * agreement


def agreements(table: Array, largest: float, deviations: Array, correlation: Array) -> Array:
    """Y of the last of ``deviations`` (k,) with each of them, at ``correlation`` (k, m): (k, m)."""
    powers = chebyshev.chebvander(2 * np.minimum(deviations / largest, 1.0) - 1, SIZE_DEGREE)
    series = powers @ np.tensordot(powers[-1], table, axes=1)
    return np.asarray(chebyshev.chebval(2 * correlation - 1, series.T[:, :, None], tensor=False))


@lru_cache(maxsize=16)
def agreement_table(tokens: int, largest: float) -> Array:
    """Coefficients of Y for deviations from 0 to ``largest`` and correlations from 0 to 1, (sizes, sizes, degrees)."""
    (sizes, to_sizes), (angles, to_degrees) = (_interpolation(d) for d in (SIZE_DEGREE, CORRELATION_DEGREE))
    points = points_within(TABLE_NUMBERS / (2 * tokens), LEAST_POINTS, MOST_POINTS)
    here, there = np.moveaxis(even_normals(2 * tokens).random(points).reshape(points, 2, tokens), 1, 0)
    rows = np.stack([softmax(largest * size * here, axis=1).ravel() for size in sizes])
    values = np.empty((len(sizes), len(sizes), len(angles)))
    for place, r in enumerate(angles):
        mixed = r * here + np.sqrt(1 - r * r) * there
        others = np.stack([softmax(largest * size * mixed, axis=1).ravel() for size in sizes])
        values[:, :, place] = rows @ others.T / points
    values = (values + values.swapaxes(0, 1)) / 2
    return np.asarray(np.einsum("abr,ia,jb,kr->ijk", values, to_sizes, to_sizes, to_degrees))


def _interpolation(degree: int) -> tuple[Array, Array]:
    """Chebyshev points of [0, 1], and the matrix that makes coefficients of values there."""
    nodes, scale = chebyshev_rule(degree)
    return (1 + nodes) / 2, scale[:, None] * chebyshev.chebvander(nodes, degree).T


# Operations that the averages over heads may take, the fewest and most heads, and the most numbers that they hold.
OPERATIONS, LEAST_HEADS, MOST_HEADS, HEAD_NUMBERS = 2e9, 8, 512, 2**24
# Variance that is added to the queries and keys of every step, so that steps that are nearly one can be told apart.
JITTER = 1e-6


class DrawnHeads:
    """The heads of one attention, whose steps are met in turn."""

    def __init__(self, attention: Attention, gain: float, size: int, tokens: int, pairs: float) -> None:
        self._attention, self._gain, self._size, self._tokens = attention, gain, size, tokens
        self._heads = heads_drawn(tokens, size, pairs)
        self._random = np.random.default_rng(0)
        self._begin()

    def _begin(self) -> None:
        self._factors: list[Array] = []  # rows of the Cholesky factor of all steps' covariance: of step k, (T, k T)
        self._inverses: list[Array] = []  # of its blocks on the diagonal, (T, T)
        self._normals: list[Array] = []  # of every step, (T, heads * size)
        self._shares: list[Array] = []  # of every step, (heads T, T), columns k of all heads in turn by row j

    def mixed(self, covariance: Array) -> Array:
        """E A c A' of a step and all steps with its weights, from c between them, (k, T, T)."""
        tokens = self._tokens
        if len(covariance) == 1:
            self._begin()
        latest = self._next_shares(covariance)
        self._shares.append(np.ascontiguousarray(latest.swapaxes(1, 2)).reshape(-1, tokens))
        rows = np.ascontiguousarray(latest.swapaxes(0, 1)).reshape(-1, tokens)
        pairs = zip(covariance.astype(np.float32), self._shares, strict=True)
        sums = [(rows @ between).reshape(tokens, -1) @ shares for between, shares in pairs]
        return np.asarray(sums, dtype=float) / self._heads

    def _next_shares(self, covariance: Array) -> Array:
        """Softmaxes (heads, T, T) at the latest step, given those at the others."""
        tokens, factor = self._tokens, self._next_factor(covariance)
        self._normals.append(self._random.standard_normal((tokens, self._heads * self._size)))
        blocks = zip(np.split(factor, len(covariance), axis=1), self._normals, strict=True)
        drawn = np.sum([block @ normals for block, normals in blocks], axis=0)
        queries, keys = self._turned(drawn.reshape(tokens, 2, -1, self._size).transpose(1, 2, 0, 3))
        logits = self._gain / np.sqrt(self._size) * queries @ keys.swapaxes(1, 2)
        logits = np.concatenate([logits, -logits])  # -q is as likely as q
        if self._attention.causal:
            logits = np.where(np.tri(tokens) > 0, logits, -np.inf)
        return np.asarray(softmax(logits, axis=2), dtype=np.float32)

    def _next_factor(self, covariance: Array) -> Array:
        """The latest rows of the Cholesky factor, (T, k T), by substitution from block to block of those above."""
        tokens = self._tokens
        factor = np.empty((tokens, covariance.shape[0] * tokens))
        for step, (above, inverse) in enumerate(zip(self._factors, self._inverses, strict=True)):
            known = step * tokens
            rest = covariance[step] - factor[:, :known] @ above[:, :known].T
            np.matmul(rest, inverse.T, out=factor[:, known : known + tokens])
        left = factor[:, :-tokens]
        own = np.linalg.cholesky(covariance[-1] - left @ left.T + JITTER * np.eye(tokens))
        factor[:, -tokens:] = own
        self._factors.append(factor)
        self._inverses.append(solve_triangular(own, np.eye(tokens), lower=True))
        return factor

    def _turned(self, columns: Array) -> Array:
        """Queries or keys (..., T, size), turned by rotary positions where there are any."""
        if not self._attention.rotary:
            return columns
        middle = self._size // 2
        angle = np.arange(self._tokens)[:, None] * ROTARY_BASE ** (-np.arange(middle) / middle)
        turned = (columns[..., :middle] + 1j * columns[..., middle:]) * np.exp(1j * angle)
        return np.concatenate([turned.real, turned.imag], axis=-1)


def heads_drawn(tokens: int, size: int, pairs: float) -> int:
    """An even number of heads, of this size, that so many pairs of steps are averaged over."""
    by_time = OPERATIONS / (4 * tokens**3 * pairs)
    by_room = HEAD_NUMBERS / (np.sqrt(pairs) * tokens * max(tokens, size))
    return 2 * int(np.clip(min(by_time, by_room), LEAST_HEADS, MOST_HEADS) // 2)


# Arrays (L, *E) that the rows of a stream hold at once, E what two steps have over tokens.
ROWS = 8


@dataclass(frozen=True)
class StreamEnergies:
    """Means over tokens and samples.

    Attributes:
        initial: variance of a token of the start.
        variance: of a token behind step 1 .. L, (L,).
        correlation: of two tokens there, (L,).
        increments: E r_u r_v of increments of two steps, (L, L), if asked for.
    """

    initial: float
    variance: Array
    correlation: Array
    increments: Array | None


def stream_energies(net: TokenStream, inputs: Array | None, correlations: bool) -> StreamEnergies:
    """The energies of a tied net on inputs (B, n, T), white ones if not given.

    Raises:
        ValueError: a part that no covariance goes through; given inputs of a post-norm net.
        MemoryError: more pairs of steps and tokens than the machine has room for.
    """
    if why := refusal_of_parts(net):
        raise ValueError(why)
    if inputs is not None and net.branches[0].after is not None:
        raise ValueError(
            "inputs are given to a post-norm net with tied blocks or rotary positions; its first block takes them as "
            "they are, and covariances between steps are of normalised values; leave inputs out, or take norm='pre'"
        )
    count = len(net.block) * net.depth
    samples = _samples(net, inputs)
    needed = ROWS * count * samples[0].start.size + correlations * 2 * count**2
    require_bytes(NUMBER_BYTES * needed, "the covariance of all pairs of steps", "depth or tokens")
    with on_one_thread():
        parts = [_of_sample(net, pairs, count, correlations) for pairs in samples]
    means = [np.mean(part, axis=0) for part in zip(*parts, strict=True)]
    return StreamEnergies(float(means[0]), means[1], means[2], means[3] if correlations else None)


def _samples(net: TokenStream, inputs: Array | None) -> list[TokenPairs]:
    """What two steps have over the tokens of each sample; samples that are alike are one."""
    if _are_exchangeable(net, inputs):
        return [ExchangeableTokens(net.tokens)]
    if inputs is None:
        return [EveryToken(np.eye(net.tokens))]
    return [EveryToken(sample.T @ sample / len(sample)) for sample in inputs]


def _are_exchangeable(net: TokenStream, inputs: Array | None) -> bool:
    attention = net.attention
    return inputs is None and not attention.causal and not (attention.rotary and attention.scale == "inverse_sqrt")


def _of_sample(net: TokenStream, pairs: TokenPairs, count: int, correlations: bool) -> tuple[Array, ...]:
    variance, between = np.empty(count), np.empty(count)
    increments = np.zeros((count, count) if correlations else 0)
    for number, step in enumerate(tied_steps(net, pairs)):
        squares = pairs.same(step.covariance)
        sizes = np.sqrt(squares)
        variance[number] = squares.mean()
        between[number] = pairs.mean_of_two(step.covariance / pairs.first(sizes) / pairs.second(sizes))
        if correlations:
            row = pairs.same(step.increments).mean(axis=1)
            increments[number, step.together] = increments[step.together, number] = row
    return pairs.same(pairs.start).mean(), variance, between, increments


# The correlation C is sought up to this share below 1, and the slope of S at 1 taken over as much.
NEAR = 1e-3


@takes(TokenStream)
def growth_constant(net: TokenStream) -> float:
    """q(0) of H ~ q(0) (a D)^2, for streams of one token, or of tokens that have become one, as a D -> infinity.

    Raises:
        ValueError: untied or post-norm blocks, or sites that are several tokens.
    """
    if not net.is_tied or not net.is_pre_norm or net.tokens > 1:
        raise ValueError(
            f"the net has tied={net.is_tied} and {net.tokens} token(s); the constant of growth is that of one token "
            "under pre-norm with tied blocks: take tokens=1, tied=True, norm='pre', or `mf.predict` at a large depth"
        )
    branches = [features_of(branch, ExchangeableTokens(1), 1.0) for branch in net.branches]
    alone = np.array([[1.0, 0.0]])

    def added(correlation: float) -> float:
        pair = np.array([[correlation, 0.0]])
        rows = np.concatenate([pair, alone]), np.concatenate([alone, alone])
        return sum(float(features(*rows)[0, 0]) for features in branches)

    def constant(settled: float) -> float:
        return float(2 * quad(added, settled, 1.0, limit=200)[0] / (1 - settled**2))

    whole = added(1.0)
    if whole - added(1 - NEAR) <= NEAR * whole * (1 + NEAR):
        return whole
    return constant(float(brentq(lambda c: c * constant(c) - added(c), 0.0, 1 - NEAR)))


@dataclass(frozen=True)
class TiedStep:
    """Step u = 1 .. L. E is the shape of what two steps have over tokens.

    Attributes:
        covariance: of the stream behind the step with itself, E.
        together: the steps 1 .. u that share the weights of step u, counted from 0; the last is step u itself.
        increments: E r_u r_q' of these steps q, (k, *E).
    """

    covariance: Array
    together: slice
    increments: Array


def tied_steps(net: TokenStream, pairs: TokenPairs) -> Iterator[TiedStep]:
    """Yield steps 1 .. L = 2 depth; a step of untied blocks shares its weights with none."""
    period, count = len(net.block), len(net.block) * net.depth
    rows = StreamRows(pairs, count, divides=net.branches[0].after is not None)
    meetings = net.depth**2 / 2 if net.is_tied else net.depth
    branches = [features_of(branch, pairs, meetings) for branch in net.branches]
    for step in range(count):
        place = step % period
        together = slice(place if net.is_tied else step, step + 1, period)
        increments = branches[place](rows.below[together], rows.own[together])
        covariance = rows.add(step, together, net.branches[place].multiplier ** 2 * increments)
        yield TiedStep(covariance, together, increments)


class StreamRows:
    """The covariance of the values that branches take, row by row.

    Attributes:
        below: of the latest value u with values 0 .. u, (u + 1, *E), divided by the sizes of both: normalised.
        own: of values 0 .. u with themselves, likewise.
    """

    def __init__(self, pairs: TokenPairs, count: int, divides: bool) -> None:
        self._pairs, self._divides, self._start = pairs, divides, pairs.start
        # sum_{p<=u} (g_{p-1} / g_u) a^2 E r_p r_q' by q, and g_{p-1} / g_u by p.
        self._sums, self._weights = np.zeros((count, *pairs.start.shape)), np.ones((count, pairs.sizes))
        self._divisors, self._sizes = (np.ones((count + 1, pairs.sizes)) for _ in range(2))
        self.own = np.empty((count + 1, *pairs.start.shape))
        self.below = self._normalised(0, pairs.start[None])

    def add(self, step: int, together: slice, increments: Array) -> Array:
        """Go from value ``step`` to the next, by a^2 E r r' of the steps ``together``: the next one's covariance."""
        pairs, sums, weights = self._pairs, self._sums[: step + 1], self._weights[: step + 1]
        sums[together] += increments
        earlier = pairs.first(weights[together][:-1]) * pairs.turned(increments[:-1])
        sums[step] += earlier.sum(axis=0)
        row = cumulated(self._start, sums, self._divisors[1 : step + 1])
        if self._divides:
            size = np.sqrt(pairs.same(row[-1]))
            for held in (row, sums):
                held /= pairs.first(size)
            row[-1] /= pairs.second(size)
            weights /= size
            self._start = self._start / pairs.first(size)
            self._divisors[step + 1] = size
        self.below = self._normalised(step + 1, row)
        return np.asarray(row[-1])

    def _normalised(self, value: int, row: Array) -> Array:
        if not self._divides:
            self._sizes[value] = np.sqrt(self._pairs.same(row[-1]))
            row = row / self._pairs.first(self._sizes[value]) / self._pairs.second(self._sizes[: value + 1])
        self.own[value] = row[-1]
        return row


class TokenPairs(ABC):
    """Functions of two tokens, of a first and a second step, lie on the last axes of shape E = ``start.shape``.

    Attributes:
        start: covariance of the stream's start, E.
        sizes: how many tokens have a size of their own.
    """

    start: Array
    sizes: int

    @abstractmethod
    def same(self, pairs: Array) -> Array:
        """The values of every token with itself, (..., sizes)."""

    @abstractmethod
    def first(self, sizes: Array) -> Array:
        """Numbers of every token, (..., sizes), where they belong to the token of the first step."""

    @abstractmethod
    def second(self, sizes: Array) -> Array:
        """Numbers of every token, (..., sizes), where they belong to the token of the second step."""

    @abstractmethod
    def turned(self, pairs: Array) -> Array:
        """The values with the first step as the second."""

    @abstractmethod
    def evenly_mixed(self, attention: Attention, pairs: Array) -> Array:
        """The mean over the tokens that each of the two tokens sees."""

    @abstractmethod
    def mean_of_two(self, pairs: Array) -> float:
        """The mean over all pairs of two tokens of a sample."""


class ExchangeableTokens(TokenPairs):
    """White tokens: E = (2,), one token at both steps and two tokens."""

    sizes = 1

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self.start = np.array([1.0, 0.0])

    def same(self, pairs: Array) -> Array:
        return pairs[..., :1]

    def first(self, sizes: Array) -> Array:
        return sizes

    second = first

    def turned(self, pairs: Array) -> Array:
        return pairs

    def evenly_mixed(self, attention: Attention, pairs: Array) -> Array:
        mean = pairs @ np.array([1 / self.tokens, 1 - 1 / self.tokens])
        return np.repeat(mean[..., None], 2, axis=-1)

    def mean_of_two(self, pairs: Array) -> float:
        return float(pairs[1])


class EveryToken(TokenPairs):
    """Tokens that differ by their place or as they are given: E = (T, T)."""

    def __init__(self, start: Array) -> None:
        self.start, self.sizes = start, len(start)

    def same(self, pairs: Array) -> Array:
        return np.einsum("...ii->...i", pairs)

    def first(self, sizes: Array) -> Array:
        return sizes[..., :, None]

    def second(self, sizes: Array) -> Array:
        return sizes[..., None, :]

    def turned(self, pairs: Array) -> Array:
        return pairs.swapaxes(-1, -2)

    def evenly_mixed(self, attention: Attention, pairs: Array) -> Array:
        shares = even_shares(attention, self.sizes)
        return shares @ pairs @ shares.T

    def mean_of_two(self, pairs: Array) -> float:
        return float((pairs.sum() - np.trace(pairs)) / max(self.sizes * (self.sizes - 1), 1))


# s E x x' of a step and of all steps with its weights, (k, *E), from their covariance and that of each with itself.
Features = Callable[[Array, Array], Array]


def features_of(branch: TokenBranch, pairs: TokenPairs, together: float) -> Features:
    """What a branch makes of the values below it, in which so many pairs of steps meet."""
    below, above = branch.gain_below, branch.gain_above
    match branch.inner:
        case Attention() as attention:
            mixed = _mixed_by(attention, branch, pairs, together)
            return lambda covariance, own: below * above * mixed(covariance, own)
        case units:
            sigma, is_gated = activation_named(units.activation), units.pointwise_activation is None

    def hidden(covariance: Array, own: Array) -> Array:
        between, variance = below * covariance, np.array(below)
        product = sigma.product(variance, variance, between)
        return above * (product * between if is_gated else product)

    return hidden


def _mixed_by(attention: Attention, branch: TokenBranch, pairs: TokenPairs, together: float) -> Features:
    """E A c A' of the values, A the softmaxes of two steps."""
    if attention.scale == "inverse":
        return lambda covariance, own: pairs.evenly_mixed(attention, covariance)
    if isinstance(pairs, ExchangeableTokens):
        return ExchangeableSoftmax(pairs.tokens, branch.gain_below).mixed
    heads = DrawnHeads(attention, branch.gain_below, branch.channels // attention.heads, pairs.sizes, together)
    return lambda covariance, own: heads.mixed(covariance)


def cumulated(start: Array, sums: Array, divisors: Array) -> Array:
    """X_0 = start, X_{v+1} = (X_v + sums_v) / d_{v+1} of the second token, the last one undivided: (v + 1, *E).

    ``sums`` is (v, *E), ``divisors`` (v - 1, m), m the last axis of E or, where all of E has one divisor, 1.
    """
    shape = (-1, divisors.shape[1])
    rows = np.empty((len(sums) + 1, *start.shape))
    flat = rows.reshape(len(rows), *start.reshape(shape).shape)
    flat[0] = start.reshape(shape)
    _cumulate(flat, sums.reshape(len(sums), *flat.shape[1:]), divisors)
    return rows


@compiled()
def _cumulate(rows: Array, sums: Array, divisors: Array) -> None:
    """Fill ``rows`` from the first."""
    count, firsts, seconds = sums.shape
    for value in range(count):
        for first in range(firsts):
            for second in range(seconds):
                total = rows[value, first, second] + sums[value, first, second]
                if value < count - 1:
                    total /= divisors[value, second]
                rows[value + 1, first, second] = total
