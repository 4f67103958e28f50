"""The recursion over depth units: covariance, tangent kernel and its second moment between channels, O(1) per unit.

State of the stream: variance c_s of a token and c_s - c_d, c_d the covariance of two tokens; kernels k_s, k_d over the
width n; second moments v over n, one for each pattern of four tokens. A unit adds a f(z), f two matrices with an inner
map between them; what the inner map does to a pair function phi of the tokens is

    (O phi)(p, p') = own phi(p, p') + same mean_r phi(r, r) + apart mean_{r != r'} phi(r, r'),

with three numbers ``passing`` for p = p' and three for p != p'. With c_1, c_2 the covariances before and behind the
inner map, s_1, s_2 variances of the matrices times their fan-in, r hidden units over n, and hats for division by the
variance of a token, where the branch begins with a normalisation,

    k_1 = c_hat + s_1 k_hat,     c_f = s_2 c_2,     k_f = r c_2 + s_2 O k_1
    v_1 = s_1^2 (v_hat + k_hat k_hat),     v_f = s_2^2 (O_a O_b v_1 + fresh)
    c <- c + a^2 c_f,    k <- k + a^2 k_f,    v <- v + a^2 s_1 s_2 (O_a + O_b)(v + k k)_hat + a^4 v_f

O_a acts on tokens 1, 2 of a pattern, O_b on 3, 4; ``fresh`` is what one hidden unit, or one head, adds to itself.

Source: docs/theory.md section 19.
"""

import numpy as np
from numba import njit

from meanfield.theory.transformers.patterns import PATTERNS, PLACE, differ
from meanfield.theory.transformers.softmax import AGREEMENT, CHAIN, PRODUCTS, RESPONSE

COUNT = len(PATTERNS)
D12, D34, D13, D24 = differ(1, 2), differ(3, 4), differ(1, 3), differ(2, 4)
ALL_ONE, TWO_PAIRS = PLACE[0, 0, 0, 0], PLACE[0, 0, 1, 1]
THREE_ONE, ONE_THREE, PAIR_APART = PLACE[0, 0, 0, 1], PLACE[0, 0, 1, 0], PLACE[0, 0, 1, 2]


@njit(cache=True)
def evaluate(series, angle):
    """The functions at one angle in [0, pi/2], (functions,), by Clenshaw's recurrence on all of them abreast."""
    terms, count = series.shape
    x = 2.0 * (4.0 * angle / np.pi - 1.0)
    later, last = np.zeros(count), np.zeros(count)
    for term in range(terms - 1, 0, -1):
        for place in range(count):
            value = x * later[place] - last[place] + series[term, place]
            last[place] = later[place]
            later[place] = value
    return 0.5 * x * later - last + series[0]


@njit(cache=True)
def feed_forward(angle, kernels, table, feature_variance, passed, fresh_share):
    """Passing (2, 3), fresh (15), and the hidden units' variance and contraction; ``fresh_share`` is n over units."""
    values = evaluate(table, angle)
    passing = np.zeros((2, 3))
    passing[0, 0], passing[1, 0] = passed, values[1]
    fresh = np.empty(COUNT)
    for place in range(COUNT):
        fresh[place] = fresh_share * values[2 + place] * kernels[D13[place]] * kernels[D24[place]]
    return passing, fresh, feature_variance, values[0]


@njit(cache=True)
def attention(angle, kernels, table, variance, others):
    """The same of heads: ``variance`` s_1 of queries, keys and values of a token, ``others`` head size - 1."""
    values = evaluate(table, angle)
    apart = 2 * np.sin(angle / 2) ** 2  # 1 - correlation
    step, correlations = kernels[0] - kernels[1], (1.0, 1.0 - apart)
    passing, turned = np.empty((2, 3)), np.empty(2)
    for pair in range(2):
        agreement, response = values[AGREEMENT + pair], variance * apart * values[RESPONSE + pair]
        keys = variance * correlations[pair] * response
        passing[pair, 0] = variance * apart * response
        passing[pair, 1] = agreement + keys
        passing[pair, 2] = 1 - agreement - keys
        turned[pair] = variance**2 * apart * (kernels[pair] * apart + correlations[pair] * step)
    fresh = np.empty(COUNT)
    for place in range(COUNT):
        first, second = D13[place], D24[place]
        here, there = turned[first], turned[second]
        products = values[PRODUCTS + place :: COUNT]
        value = kernels[1] ** 2 + kernels[1] * step * (values[AGREEMENT + first] + values[AGREEMENT + second])
        value += kernels[1] * (here * values[RESPONSE + first] + there * values[RESPONSE + second])
        value += step * (step * products[0] + there * products[1] + here * products[2])
        fresh[place] = value + here * there * (products[3] + (others + 1) * values[CHAIN + place])
    agreement, spread = values[AGREEMENT], values[AGREEMENT] - values[AGREEMENT + 1]
    return passing, fresh, variance * (1 - apart + agreement * apart), variance * spread


@njit(cache=True)
def through(moments, passing, shares, side):
    """O of one side on moments by pattern; ``shares`` are `averages_over_two` of that side."""
    averages, result = np.zeros((2, 2)), np.empty(COUNT)
    for place in range(COUNT):
        for others in range(2):
            averages[0, others] += shares[0, others, place] * moments[place]
            averages[1, others] += shares[1, others, place] * moments[place]
    for place in range(COUNT):
        pair, others = (D34[place], D12[place]) if side else (D12[place], D34[place])
        own, same, apart = passing[pair]
        result[place] = own * moments[place] + same * averages[0, others] + apart * averages[1, others]
    return result


@njit(cache=True)
def _between_pairs(kernels):
    """k(p1, p3) k(p2, p4) by pattern."""
    product = np.empty(COUNT)
    for place in range(COUNT):
        product[place] = kernels[D13[place]] * kernels[D24[place]]
    return product


@njit(cache=True)
def joined(covariance, kernels, moments, inner, constants, shares, before):
    """The state behind z + a f(z), for the inner map's four results and (s_1, s_2, r, a) in ``constants``."""
    passing, fresh, feature_variance, contraction = inner
    first, second, ratio, multiplier = constants
    square = multiplier**2
    hidden = _hidden_kernels(covariance, kernels, first, before)
    feature = np.array([feature_variance, feature_variance - contraction * covariance[1] / covariance[0]])
    added = np.empty(2)
    for pair in range(2):
        passed = passing[pair, 0] * hidden[pair] + passing[pair, 1] * hidden[0] + passing[pair, 2] * hidden[1]
        added[pair] = ratio * feature[pair] + second * passed
    seed = (moments + _between_pairs(kernels)) * (first / before)
    one_side = through(seed, passing, shares[0], 0)
    cross = one_side + through(seed, passing, shares[1], 1)
    within = second**2 * (first / before * through(one_side, passing, shares[1], 1) + fresh)
    grown = covariance + square * second * np.array([feature[0], feature[0] - feature[1]])
    return grown, kernels + square * added, moments + square * second * cross + square**2 * within


@njit(cache=True)
def _hidden_kernels(covariance, kernels, first, before):
    """k_1 of one token and of two."""
    hidden = first * kernels
    hidden[0] += covariance[0]
    hidden[1] += covariance[0] - covariance[1]
    return hidden / before


@njit(cache=True)
def scan(start, units, is_attention, tables, hidden, block, normalised, shares, tokens):
    """All units, one after the other.

    Args: start: (c_s, c_s - c_d); units: how many; is_attention: of the units of a block, (2,); tables: their series;
    hidden: (2, 3): feature variance, passed and fresh share of an FFN, head size - 1 in the first place of attention;
    block: (2, 4) constants (s_1, s_2, r, a); normalised: whether before the branch, and behind the join.

    Returns: by unit: variance and c_s - c_d of the stream (units, 2), kernels (units, 2), the means E_same and E_apart
    of k k + v over one token above and one, or two, below (units, 2), passing (units, 2, 3), and what a token is
    divided by before the branch and behind the join (units, 2).
    """
    covariances, kernel_rows, energies = np.empty((units, 2)), np.empty((units, 2)), np.empty((units, 2))
    passings, divisors = np.empty((units, 2, 3)), np.ones((units, 2))
    covariance, kernels, moments = start.copy(), np.zeros(2), np.zeros(COUNT)
    for unit in range(units):
        kind = unit % 2
        angle = 2 * np.arcsin(np.sqrt(covariance[1] / covariance[0] / 2))
        if normalised[0]:
            divisors[unit, 0] = covariance[0]
        seen = _hidden_kernels(covariance, kernels, block[kind, 0], divisors[unit, 0])
        if is_attention[kind]:
            inner = attention(angle, seen, tables[kind], block[kind, 0], hidden[kind, 0])
        else:
            inner = feed_forward(angle, seen, tables[kind], hidden[kind, 0], hidden[kind, 1], hidden[kind, 2])
        covariance, kernels, moments = joined(
            covariance, kernels, moments, inner, block[kind], shares, divisors[unit, 0]
        )
        if normalised[1]:
            size = covariance[0]
            divisors[unit, 1] = size
            covariance, kernels, moments = covariance / size, kernels / size, moments / size**2
        covariances[unit], kernel_rows[unit], passings[unit] = covariance, kernels, inner[0]
        energies[unit] = _means(kernels, moments, tokens)
    return covariances, kernel_rows, energies, passings, divisors


@njit(cache=True)
def _means(kernels, moments, tokens):
    """k(p, p') k(p, p'') + v(p, p; p', p'') averaged over p and p' = p'', and over p and p' != p''."""
    same, apart = kernels
    all_alike = same**2 + moments[ALL_ONE]
    result = np.empty(2)
    result[0] = (all_alike + (tokens - 1) * (apart**2 + moments[TWO_PAIRS])) / tokens
    touching = 2 * same * apart + moments[THREE_ONE] + moments[ONE_THREE]
    result[1] = (touching + (tokens - 2) * (apart**2 + moments[PAIR_APART])) / tokens
    return result


@njit(cache=True)
def labels_down(top, passings, divisors, transported):
    """Covariances of the errors, summed over one token and over pairs of two, at all units from the top: (units, 2).

    ``transported`` (2,) is a^2 s_1 s_2 of the units of a block.
    """
    units = len(passings)
    sums, here = np.empty((units, 2)), top.copy()
    for unit in range(units - 1, -1, -1):
        sums[unit] = here
        here = here / divisors[unit, 1]
        own, same, apart = passings[unit, :, 0], passings[unit, :, 1], passings[unit, :, 2]
        factor = transported[unit % 2] / divisors[unit, 0]
        carried = np.array([own[0] * here[0] + np.sum(same * here), own[1] * here[1] + np.sum(apart * here)])
        here = here + factor * carried
    return sums
