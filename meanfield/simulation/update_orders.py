"""The change of a stream by the order of the block's own updates in it (P1 eqs. 5, 26, appendix B.2).

In a linear net, with W -> W + Delta W in every matrix,

    Delta h_s = Delta h_0 + sum_{j=0}^k epsilon_j(s)
    epsilon_j(s) = sum_{l<=s} a_l [terms with j factors Delta W_l^(i) in block l] applied to h_{l-1} + Delta h_{l-1}

but for j = 0, where W_l^(k) .. W_l^(1) is applied to Delta h_{l-1}: what earlier blocks have changed, carried along.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meanfield.nets.block_net import BlockNet
from meanfield.simulation.block_passes import Parameters

Array = NDArray[np.float64]


def split_by_order(net: BlockNet, before: Parameters, after: Parameters, inputs: Array) -> tuple[Array, Array]:
    """(Delta h_0, epsilon_0 .. epsilon_k), (n, B) and (k + 1, L, n, B), the latter for s = 1 .. L.

    Their sum is Delta h_s to rounding; biases, if any, count as matrices of their own do: one factor each.

    Raises:
        ValueError: a net that is not linear, whose change is not a polynomial in the updates.
    """
    if net.activation != "linear":
        raise ValueError(f"the net is {net.activation}; only linear nets split by the order of their updates")
    old = net.multipliers[0] * _affine(before, 0, inputs)
    moved = first = net.multipliers[0] * _affine(after, 0, inputs) - old
    orders = np.zeros((net.block_depth + 1, net.depth, *old.shape))
    for block in range(net.depth):
        places = range(1 + block * net.block_depth, 1 + (block + 1) * net.block_depth)
        terms = net.multipliers[1] * _block_terms(before, after, places, old + moved)
        passed = old
        for place in places:
            passed = _affine(before, place, passed)
        terms[0] -= net.multipliers[1] * passed
        orders[:, block] = terms + (orders[:, block - 1] if block else 0.0)
        old, moved = old + net.multipliers[1] * passed, first + orders[:, block].sum(axis=0)
    return first, orders


def _block_terms(before: Parameters, after: Parameters, places: range, seen: Array) -> Array:
    """The block applied to what it sees now, by the number of updates in each term, (k + 1, n, B)."""
    terms = [seen]
    for place in places:
        kept = [_linear(before, place, term) for term in terms]
        changed = [(after.matrices[place] - before.matrices[place]) @ term for term in terms]
        if before.biases:
            kept[0] = kept[0] + before.biases[place]
            changed[0] = changed[0] + after.biases[place] - before.biases[place]
        joined = [kept[0], *(up + own for up, own in zip(kept[1:], changed[:-1], strict=True)), changed[-1]]
        terms = joined
    return np.stack(terms)


def _linear(given: Parameters, place: int, seen: Array) -> Array:
    return given.matrices[place] @ seen


def _affine(given: Parameters, place: int, seen: Array) -> Array:
    found = given.matrices[place] @ seen
    return found + given.biases[place] if given.biases else found
