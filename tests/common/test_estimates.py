"""Means, quantiles and their errors."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from meanfield.common.estimates import critical_z, log_moments, quantiles, summarise
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
