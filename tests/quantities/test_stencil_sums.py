"""Lemma 3 of Zhang et al. 2026 over random sets, stencils and functions: its bound, its identity, zero on a torus."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import meanfield as mf
from meanfield.nets.lattice import missing_terms, neighbours, offsets, rectangle_boundary_fraction

ROUNDING = 1e-9


@st.composite
def cases(draw):
    """A set, a stencil (often lopsided, often without the offset 0) and a function, in one or two dimensions."""
    axes = draw(st.integers(1, 2))
    points = st.tuples(*[st.integers(-4, 4)] * axes)
    sites = draw(st.lists(points, min_size=1, max_size=20, unique=True))
    stencil = draw(st.lists(points, min_size=1, max_size=6, unique=True))
    return sites, stencil, draw(st.lists(st.floats(-5, 5), min_size=len(sites), max_size=len(sites)))


def _missing_by_site(sites, stencil):
    return [sum(tuple(np.subtract(u, step)) not in sites for step in stencil) for u in sites]


@given(cases())
def test_the_bound_holds_for_every_set_stencil_and_function(case):
    terms = missing_terms(*case)
    assert terms.discrepancy <= terms.largest + ROUNDING
    assert terms.largest <= terms.bound + ROUNDING


@given(cases())
def test_the_discrepancy_is_what_the_missing_visits_carry(case):
    sites, stencil, values = case
    expected = abs(np.dot(_missing_by_site(sites, stencil), values)) / len(sites)
    assert missing_terms(*case).discrepancy == pytest.approx(expected, abs=ROUNDING)


@given(cases())
def test_constant_functions_reach_the_largest_discrepancy(case):
    sites, stencil, _ = case
    terms = missing_terms(sites, stencil, np.ones(len(sites)))
    assert terms.discrepancy == pytest.approx(terms.largest, abs=ROUNDING)
    if (0,) * len(sites[0]) in stencil:
        assert terms.largest <= terms.bound * (len(stencil) - 1) / len(stencil) + ROUNDING


@given(st.integers(1, 7), st.integers(1, 7), st.integers(1, 4), st.integers(1, 4), st.integers(0, 99))
def test_nothing_is_missing_on_a_torus(height, width, high, wide, seed):
    function = np.random.default_rng(seed).normal(size=height * width)
    table = neighbours((height, width), (high, wide), "circular")
    assert function[table].sum() == pytest.approx(high * wide * function.sum(), abs=1e-9)


@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 6), st.integers(1, 6))
def test_boundary_fractions_agree(height, width, high, wide):
    """By enumeration over the table, over the set, and in closed form, for odd and even stencils."""
    grid, kernel = (height, width), (high, wide)
    closed = rectangle_boundary_fraction(grid, kernel)
    assert mf.boundary_fraction(grid, kernel) == pytest.approx(closed)
    bound = missing_terms(np.ndindex(*grid), offsets(kernel), np.ones(height * width)).bound
    assert bound == pytest.approx(high * wide * closed)


def test_half_spans_overstate_the_boundary_of_even_stencils():
    """2 s / N with s the largest offset: right for three taps, twice the truth for two."""
    assert rectangle_boundary_fraction(10, 3) == pytest.approx(2 * 1 / 10)
    assert rectangle_boundary_fraction(10, 2) == pytest.approx(1 / 10)


# Negative controls: what must not pass for the bound ---------------------------------------------------------


def test_a_bound_without_the_number_of_taps_is_violated():
    sites = list(np.ndindex(8, 8))
    terms = missing_terms(sites, offsets((3, 3)), np.ones(64))
    assert terms.discrepancy > terms.bound / 9


def test_a_dropped_offset_is_seen():
    """Two of three taps see half of the boundary and one of the two missing visits."""
    line, ones = [(p,) for p in range(10)], np.ones(10)
    whole, dropped = (missing_terms(line, stencil, ones) for stencil in ([(-1,), (0,), (1,)], [(0,), (1,)]))
    assert whole.discrepancy == pytest.approx(0.2)
    assert dropped.discrepancy == pytest.approx(0.1)
    assert dropped.bound < whole.discrepancy + ROUNDING


@pytest.mark.parametrize(
    ("sites", "stencil", "values", "message"),
    [
        ([], [(0,)], [], "sites is empty"),
        ([(0,), (0,)], [(0,)], [1, 2], "twice"),
        ([(0,), (0, 1)], [(0,)], [1, 2], "mixes points"),
        ([(0,)], [(0, 1)], [1], "sites have 1 axes, the stencil has 2"),
        ([(0,)], [(0,)], [1, 2], "one finite number for each of 1 sites"),
        ([(0,)], [(0,)], [np.nan], "one finite number"),
    ],
)
def test_bad_sets_are_refused(sites, stencil, values, message):
    with pytest.raises(ValueError, match=message):
        missing_terms(sites, stencil, values)
