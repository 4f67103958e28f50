"""The mean field of Transformers: token by token without patterns, for one token by hand, and its slopes in depth."""

from collections import Counter
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.special import ndtr

import meanfield as mf
from meanfield.theory.transformers.averages import PATTERNS, PLACE, averages_over_two
from meanfield.theory.transformers.terms import pair_statistics, stream_moments


@cache
def _orthant(counts, within, between):
    """P(Gaussians at so many points of every sample are positive): those of a sample correlate by ``within``.

    Others by ``between``. Averaged over what all of them share, and then over what those of a sample share.
    """
    nodes = np.linspace(-8, 8, 321)
    weights = np.exp(-(nodes**2) / 2)
    weights /= weights.sum()
    shared = np.sqrt(between) * nodes[:, None] + np.sqrt(max(within - between, 0.0)) * nodes
    positive = ndtr(shared / np.sqrt(1 - within))
    return np.prod([positive**count @ weights for count in counts], axis=0) @ weights


def _token_by_token(net):
    """Variance, overlap energy and label term of a net of uniform attention and ReLU, by arrays over all tokens.

    c, K are (B T, B T) and V has four such axes, with no use of the width's normalisation, nor of patterns.
    """
    n, tokens, q = net.width, net.tokens, 0.5
    points = net.inputs * tokens
    shared = 2 * net.depth if net.scaling == "init" else 1
    a2, ratio, pre = net.multiplier**2, net.ffn, net.norm == "pre"
    c, kernel, cross = np.eye(points), np.zeros((points,) * 2), np.zeros((points,) * 4)
    mean = np.kron(np.eye(net.inputs), np.full((tokens, tokens), 1 / tokens))
    states, sides = [], []
    for unit in range(2 * net.depth):
        size = c[0, 0] if pre else 1.0
        ch, kh = c / size, kernel / size
        square = np.einsum("ac,bd->abcd", kernel, kernel) / n + cross
        own, first = n * ch + kh / shared, ch / shared
        if unit % 2 == 0:

            def side(v, axes):
                turns = "abcd,ae,bf->efcd" if axes == "ab" else "abcd,ce,df->abef"
                return np.einsum(turns, v, mean, mean)

            c_hidden, k_hidden = mean @ first @ mean, mean @ own @ mean
            fresh = np.einsum("ac,bd->abcd", k_hidden, k_hidden) / n
            above, gates, own_two = 1 / shared, None, n * c_hidden
        else:
            rho = np.clip(ch, 0, 1)
            angle = np.arccos(rho)
            gates = (np.pi - angle) / (2 * np.pi)
            c_hidden = (np.sin(angle) + rho * (np.pi - angle)) / (2 * np.pi) / shared

            def side(v, axes, gates=gates):
                return v * (gates[:, :, None, None] if axes == "ab" else gates)

            four, correlations = np.empty((points,) * 4), (float(rho[0, 1]), float(rho[0, -1] * (net.inputs > 1)))
            for places in product(range(points), repeat=4):
                counts = sorted(Counter(place // tokens for place in set(places)).values())
                four[places] = q if counts == [1] else _orthant(tuple(counts), *correlations)
            fresh = four * np.einsum("ac,bd->abcd", own, own) / (ratio * n)
            k_hidden, above, own_two = gates * own, 1 / (q * shared), ratio * n * c_hidden
        one_side = (side(square, "ab") + side(square, "cd")) * above / shared / size
        both = above**2 * (side(side(square, "ab"), "cd") / size**2 / shared**2 + fresh)
        c, kernel = c + a2 * above * c_hidden, kernel + a2 * (own_two + above * k_hidden)
        cross = cross + a2 * one_side + a2**2 * both
        after = 1.0 if pre else c[0, 0]
        c, kernel, cross = c / after, kernel / after, cross / after**2
        states.append((c, kernel, cross))
        sides.append((gates, above / shared / size, after))
    return states, _labels(net, states, sides, mean)


def _labels(net, states, sides, mean):
    tokens, n, samples = net.tokens, net.width, net.inputs
    shares = np.full(tokens, 1 / tokens) if net.readout == "pooled" else np.eye(tokens)[-1]
    errors = net.head_variance / net.outputs / samples**2 * np.kron(np.eye(samples), np.outer(shares, shares))
    errors = errors / (states[-1][0][0, 0] if net.norm == "pre" else 1.0)
    terms = []
    for (_, kernel, cross), (gates, factor, after) in zip(states[::-1], sides[::-1], strict=True):
        pairs = np.einsum("ac,ad->acd", kernel, kernel) + n * np.einsum("aacd->acd", cross)
        terms.append(np.einsum("cd,acd->", errors, pairs) / len(kernel))
        errors = errors / after
        moved = mean @ errors @ mean if gates is None else gates * errors
        errors = errors + net.multiplier**2 * factor * moved
    overlap = [np.mean(kernel**2 / n + np.einsum("aacc->ac", cross)) for _, kernel, cross in states]
    return np.array(overlap), np.array(terms[::-1])


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize(
    "options",
    [
        {"tokens": 4},
        {"tokens": 2, "readout": "last", "ffn": 0.5, "head": "fan_in"},
        {"tokens": 3, "scaling": "init", "normalisation": "rms", "head": "mup"},
        {"tokens": 4, "scaling": "multiplier_sqrt", "readout": "last"},
        {"tokens": 3, "scaling": "multiplier_linear", "rotary": True, "heads": 2},
        {"tokens": 2, "inputs": 2},
        {"tokens": 2, "inputs": 3, "readout": "last", "scaling": "multiplier_sqrt"},
    ],
)
def test_patterns_stand_for_all_fours_of_tokens(norm, options):
    net = mf.Transformer(depth=3, width=12, outputs=2, attention_scale="inverse", norm=norm, **options)
    states, (overlap, label) = _token_by_token(net)
    predicted = mf.predict(net, level="mean_field")
    np.testing.assert_allclose(predicted.stream_variance, [c[0, 0] for c, _, _ in states], rtol=1e-12)
    np.testing.assert_allclose(predicted.token_correlation, [c[0, 1] / c[0, 0] for c, _, _ in states], rtol=1e-12)
    np.testing.assert_allclose(predicted.overlap_energy, overlap, rtol=1e-9)
    np.testing.assert_allclose(predicted.label_term, label, rtol=1e-9)
    np.testing.assert_allclose(predicted.label_learning_rate_scale, label.mean() ** -0.5, rtol=1e-9)
    kernels = stream_moments(net)
    np.testing.assert_allclose(kernels.kernel, [kernel[0, 0] for _, kernel, _ in states], rtol=1e-12)
    np.testing.assert_allclose(kernels.kernel_between_tokens, [kernel[0, 1] for _, kernel, _ in states], rtol=1e-12)


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("tokens", [2, 3, 6])
def test_averages_over_two_tokens_count_every_choice(tokens, side):
    shares = averages_over_two(tokens, side)
    rng = np.random.default_rng(0)
    values = rng.normal(size=len(PATTERNS))
    for apart, others in enumerate([(0, 0), (0, 1)]):
        same, different = [], []
        for pair in product(range(tokens), repeat=2):
            four = others + pair if side else pair + others
            order = list(dict.fromkeys(four))
            value = values[PLACE[tuple(order.index(token) for token in four)]]
            (same if pair[0] == pair[1] else different).append(value)
        np.testing.assert_allclose(shares[:, apart] @ values, [np.mean(same), np.mean(different)], rtol=1e-12)


SLOPES = {
    "post": [-1.2124, -1.3324, -1.4082, -1.4517, -1.4752],
    "pre": [-1.0082, -0.9950, -0.9514, -0.8998, -0.8510, -0.8089],
}


def _slopes(norm, depths):
    nets = [mf.Transformer(depth=depth // 2, width=64, tokens=1, norm=norm) for depth in depths]
    scales = [float(mf.predict(net, level="mean_field").log_label_learning_rate_scale) for net in nets]
    return np.diff(scales) / np.diff(np.log(depths))


def _one_token_by_hand(norm, depth):
    """eta* of L units from section 6's rule matrix by matrix: n = 1, linear two-layer branch, then one with ReLU."""
    c, k, v, energies, factors = 1.0, 0.0, 0.0, [], []
    for unit in range(depth):
        hat = c if norm == "pre" else 1.0
        first = c / hat + k / hat
        within, seed = (v + k * k) / hat**2, (v + k * k) / hat
        if unit % 2 == 0:
            second, two = first, within + first**2
            own = c / hat
        else:  # four hidden units per channel, gates of mean 1/2
            second, two, own = first, within + 2 * first**2 / 4, 4 * c / hat / 2
        c, k, v = c + c / hat, k + own + second, v + 2 * seed + two
        size = 1.0 if norm == "pre" else c
        factors.append((size, 1 / hat))
        c, k, v = c / size, k / size, v / size**2
        energies.append(k * k + v)
    above = 1 / c if norm == "pre" else 1.0
    total = 0.0
    for energy, (size, below) in zip(energies[::-1], factors[::-1], strict=True):
        total += above * energy
        above = above / size * (1 + below)
    return (total / depth) ** -0.5


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_one_token_by_hand_and_its_slopes(norm):
    depths = [4 * 2**power for power in range(len(SLOPES[norm]) + 1)]
    hand = np.log([_one_token_by_hand(norm, depth) for depth in depths])
    slopes = _slopes(norm, depths)
    np.testing.assert_allclose(slopes, np.diff(hand) / np.diff(np.log(depths)), rtol=1e-9)
    np.testing.assert_allclose(slopes, SLOPES[norm], atol=6e-5)


def test_pre_norm_has_no_power_of_the_depth_within_reach():
    near, far = _slopes("pre", [1000, 2000, 20000])
    assert -0.74 < near < -0.70
    assert near + 0.02 < far < -0.62


def test_statistics_of_pairs_are_of_cosines():
    """Two samples of two tokens of unequal sizes: 1/2 and -1/4, whatever the sizes; nothing of two samples counts."""
    covariance = np.full((2, 2, 2, 2), 9.0)
    covariance[0, :, 0] = [[4.0, 1.0], [1.0, 1.0]]
    covariance[1, :, 1] = [[16.0, -1.0], [-1.0, 1.0]]
    assert pair_statistics(covariance) == pytest.approx((22 / 4, (1 / 2 - 1 / 4) / 2))
