"""Averages over Gaussians: of smooth functions over a pair by Mehler's expansion, of others by even points.

For zero-mean Gaussians u, v of correlation rho and any f

    E[f(u) f(v)] = sum_k a_k(c_u) a_k(c_v) rho^k,    a_k(c) = E[f(sqrt(c) x) h_k(x)],  x ~ N(0, 1),

h_k the normalised Hermite polynomials. So a pair costs a power series, and quadrature is in one dimension, once per
distinct variance: by the trapezoid rule, which converges exponentially for analytic integrands. By Parseval E[f^2] -
sum_{k<=K} a_k^2 bounds the terms beyond K at every correlation, +-1 included; it decides where to stop. Averages in
many dimensions take points that fill space more evenly than random ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from math import sqrt
from typing import Protocol

import numpy as np

from meanfield.common.validation import Array

Function = Callable[[Array], Array]

# The largest remainder of the series, relative to E[f^2].
TOLERANCE = 1e-12
# Integrands fall like exp(-x^2 / 4), below 1e-18 here.
REACH = 13.0
# Step for functions of z that vary on the scale 1; those of x = z / sqrt(c) are steeper by sqrt(c).
STEP = 0.15
# Work grows as the square of the variance; at this one an average takes seconds.
LARGEST_VARIANCE = 1000.0
# Averages this small have no digits left to converge in.
VANISHING = 1e-290
# Series of so few variances are kept: layer after layer asks for them again where the variance has settled.
FEW_VARIANCES = 8
# Averages whose series are summed at once; of more, each order is one operation that is long enough.
AT_ONCE = 64


def correlation(c_u: Array, c_v: Array, c_uv: Array) -> tuple[Array, Array]:
    """Standard deviations' product and the correlation, 0 where a variance vanishes."""
    scale = np.sqrt(c_u * c_v)
    safe = np.where(scale > 0, scale, 1.0)
    return scale, np.clip(np.where(scale > 0, c_uv / safe, 0.0), -1.0, 1.0)


def mean_square(function: Function, variance: float) -> float:
    """E[f(u)^2] for u ~ N(0, variance)."""
    nodes, weights = gaussian_nodes(variance)
    return float(np.square(function(np.sqrt(variance) * nodes)) @ weights)


def pair_average(function: Function, c_u: Array, c_v: Array, c_uv: Array) -> Array:
    """E[f(u) f(v)] for variances c_u, c_v and covariance c_uv, broadcast; f analytic and of polynomial growth.

    Accurate to about 1e-12 E[f^2]. The number of terms grows as the largest variance, as f must be resolved on the
    scale 1: some hundred at variance 1.

    Raises:
        ValueError: a variance above `LARGEST_VARIANCE`.
    """
    _, rho = correlation(c_u, c_v, c_uv)
    variances, which = np.unique(np.concatenate([np.ravel(c_u), np.ravel(c_v)]), return_inverse=True)
    if not variances[-1] <= LARGEST_VARIANCE:
        raise ValueError(
            f"pre-activations reach variance {variances[-1]:.3g}; averages of smooth activations are computed up to "
            f"{LARGEST_VARIANCE:g}: lower what makes them grow (inputs, weight_variance, depth), or use 'relu' or "
            "'erf', whose averages are closed"
        )
    first, second = which[: np.size(c_u)].reshape(np.shape(c_u)), which[np.size(c_u) :].reshape(np.shape(c_v))
    series: Iterable[Array] = _coefficients(function, variances)
    if len(variances) <= FEW_VARIANCES:
        kept = _kept_coefficients(function, tuple(variances.tolist()))
        if kept.size and rho.size <= AT_ONCE:
            first, second, _ = np.broadcast_arrays(first, second, rho)
            return _summed(kept[first] * kept[second], rho)
        series = kept.T
    total, power = np.zeros_like(rho), np.ones_like(rho)
    for row in series:
        total += row[first] * row[second] * power
        power *= rho
    return total


def _summed(coefficients: Array, rho: Array) -> Array:
    """The sum over k of coefficients (*shape, K) times rho^k in one go, added up in the order of k as one by one."""
    powers = np.ones_like(coefficients)
    powers[..., 1:] = rho[..., None]
    np.multiply.accumulate(powers, axis=-1, out=powers)
    return np.asarray(np.add.accumulate(coefficients * powers, axis=-1)[..., -1])


class HermiteBasis:
    """The Hermite polynomials that a function needs at every variance up to a largest one."""

    def __init__(self, function: Function, largest: float) -> None:
        nodes, weights = gaussian_nodes(largest)
        orders = sum(1 for _ in _coefficients(function, np.array([largest])))
        polynomials = list(islice(_hermite_functions(nodes, weights), orders))
        self.largest, self._function, self._nodes = largest, function, nodes
        self._projection = np.transpose(polynomials) * np.sqrt(weights)[:, None]

    def coefficients(self, variances: Array) -> Array:
        """a_k(c): (variances, orders)."""
        return np.asarray(self._function(np.sqrt(variances)[:, None] * self._nodes) @ self._projection)


@lru_cache(maxsize=16)
def _kept_coefficients(function: Function, variances: tuple[float, ...]) -> Array:
    """(variances, orders)."""
    return np.ascontiguousarray(np.reshape([*_coefficients(function, np.array(variances))], (-1, len(variances))).T)


def _coefficients(function: Function, variances: Array) -> Iterator[Array]:
    """Yield a_0, a_1, ... of every variance until the remainder is negligible for all of them."""
    nodes, weights = gaussian_nodes(float(variances.max()))
    values = function(np.sqrt(variances)[:, None] * nodes) * np.sqrt(weights)
    energy = np.square(values).sum(axis=1)
    left, negligible = energy, np.maximum(TOLERANCE * energy, VANISHING)
    for hermite in _hermite_functions(nodes, weights):
        if (left <= negligible).all():
            return
        coefficient = values @ hermite
        yield coefficient
        left -= coefficient * coefficient
    raise ArithmeticError("the Hermite series does not converge: the function is not smooth on the scale 1")


def _hermite_functions(nodes: Array, weights: Array) -> Iterator[Array]:
    """h_0, h_1, ... at the nodes, up to the last that the nodes resolve.

    Each is multiplied by the root of the weights, as the function's values are, so that no polynomial overflows.
    """
    below, hermite = np.zeros_like(nodes), np.sqrt(weights)
    for order in range(_resolved_orders(nodes)):
        yield hermite
        above = nodes * hermite
        above -= sqrt(order) * below
        above /= sqrt(order + 1)
        below, hermite = hermite, above


def gaussian_nodes(variance: float) -> tuple[Array, Array]:
    """Nodes and weights for averages over N(0, 1) of functions of sqrt(variance) x."""
    count = int(np.ceil(REACH * np.sqrt(1 + variance) / STEP))
    nodes, step = np.linspace(-REACH, REACH, 2 * count + 1, retstep=True)
    return nodes, np.exp(-nodes * nodes / 2) * (step / np.sqrt(2 * np.pi))


def _resolved_orders(nodes: Array) -> int:
    """Orders whose polynomials, of local frequency sqrt(k), the nodes tell apart."""
    return int((np.pi / (nodes[1] - nodes[0])) ** 2)


def points_within(numbers: float, least: int, most: int) -> int:
    """How many points of `even_normals` to take: the largest power of 2 up to ``numbers``, within these bounds."""
    return int(np.clip(2 ** int(np.log2(numbers)), least, most))


class EvenPoints(Protocol):
    """Points that fill space more evenly than random ones."""

    def random(self, n: int) -> Array:
        """The next n of them, (n, dimensions)."""


def even_normals(dimensions: int, replicate: int = 0) -> EvenPoints:
    """Scrambled Sobol points of a standard normal, always the same; ``.random(n)`` gives the next n, (n, dimensions).

    Averages over a power of 2 of them err by much less than over as many random points in a few dimensions, or where
    few of many count. In a hundred dimensions that all count, such as the logits of a dozen tokens, a few thousand of
    them are worth no more than as many random ones. Every ``replicate`` is another scrambling: the scatter of averages
    between replicates is an estimate of their error.
    """
    from scipy.stats import qmc  # a second of import, which commands without such averages need not wait for

    points: EvenPoints = qmc.MultivariateNormalQMC(np.zeros(dimensions), rng=replicate)
    return points
