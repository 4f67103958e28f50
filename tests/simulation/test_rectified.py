"""Nets whose ReLU and stencils are one map, without patches: the passes and gradients of the nets as they are."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.nets.maps import Linear, Pointwise, Pooling, Weight
from meanfield.nets.net import Chain, Unit
from meanfield.optimizers.linear_algebra import dense
from meanfield.simulation.arrays import NUMPY
from meanfield.simulation.maps.weighted import RectifiedLinear, rectified_net
from meanfield.simulation.passes import MatrixMoves, backward, forward, tangent, through_readout
from meanfield.simulation.training.gradients import gradients
from meanfield.simulation.weights import Dense

PLANE = {"grid": (4, 5), "kernel": (3, 3), "inputs": 3, "outputs": 2}
NETS = [
    mf.ConvNet(depth=3, channels=4, padding="circular", input_channels=2, **PLANE),
    mf.ConvNet(depth=2, channels=(3, 5), padding="zero", readout="convolution", **PLANE),
    mf.ConvNet(depth=2, channels=8, activation="tanh", **PLANE),
    mf.ResidualConvNet(depth=4, channels=4, scaling="multiplier_sqrt", **PLANE),
    mf.StagedConvNet(depth=4, stages=2, channels=4, padding="zero", downsampling="stride", **PLANE),
    mf.StagedResidualConvNet(
        depth=4, stages=2, channels=4, stride=(2, 1), downsampling="pooling", **PLANE | {"kernel": (2, 3)}
    ),
    Chain(
        units=(
            Unit((Linear((Weight("below", (4, 2, 3, 3), 0.1),)),)),
            Unit((Pointwise("relu"), Linear((Weight("dilated", (4, 4, 3, 3), 0.1),), "zero", 2))),
        ),
        readout_unit=Unit((Pooling(), Linear((Weight("readout", (2, 4), 0.2),)))),
        input_channels=2,
        grid=(4, 5),
        inputs=3,
    ),
]
DRAWS = 3
RNG = np.random.default_rng


def drawn(net, seed):
    rng = RNG(seed)
    return {
        name: Dense(rng.normal(size=(DRAWS, w.shape[0], int(np.prod(w.shape[1:]))))) for name, w in net.weights.items()
    }


def gradients_and_error(net, weights, inputs, columns, arrays):
    """The output, gradients by weight if there is one error column, and the errors of all places from the top down."""
    state = forward(net, weights, inputs, arrays)
    error = RNG(2).normal(size=(DRAWS, state.output.shape[1], columns * net.inputs, state.output.shape[3]))
    top, errors = through_readout(state, error)
    errors |= backward(state, top, len(net.units))
    slopes = {name: dense(gradient.slope) for name, gradient in gradients(state, error).items()} if columns == 1 else {}
    return state, slopes, [errors[place] for place in sorted(errors, reverse=True)]


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("direct", [True, False])
def test_passes_and_gradients_are_those_of_the_maps_one_by_one(net, columns, direct):
    weights, inputs = drawn(net, 0), RNG(1).normal(size=(DRAWS, net.first_channels, net.inputs, net.sites))
    joined, arrays = rectified_net(net), NUMPY.for_training() if direct else NUMPY
    state, moved, errors = gradients_and_error(joined, weights, inputs, columns, arrays)
    plain, expected, plain_errors = gradients_and_error(net, weights, inputs, columns, NUMPY)
    np.testing.assert_allclose(state.output, plain.output, rtol=1e-9, atol=1e-9 * np.abs(plain.output).max())
    for array, reference in zip([*moved.values(), *errors], [*expected.values(), *plain_errors], strict=True):
        np.testing.assert_allclose(array, reference, rtol=1e-9, atol=1e-9 * np.abs(reference).max())
    assert set(moved) == set(expected)


@pytest.mark.parametrize("net", NETS)
def test_tangents_are_those_of_the_maps_one_by_one(net):
    weights, moves = drawn(net, 0), drawn(net, 3)
    inputs = RNG(1).normal(size=(DRAWS, net.first_channels, net.inputs, net.sites))
    joined, plain = forward(rectified_net(net), weights, inputs, NUMPY.for_training()), forward(net, weights, inputs)

    def changes(state):
        def moved(places, patches):
            (weight,) = state.net.units[places[0][0]].maps[places[0][1]].weights
            return moves[weight.name].matrix @ patches

        return tangent(state, MatrixMoves(state, moved), len(net.units), 1)

    for change, reference in zip(changes(joined), changes(plain), strict=True):
        np.testing.assert_allclose(change, reference, rtol=1e-9, atol=1e-9 * np.abs(reference).max())


def test_relu_and_a_stencil_are_joined_and_nothing_else():
    kinds = [[type(part) for part in unit.maps] for unit in rectified_net(NETS[0]).units]
    assert kinds == [[RectifiedLinear]] * 3
    assert rectified_net(NETS[0]).readout_unit == NETS[0].readout_unit  # its linear map has no stencil
    assert rectified_net(NETS[2]).units == NETS[2].units
    dense = mf.MLP(depth=2, width=4)
    assert not any(isinstance(part, RectifiedLinear) for unit in rectified_net(dense).units for part in unit.maps)
    assert any(isinstance(part, Linear) for part in rectified_net(NETS[1]).readout_unit.maps)
