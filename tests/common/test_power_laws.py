"""Power laws through points, how well the points follow them, and slopes from size to size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import meanfield as mf
from meanfield.common.power_laws import log_slope
from tests.statistics import consistent


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


def test_chi_square_is_that_of_the_fit():
    """Against the residual of NumPy's fit; and a law that unpacks as before."""
    rng = np.random.default_rng(3)
    x, y, error = np.arange(1.0, 8.0), rng.uniform(1, 9, 7), rng.uniform(0.1, 1, 7)
    line = np.polyfit(np.log(x), np.log(y), 1, w=y / error)
    law = mf.fit_power_law(x, y, stderr=error)
    chi_square = np.square((np.log(y) - np.polyval(line, np.log(x))) * y / error).sum()
    assert law.chi_square == pytest.approx(chi_square, rel=1e-9)
    assert law.p_value == pytest.approx(stats.chi2.sf(chi_square, 5), rel=1e-9)
    assert len(tuple(law)) == 3


def test_without_errors_or_freedom_there_is_no_chi_square():
    for law in (mf.fit_power_law([1, 2, 4], [1, 3, 5]), mf.fit_power_law([1, 2], [1, 3], stderr=[0.1, 0.1])):
        assert np.isnan([law.chi_square, law.p_value]).all()


BENT = 0.1


def test_p_values_are_those_of_chance():
    """Of 2,000 power laws one in ten has a p value below 0.1, of the fit and of the drift; of bent ones, far more."""
    rng, x = np.random.default_rng(4), 4.0 * 2 ** np.arange(5)
    error = np.array([0.02, 0.03, 0.04, 0.03, 0.02])
    for bend, is_chance in ((0.0, True), (BENT, False)):
        logs = 0.5 * np.log(x) + bend / 2 * np.log(x / 16) ** 2 + error * rng.normal(size=(2000, 5))
        fits = [mf.fit_power_law(x, y, stderr=error * y).p_value for y in np.exp(logs)]
        drifts = [mf.local_slopes(x, y, stderr=error * y).drift_p_value for y in np.exp(logs)]
        for values in (fits, drifts):
            share = np.mean(np.array(values) < 0.1)
            assert consistent(share - 0.1, np.sqrt(0.1 * 0.9 / 2000), 2000, 0.01) == is_chance


def test_drifts_have_honest_errors():
    rng, x = np.random.default_rng(5), np.array([1.0, 3.0, 4.0, 9.0, 30.0])
    error = np.array([0.05, 0.02, 0.1, 0.03, 0.04])
    logs = np.log(x) - BENT / 2 * np.log(x) ** 2 + error * rng.normal(size=(2000, 5))
    slopes = [mf.local_slopes(x, y, stderr=error * y) for y in np.exp(logs)]
    pulls = np.array([(each.drift + BENT) / each.drift_stderr for each in slopes])
    assert consistent(pulls.mean(), 2000**-0.5, 2000, 0.05)
    assert consistent(np.square(pulls).mean() - 1, np.sqrt(2 / 2000), 2000, 0.05)


@given(st.floats(-3, 3), st.floats(-1, 1))
def test_local_slopes_of_a_parabola_are_its_own(slope, drift):
    """In any order of the sizes; between two sizes the slope of a parabola is that at their geometric mean."""
    x = np.array([8.0, 1.0, 2.0, 32.0])
    for stderr in (None, 0.1 * x):
        found = mf.local_slopes(x, np.exp(slope * np.log(x) + drift / 2 * np.log(x) ** 2), stderr)
        assert found.drift == pytest.approx(drift, abs=1e-9)
        np.testing.assert_allclose(found.size, [2**0.5, 4.0, 16.0])
        np.testing.assert_allclose(found.slope, slope + drift * np.log(found.size), atol=1e-9)
        assert np.isfinite(found.stderr).all() == (stderr is not None)


def test_errors_of_local_slopes_are_those_of_fits_of_two():
    x, y, error = np.array([2.0, 4.0, 9.0]), np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.2, 0.1])
    slopes = mf.local_slopes(x, y, stderr=error)
    for place in range(2):
        pair = slice(place, place + 2)
        law = mf.fit_power_law(x[pair], y[pair], error[pair])
        assert (slopes.slope[place], slopes.stderr[place]) == pytest.approx((law.exponent, law.stderr))


def test_a_drift_without_errors_is_that_of_least_squares():
    x, y = np.array([1.0, 2.0, 5.0, 9.0, 11.0]), np.array([1.0, 3.0, 4.0, 9.0, 8.0])
    coefficients, covariance = np.polyfit(np.log(x), np.log(y), 2, cov=True)
    slopes = mf.local_slopes(x, y)
    expected = 2 * coefficients[0], 2 * np.sqrt(covariance[0, 0])
    assert (slopes.drift, slopes.drift_stderr) == pytest.approx(expected, rel=1e-9)
    pull = abs(expected[0] / expected[1])
    assert slopes.drift_p_value == pytest.approx(2 * stats.t.sf(pull, 2), rel=1e-9)


def test_few_points_have_no_drift():
    two, three = mf.local_slopes([1, 2], [1, 2], [0.1, 0.1]), mf.local_slopes([1, 2, 4], [1, 2, 3])
    assert np.isnan([two.drift, two.drift_stderr, two.drift_p_value]).all()
    assert np.isfinite(three.drift)
    assert np.isnan([three.drift_stderr, three.drift_p_value]).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1], [1]), r"need two or more x, all different; given are \[1.0\]"),
        (([1, 2, 2], [1, 2, 3]), "all different"),
        (([1, 2], [1, 2, 3]), r"shapes \(2,\), \(3,\); give as many"),
        (([1, 2], [1, -2]), "positive finite y"),
        (([1, 2], [1, 2], [0.1, 0]), "positive finite stderr"),
    ],
)
def test_points_without_local_slopes_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        mf.local_slopes(*arguments)


def test_masked_points_have_no_local_slopes():
    y = np.ma.array([1.0, 9.0, 4.0], mask=[False, True, False])
    np.testing.assert_allclose(mf.local_slopes([1, 2, 4], y).slope, [1.0])
