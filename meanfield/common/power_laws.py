"""Power laws through points: the exponent with its error and goodness of fit, and whether there is one exponent at all.

A fit gives an exponent whether or not the points lie on a power law. Chi-square says whether they scatter about it by
their errors; local slopes, and their drift, say whether the exponent is the same all along.
"""

from dataclasses import dataclass, field
from math import nan, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc, ndtr, stdtr

from meanfield.common.validation import Array, real_array, without_masked

# Relative differences below this are rounding.
ROUNDING = 1e-12


@dataclass(frozen=True)
class PowerLaw:
    """y = prefactor x^exponent through points, with the exponent's standard error and how well the points follow it.

    It unpacks as (exponent, stderr, prefactor).

    Attributes:
        chi_square: sum over the points of (difference of ln y from the fit / error of ln y)^2. NaN where no standard
            errors are given, as there is then nothing to hold the scatter against, and where two points leave no
            freedom.
        p_value: chance that points of these errors on a power law scatter as much or more; NaN where chi-square is.
    """

    exponent: float
    stderr: float
    prefactor: float
    chi_square: float = nan
    p_value: float = nan

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter((self.exponent, self.stderr, self.prefactor))


def fit_power_law(x: ArrayLike, y: ArrayLike, stderr: ArrayLike | None = None) -> PowerLaw:
    """Fit log y = log prefactor + exponent log x by (weighted) least squares.

    Args:
        x, y: positive, at least two points of different x (three without standard errors). Points of which one number
            is masked (`numpy.ma`) are left out.
        stderr: standard errors of y; weights are then 1 / (stderr / y)^2 and the error of the exponent is theirs
            (known errors, not rescaled by the residual). Without them it is estimated from the residual.

    Returns:
        exponent, standard error, prefactor (unpacks as a tuple); and, of three points or more with standard errors,
        ``chi_square`` of the fit, with its p value ``p_value`` for as many degrees of freedom as there are points less
        two. A small p value says that the points follow no power law, and the exponent is then an average over them:
        `local_slopes` has how it changes. Both are NaN without standard errors, and of two points.

    Raises:
        TypeError, ValueError: too few points, x and y of different lengths, or values that have no logarithm.

    Examples:
        >>> import meanfield as mf
        >>> law = mf.fit_power_law([4, 8, 16, 32], [0.5, 0.177, 0.0625, 0.0221], stderr=[0.01, 0.004, 0.001, 0.0005])
        >>> round(law.exponent, 2), law.p_value > 0.5
        (-1.5, True)
    """
    logs = _logarithms(x, y, stderr)
    _require_fittable(logs)
    log_x, log_y = logs["x"], logs["y"]
    relative = np.zeros_like(log_y) if stderr is None else logs["stderr"] - log_y
    weight = np.exp(2 * (relative.min() - relative))
    centre, level = (float(np.average(values, weights=weight)) for values in (log_x, log_y))
    from_centre = log_x - centre
    spread = float(weight @ from_centre**2)
    if spread == 0:
        raise ValueError("one point outweighs all others by its standard error, and leaves no slope: leave it out")
    exponent = float(weight @ (from_centre * log_y)) / spread
    residual, freedom = log_y - level - exponent * from_centre, len(log_y) - 2
    with np.errstate(over="ignore"):
        noise, prefactor = np.exp(relative.min()), float(np.exp(level - exponent * centre))
        if stderr is None:
            noise = np.sqrt(residual @ residual / freedom)
            return PowerLaw(exponent, float(noise) / sqrt(spread), prefactor)
        chi_square = float(weight @ (residual / noise) ** 2) if freedom else nan
    return PowerLaw(exponent, float(noise) / sqrt(spread), prefactor, chi_square, float(chdtrc(freedom, chi_square)))


@dataclass(frozen=True)
class LocalSlopes:
    """Slopes of log y in log x from each size to the next, and whether they drift.

    Attributes:
        size: geometric means of neighbouring sizes, where the slopes are those of, (points - 1,).
        slope, stderr: d ln y / d ln x between the two, with standard errors, NaN where none are given. Neighbours share
            a point, so that errors of neighbouring slopes are correlated: one slope too high lets the next be too low.
        drift: by how much the slope changes while x grows by a factor e: d of ln y = a + s ln x + (d / 2) (ln x)^2,
            fitted to all points by (weighted) least squares; NaN of two points. A power law has none.
        drift_stderr: its standard error; without standard errors of y it is estimated from the residual, NaN of three
            points.
        drift_p_value: chance that a power law whose points have these errors shows a drift as large, of either sign.
    """

    size: Array = field(repr=False)
    slope: Array
    stderr: Array
    drift: float
    drift_stderr: float
    drift_p_value: float


def local_slopes(x: ArrayLike, y: ArrayLike, stderr: ArrayLike | None = None) -> LocalSlopes:
    """Slopes of log y in log x between neighbouring sizes, with their errors, and their drift: is there one exponent?

    Args:
        x, y: positive, two points or more, of different x each; they are put in order of x. Points of which one number
            is masked (`numpy.ma`) are left out.
        stderr: standard errors of y, from independent draws; by these the slopes have errors, and the drift is fitted
            with known errors. If left out, slopes have none, and that of the drift comes from the residual.

    Returns:
        ``slope`` with ``stderr`` at the geometric mid sizes ``size``; ``drift``, the change of the slope for a factor e
        in x, with ``drift_stderr`` and ``drift_p_value`` (`LocalSlopes`). A small p value says that points follow no
        power law. All is dimensionless.

    Raises:
        TypeError, ValueError: fewer than two points, x that are equal, arrays of different lengths, or values that have
            no logarithm.

    Examples:
        >>> import meanfield as mf
        >>> bent = mf.local_slopes([4, 8, 16, 32], [1.0, 1.41, 1.74, 1.87], stderr=[0.01, 0.01, 0.01, 0.01])
        >>> bent.slope.round(2).tolist(), bent.drift < 0, bent.drift_p_value < 0.001
        ([0.5, 0.3, 0.1], True, True)
    """
    logs = _logarithms(x, y, stderr)
    _require_lines(logs)
    order = np.argsort(logs["x"])
    log_x, log_y = logs["x"][order], logs["y"][order]
    if len(order) < 2 or np.diff(log_x).min() <= ROUNDING:
        raise ValueError(f"local slopes need two or more x, all different; given are {np.exp(log_x).tolist()}")
    relative = None if stderr is None else np.exp(logs["stderr"][order] - log_y)
    slope = np.diff(log_y) / np.diff(log_x)
    error = np.full_like(slope, nan) if relative is None else np.hypot(relative[1:], relative[:-1]) / np.diff(log_x)
    return LocalSlopes(np.exp((log_x[1:] + log_x[:-1]) / 2), slope, error, *_drift(log_x, log_y, relative))


def _drift(log_x: Array, log_y: Array, relative: Array | None) -> tuple[float, float, float]:
    """The coefficient of (ln x)^2 / 2, its standard error, and its p value."""
    if len(log_x) < 3:
        return nan, nan, nan
    weight = np.ones_like(log_x) if relative is None else relative.min() / relative
    from_middle = log_x - log_x.mean()
    columns = np.stack([from_middle**2 / 2, from_middle, np.ones_like(log_x)], axis=1)
    solve = np.linalg.pinv(columns * weight[:, None]) * weight
    coefficients = solve @ log_y
    drift, size = float(coefficients[0]), float(np.linalg.norm(solve[0] / weight))
    if relative is not None:
        stderr = float(relative.min()) * size
        return drift, stderr, float(2 * ndtr(-abs(drift) / stderr))
    if not (freedom := len(log_x) - 3):
        return drift, nan, nan
    residual = log_y - columns @ coefficients
    stderr = size * float(np.sqrt(residual @ residual / freedom))
    return drift, stderr, float(2 * stdtr(freedom, -abs(drift) / stderr)) if stderr else float(drift == 0)


def _logarithms(x: ArrayLike, y: ArrayLike, stderr: ArrayLike | None) -> dict[str, Array]:
    """Of the points that are not masked, by name."""
    given = without_masked({"x": x, "y": y} | ({} if stderr is None else {"stderr": stderr}))
    return {name: np.log(_positive(name, values)) for name, values in given.items()}


def _positive(name: str, values: ArrayLike) -> Array:
    """Return the values as floats that have a logarithm, or raise TypeError or ValueError."""
    array = real_array(name, values)
    if not (np.all(array > 0) and np.all(np.isfinite(array))):
        raise ValueError(f"a power law needs positive finite {name}: logarithms are fitted, weighted by 1/stderr")
    return array


def _require_fittable(logs: dict[str, Array]) -> None:
    """Raise ValueError unless a line can be fitted through these logarithms; x that differ by rounding are one."""
    _require_lines(logs)
    needed, why = (2, "") if "stderr" in logs else (3, " where no standard errors are given")
    different = len(logs["x"]) and 1 + int(np.sum(np.diff(np.sort(logs["x"])) > ROUNDING))
    if different < needed:
        raise ValueError(f"a power law needs {needed} or more different x{why}; there are {different}")


def _require_lines(logs: dict[str, Array]) -> None:
    """Raise ValueError unless these are as many numbers each, in a row."""
    shapes = [array.shape for array in logs.values()]
    if len(shapes[0]) != 1 or len(set(shapes)) > 1:
        raise ValueError(f"{', '.join(logs)} have shapes {', '.join(map(str, shapes))}; give as many of each")


def log_slope(x: ArrayLike, mean: Array, covariance: Array) -> PowerLaw:
    """Least-squares slope of log mean on log x, its error from the covariance of the means (correlated points).

    Layers of one net rise and fall together from draw to draw; treating them as independent would misstate the
    error of a growth exponent.
    """
    design = np.vander(np.log(np.asarray(x, float)), 2)
    solve = np.linalg.pinv(design)
    slope, intercept = solve @ np.log(mean)
    relative = covariance / np.outer(mean, mean)
    return PowerLaw(float(slope), float(np.sqrt(solve[0] @ relative @ solve[0])), float(np.exp(intercept)))
