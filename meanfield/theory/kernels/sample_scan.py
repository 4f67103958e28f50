"""Tokens of two samples, beside the recursion of one (`meanfield.theory.kernels.token_scan`), which they do not enter.

Any token of one sample and any of another have the covariance c_x and the kernel k_x. The second moments v_x of tokens
1, 2 of one sample and 3, 4 of another depend on whether 1, 2 are one token and whether 3, 4 are: (2, 2). Softmaxes of
two samples are independent, and changes of their logits do not correlate, so that attention leaves c_x and k_x as they
are. Of ReLU gates at four tokens, angle a within a sample and a_x between, P(all positive) is an integral of one
variable.

Source: docs/theory.md section 19.
"""

import numpy as np

from meanfield.common.compiled import compiled
from meanfield.theory.kernels.token_scan import evaluate

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
