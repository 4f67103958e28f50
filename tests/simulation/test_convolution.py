"""Convolutions without patches: the naive sums, on any lattice, by any tile, in any precision and order of memory."""

from math import prod

import numpy as np
import pytest

from meanfield.nets.lattice import neighbours, reversed_neighbours
from meanfield.simulation.arrays import on_numpy
from meanfield.simulation.kernels import stencils as kernels
from meanfield.simulation.kernels.stencils import DirectConvolution, draws_side_by_side
from tests import naive

DIRECT = DirectConvolution()
ROUNDING = {"float64": 1e-12, "float32": 3e-5}

# Grid, kernel, sites between taps, stride: one and two axes, odd and even kernels, more sites than a block of a
# gradient, strides wider than the kernel and as wide as the grid.
LATTICES = [
    ((7,), (3,), 1, ()),
    ((6,), (4,), 1, ()),
    ((9,), (3,), 2, ()),
    ((5, 7), (3, 3), 1, ()),
    ((4, 6), (3, 2), 1, ()),
    ((2, 12), (2, 1), 2, ()),
    ((7, 6), (3, 3), 2, ()),
    ((8,), (3,), 1, (2,)),
    ((6,), (2,), 1, (3,)),
    ((6,), (4,), 2, (6,)),
    ((4, 6), (3, 2), 1, (2, 2)),
    ((12, 12), (3, 3), 1, (1, 2)),
]
# Draws, channels below and above, samples: vectors of all widths, alone and side by side, rows that fill tiles or not.
SIZES = [
    (1, 1, 32, 16),
    (1, 32, 64, 8),
    (1, 3, 16, 12),
    (2, 8, 8, 5),
    (3, 5, 10, 7),
    (4, 8, 8, 8),
    (8, 8, 8, 4),
    (16, 4, 8, 2),
]


def given(lattice, padding, sizes, precision, seed=0):
    """Weights (D, n', n k), values (D, n, R, S), errors (D, n', R, S) and both tables."""
    (grid, kernel, dilation, stride), (draws, below, above, rows) = lattice, sizes
    rng, sites, sites_above = np.random.default_rng(seed), prod(grid), prod(naive.coarser(grid, stride))
    shapes = [(draws, above, below * prod(kernel)), (draws, below, rows, sites), (draws, above, rows, sites_above)]
    tables = [make(grid, kernel, padding, dilation, stride) for make in (neighbours, reversed_neighbours)]
    return *(rng.normal(size=shape).astype(precision) for shape in shapes), *tables


def same(actual, expected, precision):
    assert actual.dtype == precision
    scale = np.abs(expected).max(initial=1.0)
    np.testing.assert_allclose(actual / scale, expected / scale, atol=ROUNDING[precision])


# A stride need not divide a grid whose edge is padded.
ON_BOTH = [(lattice, padding) for lattice in LATTICES for padding in ("circular", "zero")]
ON_BOTH += [(((7,), (3,), 1, (2,)), "zero"), (((5, 4), (2, 3), 1, (2, 3)), "zero")]


@pytest.mark.parametrize(("lattice", "padding"), ON_BOTH)
@pytest.mark.parametrize("precision", ROUNDING)
def test_sums_are_the_naive_ones(lattice, padding, precision):
    (grid, kernel, dilation, stride), (draws, below, above, rows) = lattice, (2, 3, 4, 2)
    weights, values, errors, table, back = given(lattice, padding, (draws, below, above, rows), precision)
    up, down, moved = (np.zeros(array.shape) for array in (errors, values, weights))
    for d, r in np.ndindex(draws, rows):
        w = weights[d].reshape(above, below, *kernel)
        x, u = values[d, :, r].reshape(-1, *grid), errors[d, :, r].reshape(-1, *naive.coarser(grid, stride))
        up[d, :, r] = naive.stencil(w, x, padding, dilation, stride).reshape(above, -1)
        down[d, :, r] = naive.stencil_transpose(w, u, grid, padding, dilation, stride).reshape(below, -1)
        moved[d] += naive.stencil_gradient(u, x, kernel, padding, dilation, stride).reshape(above, -1)
    same(DIRECT.convolve(weights, values, table), up, precision)
    same(DIRECT.convolve_transpose(weights, errors, back), down, precision)
    same(DIRECT.weight_gradient(errors, values, table), moved, precision)


@pytest.fixture(params=[(64, 32), (32, 16), (16, 16)], ids=["AVX-512", "AVX2", "SSE"])
def registers(request, monkeypatch):
    """Tiles for the vector registers of another machine: bytes of one, and how many there are."""
    for name, value in zip(("VECTOR", "REGISTERS"), request.param, strict=True):
        monkeypatch.setattr(kernels, name, value)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("precision", ROUNDING)
@pytest.mark.usefixtures("registers")
def test_every_tile_gives_what_patches_give(sizes, precision):
    weights, values, errors, table, back = given(((5, 7), (3, 3), 1, ()), "zero", sizes, precision)
    patches, arrays = on_numpy(precision).gather(values, table), on_numpy(precision)
    flat = errors.reshape(*errors.shape[:2], -1)
    same(DIRECT.convolve(weights, values, table), (weights @ patches).reshape(errors.shape), precision)
    pulled = arrays.gather_transpose(weights.swapaxes(1, 2) @ flat, back, errors.shape[2])
    same(DIRECT.convolve_transpose(weights, errors, back), pulled, precision)
    same(DIRECT.weight_gradient(errors, values, table), flat @ patches.swapaxes(1, 2), precision)


@pytest.mark.parametrize("sizes", SIZES)
def test_rectified_inputs_and_gates(sizes):
    weights, values, errors, table, back = given(LATTICES[3], "circular", sizes, "float64")
    features = np.maximum(values, 0.0)
    for asked, plain in (
        (DIRECT.convolve(weights, values, table, rectified=True), DIRECT.convolve(weights, features, table)),
        (
            DIRECT.weight_gradient(errors, values, table, rectified=True),
            DIRECT.weight_gradient(errors, features, table),
        ),
    ):
        np.testing.assert_array_equal(asked, plain)
    gated = DIRECT.convolve_transpose(weights, errors, back, gate=values)
    np.testing.assert_array_equal(gated, np.where(values > 0, DIRECT.convolve_transpose(weights, errors, back), 0.0))


def test_what_is_no_number_stays_so():
    """Rectified, it must not become 0: a run that diverges would look sound."""
    weights, values, _, table, _ = given(LATTICES[3], "circular", (1, 4, 16, 8), "float32")
    values[0, 2, 3, 1] = np.nan
    assert np.isnan(DIRECT.convolve(weights, values, table, rectified=True)).sum() == 16 * 9


@pytest.mark.parametrize("sizes", SIZES)
def test_the_order_of_memory_does_not_matter(sizes):
    weights, values, errors, table, _ = given(LATTICES[3], "zero", sizes, "float32")
    turned = np.asfortranarray(values)
    image = DIRECT.convolve(weights, turned, table)
    np.testing.assert_array_equal(image, DIRECT.convolve(np.asfortranarray(weights), values, table))
    np.testing.assert_array_equal(
        DIRECT.weight_gradient(errors, turned, table), DIRECT.weight_gradient(np.asfortranarray(errors), values, table)
    )


def test_one_input_serves_all_draws():
    weights, values, errors, table, _ = given(LATTICES[3], "zero", (3, 4, 5, 6), "float64")
    each = np.repeat(values[:1], 3, axis=0)
    np.testing.assert_array_equal(DIRECT.convolve(weights, values[:1], table), DIRECT.convolve(weights, each, table))
    np.testing.assert_array_equal(
        DIRECT.weight_gradient(errors, values[:1], table), DIRECT.weight_gradient(errors, each, table)
    )


@pytest.mark.parametrize("columns", [1, 2, 6, 8, 10, 16, 32, 48, 64, 192])
@pytest.mark.parametrize("rows", [1, 3, 8, 12, 32])
@pytest.mark.parametrize("itemsize", [4, 8])
def test_tiles_divide_the_sums_and_fit_into_registers(rows, columns, itemsize):
    shape = kernels.tile_shape(rows, columns, 1, itemsize)
    assert rows % shape.rows == 0
    assert columns % (shape.vectors * shape.lanes) == 0
    assert shape.rows * shape.vectors <= kernels.REGISTERS // 2


@pytest.mark.parametrize("channels", [1, 3, 8, 32, 64, 100])
def test_draws_side_by_side_are_powers_of_two_up_to_eight(channels):
    assert draws_side_by_side(channels, 4) in (1, 2, 4, 8)
