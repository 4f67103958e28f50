"""Nets of blocks: passes against the formulas of Zheng et al. 2026 and central differences, the split of updates."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meanfield.nets.block_net import BlockNet
from meanfield.nets.layered import MLP
from meanfield.optimizers.linear_algebra import dense
from meanfield.simulation.arrays import NUMPY
from meanfield.simulation.measures.blocks import split_by_order
from meanfield.simulation.passes import forward
from meanfield.simulation.training.data import drawn_batch, drawn_weights, own_loss
from meanfield.simulation.training.gradients import gradients
from meanfield.simulation.weights import given_weights
from tests.naive import block_streams, label_loss

STEP = 1e-5


def net_of(**options):
    given = {"multipliers": (0.9, 0.6, 0.7), "variances": (0.3, 0.2, 0.4), "bias_variance": 0.5, "samples": 3}
    return BlockNet(**({"width": 5, "depth": 3, "block_width": 4, "input_width": 3} | given | options))


def passed(net, weights, data):
    return forward(net, given_weights(net, weights), data.inputs)


def streams_of(net, weights, data):
    return passed(net, weights, data).values[1:]


@pytest.mark.parametrize("activation", ["linear", "relu"])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("block_depth", [1, 2, 3])
@pytest.mark.parametrize("biases", [False, True])
def test_passes_are_those_that_the_paper_writes(activation, block_depth, biases, outputs):
    """Streams and outputs; gradients, and the diagonal of the Hessian, which is that of Gauss and Newton here."""
    net = net_of(activation=activation, block_depth=block_depth, biases=biases, outputs=outputs)
    weights, data, law = drawn_weights(net, 0, range(1)), drawn_batch(net, 0, range(1)), own_loss(net)
    state = passed(net, weights, data)
    slope, curvature = (of(state.output, data.targets, NUMPY) for of in (law.slope, law.curvature))
    derived = gradients(state, slope, curvature)
    plain = {name: values[0] for name, values in weights.items()}
    inputs, labels = data.inputs[0, :, :, 0], data.targets.ravel()
    streams, output, _ = block_streams(net, plain, inputs)
    for value, stream in zip(state.values[1:], streams, strict=True):
        np.testing.assert_allclose(value[0, :, :, 0], stream)
    np.testing.assert_allclose(state.output[0, :, :, 0], output)
    assert set(derived) == set(plain)
    for name, values in plain.items():
        slopes, curvatures = (dense(side)[0] for side in (derived[name].slope, derived[name].curvature))
        for index in np.ndindex(values.shape):
            below, at, above = losses(net, plain, inputs, labels, values, index)
            assert slopes[index] == pytest.approx((above - below) / (2 * STEP), abs=1e-8)
            assert curvatures[index] == pytest.approx((above - 2 * at + below) / STEP**2, abs=1e-4)


def losses(net, weights, inputs, labels, array, index):
    """The loss at two steps either way along one number."""
    kept, differences = array[index], []
    for shift in (-STEP, 0.0, STEP):
        array[index] = kept + shift
        differences.append(label_loss(block_streams(net, weights, inputs)[1], labels))
    array[index] = kept
    return differences


@given(
    seed=st.integers(0, 2**32 - 1),
    block_depth=st.integers(1, 4),
    depth=st.integers(1, 4),
    biases=st.booleans(),
    size=st.floats(1e-3, 3),
)
def test_orders_add_up_to_the_change(seed, block_depth, depth, biases, size):
    net = net_of(block_depth=block_depth, depth=depth, biases=biases)
    before, data = drawn_weights(net, seed, range(2)), drawn_batch(net, seed, range(2))
    moves = drawn_weights(net, seed, range(2, 4))
    after = {name: before[name] + size * moves[name] for name in before}
    first, orders = split_by_order(net, before, after, data.inputs)
    streams = [streams_of(net, weights, data) for weights in (before, after)]
    changes = [new - old for old, new in zip(*streams, strict=True)]
    np.testing.assert_allclose(first, changes[0], atol=1e-12)
    scale = np.abs(streams).max() + max(np.abs(term).max() for terms in orders for term in terms)
    for terms, change in zip(orders, changes[1:], strict=True):
        np.testing.assert_allclose(first + sum(terms), change, atol=1e-13 * scale)


def test_orders_are_powers_of_the_update():
    """With the first change of the stream held at zero, order j of one block is homogeneous of degree j."""
    net = net_of(depth=1, block_depth=3)
    before, data = drawn_weights(net, 0, range(1)), drawn_batch(net, 0, range(1))
    moves = drawn_weights(net, 0, range(1, 2))
    by_size = []
    for size in (0.1, 0.2, 0.4):
        moved = {name: old + size * moves[name] * name.startswith("W1.") for name, old in before.items()}
        by_size.append(split_by_order(net, before, moved, data.inputs)[1][0])
    for single, doubled in pairwise(by_size):
        for order in range(4):
            np.testing.assert_allclose(doubled[order], 2.0**order * single[order], atol=1e-13)


@pytest.mark.parametrize(
    ("net", "words"), [(net_of(activation="relu"), "only linear nets"), (MLP(depth=2, width=3), "maps Pointwise")]
)
def test_nets_that_are_not_linear_are_refused(net, words):
    weights = drawn_weights(net, 0, range(1))
    with pytest.raises(ValueError, match=words):
        split_by_order(net, weights, weights, np.ones((1, net.first_channels, 1, 1)))


def test_draws_have_their_variances():
    net = BlockNet(width=200, depth=1, variances=(0.5, 2.0, 3.0))
    weights = drawn_weights(net, 0, range(1))
    for matrix, variance in zip(weights.values(), (0.5, 2.0, 2.0, 3.0), strict=True):
        error = variance * np.sqrt(2 / matrix.size)
        assert abs(matrix.var() - variance) < 6 * error
    data = drawn_batch(net, 0, range(1))
    np.testing.assert_allclose(np.square(data.inputs).sum(axis=1), net.input_width)
    assert set(data.targets.ravel()) <= {-1.0, 1.0}
    classes = drawn_batch(BlockNet(width=4, depth=1, outputs=3, samples=50), 0, range(1)).targets
    assert set(classes.ravel()) == {0, 1, 2}


def test_a_draw_is_the_same_in_any_company():
    net = net_of(biases=True)
    both, alone = (drawn_weights(net, 0, draws) for draws in (range(2), range(1, 2)))
    for name in both:
        np.testing.assert_array_equal(both[name][1:], alone[name])
    np.testing.assert_array_equal(drawn_batch(net, 0, range(2)).inputs[1:], drawn_batch(net, 0, range(1, 2)).inputs)


def test_inputs_on_the_sphere_are_for_nets_that_ask_for_them():
    with pytest.raises(ValueError, match="'normalised' inputs"):
        drawn_batch(MLP(depth=1, width=3), 0, range(1))
