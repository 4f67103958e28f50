"""Hermite series of smooth functions against closed forms, double integrals and the limits of correlation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import dblquad, quad
from scipy.special import ndtr

from meanfield.common.gaussian_averages import LARGEST_VARIANCE, mean_square, pair_average
from meanfield.nets.activations import activation_named
from tests import naive

AVERAGES = {
    "product": lambda sigma, gate: sigma,
    "gate_product": lambda sigma, gate: gate,
    "gate_square_product": lambda sigma, gate: lambda z: gate(z) ** 2,
    "square_product": lambda sigma, gate: lambda z: sigma(z) ** 2,
}
smooth = pytest.mark.parametrize("name", ["gelu", "tanh"])
averages = pytest.mark.parametrize("average", AVERAGES)

variances = st.one_of(st.sampled_from([0.0, 1e-8, 10.0]), st.floats(0.0, 10.0))
correlations = st.one_of(st.sampled_from([-1.0, 0.0, 1.0, 1 - 1e-9]), st.floats(-1.0, 1.0))


def _factor(name, average):
    """f of E[f(u) f(v)], from the definitions in `tests.naive`."""
    return AVERAGES[average](lambda z: naive.sigma(name, z), lambda z: naive.gate(name, z))


def _found(name, average, c_u, c_v, rho):
    return getattr(activation_named(name), average)(np.array(c_u), np.array(c_v), np.array(rho * np.sqrt(c_u * c_v)))


def _double_sum(function, c_u, c_v, rho):
    """E[f(u) f(v)] on a fine square grid of two independent Gaussians."""
    x = np.linspace(-9, 9, 501)
    weights = np.exp(-x * x / 2)
    weights /= weights.sum()
    v = np.sqrt(c_v) * (rho * x[:, None] + np.sqrt(1 - rho**2) * x)
    return weights @ (function(np.sqrt(c_u) * x)[:, None] * function(v)) @ weights


@settings(max_examples=25)
@given(st.sampled_from(["gelu", "tanh"]), st.sampled_from(sorted(AVERAGES)), variances, variances, correlations)
def test_averages_are_double_integrals(name, average, c_u, c_v, rho):
    """To 1e-12 of the mean squares, as promised: opposite inputs may leave an average 1e5 times smaller than those."""
    factor = _factor(name, average)
    error = _found(name, average, c_u, c_v, rho) - _double_sum(factor, c_u, c_v, rho)
    assert abs(error) <= 2e-12 * math.sqrt(mean_square(factor, c_u) * mean_square(factor, c_v)) + 1e-15


@smooth
@averages
@pytest.mark.parametrize("rho", [-1, 1])
def test_averages_at_full_correlation_are_single_integrals(name, average, rho):
    function, (c_u, c_v) = _factor(name, average), (0.4, 9.0)

    def at(x):
        u, v = (function(np.array([np.sqrt(c) * y]))[0] for c, y in ((c_u, x), (c_v, rho * x)))
        return u * v * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)

    total = quad(at, -12, 12, epsabs=1e-12, limit=200)[0]
    assert _found(name, average, c_u, c_v, rho) == pytest.approx(total, abs=1e-10)


def test_the_double_sum_is_the_double_integral():
    """The oracle above, checked once against adaptive quadrature; and one that is off by 1e-6 in rho is told apart."""

    def density(v, u):
        weight = math.exp(-(u * u - 2 * 0.6 * u * v + v * v) / (2 * (1 - 0.36))) / (2 * math.pi * 0.8)
        return math.tanh(u) * math.tanh(v) * weight

    total = 2 * (dblquad(density, 0, 8, 0, 8)[0] + dblquad(density, 0, 8, -8, 0)[0])
    assert _double_sum(np.tanh, 1.0, 1.0, 0.6) == pytest.approx(total, abs=1e-8)
    average = float(_found("tanh", "product", 1.0, 1.0, 0.6))
    assert abs(average - _double_sum(np.tanh, 1.0, 1.0, 0.6)) < 1e-10
    assert abs(average - _double_sum(np.tanh, 1.0, 1.0, 0.6 + 1e-6)) > 1e-8


def test_functions_with_known_averages():
    """E[cos cos] = exp(-(c_u + c_v)/2) cosh(c_uv) and E[Phi Phi] = 1/4 + asin(c_uv / sqrt((1 + c_u)(1 + c_v)))/(2 pi).

    Up to rounding, on pairs that share variances and pairs that do not, broadcast.
    """
    c_u, c_v = np.array([0.0, 0.3, 1.0, 10.0])[:, None], np.array([1.0, 0.7, 10.0])
    for rho in (-1.0, -0.2, 0.99, 1.0):
        c_uv = rho * np.sqrt(c_u * c_v)
        cosines = np.exp(-(c_u + c_v) / 2) * np.cosh(c_uv)
        np.testing.assert_allclose(pair_average(np.cos, c_u, c_v, c_uv), cosines, atol=1e-12)
        orthants = 0.25 + np.arcsin(c_uv / np.sqrt((1 + c_u) * (1 + c_v))) / (2 * np.pi)
        np.testing.assert_allclose(pair_average(ndtr, c_u, c_v, c_uv), orthants, atol=1e-12)
    assert mean_square(ndtr, 7.0) == pytest.approx(0.25 + math.asin(7 / 8) / (2 * math.pi), abs=1e-14)


def test_gain_of_gelu():
    assert activation_named("gelu").gain == pytest.approx(0.455851, abs=5e-7)


def test_large_variances_approach_relu():
    """E[gelu gelu] - E[relu relu] -> -sqrt(1 - rho^2)/(2 pi), as the integral of gelu - relu is -1/2, up to 1/c."""
    c, rho = 500.0, np.array([-0.5, 0.3, 0.9])
    gelu, relu = (activation_named(name).product(np.array(c), np.array(c), c * rho) for name in ("gelu", "relu"))
    np.testing.assert_allclose(gelu - relu, -np.sqrt(1 - rho**2) / (2 * np.pi), atol=1 / c)


def test_a_kink_and_a_huge_variance_are_refused():
    ones = np.ones(1)
    with pytest.raises(ArithmeticError, match="not smooth"):
        pair_average(activation_named("relu").function, ones, ones, ones)
    with pytest.raises(ValueError, match=r"reach variance 2e\+03; .* lower what makes them grow"):
        activation_named("gelu").product(2 * LARGEST_VARIANCE * ones, ones, ones)


def test_series_are_kept_for_few_variances_and_the_same():
    """Whoever asks, and after whom: a pair alone, whose series is kept, and among many variances, which are not."""
    gelu, covariance = activation_named("gelu"), np.full(12, 0.3)
    many = gelu.product(np.linspace(1, 2, 12), np.linspace(1, 2, 12), covariance)
    for _ in range(2):
        alone = [gelu.product(*(np.array([value]) for value in (c, c, 0.3)))[0] for c in np.linspace(1, 2, 12)]
        np.testing.assert_allclose(alone, many, rtol=1e-11)


def test_few_averages_are_summed_as_many_are():
    """At once, where many are summed order by order: the same bits."""
    variance, covariances = np.full(100, 1.7), np.linspace(-1.7, 1.7, 100)
    gelu = activation_named("gelu").product
    alone = [gelu(variance[:1], variance[:1], covariances[place : place + 1])[0] for place in range(100)]
    np.testing.assert_array_equal(alone, gelu(variance, variance, covariances))
    np.testing.assert_array_equal(pair_average(np.zeros_like, *[np.ones((2, 1))] * 3), np.zeros((2, 1)))
