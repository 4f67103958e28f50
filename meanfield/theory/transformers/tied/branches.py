"""What the branches of a tied stream make of the covariance between two steps: increments W x of features x.

For a step and all steps with the same weights, itself the last, a branch takes the covariance c of the values below it
between the step and the others (k, *E) and those of every other value with itself (k, *E), E as in `TokenPairs`. It
gives s E x x', s the variance of an element of its last matrix times the fan-in, and s' that of its first:

    hidden units            E sigma(u) sigma(u')             u of covariance s' c
    gated hidden units      E sigma(u) sigma(u') E w w'      u, w independent, of covariance s' c
    attention, 1/size       s' times the mean of c over the tokens that both tokens see

Attention at the scale size^(-1/2) is in `meanfield.theory.transformers.tied.softmax` for exchangeable tokens, and in
`meanfield.theory.transformers.tied.heads` for others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.activations import Activation, activation_named
from meanfield.nets.maps import Attention, Gate, Linear, Normalisation, Pointwise
from meanfield.nets.units import Unit
from meanfield.theory.transformers.mean_field import matrix_gain
from meanfield.theory.transformers.tied.heads import DrawnHeads
from meanfield.theory.transformers.tied.softmax import ExchangeableSoftmax
from meanfield.theory.transformers.tied.tokens import ExchangeableTokens, TokenPairs


class Branch(ABC):
    """What one unit of the block does."""

    @abstractmethod
    def features(self, covariance: Array, own: Array) -> Array:
        """s E x x' of a step and of all steps with its weights, (k, *E)."""


def branch_of(unit: Unit, pairs: TokenPairs, together: float) -> Branch:
    """That of a unit [normalisation,] linear, attention or activation, linear, in which so many pairs of steps meet."""
    first, inner, last = [part for part in unit.branch if not isinstance(part, Normalisation)]
    assert isinstance(first, Linear)
    assert isinstance(last, Linear)
    below, above = matrix_gain(first), matrix_gain(last)
    if isinstance(inner, Attention):
        if inner.scale == "inverse":
            return _EvenAttention(pairs, inner, below * above)
        if isinstance(pairs, ExchangeableTokens):
            return _SoftmaxAttention(ExchangeableSoftmax(pairs.tokens, below), below * above)
        size = last.weights[0].fan_in // inner.heads
        return _DrawnAttention(DrawnHeads(inner, below, size, pairs.sizes, together), below * above)
    assert isinstance(inner, Pointwise | Gate)
    return _HiddenUnits(activation_named(inner.activation), isinstance(inner, Gate), below, above)


@dataclass(frozen=True)
class _HiddenUnits(Branch):
    sigma: Activation
    gated: bool
    below: float
    above: float

    def features(self, covariance: Array, own: Array) -> Array:
        variance, between = np.array(self.below), self.below * covariance
        product = self.sigma.product(variance, variance, between)
        return self.above * (product * between if self.gated else product)


@dataclass(frozen=True)
class _EvenAttention(Branch):
    pairs: TokenPairs
    attention: Attention
    gain: float

    def features(self, covariance: Array, own: Array) -> Array:
        return self.gain * self.pairs.evenly_mixed(self.attention, covariance)


@dataclass(frozen=True)
class _SoftmaxAttention(Branch):
    softmax: ExchangeableSoftmax
    gain: float

    def features(self, covariance: Array, own: Array) -> Array:
        return self.gain * self.softmax.mixed(covariance, own)


@dataclass(frozen=True)
class _DrawnAttention(Branch):
    heads: DrawnHeads
    gain: float

    def features(self, covariance: Array, own: Array) -> Array:
        return self.gain * self.heads.mixed(covariance)
