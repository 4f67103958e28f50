"""Rows of averages over pairs of steps against one average at a time."""

import numpy as np
import pytest

from meanfield.common.gaussian_averages import pair_average
from meanfield.nets.activations import activation_named
from meanfield.theory.loops import StepAverages


@pytest.mark.parametrize("name", ["gelu", "tanh", "erf"])
@pytest.mark.parametrize("part", ["function", "gate"])
def test_rows_are_pair_averages(name, part):
    """Rows in turn, with jumps of the variance that outgrow the basis and steps that are skipped."""
    function = getattr(activation_named(name), part)
    averages = StepAverages(function)
    variances = np.concatenate([np.linspace(0.5, 0.6, 7), [0.1, 3.0, 2.9, 40.0, 0.0]])
    for count in (1, 2, 3, 7, 8, 9, 11, 12):
        known = variances[:count]
        covariance = np.linspace(-1, 1, count) * np.sqrt(known * known[-1])
        expected = pair_average(function, np.full(count, known[-1]), known, covariance)
        np.testing.assert_allclose(averages.row(known, covariance), expected, rtol=0, atol=1e-10)
