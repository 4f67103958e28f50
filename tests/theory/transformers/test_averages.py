"""What attention and activations do to pairs and fours of tokens: drawn Gaussians, and heads drawn one by one."""

from functools import partial

import numpy as np
import pytest
from scipy.special import softmax

from meanfield.nets.activations import activation_named
from meanfield.nets.maps import Gate, Pointwise
from meanfield.theory.token_scan import attention, evaluate
from meanfield.theory.transformers.averages import (
    PATTERNS,
    _row_averages_at,
    _row_normals,
    _RowSums,
    hidden_averages,
    softmax_averages,
    uniform_averages,
)
from tests.statistics import consistent

VARIANCE, RHO = 0.8, 0.6
DRAWS = 100_000


def _tokens(rng, rho, shape):
    """Four Gaussians of variance 1 that correlate by rho, (4, *shape)."""
    return np.sqrt(rho) * rng.normal(size=shape) + np.sqrt(1 - rho) * rng.normal(size=(4, *shape))


@pytest.mark.parametrize("inner", [Pointwise(name) for name in ("relu", "linear", "gelu", "tanh")] + [Gate("silu")])
def test_hidden_units_are_those_of_drawn_gaussians(inner):
    rng, sigma = np.random.default_rng(1), activation_named(inner.activation)
    u, w = (np.sqrt(VARIANCE) * _tokens(rng, RHO, (DRAWS,)) for _ in range(2))
    features, gates = sigma.function(u), sigma.gate(u)

    def passed(i, j):
        if isinstance(inner, Pointwise):
            return gates[i] * gates[j]
        return gates[i] * gates[j] * w[i] * w[j] + features[i] * features[j]

    values = features * w if isinstance(inner, Gate) else features
    drawn = [values[0] ** 2, passed(0, 0), values[0] * (values[0] - values[1]) / (1 - RHO), passed(0, 1)]
    drawn += [passed(p1, p3) * passed(p2, p4) for p1, p2, p3, p4 in PATTERNS]
    drawn = np.array(drawn)
    averages = hidden_averages(inner, VARIANCE)
    expected = np.array([averages.feature_variance, averages.passed, *evaluate(averages.series, float(np.arccos(RHO)))])
    stderr = drawn.std(axis=1) / np.sqrt(DRAWS) + 1e-12
    assert consistent(drawn.mean(axis=1) - expected, stderr, DRAWS)
    nearer = np.array([averages.feature_variance, averages.passed, *evaluate(averages.series, float(np.arccos(0.7)))])
    if inner.activation != "linear":
        assert not consistent(drawn.mean(axis=1) - nearer, stderr, DRAWS)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.2, np.pi / 2])
def test_series_hold_to_the_ends(angle):
    """ReLU: its contraction and its pairs in closed form, and gates of one token at angle 0."""
    averages = hidden_averages(Pointwise("relu"), 1.0)
    contraction, pair, *fresh = evaluate(averages.series, angle)
    assert pair == pytest.approx((np.pi - angle) / (2 * np.pi), rel=1e-12)
    lost = (np.pi - np.sin(angle) - (np.pi - angle) * np.cos(angle)) / (2 * np.pi)
    assert contraction * (1 - np.cos(angle)) == pytest.approx(lost, rel=1e-9, abs=1e-15)
    if angle == 0:
        np.testing.assert_allclose(fresh, 0.5, rtol=1e-12)


TOKENS, HEADS = 4, 40_000
KERNEL = (1.7, 0.4)  # of queries, keys and values: one token, and two


def _heads(rng, variance):
    """Rows A (heads, T, T), their derivatives D (heads, T, T, T), and values (heads, T) of two channels."""
    common, single = rng.normal(size=(HEADS, 1, TOKENS)), rng.normal(size=(HEADS, TOKENS, TOKENS))
    rows = variance * np.sqrt(1 - RHO) * (np.sqrt(RHO) * common + np.sqrt(1 - RHO) * single)
    shares = softmax(rows, axis=2)
    turned = shares[..., None] * np.eye(TOKENS) - shares[..., None] * shares[:, :, None]
    return shares, turned, [np.sqrt(variance) * _tokens(rng, RHO, (HEADS,)).T for _ in range(2)]


def _head_kernel(variance, shares, turned, here, there, row, column):
    """Theta between channels of one head at tokens ``row`` and ``column``, given rows and values: (heads,).

    Its own value part is left out where the channels (``here``, ``there``) are two.
    """
    covariance = np.full((TOKENS, TOKENS), RHO) + (1 - RHO) * np.eye(TOKENS)
    kernel = np.full((TOKENS, TOKENS), KERNEL[1]) + (KERNEL[0] - KERNEL[1]) * np.eye(TOKENS)
    logits = variance * (kernel[row, column] * covariance + covariance[row, column] * kernel)
    moved = np.einsum("hk,hkr,rs,hls,hl->h", here, turned[:, row], logits, turned[:, column], there, optimize=True)
    if here is not there:
        return moved
    return moved + np.einsum("hk,kl,hl->h", shares[:, row], kernel, shares[:, column])


@pytest.mark.parametrize(("variance", "size", "other"), [(VARIANCE, 30, 1), (2.0, 2, 1), (2.0, 3, 2)])
def test_heads_hand_on_what_drawn_heads_do(variance, size, other):
    """Mean kernel of a channel with itself, and the second moments that channels of one head have, by pattern."""
    shares, turned, (first, second) = _heads(np.random.default_rng(2), variance)
    kernel = partial(_head_kernel, variance, shares, turned)
    passing, fresh = np.empty((2, 3)), np.empty(len(PATTERNS))
    table = softmax_averages(TOKENS, variance**2)
    work = np.empty((2, table.shape[1]))
    attention(float(np.arccos(RHO)), *KERNEL, table, variance, size, passing, fresh, work)
    means = passing[:, 0] * KERNEL + passing[:, 1] * KERNEL[0] + passing[:, 2] * KERNEL[1]
    drawn = [kernel(first, first, 0, column) for column in (0, 1)]
    for p1, p2, p3, p4 in PATTERNS:
        own = [kernel(first, first, *pair) for pair in ((p1, p3), (p2, p4))]
        between = [kernel(first, second, *pair) for pair in ((p1, p3), (p2, p4))]
        drawn.append(own[0] * own[1] + (size - 1) * between[0] * between[1])
    drawn = np.array(drawn)
    stderr = drawn.std(axis=1) / np.sqrt(HEADS)
    predicted = np.array([*means, *fresh])
    assert consistent(drawn.mean(axis=1) - predicted, stderr, HEADS, 2e-3 * np.abs(predicted))
    attention(float(np.arccos(RHO)), *KERNEL, table, variance, other, passing, fresh, work)
    assert not consistent(drawn.mean(axis=1)[2:] - fresh, stderr[2:], HEADS, 2e-3 * np.abs(fresh))


def test_products_of_rows_are_those_of_derivatives_written_out():
    """D = diag(A) - A A^T of rows that are drawn, and traces of their products, for all ways in which rows are one."""
    rows = softmax(np.random.default_rng(3).normal(size=(4, 1, 5)), axis=2)
    sums = _RowSums(rows)
    for pattern in PATTERNS:
        a1, a2, a3, a4 = (rows[row, 0] for row in pattern)
        d1, d2, d3, d4 = (np.diag(row) - np.outer(row, row) for row in (a1, a2, a3, a4))
        here, there = np.trace(d1 @ d3), np.trace(d2 @ d4)
        both = here * there + np.trace(d1 @ d3 @ d2 @ d4)
        expected = [a1 @ a3 * (a2 @ a4), a1 @ a3 * there, here * (a2 @ a4), both, np.trace(d1 @ d3 @ d4 @ d2)]
        np.testing.assert_allclose(sums.products(*pattern), expected, rtol=1e-12)


def test_the_series_of_softmax_averages_holds_between_its_nodes():
    """At 16 tokens: by 1e-5; series of degree 8 and 5 would be 8e-4 and 1e-2 off here."""
    angle = 1.175
    between = _row_averages_at(_row_normals(16), 1.0, angle)
    np.testing.assert_allclose(evaluate(softmax_averages(16, 1.0), angle), between, rtol=1e-4)


def test_logits_that_vanish_are_uniform():
    small = evaluate(softmax_averages(3, 1e-12), 0.7)
    uniform = evaluate(uniform_averages(3), 0.7)
    assert np.abs(small[:2] - uniform[:2]).max() < 1e-6
    assert np.abs(small[4:19] - uniform[4:19]).max() < 1e-6
