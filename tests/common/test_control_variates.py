"""Control variates leave a mean where it is, and say its error."""

import numpy as np
import pytest

from meanfield.common.estimates import adjusted

REPEATS, DRAWS = 2000, 20
MEANS = np.array([2.0, 0.5])


def _draws(generator):
    """Values that follow their controls closely but not linearly, so that coefficients matter; E y = 3."""
    controls = MEANS * generator.exponential(size=(DRAWS, 2))
    values = controls[:, 0] ** 2 / 4 + 2 * controls[:, 1] + 0.1 * generator.standard_normal(DRAWS)
    return values, controls


@pytest.fixture(scope="module")
def repeats():
    """Means and squared standard errors of plain values, of adjusted ones, and with coefficients from all draws."""
    generator = np.random.default_rng(0)
    rows = []
    for _ in range(REPEATS):
        values, controls = _draws(generator)
        offsets = controls / MEANS - 1
        centred = offsets - offsets.mean(axis=0)
        alike = values - offsets @ np.linalg.lstsq(centred, values - values.mean(), rcond=None)[0]
        columns = values, adjusted(values, controls, MEANS), alike
        rows.append([(column.mean(), column.var(ddof=1) / DRAWS) for column in columns])
    return np.array(rows)


def _off(means):
    """Standard errors between the mean over repeats and 3, the true one."""
    return (means.mean() - 3.0) / (means.std(ddof=1) / np.sqrt(len(means)))


def test_the_mean_stays(repeats):
    """Two-sided at 4 standard errors; coefficients from the same draws, the control, are 9 or more of them off."""
    assert abs(_off(repeats[:, 0, 0])) < 4
    assert abs(_off(repeats[:, 1, 0])) < 4
    assert abs(_off(repeats[:, 2, 0])) > 6


def test_the_error_is_less_and_is_what_it_says(repeats):
    plain, less = (repeats[:, which, 0].std() for which in (0, 1))
    assert less < 0.8 * plain
    assert np.sqrt(repeats[:, 1, 1].mean()) == pytest.approx(less, rel=0.15)


def test_wrong_means_move_the_mean():
    """Negative control: a known mean that is 5 % off."""
    values, controls = (
        np.concatenate(part) for part in zip(*map(_draws, [np.random.default_rng(1)] * 400), strict=True)
    )
    right, wrong = (adjusted(values, controls, factor * MEANS) for factor in (1.0, 1.05))
    stderr = right.std() / np.sqrt(len(right))
    assert abs(right.mean() - 3.0) < 4 * stderr
    assert abs(wrong.mean() - 3.0) > 8 * stderr


@pytest.mark.parametrize("draws", [2, 19])
def test_few_draws_are_left_as_they_are(draws):
    generator = np.random.default_rng(2)
    values, controls = generator.normal(size=draws), generator.normal(1.0, 0.1, size=(draws, 2))
    np.testing.assert_array_equal(adjusted(values, controls, np.ones(2)), values)


def test_values_that_follow_their_controls_exactly_are_constant():
    controls = np.random.default_rng(3).exponential(size=(40, 1))
    np.testing.assert_allclose(adjusted(5 * controls[:, 0] + 1, controls, np.ones(1)), 6.0)
