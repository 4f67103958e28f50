"""Means, errors and power laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtri

import meanfield as mf
from meanfield.common.estimates import critical_z, log_moments, log_slope, quantiles, summarise
from tests.statistics import consistent


def test_summary_of_draws():
    values = np.random.default_rng(0).normal(size=(50, 3))
    estimate = summarise(values)
    np.testing.assert_allclose(estimate.mean, values.mean(axis=0))
    np.testing.assert_allclose(estimate.stderr, values.std(axis=0, ddof=1) / np.sqrt(50))
    np.testing.assert_allclose(estimate.covariance * 50, np.cov(values.T))


def test_largest_share_flags_a_mean_that_one_draw_makes():
    values = np.ones((100, 1))
    assert summarise(values).largest_share == pytest.approx(0.01)
    values[7] = 1e6
    assert summarise(values).largest_share > 0.99


def test_one_draw_is_refused():
    with pytest.raises(ValueError, match="one draw has no standard error"):
        summarise(np.ones((1, 2)))


@given(st.floats(-4, 4), st.floats(0.1, 10))
def test_exact_power_laws_are_found(exponent, prefactor):
    x = np.array([1.0, 2.0, 5.0, 11.0])
    fit = mf.fit_power_law(x, prefactor * x**exponent, stderr=0.1 * prefactor * x**exponent)
    assert fit.exponent == pytest.approx(exponent, abs=1e-9)
    assert fit.prefactor == pytest.approx(prefactor, rel=1e-9)


def test_exponent_errors_are_honest():
    """Over many noisy data sets the exponent spreads by its stated error; half the error is seen to be wrong."""
    rng = np.random.default_rng(1)
    x = np.arange(1.0, 9.0)
    error = 0.05 * x**1.5
    fits = [mf.fit_power_law(x, x**1.5 + error * rng.normal(size=8), stderr=error) for _ in range(2000)]
    pulls = np.array([(exponent - 1.5) / stderr for exponent, stderr, _ in fits])
    spread, expected_error = np.square(pulls).mean(), np.sqrt(2 / 2000)
    assert consistent(spread - 1, expected_error, 2000, allowance=0.02)
    assert not consistent(4 * spread - 1, expected_error, 2000, allowance=0.02)


def test_slope_of_correlated_points():
    """Points that rise and fall together leave the slope untouched, which independent errors would not see."""
    x, mean = np.array([1.0, 2.0, 4.0]), np.array([3.0, 12.0, 48.0])
    common = 0.1**2 * np.outer(mean, mean)
    law = log_slope(x, mean, common)
    assert law.exponent == pytest.approx(2.0)
    assert law.stderr == pytest.approx(0.0, abs=1e-7)
    assert log_slope(x, mean, np.diag(np.diagonal(common))).stderr > 0.05


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2], [1, 2]), "needs 3 or more different x where no standard errors are given; there are 2"),
        (([1], [1]), "needs 3 or more .* there are 1"),
        (([], []), "needs 3 or more .* there are 0"),
        ((2, 3), r"x, y have shapes \(\), \(\)"),
        (([1, 2, np.nan], [1, 2, 3]), "positive finite x"),
        (([0, 1, 2], [1, 2, 3]), "positive finite x"),
        (([1, 1 + 2e-16, 1 + 4e-16], [1, 2, 3]), "there are 1"),
        (([1e300, 1e300 * (1 + 3e-16), 1e300 * (1 + 6e-16)], [1, 2, 3]), "there are 1"),
        (([1e300, 1e300 * (1 + 3e-16)], [1, 2], [1, 1]), "needs 2 or more different x; there are 1"),
        (([1, 2, 3], [1, 2, 3], [1e-200, 1e200, 1e200]), "one point outweighs all others"),
        (([[1, 2], [3]], [1, 2]), "x has rows of different lengths"),
        (([1, 2, 3], [1, 2]), r"shapes \(3,\), \(2,\); give as many"),
        (([1, 2, 3], [1, -2, 3]), "positive finite y"),
        (([1, 2, 3], [1, np.inf, 3]), "positive finite y"),
        (([2, 2, 2], [1, 2, 3]), "different x"),
        (([1, 2], [1, 2], [0.1, 0.0]), "positive finite stderr"),
        (([1, 2], [1, 2], [0.1]), "as many"),
    ],
)
def test_unfittable_points_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        mf.fit_power_law(*arguments)


@pytest.mark.parametrize("values", [[1 + 1j, 2, 3], ["a", "b", "c"]])
def test_what_is_no_real_number_is_refused(values):
    with pytest.raises(TypeError, match="give real numbers, so that nothing is dropped"):
        mf.fit_power_law(values, [1, 2, 3])


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160])
def test_fits_know_no_units(scale):
    """Errors as large or small as floats allow; weights are relative to the smallest."""
    x, y = np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 5.0])
    fit, scaled = (mf.fit_power_law(x, size * y, stderr=size * 0.1 * y) for size in (1.0, scale))
    assert scaled.exponent == pytest.approx(fit.exponent, rel=1e-9)
    assert scaled.stderr == pytest.approx(fit.stderr, rel=1e-9)


def test_the_fit_is_that_of_least_squares():
    """Against NumPy's, whose matrices are solved where this takes two averages."""
    rng = np.random.default_rng(2)
    x, y = np.sort(rng.uniform(1, 9, 7)), rng.uniform(1, 9, 7)
    error = rng.uniform(0.1, 1, 7)
    for stderr, weight, scaled in ((error, y / error, "unscaled"), (None, None, True)):
        (slope, height), covariance = np.polyfit(np.log(x), np.log(y), 1, w=weight, cov=scaled)
        law = tuple(mf.fit_power_law(x, y, stderr=stderr))
        assert law == pytest.approx((slope, np.sqrt(covariance[0, 0]), np.exp(height)), rel=1e-9)


@pytest.mark.parametrize("draws", [2.5, 9, 1000.0])
def test_band_is_the_t_quantile_of_the_budget_split_over_comparisons(draws):
    assert critical_z(20, draws, 1e-6) == pytest.approx(stats.t.isf(1e-6 / 40, draws - 1), rel=1e-9)


def test_quantiles_of_draws_are_within_their_errors():
    """Of log-normal values: each quantile within its error, which is that of 200 repeats; and not 15 % off."""
    rng, shares = np.random.default_rng(0), np.array([0.1, 0.5, 0.9])
    quantile_estimates = [quantiles(np.exp(rng.normal(size=(400, 2))), shares) for _ in range(200)]
    values, errors = (
        np.array([getattr(quantile, name) for quantile in quantile_estimates]) for name in ("value", "stderr")
    )
    truth = np.exp(ndtri(shares))[:, None]
    spread = values.std(axis=0)
    np.testing.assert_allclose(errors.mean(axis=0), spread, rtol=0.2)
    assert consistent(values.mean(axis=0) - truth, spread / np.sqrt(200), 200, 0.02 * truth)
    assert not consistent(1.15 * values.mean(axis=0) - truth, spread / np.sqrt(200), 200, 0.02 * truth)


def test_quantiles_may_be_infinite():
    quantile_estimates = quantiles(np.array([1.0, 2.0, np.inf, np.inf]), np.array([0.25, 0.75]))
    np.testing.assert_array_equal(quantile_estimates.value, [1.0, np.inf])


def test_log_moments_tell_log_normal_values_from_others():
    rng = np.random.default_rng(1)
    values = np.stack([np.exp(0.7 * rng.normal(size=4000)), rng.exponential(size=4000)], axis=1)
    spread, skewness = log_moments(values)
    assert consistent(spread.value[0] - 0.7, spread.stderr[0], 4000)
    assert consistent(skewness.value[0], skewness.stderr[0], 4000)
    assert not consistent(skewness.value[1], skewness.stderr[1], 4000)
    assert np.isnan(log_moments(np.array([[0.0], [1.0]]))[0].value[0])
