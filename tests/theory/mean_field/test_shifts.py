"""Sums over shifts by slices against the lattice's own tables, for any stencil, longer than the grid or not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meanfield.nets import activations
from meanfield.nets.lattice import OUTSIDE, neighbours
from meanfield.theory.two_points import sum_along_axes


@given(
    st.integers(1, 6), st.integers(1, 9), st.sampled_from(["circular", "zero"]), st.integers(1, 3), st.integers(0, 99)
)
def test_one_axis_and_two_that_step_together(length, taps, padding, dilation, seed):
    values = np.random.default_rng(seed).normal(size=(length, 2, length))
    table = neighbours((length,), (taps,), padding, dilation)
    alone, together = np.zeros_like(values), np.zeros_like(values)
    for row in table:
        for p, q in enumerate(row):
            alone[p] += values[q] if q != OUTSIDE else 0.0
            for r, s in enumerate(row):
                together[p, :, r] += values[q, :, s] if OUTSIDE not in (q, s) else 0.0
    np.testing.assert_allclose(sum_along_axes(values, (0,), taps, padding, dilation), alone, atol=1e-12)
    np.testing.assert_allclose(sum_along_axes(values, (0, 2), taps, padding, dilation), together, atol=1e-12)


@pytest.mark.parametrize("name", ["product", "gate_product", "square_product"])
def test_averages_in_blocks_are_the_averages(name):
    """More pairs than a block, variances broadcast over them, zeros among them."""
    average = getattr(activations.RELU, name)
    rng = np.random.default_rng(0)
    variance = np.append(rng.uniform(0.5, 2.0, size=149), 0.0)
    here, there = variance[:, None], variance[None, :]
    between = np.sqrt(here * there) * rng.uniform(-1, 1, size=(150, 150))
    assert between.size > 2 * activations.PAIRS_AT_ONCE
    np.testing.assert_array_equal(average(here, there, between), average.__wrapped__(here, there, between))
