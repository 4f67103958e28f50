"""Passes of nets of blocks against central differences, and the split of their updates by order."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from meanfield.simulation.block_passes import Batch, Parameters, draw_batch, draw_parameters, forward, gradients, loss

from meanfield.nets.block_net import BlockNet
from meanfield.simulation.update_orders import split_by_order

STEP = 1e-5


def net_of(**options):
    given = {"multipliers": (0.9, 0.6, 0.7), "variances": (0.3, 0.2, 0.4), "bias_variance": 0.5, "samples": 3}
    return BlockNet(**({"width": 5, "depth": 3, "block_width": 4, "input_width": 3} | given | options))


def losses(net, parameters, batch, array, index):
    """The loss at two steps either way along one number."""
    kept, found = array[index], []
    for shift in (-STEP, 0.0, STEP):
        array[index] = kept + shift
        found.append(loss(forward(net, parameters, batch.inputs).output, batch.labels))
    array[index] = kept
    return found


@pytest.mark.parametrize("activation", ["linear", "relu"])
@pytest.mark.parametrize("block_depth", [1, 2, 3])
@pytest.mark.parametrize("biases", [False, True])
def test_gradients_are_central_differences(activation, block_depth, biases):
    net = net_of(activation=activation, block_depth=block_depth, biases=biases)
    parameters, batch = draw_parameters(net, 0, 0), draw_batch(net, 0, 0)
    slopes = gradients(net, parameters, batch, forward(net, parameters, batch.inputs))
    for arrays, given_slopes in zip((parameters.matrices, parameters.biases), slopes, strict=True):
        assert len(arrays) == len(given_slopes)
        for array, slope in zip(arrays, given_slopes, strict=True):
            dense, curvature = slope.slope.dense(), slope.curvature.dense()
            for index in np.ndindex(array.shape):
                below, at, above = losses(net, parameters, batch, array, index)
                assert dense[index] == pytest.approx((above - below) / (2 * STEP), abs=1e-8)
                assert curvature[index] == pytest.approx((above - 2 * at + below) / STEP**2, abs=1e-4)


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("activation", ["linear", "relu"])
def test_forward_is_the_net_that_the_paper_writes(biases, activation):
    net = net_of(biases=biases, activation=activation)
    parameters, batch = draw_parameters(net, 1, 0), draw_batch(net, 1, 0)
    phi = (lambda x: x) if activation == "linear" else (lambda x: np.maximum(x, 0))
    shift = parameters.biases if biases else [0.0] * 7
    w = parameters.matrices
    h = 0.9 * phi(w[0] @ batch.inputs + shift[0])
    made = forward(net, parameters, batch.inputs)
    for block in range(3):
        one, two = 1 + 2 * block, 2 + 2 * block
        h = h + 0.6 * phi(w[two] @ phi(w[one] @ h + shift[one]) + shift[two])
        np.testing.assert_allclose(made.streams[block + 1], h)
    np.testing.assert_allclose(made.output, 0.7 * (w[-1] @ h)[0])


@given(
    seed=st.integers(0, 2**32 - 1),
    block_depth=st.integers(1, 4),
    depth=st.integers(1, 4),
    biases=st.booleans(),
    size=st.floats(1e-3, 3),
)
def test_orders_add_up_to_the_change(seed, block_depth, depth, biases, size):
    net = net_of(block_depth=block_depth, depth=depth, biases=biases)
    before, batch = draw_parameters(net, seed, 0), draw_batch(net, seed, 0)
    moves = draw_parameters(net, seed, 1)
    after = Parameters(
        [old + size * move for old, move in zip(before.matrices, moves.matrices, strict=True)],
        [old + size * move for old, move in zip(before.biases, moves.biases, strict=True)],
    )
    first, orders = split_by_order(net, before, after, batch.inputs)
    streams = [forward(net, one, batch.inputs).streams for one in (before, after)]
    change = np.array(streams[1]) - np.array(streams[0])
    np.testing.assert_allclose(first, change[0], atol=1e-12)
    scale = np.abs(streams).max() + np.abs(orders).max()
    np.testing.assert_allclose(first + orders.sum(axis=0), change[1:], atol=1e-13 * scale)


def test_orders_are_powers_of_the_update():
    """With the first change of the stream held at zero, order j of one block is homogeneous of degree j."""
    net = net_of(depth=1, block_depth=3)
    before, batch = draw_parameters(net, 0, 0), draw_batch(net, 0, 0)
    moves = draw_parameters(net, 0, 1)
    found = []
    for size in (0.1, 0.2, 0.4):
        moved = [
            old + size * move * (place in (1, 2, 3))
            for place, (old, move) in enumerate(zip(before.matrices, moves.matrices, strict=True))
        ]
        found.append(split_by_order(net, before, Parameters(moved, []), batch.inputs)[1][:, 0])
    for one, other in pairwise(found):
        for order in range(4):
            np.testing.assert_allclose(other[order], 2.0**order * one[order], atol=1e-13)


def test_nets_that_are_not_linear_are_refused():
    net = net_of(activation="relu")
    given_parameters = draw_parameters(net, 0, 0)
    with pytest.raises(ValueError, match="only linear nets"):
        split_by_order(net, given_parameters, given_parameters, draw_batch(net, 0, 0).inputs)


def test_draws_have_their_variances():
    net = BlockNet(width=200, depth=1, variances=(0.5, 2.0, 3.0))
    matrices = draw_parameters(net, 0, 0).matrices
    for matrix, variance in zip(matrices, (0.5, 2.0, 2.0, 3.0), strict=True):
        error = variance * np.sqrt(2 / matrix.size)
        assert abs(matrix.var() - variance) < 6 * error
    batch = draw_batch(net, 0, 0)
    assert isinstance(batch, Batch)
    assert set(batch.labels) <= {-1.0, 1.0}
