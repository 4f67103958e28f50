"""The rate at which zero padding drains a net, and the depths at which that shows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import meanfield as mf
from meanfield.nets.lattice import OUTSIDE, neighbours
from meanfield.theory.mean_field.edge_loss import EdgeLoss, edge_loss, transport_eigenvalue


def _net(grid, kernel, **options):
    return mf.ConvNet(depth=1, channels=1000, grid=grid, kernel=kernel, **options)


@given(st.integers(1, 60))
def test_three_taps_have_the_printed_eigenvalue(sites):
    assert transport_eigenvalue(sites, 3) == pytest.approx((1 + 2 * np.cos(np.pi / (sites + 1))) / 3, rel=1e-12)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 5), st.integers(1, 5))
def test_eigenvalues_multiply_over_the_axes(height, width, high, wide):
    """Against power iteration on the whole grid, twice the square root of its steps beyond any transient."""
    table = neighbours((height, width), (high, wide), "zero")
    vector, kept = np.ones(height * width), 1.0
    for _ in range(4000):
        vector = np.append(vector, 0.0)[np.where(table == OUTSIDE, -1, table)].sum(axis=0) / (high * wide)
        kept = vector.max()
        vector /= kept
    # Even stencils make Jordan blocks of the size of the grid, whose transients die as 1 / step.
    assert transport_eigenvalue((height, width), (high, wide)) == pytest.approx(kept, rel=4e-3)


@pytest.mark.parametrize(("grid", "kernel"), [((6,), (3,)), ((9,), (5,)), ((5, 4), (3, 3))])
@pytest.mark.parametrize("activation", ["relu", "linear"])
def test_the_overlap_energy_decays_as_lambda_to_twice_the_layer(grid, kernel, activation):
    predicted = edge_loss(_net(grid, kernel, activation=activation), limit=200, beyond=5)
    assert predicted.decay == pytest.approx(2 * np.log(transport_eigenvalue(grid, kernel)), rel=0.01)


def test_growth_turns_after_the_square_of_the_grid():
    """For odd stencils where 3 / (-2 ln lambda) says; even ones drift, and turn in proportion to the grid.

    Signals vanish one site outside, so lengths are counted as N + 1.
    """
    sites = (8, 16, 32)
    turns = [edge_loss(_net((n,), (3,)), limit=2000, beyond=1.2).turning_depth for n in sites]
    law = [-1.5 / np.log(transport_eigenvalue(n, 3)) for n in sites]
    np.testing.assert_allclose(turns, law, rtol=0.06)
    drifting = [edge_loss(_net((n,), (2,)), limit=2000, beyond=1.2).turning_depth for n in sites]
    slopes = [np.polyfit(np.log1p(sites), np.log(layers), 1)[0] for layers in (turns, drifting)]
    np.testing.assert_allclose(slopes, [2, 1], atol=0.1)


def test_gates_lose_half_of_the_energy_long_before_the_square_of_the_grid():
    """Linear nets near N^2; ReLU ones far below, as sites that leave the grid at different times decorrelate."""
    sites = (16, 32, 64)
    slopes = {}
    for activation in ("linear", "relu"):
        halves = [edge_loss(_net((n,), (3,), activation=activation), limit=n * n // 6).half_depth for n in sites]
        slopes[activation] = np.log(halves[2] / halves[1]) / np.log(65 / 33)
    assert slopes["linear"] == pytest.approx(1.963, abs=0.005)
    assert slopes["relu"] == pytest.approx(1.428, abs=0.005)


def test_circular_nets_lose_nothing_against_themselves():
    predicted = edge_loss(_net((8,), (1,)), limit=20)
    np.testing.assert_allclose(predicted.ratio, 1.0, rtol=1e-12)
    assert np.isnan(predicted.half_depth)
    assert np.isnan(predicted.turning_depth)


def test_grids_and_kernels_of_different_dimension_are_refused():
    with pytest.raises(ValueError, match="one kernel length per grid axis"):
        transport_eigenvalue((4, 4), (3,))


def test_depths_are_read_off_between_the_layers():
    """Of l^3 e^(-l/a) against l^3: half is left at a ln 2, a power is lost at a and growth ends at 3 a."""
    layer, reach = np.arange(1.0, 200.0), 37.6
    loss = EdgeLoss(zero=layer**3 * np.exp(-layer / reach), circular=layer**3)
    assert loss.half_depth == pytest.approx(reach * np.log(2), rel=1e-3)
    assert loss.lost_power_depth == pytest.approx(reach, rel=1e-3)
    assert loss.turning_depth == pytest.approx(3 * reach, rel=1e-3)
    assert loss.decay == pytest.approx(-1 / reach)
