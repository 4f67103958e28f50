"""Learning-rate scales at infinite width, and their slopes in depth, from draws at two widths."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.common.estimates import PowerLaw, log_slope


@dataclass(frozen=True)
class Extrapolated:
    """log eta* by depth at infinite width, with its standard error and what extrapolation may leave."""

    log_scale: Array
    stderr: Array
    left: Array


def extrapolated(at: xr.Dataset, name: str) -> Extrapolated:
    """log x + (log x - log y) / (f - 1) for x at width n and y at n/f: free of what is linear in 1/n.

    Scales fall as n^(-1/2) before all else, so that y is brought to width n by f^(-1/2) first.
    """
    narrow, wide = np.log(at[name].transpose("width", "depth").values * np.sqrt(at["width"].values[:, None]))
    wide_scale = np.log(float(at["width"][-1])) / 2
    errors = [(at[f"{name}_stderr"] / at[name]).isel(width=end).values for end in (0, 1)]
    factor = float(at["width"][1] / at["width"][0])
    step = (wide - narrow) / (factor - 1)
    stderr = np.hypot(factor * errors[1], errors[0]) / (factor - 1)
    return Extrapolated(wide + step - wide_scale, stderr, left_by_extrapolation(step, factor))


def extrapolated_slope(at: xr.Dataset, name: str) -> tuple[PowerLaw, float]:
    """Log-log slope of the extrapolated scale over the depths, all weighted alike, and what it is granted."""
    limit, depths = extrapolated(at, name), at["depth"].values
    mean = np.exp(limit.log_scale)
    law = log_slope(depths, mean, np.diag(np.square(limit.stderr * mean)))
    row = np.linalg.pinv(np.vander(np.log(depths), 2))[0]
    return law, float(np.abs(row) @ limit.left)


def left_by_extrapolation(step: ArrayLike, factor: float) -> Array:
    """f (a/n)^2, where a/n is the part linear in 1/n: extrapolation leaves -f b/n^2, b taken to be a^2 at most."""
    return np.asarray(factor * np.square(step))
