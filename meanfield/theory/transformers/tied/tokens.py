"""What a pair of steps has over tokens: two numbers where tokens are exchangeable, a matrix where they are not."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.maps import Attention
from meanfield.theory.maps.mixing import even_shares


class TokenPairs(ABC):
    """Functions of two tokens, of a first and a second step, lie on the last axes of shape E = ``start.shape``.

    Attributes:
        start: covariance of the stream's start, E.
        sizes: how many tokens have a size of their own.
    """

    start: Array
    sizes: int

    @abstractmethod
    def same(self, pairs: Array) -> Array:
        """The values of every token with itself, (..., sizes)."""

    @abstractmethod
    def first(self, sizes: Array) -> Array:
        """Numbers of every token, (..., sizes), where they belong to the token of the first step."""

    @abstractmethod
    def second(self, sizes: Array) -> Array:
        """Numbers of every token, (..., sizes), where they belong to the token of the second step."""

    @abstractmethod
    def turned(self, pairs: Array) -> Array:
        """The values with the first step as the second."""

    @abstractmethod
    def evenly_mixed(self, attention: Attention, pairs: Array) -> Array:
        """The mean over the tokens that each of the two tokens sees."""

    @abstractmethod
    def mean_of_two(self, pairs: Array) -> float:
        """The mean over all pairs of two tokens of a sample."""


class ExchangeableTokens(TokenPairs):
    """White tokens: E = (2,), one token at both steps and two tokens."""

    sizes = 1

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self.start = np.array([1.0, 0.0])

    def same(self, pairs: Array) -> Array:
        return pairs[..., :1]

    def first(self, sizes: Array) -> Array:
        return sizes

    second = first

    def turned(self, pairs: Array) -> Array:
        return pairs

    def evenly_mixed(self, attention: Attention, pairs: Array) -> Array:
        mean = pairs @ np.array([1 / self.tokens, 1 - 1 / self.tokens])
        return np.repeat(mean[..., None], 2, axis=-1)

    def mean_of_two(self, pairs: Array) -> float:
        return float(pairs[1])


class EveryToken(TokenPairs):
    """Tokens that differ by their place or as they are given: E = (T, T)."""

    def __init__(self, start: Array) -> None:
        self.start, self.sizes = start, len(start)

    def same(self, pairs: Array) -> Array:
        return np.einsum("...ii->...i", pairs)

    def first(self, sizes: Array) -> Array:
        return sizes[..., :, None]

    def second(self, sizes: Array) -> Array:
        return sizes[..., None, :]

    def turned(self, pairs: Array) -> Array:
        return pairs.swapaxes(-1, -2)

    def evenly_mixed(self, attention: Attention, pairs: Array) -> Array:
        shares = even_shares(attention, self.sizes)
        return shares @ pairs @ shares.T

    def mean_of_two(self, pairs: Array) -> float:
        return float((pairs.sum() - np.trace(pairs)) / max(self.sizes * (self.sizes - 1), 1))
