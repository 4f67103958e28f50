"""The recursion over depth units: covariance, tangent kernel and its second moment between channels, O(1) per unit.

State of the stream: variance c_s of a token and c_s - c_d, c_d the covariance of two tokens; kernels k_s, k_d over
the width n; second moments v over n, one for each pattern of four tokens. A unit adds a f(z), f two matrices with an
inner map between them; what the inner map does to a pair function phi of the tokens is

    (O phi)(p, p') = own phi(p, p') + same mean_r phi(r, r) + apart mean_{r != r'} phi(r, r'),

with three numbers ``passing`` for p = p' and three for p != p'. With c_1, c_2 the covariances before and behind the
inner map, s_1, s_2 variances of the matrices times their fan-in, r hidden units over n, and hats for division by the
variance of a token, where the branch begins with a normalisation,

    k_1 = c_hat + s_1 k_hat,     c_f = s_2 c_2,     k_f = r c_2 + s_2 O k_1
    v_1 = s_1^2 (v_hat + k_hat k_hat),     v_f = s_2^2 (O_a O_b v_1 + fresh)
    c <- c + a^2 c_f,    k <- k + a^2 k_f,    v <- v + a^2 s_1 s_2 (O_a + O_b)(v + k k)_hat + a^4 v_f

O_a acts on tokens 1, 2 of a pattern, O_b on 3, 4; ``fresh`` is what one hidden unit, or one head, adds to itself.

Tokens of two samples stand beside this recursion of one, which they do not enter. Any token of one sample and any of
another have the covariance c_x and the kernel k_x. The second moments v_x of tokens 1, 2 of one sample and 3, 4 of
another depend on whether 1, 2 are one token and whether 3, 4 are: (2, 2). Softmaxes of two samples are independent,
and changes of their logits do not correlate, so that attention leaves c_x and k_x as they are. Of ReLU gates at four
tokens, angle a within a sample and a_x between, P(all positive) is an integral of one variable.

Source: docs/theory.md section 19.
"""

import numpy as np

from meanfield.common.compiled import compiled
from meanfield.theory.transformers.averages import AGREEMENT, CHAIN, PATTERNS, PLACE, PRODUCTS, RESPONSE, differ

COUNT = len(PATTERNS)
D12, D34, D13, D24 = differ(1, 2), differ(3, 4), differ(1, 3), differ(2, 4)
ALL_ONE, TWO_PAIRS = PLACE[0, 0, 0, 0], PLACE[0, 0, 1, 1]
THREE_ONE, ONE_THREE, PAIR_APART = PLACE[0, 0, 0, 1], PLACE[0, 0, 1, 0], PLACE[0, 0, 1, 2]


@compiled()
def evaluate(series, angle):
    """The functions at one angle in [0, pi/2], (functions,), by Clenshaw's recurrence on all of them abreast."""
    return _evaluated(series, angle, np.empty((2, series.shape[1])))


@compiled()
def _evaluated(series, angle, work):
    """`evaluate` in memory (2, functions or more) that is there: asking for new takes as long as the rest of a unit."""
    terms, count = series.shape
    x = 2.0 * (4.0 * angle / np.pi - 1.0)
    later, last = work[0, :count], work[1, :count]
    later[:] = 0.0
    last[:] = 0.0
    for term in range(terms - 1, 0, -1):
        for place in range(count):
            value = x * later[place] - last[place] + series[term, place]
            last[place] = later[place]
            later[place] = value
    for place in range(count):
        later[place] = 0.5 * x * later[place] - last[place] + series[0, place]
    return later


@compiled()
def feed_forward(angle, same, apart, table, averages, passing, fresh, work):
    """Fill ``passing`` (2, 3) and ``fresh`` (15), and return the hidden units' variance and contraction.

    ``same`` and ``apart`` are k_1 of one token and of two; ``averages`` feature variance, passed of one token, and n
    over the hidden units. ``work`` (2, functions or more) is written to.
    """
    values, kernels = _evaluated(table, angle, work), (same, apart)
    passing[:] = 0.0
    passing[0, 0], passing[1, 0] = averages[1], values[1]
    for place in range(COUNT):
        fresh[place] = averages[2] * values[2 + place] * kernels[D13[place]] * kernels[D24[place]]
    return averages[0], values[0]


@compiled()
def attention(angle, same, apart, table, variance, size, passing, fresh, work):
    """The same of heads of this size, with ``variance`` s_1 of the queries, keys and values of a token."""
    values = _evaluated(table, angle, work)
    away = 2 * np.sin(angle / 2) ** 2  # 1 - correlation
    step, gain = same - apart, variance**2 * away
    for pair in range(2):
        correlation, response = 1 - away if pair else 1.0, gain * values[RESPONSE + pair]
        share = values[AGREEMENT + pair] + correlation * response
        passing[pair, 0], passing[pair, 1], passing[pair, 2] = away * response, share, 1 - share
    turned = gain * (same * away + step), gain * (apart * away + (1 - away) * step)
    for place in range(COUNT):
        first, second = D13[place], D24[place]
        here, there = turned[first], turned[second]
        agreements = values[AGREEMENT + first] + values[AGREEMENT + second]
        responses = here * values[RESPONSE + first] + there * values[RESPONSE + second]
        value = apart * (apart + step * agreements + responses)
        value += step * (step * values[PRODUCTS + place] + there * values[PRODUCTS + COUNT + place])
        value += step * here * values[PRODUCTS + 2 * COUNT + place]
        fresh[place] = value + here * there * (values[PRODUCTS + 3 * COUNT + place] + size * values[CHAIN + place])
    agreement = values[AGREEMENT]
    return variance * (1 - away + agreement * away), variance * (agreement - values[AGREEMENT + 1])


@compiled()
def through(moments, passing, shares, side, result):
    """Fill O of one side on moments by pattern; ``shares`` are `averages_over_two` of that side."""
    single, single_apart, pair, pair_apart = 0.0, 0.0, 0.0, 0.0
    for place in range(COUNT):
        single += shares[0, 0, place] * moments[place]
        single_apart += shares[0, 1, place] * moments[place]
        pair += shares[1, 0, place] * moments[place]
        pair_apart += shares[1, 1, place] * moments[place]
    singles, pairs = (single, single_apart), (pair, pair_apart)
    for place in range(COUNT):
        own, others = (D34[place], D12[place]) if side else (D12[place], D34[place])
        value = passing[own, 0] * moments[place] + passing[own, 1] * singles[others]
        result[place] = value + passing[own, 2] * pairs[others]


@compiled()
def join_moments(moments, kernels, passing, fresh, constants, before, shares, work):
    """v behind z + a f(z), in place; ``work`` (4, 15) is written to, ``before`` divides what enters the branch."""
    first, second, _, multiplier = constants
    square, entering = multiplier**2, first / before
    seed, one_side, other_side, both = work
    for place in range(COUNT):
        seed[place] = entering * (moments[place] + kernels[D13[place]] * kernels[D24[place]])
    through(seed, passing, shares[0], 0, one_side)
    through(seed, passing, shares[1], 1, other_side)
    through(one_side, passing, shares[1], 1, both)
    for place in range(COUNT):
        within = second * (entering * both[place] + fresh[place])
        moments[place] += square * second * (one_side[place] + other_side[place] + square * within)


@compiled()
def scan(units, is_attention, tables, averages, block, normalised, shares, tokens):
    """All units, one after the other, from white tokens.

    Args: units: how many; is_attention: of the units of a block, (2,); tables: their series; averages: (2, 3) as
    `feed_forward` takes them, of attention the head size in the first place; block: (2, 4) constants (s_1, s_2, r, a);
    normalised: whether before the branch, and behind the join.

    Returns: by unit: variance and c_s - c_d of the stream (units, 2), kernels (units, 2), the means E_same and E_apart
    of k k + v over one token above and one, or two, below (units, 2), passing (units, 2, 3), and what a token is
    divided by before the branch and behind the join (units, 2).
    """
    covariances, kernel_rows, energies = np.empty((units, 2)), np.empty((units, 2)), np.empty((units, 2))
    passings, divisors = np.empty((units, 2, 3)), np.ones((units, 2))
    moments, fresh, work = np.zeros(COUNT), np.empty(COUNT), np.empty((4, COUNT))
    values = np.empty((2, max(tables[0].shape[1], tables[1].shape[1])))
    size, step, same, apart = 1.0, 1.0, 0.0, 0.0
    for unit in range(units):
        kind, passing = unit % 2, passings[unit]
        first, second, ratio, multiplier = block[kind]
        before = size if normalised[0] else 1.0
        angle = 2 * np.arcsin(np.sqrt(step / size / 2))
        k_same, k_apart = (size + first * same) / before, (size - step + first * apart) / before
        if is_attention[kind]:
            feature, contraction = attention(
                angle, k_same, k_apart, tables[kind], first, averages[kind, 0], passing, fresh, values
            )
        else:
            feature, contraction = feed_forward(
                angle, k_same, k_apart, tables[kind], averages[kind], passing, fresh, values
            )
        join_moments(moments, (same, apart), passing, fresh, block[kind], before, shares, work)
        square, lost = multiplier**2, contraction * step / size
        (own, mixed, other), (own_pair, mixed_pair, other_pair) = passing
        same += square * (ratio * feature + second * ((own + mixed) * k_same + other * k_apart))
        carried = mixed_pair * k_same + (own_pair + other_pair) * k_apart
        apart += square * (ratio * (feature - lost) + second * carried)
        step += square * second * lost
        size += square * second * feature
        after = size if normalised[1] else 1.0
        size, step, same, apart = size / after, step / after, same / after, apart / after
        for place in range(COUNT):
            moments[place] /= after**2
        covariances[unit, 0], covariances[unit, 1] = size, step
        kernel_rows[unit, 0], kernel_rows[unit, 1] = same, apart
        divisors[unit, 0], divisors[unit, 1] = before, after
        _means(same, apart, moments, tokens, energies[unit])
    return covariances, kernel_rows, energies, passings, divisors


@compiled()
def _means(same, apart, moments, tokens, result):
    """Fill k(p, p') k(p, p'') + v(p, p; p', p'') averaged over p and p' = p'', and over p and p' != p''."""
    result[0] = (same**2 + moments[ALL_ONE] + (tokens - 1) * (apart**2 + moments[TWO_PAIRS])) / tokens
    touching = 2 * same * apart + moments[THREE_ONE] + moments[ONE_THREE]
    result[1] = (touching + (tokens - 2) * (apart**2 + moments[PAIR_APART])) / tokens


@compiled()
def labels_down(top, passings, divisors, transported):
    """Covariances of the errors, summed over one token and over pairs of two, at all units from the top: (units, 2).

    ``transported`` (2,) is a^2 s_1 s_2 of the units of a block.
    """
    units = len(passings)
    sums = np.empty((units, 2))
    same, apart = top
    for unit in range(units - 1, -1, -1):
        sums[unit, 0], sums[unit, 1] = same, apart
        same, apart = same / divisors[unit, 1], apart / divisors[unit, 1]
        (own, to_same, to_apart), (own_pair, pair_to_same, pair_to_apart) = passings[unit]
        factor = transported[unit % 2] / divisors[unit, 0]
        added = own * same + to_same * same + pair_to_same * apart
        same, apart = (
            same + factor * added,
            apart + factor * (own_pair * apart + to_apart * same + pair_to_apart * apart),
        )
    return sums


NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


@compiled()
def four_gates(angle, between, is_linear):
    """The mean product of four gates, by whether those of either sample are at one token (0) or two: (2, 2)."""
    result = np.ones((2, 2))
    if is_linear:
        return result
    pair = (np.pi - angle) / (2 * np.pi)
    away, latest = 2 * np.sin(angle / 2) ** 2, np.pi / 2 - between
    total = 0.0
    for place in range(NODES.size):
        turn = latest * (1 + NODES[place]) / 2
        room = 2 * np.cos(turn) ** 2 - away
        rest = min(np.sin(turn) * away / room, 1.0) if room > 0 else 1.0
        total += WEIGHTS[place] * (0.25 + np.arcsin(rest) / (2 * np.pi))
    result[0, 0] = (np.pi - between) / (2 * np.pi)
    result[0, 1] = result[1, 0] = 0.5 - (2 * between + angle) / (4 * np.pi)
    result[1, 1] = pair**2 + latest / np.pi * total
    return result


@compiled()
def between_samples(covariances, passings, divisors, is_attention, table, averages, block, is_linear):
    """k_x k_x + v_x by unit, of one token above and one (0) or two (1) of another sample below: (units, 2).

    The first three are results of `scan`; ``table`` and ``averages`` are the feed-forward net's, ``block`` as there.
    """
    units = len(passings)
    result = np.empty((units, 2))
    covariance, kernel, size, step = 0.0, 0.0, 1.0, 1.0
    moments, seed, side, fresh = np.zeros((2, 2)), np.empty((2, 2)), np.empty((2, 2)), np.ones((2, 2))
    for unit in range(units):
        kind, passing = unit % 2, passings[unit]
        first, second, ratio, multiplier = block[kind]
        before, after = divisors[unit]
        inside, square, hidden = covariance / size, multiplier**2, (covariance + first * kernel) / before
        if is_attention[kind]:
            feature, passed, fresh[:] = first * inside, 1.0, 1.0
        else:
            values = evaluate(table, np.arccos(min(inside, 1.0)))
            feature, passed = averages[0] - values[0] * (1 - inside), values[1]
            angle = 2 * np.arcsin(np.sqrt(step / size / 2))
            fresh = averages[2] * four_gates(angle, np.arccos(min(inside, 1.0)), is_linear)
        for here in range(2):
            for there in range(2):
                seed[here, there] = first / before * (moments[here, there] + kernel**2)
        for here in range(2):
            own, same, apart = passing[here]
            for there in range(2):
                side[here, there] = own * seed[here, there] + same * seed[0, there] + apart * seed[1, there]
        for here in range(2):
            for there in range(2):
                own, same, apart = passing[there]
                both = own * side[here, there] + same * side[here, 0] + apart * side[here, 1]
                within = second * (first / before * both + fresh[here, there] * hidden**2)
                cross = side[here, there] + side[there, here]
                moments[here, there] = (moments[here, there] + square * second * (cross + square * within)) / after**2
        kernel = (kernel + square * (ratio * feature + second * passed * hidden)) / after
        covariance = (covariance + square * second * feature) / after
        size, step = covariances[unit]
        result[unit, 0], result[unit, 1] = kernel**2 + moments[0, 0], kernel**2 + moments[0, 1]
    return result
