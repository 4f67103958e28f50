"""Slopes over a ladder of sizes, draw by draw, with what finite sizes leave of their limit fitted and not assumed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LadderSlope:
    """Slope of log y in log x over a ladder of sizes x.

    Attributes:
        plain, plain_stderr: of a straight line.
        settled, settled_stderr: of log y = a + s log x + c / x, s: what the slope tends to if the leading correction
            is of order 1/x.
        allowance: what leaving out the smallest size changes in the settled slope; for corrections of higher order.
        sizes: those at which all draws are finite and positive; the slopes are nan where fewer than three are.
    """

    plain: float
    plain_stderr: float
    settled: float
    settled_stderr: float
    allowance: float
    sizes: int


def ladder_slope(sizes: ArrayLike, values: ArrayLike) -> LadderSlope:
    """Slopes from values (sizes, draws) that share draws over sizes: their errors are the spread of a draw's slope.

    Draws that share inputs and labels rise and fall together along the ladder, which each draw's own slope cancels.
    """
    x, y = np.asarray(sizes, float), np.asarray(values, float)
    usable = np.all(np.isfinite(y) & (y > 0), axis=1)
    x, logs = x[usable], np.log(y[usable])
    count = len(x)
    if count < 3:
        return LadderSlope(np.nan, np.nan, np.nan, np.nan, np.nan, count)
    line, curve = np.stack([np.log(x), np.ones(count)]), np.stack([np.log(x), np.ones(count), 1 / x])
    plain, settled = _slopes(line, logs), _slopes(curve, logs)
    reference = _slopes(curve[:, 1:], logs[1:]) if count > 3 else plain
    allowance = abs(float(settled.mean() - reference.mean()))
    return LadderSlope(*_summary(plain), *_summary(settled), allowance, count)


def _slopes(rows: Array, logs: Array) -> Array:
    """The first coefficient of the least-squares fit of every draw."""
    return np.linalg.lstsq(rows.T, logs, rcond=None)[0][0]


def _summary(slopes: Array) -> tuple[float, float]:
    return float(slopes.mean()), float(slopes.std(ddof=1) / np.sqrt(len(slopes)))
