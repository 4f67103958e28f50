"""The ways in which four tokens coincide, and averages over two of them.

Tokens of white inputs are exchangeable. So E[Theta_{a p1, b p3} Theta_{a p2, b p4}], a and b two channels, depends only
on which of p1 .. p4 are one token: 15 patterns, written as tuples that number the tokens in the order of their first
place, (0, 0, 0, 0) to (0, 1, 2, 3). p1 and p2 are on the side of channel a, p3 and p4 on that of b.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from meanfield.common.arrays import Array


def _canonical(tokens: Sequence[int]) -> tuple[int, ...]:
    """The tokens renumbered in the order of their first place."""
    order = list(dict.fromkeys(tokens))
    return tuple(order.index(token) for token in tokens)


PATTERNS = sorted({_canonical(tokens) for tokens in product(range(4), repeat=4)})
PLACE = {pattern: place for place, pattern in enumerate(PATTERNS)}


def differ(first: int, second: int) -> Array:
    """By pattern: 0 if these two of the four tokens (counted from 1) are one, 1 if they are two."""
    return np.array([int(pattern[first - 1] != pattern[second - 1]) for pattern in PATTERNS])


def averages_over_two(tokens: int, side: int) -> Array:
    """Averages over the two tokens of one side (0: p1, p2; 1: p3, p4): (2, 2, patterns) shares of the patterns.

    The first axis says whether the two that are averaged over are one token (0) or two (1), the second whether the two
    of the other side are. Averages over two tokens are 0 where a sample has one token.
    """
    shares = np.zeros((2, 2, len(PATTERNS)))
    for apart, others in enumerate([(0, 0), (0, 1)]):
        for first, first_count in _choices(others, tokens):
            pair = (first, first)
            shares[0, apart, _place(pair, others, side)] += first_count / tokens
            for second, count in _choices((*others, first), tokens):
                if second != first and tokens > 1:
                    weight = first_count * count / (tokens * (tokens - 1))
                    shares[1, apart, _place((first, second), others, side)] += weight
    return shares


def _choices(known: Sequence[int], tokens: int) -> Iterator[tuple[int, int]]:
    """The tokens that are known, one of each, and a new one for all others, with their number."""
    named = sorted(set(known))
    yield from ((token, 1) for token in named)
    yield len(named), max(tokens - len(named), 0)


def _place(pair: tuple[int, int], others: tuple[int, int], side: int) -> int:
    return PLACE[_canonical(others + pair if side else pair + others)]
