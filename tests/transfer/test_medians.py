"""The error of a median over draws: how many medians it holds, and how well it is known."""

import numpy as np
import pytest
import xarray as xr

from meanfield.common.estimates import quantiles
from meanfield.quantities.registry import SHARES
from meanfield.quantities.step_scales import median_over_draws, median_scale
from meanfield.transfer.law_quantities import statistic_of
from meanfield.verification.laws import OF_OUTER_QUANTILES

REPEATS = 2000


def dataset(values):
    found = quantiles(values, np.array(SHARES))
    numbers = {"eta_quantile": ("quantile", found.value), "eta_quantile_stderr": ("quantile", found.stderr)}
    return xr.Dataset(numbers, attrs={"draws": len(values)})


def log_normal(draws, spread):
    """Datasets of runs of log-normal draws, the true median of which is 1."""
    rng = np.random.default_rng(draws)
    return [dataset(np.exp(spread * rng.standard_normal(draws))) for _ in range(REPEATS)]


def held(medians, errors):
    """The share of repeats whose median is within two errors of the truth, by their logarithms."""
    return np.mean(np.abs(np.log(medians)) <= 2 * errors / medians)


@pytest.mark.parametrize("draws", [16, 32, 64, 512])
@pytest.mark.parametrize("spread", [0.1, 1.0])
def test_two_errors_hold_the_median(draws, spread):
    """Between 0.92 and 0.97 of the repeats; the error of `quantiles` holds fewer at 32 draws, 0.87, and is left."""
    runs = log_normal(draws, spread)
    assert 0.92 < held(*np.transpose([median_over_draws(run, "eta") for run in runs])) < 0.97
    if draws == 32:
        middle = [run.isel(quantile=1) for run in runs]
        assert held(*np.transpose([(run["eta_quantile"], run["eta_quantile_stderr"]) for run in middle])) < 0.9


def test_the_error_is_known_as_well_as_the_judges_say():
    draws = 64
    medians, errors, shares = np.transpose(
        [statistic_of(run, "eta", "median") for run in log_normal(draws, spread=0.3)]
    )
    assert errors.mean() == pytest.approx(medians.std(), rel=0.1)
    # As many draws as are said to carry it: those of a standard deviation of equal scatter.
    freedom = 1 / (2 * np.var(np.log(errors / medians)))
    assert freedom == pytest.approx(OF_OUTER_QUANTILES * draws, rel=0.15)
    assert set(shares) == {1 / draws}


def test_nets_that_nothing_moves_leave_no_error_and_at_last_no_median():
    values = np.exp(np.random.default_rng(0).standard_normal(40))
    for dead, has_error in ((3, True), (5, False)):
        values[:dead] = np.inf
        median, error = median_over_draws(dataset(values), "eta")
        assert np.isfinite(median)
        assert np.isfinite(error) == has_error
    values[:21] = np.inf
    with pytest.raises(ValueError, match="half or more of the drawn nets do not move"):
        median_scale(dataset(values), "eta")
