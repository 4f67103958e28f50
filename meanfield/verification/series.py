"""Drawn means as series: value, error and share of one draw together; their log-log slopes over a ladder of sizes.

A slope is that of drawn means, with the errors of independent draws; of a theory at the same weights; or draw by
draw, with what finite sizes leave of its limit fitted and not assumed. Growth with the layer is a slope over the deeper
half of a net. Where exact spreads are known, they say beforehand which means a run has draws enough for.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline

from meanfield.common.power_laws import LocalSlopes, PowerLaw, fit_power_law, local_slopes, log_slope
from meanfield.common.validation import Array, takes
from meanfield.verification.verdicts import CONVERGED_SHARE, Deviation

# Below this size corrections of order 1/x^2 are a hundredth or more.
COARSE = 10
# The exponent by which a slope is off that is not the one claimed: a root.
OFF = 0.5


@dataclass(frozen=True)
class Series:
    """A quantity over the dims of a dataset, with the standard error of each mean and the share of its largest draw.

    ``Series.of(dataset, "label_term")`` takes ``label_term``, ``label_term_stderr`` and ``label_term_largest_share``;
    errors and shares that the dataset lacks are NaN. Everything that selects or computes takes all three along.
    """

    value: xr.DataArray
    error: xr.DataArray
    share: xr.DataArray

    @classmethod
    def of(cls, dataset: xr.Dataset, name: str, end: str = "") -> Series:
        """The series NAME of a dataset; with an ``end`` as "by_width" NAME_by_width, NAME_stderr_by_width, ..."""
        end = f"_{end}" if end else ""
        value = dataset[f"{name}{end}"]
        unknown = xr.full_like(value, np.nan, dtype=float)
        error, share = (dataset.get(f"{name}_{part}{end}", unknown) for part in ("stderr", "largest_share"))
        return cls(value, error, share)

    def sel(self, **labels: Any) -> Series:
        return Series(*(part.sel(labels) for part in self._parts))

    def isel(self, **places: Any) -> Series:
        return Series(*(part.isel(places) for part in self._parts))

    @property
    def _parts(self) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
        return self.value, self.error, self.share

    @property
    def relative_error(self) -> xr.DataArray:
        """The error of the logarithm, to first order."""
        return self.error / abs(self.value)

    @property
    def largest_share(self) -> float:
        """Of one draw in any of these means that there are (others are NaN); NaN where that share is not known."""
        return float(self.share.where(self.value.notnull(), 0.0).max(skipna=False))

    def times(self, factor: Any) -> Series:
        """In units of 1 / factor, which is positive and known exactly."""
        return Series(self.value * factor, self.error * factor, self.share)

    def log(self) -> Series:
        """The natural logarithm, its error to first order."""
        return Series(self.value.copy(data=np.log(self.value.values)), self.relative_error, self.share)

    def drawn(self, along: str) -> Series:
        """Without the places of a dim at which value or error is no number, or nothing was drawn."""
        is_drawn = np.isfinite(self.value) & np.isfinite(self.error) & (self.error > 0)
        return self.isel(**{along: np.flatnonzero(is_drawn)})

    def law(self, along: str) -> PowerLaw:
        """The power law in the sizes ALONG, by the errors of independent draws."""
        return fit_power_law(self.value[along].values, self.value.values, self.error.values)

    def local_slopes(self, along: str) -> LocalSlopes:
        """Slopes from each of the sizes ALONG to the next, and their drift."""
        return local_slopes(self.value[along].values, self.value.values, self.error.values)

    def slope_of(self, along: str, logs: Array) -> float:
        """Slope of a theory's logarithms in those of the sizes, its points weighted as these are."""
        weights = self.value.values / self.error.values
        return float(np.polyfit(np.log(self.value[along].values), logs, 1, w=weights)[0])


def largest_share(measured: xr.Dataset, *names: str) -> float:
    """Of one draw in any of these means that there are (others are NaN); NaN where that share is not known."""
    return float(np.max([Series.of(measured, name).largest_share for name in names]))


def effective_draws(measured: xr.Dataset, *names: str) -> float:
    """Kish's count of the draws that carry a mean, N / (1 + (spread of a draw / mean)^2), the least over the names.

    Of means that there are (others are NaN), and of equal draws all. NaN where a spread is not known.
    """
    each = [Series.of(measured, name) for name in names]
    errors = [
        series.relative_error.where(series.value.notnull() & (series.error != 0), 0.0).max(skipna=False)
        for series in each
    ]
    return kish(float(measured.attrs["draws"]), float(np.max(errors)))


def kish(draws: float, relative_error: float) -> float:
    """The same of one mean over draws, from its relative standard error."""
    return draws / (1 + draws * relative_error**2)


def drawn_law(measured: xr.Dataset, along: str, name: str) -> PowerLaw:
    """The power law of NAME in the sizes ALONG, by the errors of independent draws."""
    return Series.of(measured, name).law(along)


def limit_law(measured: xr.Dataset, along: str, name: str) -> PowerLaw:
    """The exponent s that NAME tends to where finite sizes x correct it by c / x: of log y = a + s log x + c / x.

    By weighted least squares over three sizes or more; with its error, from those of independent draws.
    """
    series = Series.of(measured, name)
    x, y = series.value[along].values, series.value.values
    relative = series.error.values / y
    columns = np.stack([np.log(x), np.ones(len(x)), 1 / x], axis=1)
    solve = np.linalg.pinv(columns / relative[:, None]) / relative
    slope, level, _ = solve @ np.log(y)
    return PowerLaw(float(slope), float(np.linalg.norm(solve[0] * relative)), float(np.exp(level)))


def scale_law(measured: xr.Dataset, along: str, name: str) -> PowerLaw:
    """The same of a learning-rate scale (NAME)^(-1/2)."""
    law = drawn_law(measured, along, name)
    return PowerLaw(-law.exponent / 2, law.stderr / 2, law.prefactor**-0.5)


def theory_slope(measured: xr.Dataset, along: str, name: str, logs: Array) -> float:
    """Slope of a theory's logarithms in those of the sizes, weighted as the drawn NAME is."""
    return Series.of(measured, name).slope_of(along, logs)


@takes(list | np.ndarray | xr.DataArray)
def spline_slopes(sizes: ArrayLike, values: ArrayLike) -> Array:
    """d ln y / d ln x along the last axis at every size, of the cubic spline through the logarithms of a theory.

    Between drawn means, which a spline would follow through their errors, slopes are `Series.local_slopes`.
    """
    logs = np.log(np.asarray(values, dtype=float))
    return np.asarray(CubicSpline(np.log(np.asarray(sizes, dtype=float)), logs, axis=-1)(np.log(sizes), 1))


def exponents_of(*laws: PowerLaw) -> tuple[Array, Array]:
    """Exponents of several power laws, and their standard errors."""
    return np.array([law.exponent for law in laws]), np.array([law.stderr for law in laws])


def shown_laws(*laws: PowerLaw, digits: int = 3) -> str:
    """Exponents with their standard errors, in words."""
    return ", ".join(f"{law.exponent:.{digits}f} +- {law.stderr:.{digits}f}" for law in laws)


def span(sizes: ArrayLike) -> str:
    """First and last of some sizes, in words."""
    values = np.asarray(sizes)
    return f"{values[0]:g} .. {values[-1]:g}"


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


# No law: of means that few draws have left below 0.
NO_LAW = PowerLaw(np.nan, np.nan, np.nan)


def growth_exponent(dataset: xr.Dataset, name: str) -> PowerLaw:
    """Log-log slope over the deeper half of the layers, with correlated errors; NaN where a mean is not positive."""
    deep = deeper_half(dataset.sizes["layer"])
    layer, mean = dataset["layer"].values[deep], dataset[name].values[deep]
    return log_slope(layer, mean, dataset[f"{name}_covariance"].values[deep, deep]) if np.all(mean > 0) else NO_LAW


def exponent_of(growth: Array) -> float:
    """The same slope of a law or prediction over layers 1 .. L."""
    deep = deeper_half(len(growth))
    return float(np.polyfit(np.log(np.arange(1, len(growth) + 1)[deep]), np.log(growth[deep]), 1)[0])


def first_deep_layer(depth: int) -> int:
    """First layer of the deeper half."""
    return max(depth // 2, 1)


def deeper_half(depth: int) -> slice:
    """The places of its layers."""
    return slice(first_deep_layer(depth) - 1, depth)


OVERLAP_SPREAD = "overlap_energy_relative_spread"
LABEL_SPREAD = "label_term_relative_spread"

# A mean whose standard error is a larger part of it than this counts as not converged.
PRECISION = 0.1


def draws_needed(spread: ArrayLike, precision: float = PRECISION) -> NDArray[np.float64]:
    """Draws after which a mean has the relative standard error ``precision``: (spread / precision)^2."""
    return np.ceil((np.asarray(spread, dtype=float) / precision) ** 2)


@takes(xr.Dataset, str)
def is_converged(measured: xr.Dataset, name: str) -> xr.DataArray:
    """Layers that are planned for, and where neither the error nor the largest draw is much of the mean of NAME."""
    precise = measured[f"{name}_stderr"] <= PRECISION * measured[name]
    return is_planned(measured, name) & precise & (measured[f"{name}_largest_share"] <= CONVERGED_SHARE)


@takes(xr.Dataset, str)
def is_planned(measured: xr.Dataset, name: str) -> xr.DataArray:
    """Layers of which the run has draws enough for NAME; decided by theory, never by the draws."""
    spread = exact_spread(measured, name)
    return spread.copy(data=draws_needed(spread) <= measured.attrs["draws"])


def exact_spread(measured: xr.Dataset, name: str) -> xr.DataArray:
    """The exact relative spread that stands for NAME's, by layer."""
    return measured[OVERLAP_SPREAD if name == "overlap_energy" else LABEL_SPREAD]
