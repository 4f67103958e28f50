"""Averages over pairs of a loop's steps, for each kind of activation, in natural logarithms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.activations import LINEAR, Activation
from meanfield.nets.families.loop import Loop
from meanfield.theory.loops.step_averages import StepAverages


class Averages(Protocol):
    """Logarithms of averages over pairs of steps; v has these variances, u the last of them, all as logarithms."""

    def features(self, variances: Array, covariance: Array) -> Array:
        """ln E[phi(u) phi(v)]."""

    def gates(self, variances: Array, covariance: Array) -> Array:
        """ln E[phi'(u) phi'(v)]."""


@dataclass(frozen=True)
class HomogeneousAverages:
    """Of ReLU and linear streams, by the correlation alone: variances may lie outside the range of a float."""

    activation: Activation

    def features(self, variances: Array, covariance: Array) -> Array:
        if self.activation is LINEAR:
            return covariance  # also where the correlation is below the range of a float
        scale = (variances[-1] + variances) / 2
        return scale + np.log(self.activation.product(*self._correlated(covariance - scale)))

    def gates(self, variances: Array, covariance: Array) -> Array:
        scale = (variances[-1] + variances) / 2
        return np.log(self.activation.gate_product(*self._correlated(covariance - scale)))

    def _correlated(self, log_correlation: Array) -> tuple[Array, Array, Array]:
        ones = np.ones_like(log_correlation)
        return ones, ones, np.exp(log_correlation)


class SmoothAverages:
    """Of smooth activations in tied loops, where every step meets all earlier ones."""

    def __init__(self, activation: Activation) -> None:
        self._features, self._gates = StepAverages(activation.function), StepAverages(activation.gate)

    def features(self, variances: Array, covariance: Array) -> Array:
        return np.log(self._features.row(np.exp(variances), np.exp(covariance)))

    def gates(self, variances: Array, covariance: Array) -> Array:
        return np.log(self._gates.row(np.exp(variances), np.exp(covariance)))


@dataclass(frozen=True)
class SmoothPairs:
    """Of smooth activations in independent stacks, where a step meets itself alone and nothing is worth keeping."""

    activation: Activation

    def features(self, variances: Array, covariance: Array) -> Array:
        return np.log(self.activation.product(np.exp(variances[-1:]), np.exp(variances), np.exp(covariance)))

    def gates(self, variances: Array, covariance: Array) -> Array:
        return np.log(self.activation.gate_product(np.exp(variances[-1:]), np.exp(variances), np.exp(covariance)))


def pair_averages(loop: Loop) -> Averages:
    """The averages that this loop's activation and weights call for."""
    if loop.sigma.homogeneous:
        return HomogeneousAverages(loop.sigma)
    return SmoothAverages(loop.sigma) if loop.tied else SmoothPairs(loop.sigma)
