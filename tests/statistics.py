"""One false-alarm budget for the whole suite, and the only ways in which tests compare random numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.estimates import FALSE_ALARM_BUDGET, critical_z

# Upper bound on the random comparisons that the suite makes; the budget is split over them.
COMPARISONS = 2000


def excess(difference: ArrayLike, stderr: ArrayLike, allowance: ArrayLike = 0.0) -> np.ndarray:
    """Standard errors by which differences exceed their allowance."""
    return (np.abs(np.asarray(difference)) - np.asarray(allowance)) / np.asarray(stderr)


def consistent(difference: ArrayLike, stderr: ArrayLike, draws: int, allowance: ArrayLike = 0.0) -> bool:
    """Whether every difference lies inside the suite's band; negative controls assert that this is False."""
    return bool(np.all(excess(difference, stderr, allowance) < critical_z(COMPARISONS, draws, FALSE_ALARM_BUDGET)))
