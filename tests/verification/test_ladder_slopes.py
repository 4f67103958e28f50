"""Slopes over ladders: corrections are taken out, errors are those of draws, gaps are told."""

import numpy as np
import pytest

from meanfield.verification.series import ladder_slope, mean_over_draws

DEPTHS = np.array([2, 4, 8, 16, 32, 64])


def drawn(exponent, sizes, noise=0.02, seed=0):
    rng = np.random.default_rng(seed)
    clean = sizes**exponent * np.exp(0.6 / sizes - 0.3 / sizes**2)
    return clean[:, None] * np.exp(noise * rng.normal(size=(len(sizes), 40)) + rng.normal(size=40))


@pytest.mark.parametrize("exponent", [0.0, -0.5])
def test_corrections_in_inverse_sizes_are_taken_out(exponent):
    slope = ladder_slope(DEPTHS, drawn(exponent, DEPTHS.astype(float)))
    assert abs(slope.settled - exponent) < 6 * slope.settled_stderr
    assert abs(slope.plain - exponent) > 6 * slope.plain_stderr, "without them the slope is off"
    assert slope.settled_stderr < 0.02, "what draws share does not blur their slopes"


def test_wide_ladders_take_one_correction():
    sizes = 64.0 * DEPTHS
    slope = ladder_slope(sizes, sizes[:, None] ** 0.25 * np.exp(3 / sizes)[:, None] * np.ones((1, 3)))
    assert slope.settled == pytest.approx(0.25)
    assert slope.allowance == pytest.approx(0, abs=1e-9)


def test_sizes_that_are_not_finite_are_left_out():
    values = drawn(0.0, DEPTHS.astype(float))
    values[4:, 0] = np.inf, np.nan
    assert ladder_slope(DEPTHS, values).sizes == 4
    values[2:, 1] = 0.0
    assert np.isnan(ladder_slope(DEPTHS, values).settled)


def test_mean_over_draws_survives_draws_close_to_zero():
    """Normal amplitudes: their root mean square has the slope of their scale, their logarithms scatter."""
    rng = np.random.default_rng(2)
    sizes = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    values = np.abs(rng.normal(size=(5, 400))) * sizes[:, None] ** 0.5
    ladder = ladder_slope(sizes, mean_over_draws(values, power=2))
    assert abs(ladder.plain - 0.5) < 5 * ladder.plain_stderr
    assert ladder.plain_stderr < 0.7 * ladder_slope(sizes, values).plain_stderr
    whole = np.log(np.mean(values**2, axis=1)) / 2
    assert ladder.plain == pytest.approx(np.polyfit(np.log(sizes), whole, 1)[0], abs=5e-3)


@pytest.mark.parametrize(("first", "second_order"), [(9.0, True), (10.0, False)])
def test_a_correction_of_second_order_is_fitted_to_ladders_that_begin_below_ten(first, second_order):
    """And above there left out, where it is below a hundredth."""
    sizes = first * 2.0 ** np.arange(5)
    slope = ladder_slope(sizes, sizes[:, None] ** 0.25 * np.exp(0.6 / sizes - 2 / sizes**2)[:, None] * np.ones((1, 3)))
    assert (abs(slope.settled - 0.25) < 1e-9) == second_order
