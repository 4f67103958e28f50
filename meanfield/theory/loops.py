"""Loops at infinite width: the covariance of the stream between steps, what an update moves, and closed forms.

The covariance is an exact recursion, row by row. At N -> infinity the entries of h_0 and of the r_s = W phi(h_s) are
jointly Gaussian, r independent of h_0, so that

    Q_ls = H_0 + eps^2 sum_{a<l, b<s} Sig_ab,    Sig_ab = sigma_W^2 E[phi(h_a) phi(h_b)] at covariance Q,

over all pairs in tied loops, over a = b alone if every step has a matrix of its own (docs/theory.md section 11; Wang
et al. 2026, appendix C, whose equations and theorems are meant below). Row l of Sig needs row l of Q alone, and row l
+ 1 of Q the sums of Sig's columns: O(L^2) work, O(L) memory. All is in natural logarithms: nothing overflows where
energies grow like exp(L), and C_l = H_l - H_0 keeps its digits where it is far below H_0.

One update of the weights. Delta W is independent of W with entries of variance eta^2 / N, as a sign update has whose
signs are isotropic. To first order in eta, R_ls = E[dh_l . dh_s] / N obeys the double sum of the covariance with
another summand,

    R_ls = eps^2 sum_{a<l, b<s} { eta^2 E[phi(h_a) phi(h_b)] + sigma_W^2 E[phi'(h_a) phi'(h_b)] R_ab }

The first part is the update itself, the second carries what earlier steps moved. Stacks with a matrix per step have
an update per step, and keep a = b alone.

Closed forms of loops with homogeneous activations, phi(t z) = t phi(z), have energies, bounds and growth with depth.
Everything depends on x = eps^2 sigma_W^2 q alone, where q = E phi(h)^2 / H is the gain: 1/2 for ReLU, 1 for linear.
They are in natural logarithms, at H_0 = 1 and infinite width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import log
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

from meanfield.common.compiled import compiled
from meanfield.common.gaussian_averages import LARGEST_VARIANCE, Function, HermiteBasis, correlation
from meanfield.common.machine import LONGEST_SECONDS, progress, seconds_refusal
from meanfield.common.validation import Array, takes
from meanfield.nets.activations import LINEAR
from meanfield.nets.loop import Loop
from meanfield.nets.scalings import LARGEST_LOG_FACTOR
from meanfield.theory.laws import power_of


@takes(Loop)
def log_own_energies(loop: Loop) -> Array:
    """ln of the part of E|dh_s|^2 / N that the update makes by itself, eta^2 eps^2 sum E[phi phi] at eta = 1: (L,).

    The paper's leading term; the rest is what steps carry of earlier changes.

    Source: eq. 7, appendix D.1.
    """
    return log_correlation_terms(loop) - log(loop.weight_variance)


@takes(Loop)
def log_update_energies(loop: Loop) -> Array:
    """ln E|dh_s|^2 / N, s = 1 .. L, after one isotropic update at learning rate eta = 1; it goes as eta^2: (L,).

    Grows as (eta eps L)^2 in tied loops of alpha >= 1, as Theorem 2 says, and as eta^2 eps^2 L in independent stacks
    of alpha >= 1/2. In tied loops of alpha < 1 and homogeneous activations it grows exponentially with the stream:
    E|dh_L|^2 ~ eta^2 L^(1-alpha) E|h_L|^2, so that a fixed relative change asks for eta ~ L^((alpha-1)/2), and a fixed
    absolute one for an exponentially small eta, where the theorem has L^(alpha-1).

    Raises:
        ValueError: the variance of the stream of a smooth activation leaves what its averages are computed for.

    Source: eqs. 3, 6, 7.
    """
    carried = increment_scale(loop)
    driven = carried - log(loop.weight_variance)
    moved, sums, energies = np.array([-np.inf]), PairSum(loop), np.empty(loop.depth)
    for index, step in enumerate(steps(loop)):
        moved = sums.add(np.logaddexp(driven + step.features, carried + step.gates + moved))
        energies[index] = moved[-1]
    return energies


@takes(Loop)
def has_closed_energy(loop: Loop) -> bool:
    """Whether `log_correlation_law` serves this loop."""
    return loop.sigma.homogeneous and (not loop.tied or loop.activation == "linear")


def log_correlation_law(loop: Loop) -> Array:
    """ln C_l of H_l = H_0 + C_l, l = 1 .. L, in closed form: (L,).

    Independent: H_l = (1 + x)^l, exact at any width for linear nets (appendix B with its constant). Tied linear:
    H_l = sum_j C(l, j)^2 x^j, as W^j h_0 and W^k h_0 are orthogonal at infinite width; at alpha = 1 and L -> infinity
    it is I_0(2 sigma_W), and for alpha < 1 it grows like exp(2 sigma_W L^(1 - alpha)).

    Raises:
        ValueError: the loop has no closed energy.
    """
    if not has_closed_energy(loop):
        raise ValueError(
            f"a loop with tied={loop.tied} and activation {loop.activation!r} has no closed energy; independent steps "
            "of 'relu' or 'linear' and tied ones of 'linear' have: take the mean field"
        )
    x = log_increment_gain(loop)
    if loop.tied:
        return log_squared_binomials(loop.depth, x)
    grown = np.arange(1, loop.depth + 1) * np.logaddexp(0.0, x)
    return np.asarray(grown + np.log(-np.expm1(-grown)))


def loop_exponent(loop: Loop) -> float:
    """x of eta ~ L^x that keeps |dh_L| fixed under one update of isotropic signs; NaN where it is no power of L.

    alpha - 1 in tied loops of alpha >= 1, where the changes of all steps add up (eq. 4), and alpha - 1/2 in
    independent stacks of alpha >= 1/2, where they are independent and add up in squares. Below, changes grow with the
    stream, exponentially for homogeneous activations.

    Raises:
        NoPower: as `step_exponent`.
    """
    threshold, alpha = 1.0 if loop.tied else 0.5, step_exponent(loop)
    return alpha - threshold if alpha >= threshold else float("nan")


def step_exponent(loop: Loop) -> float:
    """alpha of eps = L^(-alpha), read off the sizes of steps at several depths.

    Raises:
        NoPower: steps whose size is no power of their number.
    """
    depths = [2**power for power in range(7) if abs(float(loop.alpha)) * log(2**power) <= LARGEST_LOG_FACTOR]
    return -power_of(depths, [loop.replace(depth=depth).step_size for depth in depths], "size of a step") + 0.0


@takes(Loop)
def log_increment_gain(loop: Loop) -> float:
    """ln x, x = eps^2 sigma_W^2 q: the energy of one increment over that of the stream."""
    return increment_scale(loop) + log(loop.sigma.gain)


def log_squared_binomials(depth: int, log_x: float) -> Array:
    """ln sum_{j=1..l} C(l, j)^2 x^j for l = 1 .. depth."""
    factorials, powers = gammaln(np.arange(1.0, depth + 2)), log_x * np.arange(1.0, depth + 1)
    return np.array(
        [
            logsumexp(2 * (factorials[last] - factorials[1 : last + 1] - factorials[last - 1 :: -1]) + powers[:last])
            for last in range(1, depth + 1)
        ]
    )


# ln E[f(u) f(v)] from ln of the variances of v, of which u has the last one, and ln of the covariances.
LogAverage = Callable[[Array, Array], Array]

# A stream's variance moves little from step to step: by how much it may grow before all is set up anew.
VARIANCE_ROOM = 1.25


class PairAverages(NamedTuple):
    """ln E[phi(u) phi(v)] and ln E[phi'(u) phi'(v)] over pairs of steps."""

    features: LogAverage
    gates: LogAverage


def pair_averages(loop: Loop) -> PairAverages:
    """The averages that this loop's activation and weights call for.

    Smooth steps that are independent meet themselves alone, so that nothing is worth keeping.
    """
    sigma = loop.sigma
    if sigma.homogeneous:
        # Linear features are the stream's, also where the correlation is below the range of a float.
        features = (lambda _, covariance: covariance) if sigma is LINEAR else _by_correlation(sigma.product, 1.0)
        return PairAverages(features, _by_correlation(sigma.gate_product, 0.0))
    if loop.tied and not sigma.closed:
        return PairAverages(*(_of_numbers(StepAverages(function).row) for function in (sigma.function, sigma.gate)))
    return PairAverages(*(_of_numbers(_with_the_last(average)) for average in (sigma.product, sigma.gate_product)))


def _by_correlation(average: Callable[[Array, Array, Array], Array], degree: float) -> LogAverage:
    """Average homogeneous functions by the correlation alone: variances may lie outside the range of a float."""

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
            self._basis, self._known = HermiteBasis(self._function, VARIANCE_ROOM * float(variances.max())), 0
        new, count = self._basis.coefficients(variances[self._known :]), len(variances)
        if self._known == 0:
            self._coefficients = np.empty((0, new.shape[1]))
        if (missing := 2 * count - len(self._coefficients)) > count:
            self._coefficients = np.concatenate([self._coefficients, np.empty((missing, new.shape[1]))])
        self._coefficients[self._known : count] = new
        self._known = count


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

    averages: PairAverages
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
    of_pair = CLOSED_SECONDS if loop.sigma.closed else SMOOTH_SECONDS
    what = f"the covariance of every two of {loop.depth:,} tied steps"
    remedy = f"lower depth to {int((2 * LONGEST_SECONDS / of_pair) ** 0.5):,}, or take tied=False"
    return seconds_refusal(loop.depth**2 / 2 * of_pair, what, remedy) if loop.tied else ""


def increment_scale(loop: Loop) -> float:
    """log(eps^2 sigma_W^2)."""
    return log(loop.weight_variance) + 2 * log(loop.step_size)


def log_correlation_terms(loop: Loop) -> Array:
    """ln C_s, s = 1 .. L, with C_s = H_s - H_0 at H_0 = 1: (L,)."""
    return np.array([step.correlation[-1] for step in steps(loop)])


def _require_averages(loop: Loop, step: int, log_variance: float) -> None:
    if not loop.sigma.closed and log_variance > log(LARGEST_VARIANCE):
        raise ValueError(
            f"the stream of this loop reaches variance exp({log_variance:.3g}) before step {step} of {loop.depth}; "
            f"averages of {loop.activation!r} are computed up to {LARGEST_VARIANCE:g}: raise alpha, lower depth or "
            "weight_variance, or use 'relu', 'linear' or 'erf', whose averages are closed"
        )


@compiled()
def power_series(coefficients: Array, correlations: Array) -> Array:
    """sum_k a_k b_k rho^k for every row b of coefficients (rows, orders), a the last: (rows,)."""
    count, orders = coefficients.shape
    last, total = coefficients[count - 1], np.empty(count)
    for row in range(count):
        row_coefficients, rho, value = coefficients[row], correlations[row], 0.0
        for order in range(orders - 1, -1, -1):
            value = value * rho + last[order] * row_coefficients[order]
        total[row] = value
    return total
