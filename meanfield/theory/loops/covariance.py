"""The covariance of a loop's stream at infinite width: an exact recursion, row by row.

At N -> infinity the entries of h_0 and of the r_s = W phi(h_s) are jointly Gaussian, r independent of h_0, so that

    Q_ls = H_0 + eps^2 sum_{a<l, b<s} Sig_ab,    Sig_ab = sigma_W^2 E[phi(h_a) phi(h_b)] at covariance Q,

over all pairs in tied loops, over a = b alone if every step has a matrix of its own (docs/theory.md section 11; Wang et
al. 2026, appendix C).
Row l of Sig needs row l of Q alone, and row l + 1 of Q the sums of Sig's columns: O(L^2) work, O(L) memory. All is in
natural logarithms: nothing overflows where energies grow like exp(L), and C_l = H_l - H_0 keeps its digits where it is
far below H_0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log

import numpy as np

from meanfield.common.arrays import Array
from meanfield.common.gaussian_averages import LARGEST_VARIANCE
from meanfield.common.machine import LONGEST, progress, seconds_refusal
from meanfield.nets.families.loop import Loop
from meanfield.theory.loops.averages import Averages, pair_averages

# Of a processor for a pair of steps, of activations whose averages are closed and of others.
CLOSED_SECONDS, SMOOTH_SECONDS = 5e-7, 2e-5


class PairSum:
    """P_ls = sum of S_ab over the pairs (a < l, b < s) that share a matrix; logarithms of positive numbers.

    In tied loops every pair counts, and rows are S_l0 .. S_ll and P_l0 .. P_ll. In independent steps a = b alone does,
    so that P_ls = P_mm at m = min(l, s), and rows are the diagonal element.
    """

    def __init__(self, loop: Loop) -> None:
        self._tied, self._columns = loop.tied, np.full(loop.depth if loop.tied else 1, -np.inf)

    def add(self, row: Array) -> Array:
        """Row l + 1 of P from row l of S."""
        if not self._tied:
            self._columns = np.logaddexp(self._columns, row)
            return self._columns
        last = len(row) - 1
        self._columns[:last] = np.logaddexp(self._columns[:last], row[:last])
        self._columns[last] = np.logaddexp.reduce(row)  # S is symmetric: the new column down to its diagonal
        return np.concatenate([[-np.inf], np.logaddexp.accumulate(self._columns[: last + 1])])


@dataclass(frozen=True)
class StreamStep:
    """Step s: what makes h_s of h_{s-1}, as logarithms over t = 0 .. s-1 (independent steps: t = s-1 alone).

    Attributes:
        averages: of pairs of steps.
        variances: H_t.
        covariance: Q_{s-1,t}.
        features: E[phi(h_{s-1}) phi(h_t)].
        correlation: Q_st - H_0 at t = 0 .. s (independent steps: t = s); its last element is C_s.
    """

    averages: Averages
    variances: Array
    covariance: Array
    features: Array
    correlation: Array

    @property
    def gates(self) -> Array:
        """Logarithm of E[phi'(h_{s-1}) phi'(h_t)]."""
        return self.averages.gates(self.variances, self.covariance)


def steps(loop: Loop, initial_energy: float = 1.0) -> Iterator[StreamStep]:
    """Yield steps 1 .. L of the loop at infinite width, from h_0 of variance ``initial_energy``.

    Raises:
        ValueError: the variance of the stream of a smooth activation leaves what its averages are computed for; tied
            steps that take more than an hour.
    """
    if why := time_refusal(loop):
        raise ValueError(why)
    start, sums, scale = log(initial_energy), PairSum(loop), increment_scale(loop)
    variances, covariance, averages = np.full(loop.depth + 1, start), np.array([start]), pair_averages(loop)
    for step in progress(range(1, loop.depth + 1), loop.depth, "step"):
        _require_averages(loop, step, covariance[-1])
        earlier_variances = variances[step - len(covariance) : step]
        features = averages.features(earlier_variances, covariance)
        correlation = sums.add(scale + features)
        yield StreamStep(averages, earlier_variances, covariance, features, correlation)
        covariance = np.logaddexp(start, correlation)
        variances[step] = covariance[-1]


def time_refusal(loop: Loop) -> str:
    """Why a loop is not followed, as tied steps are so many that all pairs of them take hours; empty if it is."""
    of_pair = CLOSED_SECONDS if loop.sigma.homogeneous else SMOOTH_SECONDS
    what = f"the covariance of every two of {loop.depth:,} tied steps"
    remedy = f"lower depth to {int((2 * LONGEST / of_pair) ** 0.5):,}, or take tied=False"
    return seconds_refusal(loop.depth**2 / 2 * of_pair, what, remedy) if loop.tied else ""


def increment_scale(loop: Loop) -> float:
    """log(eps^2 sigma_W^2)."""
    return log(loop.weight_variance) + 2 * log(loop.step_size)


def log_correlation_terms(loop: Loop) -> Array:
    """ln C_s, s = 1 .. L, with C_s = H_s - H_0 at H_0 = 1: (L,)."""
    return np.array([step.correlation[-1] for step in steps(loop)])


def _require_averages(loop: Loop, step: int, log_variance: float) -> None:
    if not loop.sigma.homogeneous and log_variance > log(LARGEST_VARIANCE):
        raise ValueError(
            f"the stream of this loop reaches variance exp({log_variance:.3g}) before step {step} of {loop.depth}; "
            f"averages of {loop.activation!r} are computed up to {LARGEST_VARIANCE:g}: raise alpha, lower depth or "
            "weight_variance, or use 'relu' or 'linear', whose averages are closed"
        )
