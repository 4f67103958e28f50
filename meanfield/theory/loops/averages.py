"""Averages over pairs of a loop's steps, for each kind of activation, in natural logarithms."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from meanfield.common.arrays import Array
from meanfield.common.gaussian_averages import Function, HermiteBasis, correlation
from meanfield.nets.activations import LINEAR
from meanfield.nets.families.loop import Loop
from meanfield.theory.kernels.power_series import power_series

# ln E[f(u) f(v)] from ln of the variances of v, of which u has the last one, and ln of the covariances.
LogAverage = Callable[[Array, Array], Array]

# A stream's variance moves little from step to step: by how much it may grow before all is set up anew.
ROOM = 1.25


class Averages(NamedTuple):
    """ln E[phi(u) phi(v)] and ln E[phi'(u) phi'(v)] over pairs of steps."""

    features: LogAverage
    gates: LogAverage


def pair_averages(loop: Loop) -> Averages:
    """The averages that this loop's activation and weights call for.

    Smooth steps that are independent meet themselves alone, so that nothing is worth keeping.
    """
    sigma = loop.sigma
    if sigma.homogeneous:
        # Linear features are the stream's, also where the correlation is below the range of a float.
        features = (lambda _, covariance: covariance) if sigma is LINEAR else _by_correlation(sigma.product, 1.0)
        return Averages(features, _by_correlation(sigma.gate_product, 0.0))
    if loop.tied:
        return Averages(*(_of_numbers(StepAverages(function).row) for function in (sigma.function, sigma.gate)))
    return Averages(*(_of_numbers(_with_the_last(average)) for average in (sigma.product, sigma.gate_product)))


def _by_correlation(average: Callable[[Array, Array, Array], Array], degree: float) -> LogAverage:
    """Of homogeneous functions, by the correlation alone: variances may lie outside the range of a float."""

    def logs(variances: Array, covariance: Array) -> Array:
        scale = (variances[-1] + variances) / 2
        ones = np.ones_like(scale)
        return np.asarray(degree * scale + np.log(average(ones, ones, np.exp(covariance - scale))))

    return logs


def _with_the_last(average: Callable[[Array, Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda variances, covariance: average(variances[-1:], variances, covariance)


def _of_numbers(average: Callable[[Array, Array], Array]) -> LogAverage:
    return lambda variances, covariance: np.log(average(np.exp(variances), np.exp(covariance)))


class StepAverages:
    """E[f(h_s) f(h_t)] for steps s = 0, 1, ... in turn and all t <= s, from variances that are appended to.

    Row s costs s power series, as the coefficients of f's Hermite series are computed once a step;
    `gaussian_averages.pair_average` would integrate anew for all steps below.
    """

    def __init__(self, function: Function) -> None:
        self._function = function
        self._basis: HermiteBasis | None = None
        self._coefficients = np.empty((0, 0))
        self._known = 0

    def row(self, variances: Array, covariance: Array) -> Array:
        """E[f(u) f(v)]: v of these variances, those of all earlier rows first, u the last of them."""
        self._learn(variances)
        _, rho = correlation(variances[-1:], variances, covariance)
        return power_series(self._coefficients[: len(variances)], rho)

    def _learn(self, variances: Array) -> None:
        """Append the coefficients of what is new; all anew where a variance outgrows the basis."""
        if self._basis is None or variances[self._known :].max(initial=0.0) > self._basis.largest:
            self._basis, self._known = HermiteBasis(self._function, ROOM * float(variances.max())), 0
        new, count = self._basis.coefficients(variances[self._known :]), len(variances)
        if self._known == 0:
            self._coefficients = np.empty((0, new.shape[1]))
        if (missing := 2 * count - len(self._coefficients)) > count:
            self._coefficients = np.concatenate([self._coefficients, np.empty((missing, new.shape[1]))])
        self._coefficients[self._known : count] = new
        self._known = count
