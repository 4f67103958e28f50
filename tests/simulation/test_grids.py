"""Grids that change inside a net: strides, means over windows and shortcuts, against loops, adjoints and autograd."""

from math import prod

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meanfield as mf
from meanfield.nets.maps import AveragePooling, Linear, Pointwise, Weight
from meanfield.nets.net import Chain, Unit
from meanfield.simulation.arrays import NUMPY
from meanfield.simulation.maps.base import Setting, operation_of
from meanfield.simulation.maps.weighted import own_update, patches_of, site_gram
from meanfield.simulation.measures.overlap_energy import tangent_kernels
from meanfield.simulation.passes import forward
from meanfield.simulation.weights import given_weights
from tests import derivable, naive
from tests.draws import given_draw
from tests.strategies import staged_nets

seeds = st.integers(0, 2**31)
WINDOWS = [((8,), (2,)), ((6,), (6,)), ((4, 6), (2, 3)), ((4, 4), (4, 1)), ((3, 2), (1, 1))]


@pytest.mark.parametrize(("grid", "window"), WINDOWS)
def test_means_over_windows_are_the_loops_and_go_back_by_the_adjoint(grid, window):
    spec, rng = AveragePooling(window), np.random.default_rng(0)
    setting, own = Setting(grid, 3, {}, NUMPY), operation_of(spec)
    values = rng.normal(size=(2, 4, 3, prod(grid)))
    means, _ = own.forward(spec, values, setting)
    for draw, row in np.ndindex(2, 3):
        expected = naive.windowed(values[draw, :, row].reshape(4, *grid), window)
        np.testing.assert_allclose(means[draw, :, row], expected.reshape(4, -1), atol=1e-14)
    errors = rng.normal(size=means.shape)
    pulled = own.backward(spec, values, None, errors, setting, in_place=False)
    np.testing.assert_allclose(np.vdot(pulled, values), np.vdot(errors, means), rtol=1e-12)


@pytest.mark.parametrize("channels", [2, 40])
def test_the_own_update_of_a_strided_map_is_the_same_both_ways(channels):
    """Few channels make the explicit form the cheaper one, many the Gram form; both are U X^T X."""
    linear, rng = Linear((Weight("W", (channels, channels, 3), 1.0),), "zero", stride=(2,)), np.random.default_rng(0)
    setting = Setting((23,), 2, {}, NUMPY)
    features, error = rng.normal(size=(1, channels, 2, 23)), rng.normal(size=(1, channels, 4, 12))
    patches = patches_of(linear, features, setting)
    np.testing.assert_allclose(site_gram(linear, features, setting), patches.swapaxes(1, 2) @ patches, atol=1e-12)
    expected = error.reshape(1, -1, 24) @ patches.swapaxes(1, 2) @ patches
    changes = own_update(linear, error, features, setting)
    np.testing.assert_allclose(changes.reshape(1, -1, 24), expected, atol=1e-10)


@settings(max_examples=40, deadline=None)
@given(staged_nets(), seeds)
def test_values_of_stages_are_those_of_another_road(net, seed):
    weights, inputs, error = given_draw(net, seed)
    values, output = derivable.values_and_output(net, dict(zip(net.weights, weights, strict=True)), inputs)
    for ours, theirs in zip(mf.pre_activations(net, weights, inputs), [*values, output], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    theirs = derivable.one_step(net, weights, inputs, error / error.size)
    for change, reference in zip(mf.one_step(net, weights, inputs, error), theirs, strict=True):
        np.testing.assert_allclose(change, reference, rtol=1e-9, atol=1e-11 * max(1.0, np.abs(reference).max()))


def _in_jax(net, weights, inputs):
    """Values and outputs by JAX's own convolutions, of ReLU nets with odd kernels on zero-padded grids."""
    named, axes = dict(zip(net.weights, weights, strict=True)), len(net.grid)

    def along(maps, x):
        for part in maps:
            match part:
                case Pointwise():
                    x = jax.nn.relu(x)
                case AveragePooling(window=window):
                    shape = (1, 1, *window)
                    x = jax.lax.reduce_window(x, 0.0, jax.lax.add, shape, shape, "VALID") / prod(window)
                case Linear(weights=(weight,)) if weight.shape[2:]:
                    pads = [(taps // 2, taps // 2) for taps in weight.shape[2:]]
                    steps = part.stride or (1,) * axes
                    x = jax.lax.conv_general_dilated(x, named[weight.name], steps, pads)
                case Linear(weights=(weight,)):
                    x = x @ named[weight.name].T
                case _:
                    x = x.reshape(*x.shape[:2], -1).mean(axis=2)
        return x

    values = [inputs]
    for unit in net.units:
        value = unit.multiplier * along(unit.branch, values[-1])
        values.append(value if unit.skip is None else value + along(unit.shortcut, values[unit.skip]))
    return values[1:], along(net.readout_unit.branch, values[-1])


SHAPE = {"channels": 4, "kernel": (3, 3), "padding": "zero", "input_channels": 3, "inputs": 2, "outputs": 3}


@pytest.mark.parametrize("readout", ["pooled", "convolution"])
@pytest.mark.parametrize("downsampling", ["stride", "pooling"])
@pytest.mark.parametrize("residual", [False, True])
def test_one_step_of_stages_is_that_of_jax_convolutions(residual, downsampling, readout):
    grid = (7, 10) if downsampling == "stride" else (8, 12)
    shape = {**SHAPE, "depth": 5, "stages": (2, 2, 1), "grid": grid, "downsampling": downsampling, "readout": readout}
    if residual:
        net = mf.StagedResidualConvNet(stem=1, block_depth=2, scaling="multiplier_sqrt", **shape)
    else:
        net = mf.StagedConvNet(**shape)
    weights, inputs, error = given_draw(net, 3)
    with jax.enable_x64(True):
        pull = jax.vjp(lambda w: _in_jax(net, w, inputs)[1], weights)[1]
        (slopes,) = pull(jax.numpy.asarray(error / error.size))
        values, changes = jax.jvp(lambda w: _in_jax(net, w, inputs)[0], (weights,), ([-slope for slope in slopes],))
    for ours, theirs in zip(mf.pre_activations(net, weights, inputs)[:-1], values, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    for ours, theirs in zip(mf.one_step(net, weights, inputs, error), changes, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10 * np.abs(theirs).max())


def _kernels(net, seed):
    weights, inputs, _ = given_draw(net, seed)
    named = dict(zip(net.weights, weights, strict=True))
    matrices = given_weights(net, {name: array.reshape(1, len(array), -1) for name, array in named.items()})
    state = forward(net, matrices, inputs.reshape(*inputs.shape[:2], -1).swapaxes(0, 1)[None])
    return [kernel[0] for kernel in tangent_kernels(state)], named, inputs


@settings(max_examples=15, deadline=None)
@given(staged_nets(), seeds)
def test_tangent_kernels_of_stages_are_sums_over_parameters(net, seed):
    kernels, named, inputs = _kernels(net, seed)
    for number, kernel in enumerate(kernels):
        derivatives = derivable.jacobian(net, named, inputs, number)
        samples, channels = (net.inputs, net.value_channels[number + 1])
        rows = [
            array.reshape(samples, channels, prod(net.value_grids[number + 1]), -1) for array in derivatives.values()
        ]
        flat = np.concatenate(rows, axis=3).swapaxes(0, 1).reshape(len(kernel), -1)
        np.testing.assert_allclose(kernel, flat @ flat.T, rtol=1e-8, atol=1e-9 * np.abs(kernel).max())


def test_a_shortcut_from_the_input_or_past_several_units_has_its_share_of_the_kernel():
    narrow, wide = Linear((Weight("a", (2, 2, 2), 0.5),)), Linear((Weight("b", (3, 2, 2), 0.5),), stride=(2,))
    first = Linear((Weight("s", (3, 2), 0.5),), stride=(2,))
    units = (
        Unit((Pointwise("tanh"), narrow)),
        Unit((Pointwise("tanh"), wide), 0, 0.5, shortcut=(first,)),
        Unit(
            (Pointwise("tanh"), Linear((Weight("c", (3, 3), 0.5),))),
            1,
            shortcut=(AveragePooling((2,)), Linear((Weight("t", (3, 2), 0.5),))),
        ),
        Unit((Linear((Weight("d", (3, 3), 0.5),)),), 2),
    )
    net = Chain(units=units, input_channels=2, grid=(4,), inputs=2)
    kernels, named, inputs = _kernels(net, 0)
    for number, kernel in enumerate(kernels):
        derivatives = derivable.jacobian(net, named, inputs, number)
        rows = [
            array.reshape(2, net.value_channels[number + 1], -1, array[0, 0, 0].size) for array in derivatives.values()
        ]
        flat = np.concatenate(rows, axis=3).swapaxes(0, 1).reshape(len(kernel), -1)
        np.testing.assert_allclose(kernel, flat @ flat.T, rtol=1e-9, atol=1e-11)
