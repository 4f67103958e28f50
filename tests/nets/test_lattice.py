"""Offsets, neighbour tables and boundary fractions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import meanfield as mf
from meanfield.nets.lattice import OUTSIDE, neighbours, offsets, reversed_neighbours
from tests.naive import reached

lengths = st.integers(1, 6)


def test_odd_stencils_are_centred_and_even_ones_reach_further_forward():
    assert offsets((3,)) == [(-1,), (0,), (1,)]
    assert offsets((4,)) == [(-1,), (0,), (1,), (2,)]
    assert offsets((1, 2)) == [(0, 0), (0, 1)]
    assert offsets(()) == [()]


@given(lengths, lengths, st.integers(1, 4), st.integers(1, 4), st.sampled_from(["circular", "zero"]))
def test_table_is_the_definition(height, width, high, wide, padding):
    grid, kernel = (height, width), (high, wide)
    sites = list(np.ndindex(*grid))
    table = neighbours(grid, kernel, padding)
    for row, step in zip(table, offsets(kernel), strict=True):
        for site, target in zip(sites, row, strict=True):
            expected = reached(site, step, grid, padding)
            assert target == (OUTSIDE if expected is None else sites.index(expected))


@given(lengths, lengths, st.integers(1, 4), st.integers(1, 4), st.sampled_from(["circular", "zero"]))
def test_reversed_table_is_the_transpose(height, width, high, wide, padding):
    grid, kernel = (height, width), (high, wide)
    for row, back in zip(neighbours(grid, kernel, padding), reversed_neighbours(grid, kernel, padding), strict=True):
        forward = {(p, q) for p, q in enumerate(row) if q != OUTSIDE}
        assert forward == {(q, p) for p, q in enumerate(back) if q != OUTSIDE}


@given(st.integers(1, 40), st.integers(0, 6))
def test_boundary_fraction_of_an_interval(sites, span):
    assert mf.boundary_fraction(sites, 2 * span + 1) == pytest.approx(min(2 * span / sites, 1.0))


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 3), st.integers(0, 3))
def test_boundary_fraction_of_a_rectangle(height, width, tall, wide):
    inside = max(1 - 2 * tall / height, 0) * max(1 - 2 * wide / width, 0)
    assert mf.boundary_fraction((height, width), (2 * tall + 1, 2 * wide + 1)) == pytest.approx(1 - inside)


def test_even_stencils_lose_the_far_edge_only():
    assert mf.boundary_fraction(10, 2) == pytest.approx(0.1)


@pytest.mark.parametrize(("grid", "kernel"), [((4, 4), (3,)), ((0,), (1,)), ((4,), (0,))])
def test_bad_boundaries_are_refused(grid, kernel):
    with pytest.raises(ValueError, match=r"grid|kernel"):
        mf.boundary_fraction(grid, kernel)
