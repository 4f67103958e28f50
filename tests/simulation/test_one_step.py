"""One step for given weights: against loops, against differences, and by the symmetries it must have."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import meanfield as mf
from meanfield.nets.scalings import SCALINGS
from tests import naive
from tests.draws import given_draw
from tests.strategies import architectures

seeds = st.integers(0, 2**31)


@given(architectures(), seeds)
def test_forward_pass_is_the_loops(net, seed):
    weights, inputs, _ = given_draw(net, seed)
    hidden, outputs = naive.outputs_and_hidden(net, weights, inputs)
    for ours, theirs in zip(mf.pre_activations(net, weights, inputs), [*hidden, outputs], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


@given(architectures(), seeds)
def test_one_step_is_the_sum_over_parameters(net, seed):
    weights, inputs, error = given_draw(net, seed)
    for ours, theirs in zip(
        mf.one_step(net, weights, inputs, error), naive.one_step(net, weights, inputs, error), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("readout", ["pooled", "convolution"])
@pytest.mark.parametrize("padding", ["circular", "zero"])
def test_one_step_is_the_central_difference(readout, padding):
    net = mf.ConvNet(
        depth=3, channels=(2, 3, 2), grid=(2, 3), kernel=(2, 3), padding=padding, readout=readout, inputs=2
    )
    _assert_central_difference(net)


@pytest.mark.parametrize("block_depth", [1, 2, 3])
@pytest.mark.parametrize("scaling", SCALINGS)
def test_blocks_with_stem_and_tail_are_central_differences(block_depth, scaling):
    shape = {"depth": 2, "block_depth": block_depth, "scaling": scaling, "stem": 1, "tail": 1}
    _assert_central_difference(mf.ResidualMLP(width=3, inputs=2, **shape))
    if scaling == "multiplier_sqrt":
        _assert_central_difference(mf.ResidualConvNet(channels=2, grid=(3,), kernel=(2,), **shape))


@pytest.mark.parametrize("activation", ["gelu", "tanh"])
def test_smooth_gates_are_central_differences_too(activation):
    _assert_central_difference(mf.ConvNet(depth=3, channels=3, grid=(3,), kernel=(2,), activation=activation))


def _assert_central_difference(net):
    weights, inputs, target = given_draw(net, 5)
    gradient = [np.zeros_like(w) for w in weights]
    h = 1e-6
    for layer, weight in enumerate(weights):
        for index in np.ndindex(*weight.shape):
            sides = []
            for sign in (1, -1):
                shifted = [w.copy() for w in weights]
                shifted[layer][index] += sign * h
                sides.append(naive.loss(net, shifted, inputs, target))
            gradient[layer][index] = (sides[0] - sides[1]) / (2 * h)
    outputs = mf.pre_activations(net, weights, inputs)[-1]
    change = mf.one_step(net, weights, inputs, outputs - target)
    ends = [
        mf.pre_activations(net, [w - sign * h * g for w, g in zip(weights, gradient, strict=True)], inputs)
        for sign in (1, -1)
    ]
    for ours, ahead, behind in zip(change, *(end[:-1] for end in ends), strict=True):
        np.testing.assert_allclose(ours, (ahead - behind) / (2 * h), atol=2e-7 * np.abs(ours).max())


@given(architectures(), seeds)
def test_change_is_linear_in_the_error(net, seed):
    weights, inputs, error = given_draw(net, seed)
    other = np.random.default_rng(seed + 1).normal(size=error.shape)
    combined = mf.one_step(net, weights, inputs, 2 * error - 3 * other)
    parts = zip(mf.one_step(net, weights, inputs, error), mf.one_step(net, weights, inputs, other), strict=True)
    for ours, (first, second) in zip(combined, parts, strict=True):
        np.testing.assert_allclose(ours, 2 * first - 3 * second, rtol=1e-9, atol=1e-10)


@given(seeds, st.sampled_from([(1, 0), (0, 2), (2, 1)]))
def test_circular_nets_are_translation_covariant(seed, shift):
    net = mf.ConvNet(depth=3, channels=3, grid=(3, 4), kernel=(2, 3), readout="convolution")
    weights, inputs, error = given_draw(net, seed)

    def moved(images):
        return np.roll(images, shift, axis=(2, 3))

    change = mf.one_step(net, weights, inputs, error)
    for ours, theirs in zip(mf.one_step(net, weights, moved(inputs), moved(error)), change, strict=True):
        np.testing.assert_allclose(ours, moved(theirs), rtol=1e-10, atol=1e-12)


def test_zero_padding_is_not_translation_covariant():
    net = mf.ConvNet(depth=2, channels=3, grid=(5,), kernel=(3,), padding="zero", readout="convolution")
    weights, inputs, error = given_draw(net, 0)
    change = mf.one_step(net, weights, inputs, error)
    rolled = mf.one_step(net, weights, np.roll(inputs, 1, 2), np.roll(error, 1, 2))
    assert np.abs(rolled[-1] - np.roll(change[-1], 1, 2)).max() > 1e-3


@given(seeds, st.floats(0.1, 10))
def test_relu_homogeneity_in_the_inputs(seed, factor):
    """z scales with x, and the change of z under a fixed output error with x^2: U is unchanged, X^T X is not."""
    net = mf.MLP(depth=3, width=4)
    weights, inputs, error = given_draw(net, seed)
    scaled = mf.one_step(net, weights, factor * inputs, error)
    for ours, theirs in zip(scaled, mf.one_step(net, weights, inputs, error), strict=True):
        np.testing.assert_allclose(ours, factor**2 * theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda w, x, e: (w[:-1], x, e), "weights has 2 arrays; this net takes 3"),
        (lambda w, x, e: ([w[0].T[:1], *w[1:]], x, e), r"weights\[0\] has shape"),
        (lambda w, x, e: (w, x[:, :-1], e), "inputs has shape"),
        (lambda w, x, e: (w, x * np.nan, e), "NaN or infinite"),
        (lambda w, x, e: (w, x, e[0]), "output_error has shape"),
    ],
)
def test_wrong_arrays_are_named(spoil, message):
    net = mf.MLP(depth=2, width=3)
    with pytest.raises(ValueError, match=message):
        mf.one_step(net, *spoil(*given_draw(net, 0)))
