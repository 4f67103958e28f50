"""Log-log slopes of drawn means over a ladder of sizes, of a theory at the same weights, and contests over ladders."""

from collections.abc import Iterable

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.common.estimates import PowerLaw, fit_power_law
from meanfield.verification.judges import Contest
from meanfield.verification.verdicts import Deviation


def drawn_law(measured: xr.Dataset, along: str, name: str) -> PowerLaw:
    """The power law of NAME in the sizes ALONG, by the errors of independent draws."""
    return fit_power_law(*(measured[column].values for column in (along, name, f"{name}_stderr")))


def limit_law(measured: xr.Dataset, along: str, name: str) -> PowerLaw:
    """The exponent s that NAME tends to where finite sizes x correct it by c / x: of log y = a + s log x + c / x.

    By weighted least squares over three sizes or more; with its error, from those of independent draws.
    """
    x, y, stderr = (measured[column].values for column in (along, name, f"{name}_stderr"))
    relative = stderr / y
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
    weights = measured[name].values / measured[f"{name}_stderr"].values
    return float(np.polyfit(np.log(measured[along].values), logs, 1, w=weights)[0])


def exponents(*laws: PowerLaw) -> tuple[Array, Array]:
    """Exponents of several power laws, and their standard errors."""
    return np.array([law.exponent for law in laws]), np.array([law.stderr for law in laws])


def shown(*laws: PowerLaw, digits: int = 3) -> str:
    """Exponents with their standard errors, in words."""
    return ", ".join(f"{law.exponent:.{digits}f} +- {law.stderr:.{digits}f}" for law in laws)


def span(sizes: ArrayLike) -> str:
    """First and last of some sizes, in words."""
    values = np.asarray(sizes)
    return f"{values[0]:g} .. {values[-1]:g}"


def joined(contests: Iterable[Contest]) -> Contest:
    """One contest over the points of several."""
    parts = list(contests)
    sides = (Deviation.joined(getattr(part, side) for part in parts) for side in ("claim", "rival"))
    apart = [np.broadcast_to(part.apart, part.claim.difference.shape) for part in parts if part.apart is not None]
    return Contest(*sides, apart=np.concatenate(apart) if len(apart) == len(parts) else None)
