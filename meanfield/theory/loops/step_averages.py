"""Averages of a smooth function over pairs of a loop's steps: a power series, its coefficients computed once a step."""

from __future__ import annotations

import numpy as np

from meanfield.common.arrays import Array
from meanfield.common.gaussian_averages import Function, HermiteBasis, correlation
from meanfield.theory.kernels.power_series import power_series

# A stream's variance moves little from step to step: by how much it may grow before all is set up anew.
ROOM = 1.25


class StepAverages:
    """E[f(h_s) f(h_t)] for steps s = 0, 1, ... in turn and all t <= s, from variances that are appended to.

    Row s costs s power series, where `gaussian_averages.pair_average` would integrate anew for all steps below.
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
        new = self._basis.coefficients(variances[self._known :])
        count = len(variances)
        if self._known == 0:
            self._coefficients = np.empty((2 * count, new.shape[1]))
        elif count > len(self._coefficients):
            room = np.empty((2 * count, new.shape[1]))
            room[: self._known] = self._coefficients[: self._known]
            self._coefficients = room
        self._coefficients[self._known : count] = new
        self._known = count
