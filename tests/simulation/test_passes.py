"""The passes themselves: adjointness, and the two ways to a layer's own update."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import meanfield as mf
from meanfield.common.seeds import streams_by_purpose, streams_of_draws
from meanfield.simulation import passes
from meanfield.simulation.arrays import NUMPY
from meanfield.simulation.draws import draw_inputs
from meanfield.simulation.maps import weighted
from meanfield.simulation.maps.base import Setting
from meanfield.simulation.maps.weighted import LinearOperation, patches_of
from meanfield.simulation.weights import Dense, draw_weights
from tests.strategies import architectures


def _linear(net):
    """A net's first linear map."""
    return next(part for part in net.units[0].branch if part.weights)


@given(architectures(), st.integers(0, 2**31))
def test_backward_is_the_adjoint_of_the_layer_map(net, seed):
    rng = np.random.default_rng(seed)
    below, above = net.channels_by_layer[:2]
    weight = Dense(rng.normal(size=(2, above, below * net.taps)))
    setting, linear = Setting(net.grid, 1, {"W1": weight}, NUMPY), _linear(net)
    values = rng.normal(size=(2, below, 3, net.sites))
    errors = rng.normal(size=(2, above, 3, net.sites))
    forward = (LinearOperation().tangent(linear, values, None, values, setting) * errors).sum()
    backward = (values * LinearOperation().backward(linear, values, None, errors, setting, in_place=False)).sum()
    np.testing.assert_allclose(forward, backward, rtol=1e-10, atol=1e-10)


@given(architectures(), st.integers(0, 2**31))
def test_site_gram_is_the_gram_matrix_of_the_patches(net, seed):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(2, net.channels_by_layer[0], net.inputs, net.sites))
    linear, setting = _linear(net), Setting(net.grid, net.inputs, {}, NUMPY)
    patches = patches_of(linear, features, setting)
    np.testing.assert_allclose(
        weighted.site_gram(linear, features, setting), patches.swapaxes(1, 2) @ patches, atol=1e-12
    )


@pytest.mark.parametrize("channels", [2, 40])
def test_own_update_is_the_same_both_ways(channels):
    """Few channels make the explicit form the cheaper one, many the Gram form; both are U X^T X."""
    net = mf.ConvNet(depth=1, channels=channels, grid=(24,), kernel=(3,))
    rng = np.random.default_rng(0)
    error = rng.normal(size=(1, channels, 2, 24))
    features = rng.normal(size=(1, channels, 1, 24))
    linear, setting = _linear(net), Setting(net.grid, net.inputs, {}, NUMPY)
    patches = patches_of(linear, features, setting)
    expected = error.reshape(1, -1, 24) @ patches.swapaxes(1, 2) @ patches
    gram, explicit = weighted.own_update_operations(24, channels, 3, 2 * channels)
    assert (gram <= explicit) == (channels == 40)
    changes = weighted.own_update(linear, error, features, setting)
    np.testing.assert_allclose(changes.reshape(1, -1, 24), expected, atol=1e-10)


@pytest.mark.parametrize("kind", ["dense", "lazy"])
@pytest.mark.parametrize("net", [mf.MLP(depth=3, width=6), mf.ResidualConvNet(depth=2, channels=3, grid=(4,), stem=1)])
def test_the_order_of_error_columns_changes_no_column(net, kind):
    """Of lazily revealed matrices too: once drawn, they answer the same whatever is asked again in whichever order."""
    weights = draw_weights(net, streams_of_draws(0, "weights", [0]), kind)
    state = passes.forward(net, weights, draw_inputs(net, streams_by_purpose(0, [0])))
    gradient = np.random.default_rng(0).normal(size=(1, net.outputs, 3, state.output.shape[3]))
    order = [2, 0, 1]
    changes, permuted = (list(passes.gradient_changes(state, columns)) for columns in (gradient, gradient[:, :, order]))
    for before, after in zip(changes, permuted, strict=True):
        np.testing.assert_allclose(after, before[:, :, order], rtol=1e-12 if kind == "dense" else 1e-9)
        assert np.abs(after - before).max() > 0.1 * np.abs(before).max()
