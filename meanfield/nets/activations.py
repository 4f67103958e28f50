"""Pointwise activations and the Gaussian averages that the theory needs of them.

An activation is a datum: its function, its derivative (the gate), and averages over a pair of zero-mean Gaussians (u,
v) with variances ``c_u``, ``c_v`` and covariance ``c_uv``: closed forms for ReLU, linear and erf, quadrature for other
smooth activations. Function and gate are written in terms of a few `ArrayFunctions`, and so serve arrays of every
library that has these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from math import log, pi, sqrt
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from scipy.special import erf, erfcx, ndtr

from meanfield.common.compiled import compiled
from meanfield.common.gaussian_averages import correlation, mean_square, pair_average
from meanfield.common.validation import Array, require_choice

GaussianAverage = Callable[[Array, Array, Array], Array]


@dataclass(frozen=True)
class ArrayFunctions:
    """The elementwise functions of one array library that activations are made of."""

    maximum: Callable[..., Any]
    exp: Callable[..., Any]
    tanh: Callable[..., Any]
    ones_like: Callable[..., Any]
    normal_cdf: Callable[..., Any]
    logistic: Callable[..., Any]
    erf: Callable[..., Any]


def _logistic(z: Array) -> Array:
    """1 / (1 + exp(-z)), six times as fast as SciPy's in single precision; exp(-z) may overflow, to a quotient of 0."""
    with np.errstate(over="ignore"):
        shares = np.asarray(np.exp(-z))
        shares += 1
        return np.divide(1, shares, out=shares)


def _interpolated(function: Callable[[Array], Array], end: float, degree: int) -> tuple[Any, ...]:
    """The polynomial through a function on -end .. end, in single precision, its highest power first."""
    through = Chebyshev.interpolate(function, degree, domain=[-end, end]).convert(kind=Polynomial)
    return tuple(np.float32(factor) for factor in through.coef[::-1])


# Phi(-a) = exp(-a^2/2) m(v) / (a + 4), where m is nearly straight in v = (a - 4) / (a + 4); exp(y) = 2^n exp(r), where
# |r| is at most ln(2)/2. Both polynomials are good to 5e-8. From FARTHEST on a tail is below what single precision
# holds in full, and counts as 0.
ZERO, HALF, ONE, FOUR, FARTHEST = (np.float32(number) for number in (0.0, 0.5, 1.0, 4.0, 13.0))
TAIL = _interpolated(lambda v: erfcx(4 * (1 + v) / (1 - v) / sqrt(2)) / 2 * 8 / (1 - v), 1.0, 10)
EXPONENTIAL = _interpolated(np.exp, 0.35, 6)
PER_OCTAVE = np.float32(1 / log(2))
# ln(2) in a part of few digits, whose multiples are exact, and the rest.
OCTAVE = np.float32(0.693359375)
REST_OF_OCTAVE = np.float32(log(2) - 0.693359375)
EXPONENT_BIAS, FRACTION_BITS = np.int32(127), np.int32(23)


@compiled(fastmath={"contract"}, error_model="numpy")
def _write_normal_cdf(z, out):  # type: ignore[no-untyped-def]
    """Phi in single precision; without branches, calls or divisions that may raise, so that it runs in lanes."""
    for i in range(z.size):
        a = abs(z[i])
        near = a < FARTHEST  # which no NaN is
        a = a if near else FARTHEST
        y = -HALF * a * a
        n = np.floor(y * PER_OCTAVE + HALF)
        r = y - n * OCTAVE - n * REST_OF_OCTAVE
        exponential = ZERO
        for factor in EXPONENTIAL:
            exponential = exponential * r + factor
        scale = np.int32((np.int32(n) + EXPONENT_BIAS) << FRACTION_BITS).view(np.float32)
        w = ONE / (a + FOUR)
        v = (a - FOUR) * w
        m = ZERO
        for factor in TAIL:
            m = m * v + factor
        tail = exponential * scale * m * w if near else ZERO
        share = tail if z[i] < 0 else ONE - tail
        out[i] = share if z[i] == z[i] else z[i]


def _normal_cdf(z: Array) -> Array:
    """Phi(z); in single precision to 2e-7, several times as fast as by SciPy."""
    z = np.asarray(z)
    if z.dtype != np.float32:
        return np.asarray(ndtr(z))
    z = z if z.flags.forc else z.copy(order="K")
    out = np.empty_like(z)
    _write_normal_cdf(z.ravel(order="K"), out.ravel(order="K"))
    return out


ON_NUMPY = ArrayFunctions(np.maximum, np.exp, np.tanh, np.ones_like, _normal_cdf, _logistic, erf)


@dataclass(frozen=True)
class Activation:
    """One pointwise nonlinearity sigma, dimensionless and independent of width and depth.

    Attributes:
        name: the word that specs use.
        function: sigma, of NumPy's arrays, or of another library's, whose `ArrayFunctions` are given beside z.
        gate: sigma', likewise, the factor that a tangent or an error picks up (zero at the kink of ReLU).
        gain: q = E[sigma'(G)^2] for G ~ N(0, 1); weights of variance 1/(q fan_in) conserve the energy of tangents and
            errors where pre-activations have variance 1 (Zhang et al. 2026, eq. 1).
        homogeneous: whether sigma(t z) = t sigma(z) for t > 0. Then the gate depends on the sign of z alone: it has
            mean square q whatever the size of a Gaussian weight row, and signals too keep their energy.
        product: E[sigma(u) sigma(v)].
        gate_product: E[sigma'(u) sigma'(v)].
        gate_square_product: E[sigma'(u)^2 sigma'(v)^2].
        square_product: E[sigma(u)^2 sigma(v)^2].
        closed: whether ``product`` and ``gate_product`` are closed forms, which serve any variance at once.
        triple: (a, b) of E[sigma'(u)^2 sigma'(v) sigma'(w)] = a + b (g_uv + g_uw + g_vw), g the ``gate_product`` of
            a pair: (-1/4, 1/2) for gates that are 1 at one sign of a Gaussian, (1, 0) without gates; None where the
            averages over pairs do not determine it.
    """

    name: str
    function: Callable[..., Array]
    gate: Callable[..., Array]
    gain: float
    homogeneous: bool
    product: GaussianAverage
    gate_product: GaussianAverage
    gate_square_product: GaussianAverage
    square_product: GaussianAverage
    closed: bool = False
    triple: tuple[float, float] | None = None

    def __reduce__(self) -> tuple[Callable[[str], Activation], tuple[str]]:
        """Processes exchange the name, as functions cannot be pickled."""
        return activation_named, (self.name,)


# Pairs averaged at once: so many temporaries stay in the cache; those of a million pairs would cost several times the
# arithmetic.
PAIRS_AT_ONCE = 8192


def _in_blocks(average: GaussianAverage) -> GaussianAverage:
    """The same average is taken over blocks of the pairs, one after the other."""

    @wraps(average)
    def blocked(c_u: Array, c_v: Array, c_uv: Array) -> Array:
        pairs = np.nditer(
            [c_u, c_v, c_uv, None], flags=["external_loop", "buffered", "zerosize_ok"], buffersize=PAIRS_AT_ONCE
        )
        with pairs:
            for here, there, between, result in pairs:
                result[...] = average(here, there, between)
            return np.asarray(pairs.operands[3])

    return blocked


@_in_blocks
def _relu_product(c_u: Array, c_v: Array, c_uv: Array) -> Array:
    """Arc-cosine kernel of degree one: sqrt(c_u c_v) kappa_1(rho)."""
    scale, rho = correlation(c_u, c_v, c_uv)
    angle = np.pi - np.arccos(rho)
    return np.asarray(scale * (np.sqrt(1 - rho * rho) + rho * angle) / (2 * np.pi))


@_in_blocks
def _relu_gate_product(c_u: Array, c_v: Array, c_uv: Array) -> Array:
    """Probability that both units are on: kappa_0(rho); a unit of variance zero is off."""
    scale, rho = correlation(c_u, c_v, c_uv)
    return np.where(scale > 0, (np.pi - np.arccos(rho)) / (2 * np.pi), 0.0)


@_in_blocks
def _relu_square_product(c_u: Array, c_v: Array, c_uv: Array) -> Array:
    """Arc-cosine kernel of degree two: c_u c_v [3 rho sqrt(1 - rho^2) + (1 + 2 rho^2)(pi - arccos rho)] / (2 pi)."""
    scale, rho = correlation(c_u, c_v, c_uv)
    angle = np.pi - np.arccos(rho)
    return np.asarray(scale**2 * (3 * rho * np.sqrt(1 - rho * rho) + (1 + 2 * rho * rho) * angle) / (2 * np.pi))


RELU = Activation(
    name="relu",
    function=lambda z, on=ON_NUMPY: on.maximum(z, 0.0),
    gate=lambda z, on=ON_NUMPY: (z > 0).astype(z.dtype),
    gain=0.5,
    homogeneous=True,
    product=_relu_product,
    gate_product=_relu_gate_product,
    gate_square_product=_relu_gate_product,
    square_product=_relu_square_product,
    closed=True,
    triple=(-1 / 4, 1 / 2),
)

LINEAR = Activation(
    name="linear",
    function=lambda z, on=ON_NUMPY: z,
    gate=lambda z, on=ON_NUMPY: on.ones_like(z),
    gain=1.0,
    homogeneous=True,
    product=lambda c_u, c_v, c_uv: np.asarray(c_uv),
    gate_product=lambda c_u, c_v, c_uv: np.ones_like(c_uv),
    gate_square_product=lambda c_u, c_v, c_uv: np.ones_like(c_uv),
    square_product=lambda c_u, c_v, c_uv: np.asarray(c_u * c_v + 2 * c_uv**2),
    closed=True,
    triple=(1.0, 0.0),
)


@_in_blocks
def _erf_product(c_u: Array, c_v: Array, c_uv: Array) -> Array:
    """Arc-sine kernel: (2 / pi) arcsin(2 c_uv / sqrt((1 + 2 c_u)(1 + 2 c_v))) (Williams 1997)."""
    return np.asarray(2 / np.pi * np.arcsin(2 * c_uv / np.sqrt((1 + 2 * c_u) * (1 + 2 * c_v))))


def _bell_product(height: float, steepness: float) -> GaussianAverage:
    """E[f(u) f(v)] of f = height exp(-steepness z^2): height^2 / sqrt of |1 + 2 steepness C|, C the covariance."""

    @_in_blocks
    def product(c_u: Array, c_v: Array, c_uv: Array) -> Array:
        apart = np.maximum(c_u * c_v - c_uv * c_uv, 0.0)
        return np.asarray(height**2 / np.sqrt(1 + 2 * steepness * (c_u + c_v) + 4 * steepness**2 * apart))

    return product


# erf' = 2 / sqrt(pi) exp(-z^2).
ERF = Activation(
    name="erf",
    function=lambda z, on=ON_NUMPY: on.erf(z),
    gate=lambda z, on=ON_NUMPY: 2 / sqrt(pi) * on.exp(-z * z),
    gain=4 / (pi * sqrt(5)),
    homogeneous=False,
    product=_erf_product,
    gate_product=_bell_product(2 / sqrt(pi), 1.0),
    gate_square_product=_bell_product(4 / pi, 2.0),
    square_product=partial(pair_average, lambda z: np.square(erf(z))),
    closed=True,
)


def _smooth(name: str, function: Callable[..., Array], gate: Callable[..., Array]) -> Activation:
    """An analytic activation, its averages by quadrature."""

    def squared(factor: Callable[..., Array]) -> Callable[[Array], Array]:
        return lambda z: np.square(factor(z))

    return Activation(
        name=name,
        function=function,
        gate=gate,
        gain=mean_square(gate, 1.0),
        homogeneous=False,
        product=partial(pair_average, function),
        gate_product=partial(pair_average, gate),
        gate_square_product=partial(pair_average, squared(gate)),
        square_product=partial(pair_average, squared(function)),
    )


def _gelu_gate(z: Array, on: ArrayFunctions = ON_NUMPY) -> Array:
    return on.normal_cdf(z) + z * on.exp(-z * z / 2) / sqrt(2 * pi)


GELU = _smooth("gelu", lambda z, on=ON_NUMPY: z * on.normal_cdf(z), _gelu_gate)


def _tanh_gate(z: Array, on: ArrayFunctions = ON_NUMPY) -> Array:
    share = on.tanh(z)
    return 1 - share * share


TANH = _smooth("tanh", lambda z, on=ON_NUMPY: on.tanh(z), _tanh_gate)


def _silu_gate(z: Array, on: ArrayFunctions = ON_NUMPY) -> Array:
    share = on.logistic(z)
    return share * (1 + z * (1 - share))


SILU = _smooth("silu", lambda z, on=ON_NUMPY: z * on.logistic(z), _silu_gate)

ACTIVATIONS = {activation.name: activation for activation in (RELU, LINEAR, GELU, TANH, SILU, ERF)}


def activation_named(name: str) -> Activation:
    """The activation with this name; ValueError naming the choices if there is none."""
    if name not in ACTIVATIONS:
        require_choice("activation", name, ACTIVATIONS)
    return ACTIVATIONS[name]
