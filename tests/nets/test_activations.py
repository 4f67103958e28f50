"""Gaussian averages of the activations against quadrature."""

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.special import ndtr

from meanfield.nets.activations import ACTIVATIONS, GELU, ON_NUMPY, RELU, _write_normal_cdf, activation_named
from tests import derivable, naive


@pytest.mark.parametrize("name", ["relu", "linear"])
@pytest.mark.parametrize("rho", [-0.9, -0.3, 0.0, 0.6])
def test_closed_forms_are_the_integrals(name, rho):
    """Polar coordinates: the averages factor into a radius (known moments) and an angle (quadrature)."""
    activation = activation_named(name)
    c_u, c_v = 0.7, 2.3
    c_uv = rho * np.sqrt(c_u * c_v)
    tilt = np.arcsin(rho)

    # E r^(2 m) = 2^m m! for the radius of a standard pair: 1, 2, 8 for products of degree 0, 2, 4.
    def averaged(function, radius_moment):
        def at(angle):
            u, v = np.sqrt(c_u) * np.cos(angle), np.sqrt(c_v) * np.sin(angle + tilt)
            return function(np.array(u), np.array(v))

        kinks = [-np.pi / 2, -tilt, np.pi / 2, np.pi - tilt]
        return radius_moment * quad(at, -np.pi, np.pi, points=kinks)[0] / (2 * np.pi)

    s, g = activation.function, activation.gate
    args = (np.array(c_u), np.array(c_v), np.array(c_uv))
    assert activation.product(*args) == pytest.approx(averaged(lambda u, v: s(u) * s(v), 2.0), abs=1e-7)
    assert activation.gate_product(*args) == pytest.approx(averaged(lambda u, v: g(u) * g(v), 1.0), abs=1e-7)
    fourth = averaged(lambda u, v: s(u) ** 2 * s(v) ** 2, 8.0)
    assert activation.square_product(*args) == pytest.approx(fourth, abs=1e-6)
    squares = averaged(lambda u, v: g(u) ** 2 * g(v) ** 2, 1.0)
    assert activation.gate_square_product(*args) == pytest.approx(squares, abs=1e-7)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_gain_is_the_mean_squared_gate(name):
    activation = activation_named(name)

    def density(z):
        return np.exp(-z * z / 2) / np.sqrt(2 * np.pi)

    total = quad(lambda z: activation.gate(np.array(z)) ** 2 * density(z), -12, 12, points=[0.0])[0]
    assert activation.gain == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_gate_is_the_slope(name):
    activation, z = activation_named(name), np.linspace(-5, 5, 100)  # an even number of points: none on the kink
    slope = (activation.function(z + 1e-6) - activation.function(z - 1e-6)) / 2e-6
    np.testing.assert_allclose(activation.gate(z), slope, atol=1e-9)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_homogeneous_is_what_it_says(name):
    activation, z = activation_named(name), np.linspace(-5, 5, 11)
    assert np.allclose(activation.function(3 * z), 3 * activation.function(z)) == activation.homogeneous


def test_kappa_one_lies_between_zero_and_one_half_and_vanishes_only_at_opposite_inputs():
    rho = np.linspace(-1, 1, 2001)
    kappa = RELU.product(np.ones_like(rho), np.ones_like(rho), rho)
    assert kappa[0] == pytest.approx(0.0, abs=1e-15)
    assert kappa[-1] == pytest.approx(0.5)
    assert np.all(np.diff(kappa) > 0)


def test_a_unit_that_never_moves_is_off():
    zero, unit = np.zeros(1), np.ones(1)
    assert RELU.product(zero, unit, zero) == 0
    assert RELU.gate_product(zero, unit, zero) == 0


def test_two_dimensional_quadrature_agrees_with_the_angle():
    """The polar shortcut above, checked once against a plain double integral."""
    rho = 0.6
    norm = 2 * np.pi * np.sqrt(1 - rho**2)

    def density(v, u):
        return u * v * np.exp(-(u * u - 2 * rho * u * v + v * v) / (2 * (1 - rho**2))) / norm

    total = dblquad(density, 0, 10, 0, 10, epsabs=1e-9)[0]
    assert RELU.product(np.ones(1), np.ones(1), np.full(1, rho)) == pytest.approx(total, abs=1e-7)


def _single(values):
    return np.asarray(values, dtype=np.float32)


def test_gelu_in_single_precision_is_that_in_double_precision():
    """To two units in the last place of Phi; in its left tail, which vanishes, relative to it."""
    z = _single(np.linspace(-13.0, 13.0, 400_001))
    exact = ndtr(z.astype(float))
    share = ON_NUMPY.normal_cdf(z)
    assert share.dtype == np.float32
    assert np.abs(share - exact).max() < 2e-7
    assert np.abs(share[z > -3] / exact[z > -3] - 1).max() < 5e-7
    left = (z < 0) & (z > -13)
    assert np.abs(share[left] / exact[left] - 1).max() < 5e-6
    for part, error in (("function", 1e-6), ("gate", 5e-7)):
        single, double = (getattr(GELU, part)(at) for at in (z, z.astype(float)))
        assert single.dtype == np.float32
        assert np.abs(single - double).max() < error


def test_what_is_no_number_and_what_is_beyond_all_numbers_has_a_normal_cdf():
    share = ON_NUMPY.normal_cdf(_single([np.nan, -np.inf, -0.0, 0.0, np.inf]))
    np.testing.assert_array_equal(share[2:], [0.5, 0.5, 1.0])
    assert np.isnan(share[0])
    assert share[1] == 0
    far = GELU.function(_single([-3e38, -1e30, -14.0, 14.0, 1e30]))
    np.testing.assert_array_equal(far, _single([0.0, 0.0, 0.0, 14.0, 1e30]))


def test_the_loop_says_the_same_where_nothing_is_compiled():
    """As under NUMBA_DISABLE_JIT, where NumPy warns of numbers that the compiled loop may not meet either."""
    z = _single([np.nan, -np.inf, -20.0, -13.0, -12.9, -1.0, 0.0, 1.0, 20.0, np.inf])
    out = np.empty_like(z)
    with np.errstate(all="raise", under="ignore"):
        getattr(_write_normal_cdf, "py_func", _write_normal_cdf)(z, out)
    np.testing.assert_allclose(out, ON_NUMPY.normal_cdf(z), rtol=1e-6)


@pytest.mark.parametrize(
    "view",
    [
        lambda z: z,
        lambda z: z[::-1],
        lambda z: z[:, ::2],
        lambda z: z[..., ::-1],
        lambda z: z.transpose(2, 0, 1),
        np.asfortranarray,
        lambda z: np.broadcast_to(z[:1], z.shape),
        lambda z: z[:0],
        lambda z: z[0, 0, 0],
    ],
)
def test_the_normal_cdf_is_taken_number_by_number_however_an_array_lies_in_memory(view):
    z = view(_single(np.random.default_rng(0).normal(size=(4, 5, 6))))
    given = np.array(z)
    share = ON_NUMPY.normal_cdf(z)
    assert share.shape == z.shape
    np.testing.assert_allclose(share, ndtr(given.astype(float)), rtol=0, atol=2e-7)
    np.testing.assert_array_equal(z, given)


def test_unknown_names_list_the_choices():
    with pytest.raises(ValueError, match="'relu', 'linear', 'gelu', 'tanh', 'silu', 'erf'"):
        activation_named("swish")


def _integral(function, c_u, c_v, rho):
    """E f(u) f(v) by nested one-dimensional quadrature, v given u being a Gaussian."""

    def density(x):
        return np.exp(-x * x / 2) / np.sqrt(2 * np.pi)

    def given(x):
        inner = lambda y: function(np.sqrt(c_v) * (rho * x + np.sqrt(1 - rho**2) * y)) * density(y)  # noqa: E731
        return quad(inner, -9, 9, epsabs=1e-11)[0]

    return quad(lambda x: function(np.sqrt(c_u) * x) * given(x) * density(x), -9, 9, epsabs=1e-11)[0]


@pytest.mark.parametrize("rho", [-0.7, 0.0, 0.4])
def test_closed_forms_of_erf_are_the_integrals(rho):
    """Arc-sine kernel and those of its slope; one with the variance in place of twice it is told apart."""
    erf, (c_u, c_v) = activation_named("erf"), (0.7, 2.3)
    args = (np.array(c_u), np.array(c_v), np.array(rho * np.sqrt(c_u * c_v)))
    products = {
        "product": erf.function,
        "gate_product": erf.gate,
        "gate_square_product": lambda z: erf.gate(z) ** 2,
        "square_product": lambda z: erf.function(z) ** 2,
    }
    for which, function in products.items():
        expected = _integral(function, c_u, c_v, rho)
        assert getattr(erf, which)(*args) == pytest.approx(expected, abs=1e-9), which
    if rho:
        wrong = 2 / np.pi * np.arcsin(args[2] / np.sqrt((1 + c_u) * (1 + c_v)))
        assert wrong != pytest.approx(_integral(erf.function, c_u, c_v, rho), rel=0.05)


def test_every_activation_has_its_twins():
    """By hand, with its slope, and for automatic differentiation: properties draw any of them."""
    for twins in (naive.SIGMA, naive.GATE, derivable.SIGMA):
        assert set(twins) == set(ACTIVATIONS)
