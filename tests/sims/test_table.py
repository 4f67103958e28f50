"""Numbers as reports print them."""

import math

import pytest

from sims._table import from_log


@pytest.mark.parametrize(
    ("log", "shown"),
    [
        (0.0, "1"),
        (math.log(12345.6), "1.235e+04"),
        (1000 * math.log(10) + math.log(2.5), "2.500e+1000"),
        (-1000 * math.log(10) + math.log(2.5), "2.500e-1000"),
        (1000 * math.log(10) + math.log(9.9999), "1.000e+1001"),
        (math.nan, "-"),
    ],
)
def test_numbers_beyond_floats(log, shown):
    assert from_log(log) == shown
