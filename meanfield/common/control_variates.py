"""Control variates: means over draws with less error, by numbers of the same draws whose means are known exactly."""

import numpy as np

from meanfield.common.arrays import Array

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
