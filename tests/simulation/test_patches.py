"""Stencils by compiled loops, run by run or site by site: the same numbers as whole-array operations."""

import numpy as np
import pytest

from meanfield.nets.lattice import neighbours, reversed_neighbours
from meanfield.simulation.arrays import Stencils
from meanfield.simulation.kernels import stencils

# Small grids, which are gathered site by site, and grids of 256 sites and more, run by run unless runs are short.
GRIDS = [((4,), (3,)), ((5, 3), (3, 2)), ((300,), (4,)), ((16, 16), (3, 3)), ((12, 30), (5, 2)), ((150, 2), (3, 2))]
SHAPES = pytest.mark.parametrize(("grid", "kernel"), GRIDS)
STRIDES = pytest.mark.parametrize("stride", [1, 2, 3])
PADDINGS = pytest.mark.parametrize("padding", ["circular", "zero"])
WHOLE = Stencils(np)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_both_ways_are_tried():
    tables = [neighbours(*lattice, "zero") for lattice in GRIDS]
    runs = [stencils._are_long(stencils._runs(table)[0], table) for table in tables]
    assert set(runs) == {True, False}


def lattice(grid, kernel, padding, stride):
    """A lattice of this stride: where it does not divide a torus, of that of which it does."""
    if padding == "circular":
        grid = tuple(stride * length for length in grid) if stride == 3 else grid
        grid = tuple(length + length % stride for length in grid)
    return grid, kernel, padding, 1, (stride,) * len(grid)


@SHAPES
@PADDINGS
@STRIDES
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_gathered_patches_are_those_of_whole_arrays(rng, grid, kernel, padding, stride, precision):
    given = lattice(grid, kernel, padding, stride)
    table = neighbours(*given)
    values = rng.normal(size=(2, 3, 2, np.prod(given[0]))).astype(precision)
    gathered = stencils.gather(values, table)
    assert gathered.dtype == precision
    np.testing.assert_array_equal(gathered, WHOLE.gather(values, table))


@SHAPES
@PADDINGS
@STRIDES
def test_the_transposed_gather_is_the_adjoint(rng, grid, kernel, padding, stride):
    given = lattice(grid, kernel, padding, stride)
    table, reversed_table = neighbours(*given), reversed_neighbours(*given)
    taps, sites = table.shape
    values, seen = rng.normal(size=(2, 3, 2, np.prod(given[0]))), rng.normal(size=(2, 3 * taps, 2 * sites))
    pulled = stencils.gather_transpose(seen, reversed_table, 2)
    np.testing.assert_allclose(np.vdot(pulled, values), np.vdot(seen, stencils.gather(values, table)), rtol=1e-12)
    np.testing.assert_allclose(pulled, WHOLE.gather_transpose(seen, reversed_table, 2), atol=1e-12)


@SHAPES
@PADDINGS
@pytest.mark.parametrize("samples", [1, 2])
def test_shifted_gram_matrices_are_those_of_patches(rng, grid, kernel, padding, samples):
    table = neighbours(grid, kernel, padding)
    features = rng.normal(size=(1, 2, samples, table.shape[1]))
    flat = features.reshape(1, 2, -1)
    gathered = stencils.gather(features, table)
    of_patches = gathered.swapaxes(1, 2) @ gathered
    summed = stencils.sum_over_shifts(flat.swapaxes(1, 2) @ flat, table, samples)
    np.testing.assert_allclose(summed, of_patches, atol=1e-12)
