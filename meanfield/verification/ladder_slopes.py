"""Slopes over a ladder of sizes, draw by draw, with what finite sizes leave of their limit fitted and not assumed."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.verification.verdicts import Deviation

# Below this size corrections of order 1/x^2 are a hundredth or more.
COARSE = 10
# The exponent by which a slope is off that is not the one claimed: a root.
OFF = 0.5


@dataclass(frozen=True)
class LadderSlope:
    """Slope of log y in log x over a ladder of sizes x.

    Attributes:
        plain, plain_stderr: of a straight line.
        settled, settled_stderr: of log y = a + s log x + c / x, s: the slope's limit if finite sizes correct it in
            powers of 1/x; on ladders of five or more that start below `COARSE`, with d / x^2 besides.
        allowance: what leaving out the smallest size, with c / x alone, changes in it: for what is left of corrections.
        sizes: those at which all draws are finite and positive; the slopes are nan where fewer than three are.
    """

    plain: float
    plain_stderr: float
    settled: float
    settled_stderr: float
    allowance: float
    sizes: int

    def __str__(self) -> str:
        return f"{self.settled:+.3f} +- {self.settled_stderr:.3f}"


@dataclass(frozen=True)
class LadderRow:
    """The slope of one quantity along one ladder, the exponent that is claimed of it, and what is granted besides.

    ``granted`` is added to the slope's own allowance; ``may_fall`` to that of slopes below the claimed one, where the
    claim leaves a fall open: no steeper one looks like it, so that its rival is not granted it.
    """

    name: str
    direction: str
    slope: LadderSlope
    optimizer: str = ""
    place: str = ""
    step: int | None = None
    condition: float = 0.0
    granted: float = 0.0
    may_fall: float = 0.0

    @property
    def where(self) -> str:
        """The quantity and its place, in words."""
        step = "" if self.step is None else f"step {self.step}"
        return ", ".join(filter(None, (self.name, self.optimizer, self.place, step, f"in {self.direction}")))


def against_conditions(rows: Sequence[LadderRow]) -> tuple[Deviation, Deviation]:
    """Settled slopes against what is claimed of them; and against half a power off, by the row nearest to that."""
    slopes = [row.slope for row in rows]
    difference = np.array([row.slope.settled - row.condition for row in rows])
    stderr = np.array([slope.settled_stderr for slope in slopes])
    allowance = np.array([row.slope.allowance + row.granted for row in rows])
    beyond = np.maximum(OFF - np.abs(difference), 0.0)
    weakest = int(np.argmin(Deviation(beyond, stderr, allowance).excess))
    rival = Deviation(beyond[weakest], stderr[weakest], allowance[weakest])
    falls = np.where(difference < 0, [row.may_fall for row in rows], 0.0)
    return Deviation(difference, stderr, allowance + falls), rival


def ladder_values(dataset: xr.Dataset, variable: str, direction: str, **labels: Hashable) -> Array:
    """(sizes, draws) of VARIABLE_by_DIRECTION at these labels of its other dimensions."""
    values = labelled(dataset, f"{variable}_by_{direction}", labels)
    return np.asarray(values.transpose(direction, "draw").values)


def labelled(dataset: xr.Dataset, name: str, labels: Mapping[str, Hashable]) -> xr.Variable:
    """A variable at one label of each of these dimensions, by place: `sel` takes all coordinates along."""
    places = {dim: dataset.get_index(dim).get_loc(label) for dim, label in labels.items()}
    return dataset.variables[name].isel(places)


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
    line = np.stack([np.log(x), np.ones(count)])
    first = np.vstack([line, 1 / x])
    curve = np.vstack([first, 1 / x**2]) if count > 4 and x.min() < COARSE else first
    plain, settled = _slopes(line, logs), _slopes(curve, logs)
    reference = _slopes(first[:, 1:], logs[1:]) if count > 3 else plain
    allowance = abs(float(settled.mean() - reference.mean()))
    return LadderSlope(*_summary(plain), *_summary(settled), allowance, count)


def mean_over_draws(values: ArrayLike, power: int) -> Array:
    """Values whose `ladder_slope` is that of the mean of y^power over draws, to the power 1 / power.

    For y that a single draw may have close to zero, whose logarithms scatter without end. Values (sizes, draws) become
    exp of the pseudo-values of the jackknife: their mean is the logarithm of the whole, their spread its error, and
    draws stay paired along the ladder.
    """
    powers = np.asarray(values, float) ** power
    draws = powers.shape[1]
    mean = powers.mean(axis=1, keepdims=True)
    left_out = (mean * draws - powers) / (draws - 1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # what is not finite is none of the slope's
        pseudo = draws * np.log(mean) - (draws - 1) * np.log(left_out)
        return np.asarray(np.exp(pseudo / power))


def _slopes(rows: Array, logs: Array) -> Array:
    """The first coefficient of the least-squares fit of every draw."""
    return np.linalg.lstsq(rows.T, logs, rcond=None)[0][0]


def _summary(slopes: Array) -> tuple[float, float]:
    return float(slopes.mean()), float(slopes.std(ddof=1) / np.sqrt(len(slopes)))
