"""Means over independent draws, their errors, and control variates that lower these.

Control variates are numbers of the same draws whose means are known exactly.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from meanfield.common.validation import Array, require_count

# One false alarm in a million, for everything that one run or one test suite compares.
FALSE_ALARM_BUDGET = 1e-6

# What numbers raise that leave nothing to fit or judge: no line goes through them. A fault of the code raises others.
NUMBERS_FAIL = (ValueError, ArithmeticError)


@dataclass(frozen=True)
class Estimate:
    """A mean over draws: (K,) values with the covariance (K, K) of the means and each mean's largest-draw share."""

    mean: Array
    covariance: Array
    largest_share: Array

    @property
    def stderr(self) -> Array:
        return np.sqrt(np.diagonal(self.covariance))


def summarise(values: Array) -> Estimate:
    """Estimate from independent draws (N, K): errors come from draws alone, never from units or sites.

    The largest-draw share, max / sum of absolute values, is 1/N for equal draws; near 1, one draw makes the mean.
    """
    draws = require_count("draws", len(values), minimum=2, why="one draw has no standard error")
    mean = values.mean(axis=0)
    centred = values - mean
    covariance = centred.T @ centred / (draws * (draws - 1))
    return Estimate(mean, covariance, _largest_share(values))


def inverse_root(estimate: Estimate) -> Estimate:
    """S -> S^(-1/2), with its error to first order; infinite and without an error where no draw moves."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = estimate.mean**-0.5
        slope = 0.5 * scale[0] / estimate.mean[0]
        return Estimate(scale, slope**2 * estimate.covariance, estimate.largest_share)


@dataclass(frozen=True)
class Means:
    """Means over draws, of any shape, each with its standard error and largest-draw share, without covariance."""

    mean: Array
    stderr: Array
    largest_share: Array


def summarise_each(values: Array) -> Means:
    """Summarise values of any shape (N, ...) as `summarise` does, where they are too many for their covariance."""
    draws = require_count("draws", len(values), minimum=2, why="one draw has no standard error")
    mean = values.mean(axis=0)
    stderr = np.sqrt(np.square(values - mean).sum(axis=0) / (draws * (draws - 1)))
    return Means(mean, stderr, _largest_share(values))


@dataclass(frozen=True)
class DrawStatistic:
    """A statistic of single draws, not a mean, with its standard error: quantiles, moments of logarithms."""

    value: Array
    stderr: Array


def quantiles(values: Array, shares: Array) -> DrawStatistic:
    """Quantiles over draws (N, ...) at these shares p: (p, ...).

    The number of draws below the true quantile has the standard deviation (N p (1 - p))^(1/2). Values that many places
    above and below the quantile are one standard error away from it.
    """
    draws = len(values)
    places = np.sqrt(shares * (1 - shares) / draws)
    low, middle, high = (_drawn_quantile(values, np.clip(shares + side * places, 0, 1)) for side in (-1, 0, 1))
    with np.errstate(invalid="ignore"):  # quantiles may be infinite: nets that no rate moves
        return DrawStatistic(middle, (high - low) / 2)


def _drawn_quantile(values: Array, shares: Array) -> Array:
    """The least of the drawn values that a share p stays at or below."""
    return np.asarray(np.quantile(values, shares, axis=0, method="inverted_cdf"))


def deviations(values: Array) -> DrawStatistic:
    """Standard deviation over draws (N, ...), with its error from the fourth moment of the values."""
    square = np.square(values - values.mean(axis=0))
    variance = square.sum(axis=0) / (len(values) - 1)
    of_variance = np.sqrt(np.square(square - variance).mean(axis=0) / len(values))
    with np.errstate(invalid="ignore", divide="ignore"):  # equal values have a deviation of 0 without an error
        error = np.where(variance > 0, of_variance / (2 * np.sqrt(variance)), of_variance)
    return DrawStatistic(np.sqrt(variance), error)


def log_moments(values: Array) -> tuple[DrawStatistic, DrawStatistic]:
    """Standard deviation and skewness of the logarithm over draws (N, ...); NaN where a value is 0.

    Errors are those of log-normal values; (skewness / error)^2 tests whether the values are log-normal.
    """
    draws = len(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(values)
        centred = logs - logs.mean(axis=0)
        deviation = np.sqrt(np.square(centred).sum(axis=0) / (draws - 1))
        skewness = (centred**3).mean(axis=0) / deviation**3
    of_skewness = np.full_like(skewness, np.sqrt(6 / draws))
    return DrawStatistic(deviation, deviation / np.sqrt(2 * (draws - 1))), DrawStatistic(skewness, of_skewness)


def critical_z(comparisons: float, draws: float, budget: float = FALSE_ALARM_BUDGET) -> float:
    """Standard errors beyond which one of ``comparisons`` two-sided t-tests raises an alarm within the budget."""
    return float(-stdtrit(draws - 1, budget / (2 * comparisons)))


def _largest_share(values: Array) -> Array:
    sizes = np.abs(values)
    total = sizes.sum(axis=0)
    return np.asarray(sizes.max(axis=0) / np.where(total > 0, total, 1.0))


# Draws are parted into so many folds.
FOLDS = 10
# Fewer draws for each control tell no coefficient.
LEAST_DRAWS = 10


def adjusted(values: Array, controls: Array, means: Array) -> Array:
    """Values with the same mean, less what each draw's controls tell of it: y_i - beta . (x_i - E x).

    The coefficients beta of a draw are fitted by least squares to the draws of all other folds. They are therefore
    independent of the draw, and the mean of y_i - beta . (x_i - E x) is E y exactly, for any number of draws. Fitted
    to all draws alike they would bias it by one part in the number of draws. With fewer than ten draws for each control
    the values are left as they are.

    Args:
        values: y of independent draws, (N,).
        controls: x of the same draws, (N, k); ``means``: E x, (k,), exact.

    Returns:
        (N,), to be averaged as the values would be.
    """
    if len(values) < LEAST_DRAWS * len(means):
        return values
    offsets = controls / means - 1
    fold = np.arange(len(values)) % FOLDS
    left = np.empty_like(values)
    for own in range(FOLDS):
        here, others = fold == own, fold != own
        left[here] = values[here] - offsets[here] @ _coefficients(values[others], offsets[others])
    return left


def _coefficients(values: Array, offsets: Array) -> Array:
    """Least-squares slopes, each from its own mean; the smallest of all where draws are too few to tell."""
    centred = offsets - offsets.mean(axis=0)
    return np.asarray(np.linalg.lstsq(centred, values - values.mean(), rcond=None)[0])
