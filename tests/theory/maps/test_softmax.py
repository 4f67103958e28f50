"""What averages over softmaxes are worth: against many independent draws of the logits, and where accuracy is asked."""

import numpy as np
import pytest
from scipy.special import softmax

import meanfield as mf
from meanfield.theory.maps import POINTS, accurate_averages
from meanfield.theory.tangent_kernels import value_kernels

TOKENS = 12
NET = mf.Transformer(depth=1, width=64, heads=8, tokens=TOKENS, normalisation="rms")
INPUTS = np.random.default_rng(0).normal(size=NET.input_shape)


def _first_unit(accuracy):
    """c after the attention unit by the library, with the error that it says."""
    with accurate_averages(accuracy) as averages:
        covariance = next(value_kernels(NET, INPUTS)).covariance[0, :, 0]
    return covariance, averages


@pytest.fixture(scope="module")
def drawn():
    """The same by independent random logits, and its standard error."""
    stream = INPUTS[0].T @ INPUTS[0] / NET.width
    scale = np.sqrt(np.diag(stream))
    tokens = stream / np.outer(scale, scale)
    root, generator = np.linalg.cholesky(tokens), np.random.default_rng(7)
    means = []
    for _ in range(64):
        shares = softmax(root @ generator.standard_normal((1024, TOKENS, TOKENS)) @ root.T, axis=2)
        means.append((shares @ tokens @ shares.swapaxes(1, 2)).mean(axis=0))
    return stream + np.mean(means, axis=0), np.std(means, axis=0, ddof=1) / 8


@pytest.mark.parametrize("accuracy", [None, 4e-3])
def test_the_error_that_is_said_is_the_error(drawn, accuracy):
    """144 dimensions: points of the sequence are worth as many random ones, and more of them are taken where asked."""
    covariance, averages = _first_unit(accuracy)
    expected, stderr = drawn
    branch = (expected - INPUTS[0].T @ INPUTS[0] / NET.width).max()
    off = np.abs(covariance - expected).max() / branch
    assert off < 5 * np.hypot(averages.error, stderr.max() / branch)
    assert off > averages.error / 10
    if accuracy is None:
        assert (averages.replicates, averages.error > 4e-3) == (1, True)
    else:
        assert averages.replicates >= 4
        assert averages.error <= accuracy


def test_predictions_say_what_their_averages_are_worth():
    net = mf.Transformer(depth=1, width=64, heads=8, tokens=4, causal=True, outputs=1)
    plain, better = (mf.predict(net, level="mean_field", accuracy=wanted) for wanted in (None, 1e-3))
    assert plain.attrs["softmax_points"] == POINTS
    assert plain.attrs["softmax_error"] > 1e-3 >= better.attrs["softmax_error"]
    assert better.attrs["softmax_points"] >= 4 * POINTS
    apart = np.abs(better.label_term / plain.label_term - 1).max()
    assert 0 < apart < 10 * plain.attrs["softmax_error"]
    assert "softmax_error" not in mf.predict(net.replace(causal=False), level="mean_field").attrs


@pytest.mark.parametrize(
    ("net", "message"),
    [
        (mf.MLP(depth=1, width=4), "accuracy is that of averages over softmaxes"),
        (mf.TiedLoop(depth=2, width=4), "accuracy is that of averages over softmaxes"),
        (mf.Transformer(depth=2, width=8, tokens=3, tied=True), "are tabulated once"),
    ],
)
def test_accuracy_is_refused_where_nothing_is_averaged(net, message):
    with pytest.raises(ValueError, match=message):
        mf.predict(net, level="mean_field", accuracy=1e-3)


def test_no_accuracy_is_a_number_above_zero():
    with pytest.raises(ValueError, match="accuracy is 0; it must be positive"):
        mf.predict(NET, level="mean_field", accuracy=0)
