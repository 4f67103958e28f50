"""The passes themselves: adjointness, and the two ways to a layer's own update."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import meanfield as mf
from meanfield.seeds import stream
from meanfield.simulation import old_passes as passes
from meanfield.simulation.inputs import draw_inputs
from meanfield.simulation.weights import Dense, draw_weights
from tests.strategies import architectures


@given(architectures(), st.integers(0, 2**31))
def test_backward_is_the_adjoint_of_the_layer_map(net, seed):
    rng = np.random.default_rng(seed)
    below, above = net.channels_by_layer[:2]
    weight = Dense(rng.normal(size=(2, above, below * net.taps)))
    values = rng.normal(size=(2, below, 3, net.sites))
    errors = rng.normal(size=(2, above, 3, net.sites))
    forward = (passes.apply_layer(net, weight, values) * errors).sum()
    backward = (values * passes._apply_transpose(net, weight, errors)).sum()
    np.testing.assert_allclose(forward, backward, rtol=1e-10, atol=1e-10)


@given(architectures(), st.integers(0, 2**31))
def test_site_gram_is_the_gram_matrix_of_the_patches(net, seed):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(2, net.channels_by_layer[0], net.inputs, net.sites))
    patches = passes._patches(net, features)
    np.testing.assert_allclose(passes.site_gram(net, features), patches.swapaxes(1, 2) @ patches, atol=1e-12)


@pytest.mark.parametrize("channels", [2, 40])
def test_own_update_is_the_same_both_ways(channels):
    """Few channels make the explicit form the cheaper one, many the Gram form; both are U X^T X."""
    net = mf.ConvNet(depth=1, channels=channels, grid=(24,), kernel=(3,))
    rng = np.random.default_rng(0)
    error = rng.normal(size=(1, channels, 2, 24))
    features = rng.normal(size=(1, channels, 1, 24))
    patches = passes._patches(net, features)
    expected = error.reshape(1, -1, 24) @ patches.swapaxes(1, 2) @ patches
    gram, explicit = passes.own_update_operations(net, channels, 2 * channels)
    assert (gram <= explicit) == (channels == 40)
    np.testing.assert_allclose(passes._own_update(net, error, features).reshape(1, -1, 24), expected, atol=1e-10)


@pytest.mark.parametrize("kind", ["dense", "lazy"])
@pytest.mark.parametrize("net", [mf.MLP(depth=3, width=6), mf.ResidualConvNet(depth=2, channels=3, grid=(4,), stem=1)])
def test_the_order_of_error_columns_changes_no_column(net, kind):
    """Of lazily revealed matrices too: once drawn, they answer the same whatever is asked again in whichever order."""
    weights = draw_weights(net, [stream(0, "weights", 0)], kind)
    state = passes.forward(net, weights, draw_inputs(net, [stream(0, "inputs", 0)]))
    gradient = np.random.default_rng(0).normal(size=(1, net.outputs, 3, state.output.shape[3]))
    order = [2, 0, 1]

    def changes(columns):
        top = passes.through_readout(net, weights, state, columns)
        return list(passes.tangent(net, weights, state, passes.backward(net, weights, state, top, len(net.layers))))

    for before, permuted in zip(changes(gradient), changes(gradient[:, :, order]), strict=True):
        np.testing.assert_allclose(permuted, before[:, :, order], rtol=1e-12 if kind == "dense" else 1e-9)
        assert np.abs(permuted - before).max() > 0.1 * np.abs(before).max()
