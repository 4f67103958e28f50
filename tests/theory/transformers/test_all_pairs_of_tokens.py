"""Softmax attention over all pairs of tokens: two under a mask by hand, exchangeable ones by the other road, draws."""

import numpy as np
import pytest
from scipy.special import expit

import meanfield as mf
from meanfield.theory.maps import POINTS
from meanfield.theory.tangent_kernels import value_kernels
from meanfield.theory.transformers.terms import stream_moments

# Averages over the softmax are between 0 and 1; quasi-Monte Carlo errors are far below those of as many draws.
RTOL = 0.1 / np.sqrt(POINTS)


def test_two_tokens_under_a_causal_mask_by_hand():
    """The first sees itself; the second by shares 1 - s and s, s the logistic function of a logit of variance 2."""
    net = mf.Transformer(depth=1, width=8, tokens=2, causal=True)
    nodes = np.linspace(-9, 9, 2001)
    weights = np.exp(-(nodes**2) / 2) / np.exp(-(nodes**2) / 2).sum()
    share = expit(np.sqrt(2) * nodes)
    agreement = (share**2 + (1 - share) ** 2) @ weights
    response = 8 * (share * (1 - share)) ** 2 @ weights
    first = next(value_kernels(net))
    covariance, kernel = first.covariance[0, :, 0], first.kernel[0, :, 0]
    np.testing.assert_allclose(covariance, [[2, 0.5], [0.5, 1 + agreement]], rtol=RTOL)
    np.testing.assert_allclose(kernel, 8 * np.array([[2, 1], [1, 2 * agreement + response]]), rtol=RTOL)
    assert abs(response / (2 * agreement)) > 10 * RTOL, "the change of the logits must count"


@pytest.mark.parametrize(
    "options", [{"norm": "post"}, {"inputs": 2, "ffn": 1}, {"activation": "gelu", "scaling": "init"}]
)
def test_exchangeable_tokens_by_both_roads(options):
    """One follows two numbers, one all pairs; they share no average."""
    net = mf.Transformer(depth=2, width=64, heads=8, tokens=5, **options)
    moments, pairs = stream_moments(net.replace(inputs=1)), list(value_kernels(net))
    for layer in range(4):
        covariance, kernel = pairs[layer].covariance[0, :, 0], pairs[layer].kernel[0, :, 0]
        apart = ~np.eye(5, dtype=bool)
        by_pairs = np.diag(covariance).mean(), covariance[apart].mean(), np.diag(kernel).mean(), kernel[apart].mean()
        variance, correlation = moments.variance[layer], moments.correlation[layer]
        expected = variance, variance * correlation, moments.kernel[layer], moments.kernel_between_tokens[layer]
        np.testing.assert_allclose(by_pairs, expected, rtol=RTOL)


@pytest.mark.parametrize("options", [{"causal": True}, {"inputs": 2, "activation": "gelu"}])
def test_what_no_pattern_serves_has_the_statistics_of_its_tokens(options):
    net = mf.Transformer(depth=1, width=64, heads=8, tokens=4, **options)
    predicted = mf.predict(net, level="mean_field")
    measured = mf.simulate(net, draws=60, seed=1, measure=mf.TokenStatistics())
    apart = (measured.token_correlation - predicted.token_correlation) / measured.token_correlation_stderr
    assert np.abs(apart).max() < 5
    given = mf.predict(net, level="mean_field", inputs=np.random.default_rng(0).normal(size=net.input_shape) + 1)
    assert (given.token_correlation > predicted.token_correlation + 0.2).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokens": 146}, "^logits of 146 sites .* room for 145"),
        ({"tokens": 5000, "causal": False}, "the net has 5000 tokens, .* up to 4240; take fewer"),
    ],
)
def test_what_has_no_theory_says_why(options, message):
    """Before the first unit, which none of the sentences names: with many tokens it would take half a minute."""
    net = mf.Transformer(**{"depth": 2, "width": 8, "tokens": 3, "causal": True} | options)
    with pytest.raises(ValueError, match=message):
        mf.predict(net, level="mean_field")
