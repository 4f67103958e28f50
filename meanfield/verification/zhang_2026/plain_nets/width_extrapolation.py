"""Learning-rate scales at infinite width, from draws at two widths."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.common.validation import takes


@dataclass(frozen=True)
class Extrapolated:
    """log eta* by depth at infinite width, with its standard error and what extrapolation may leave."""

    log_scale: Array
    stderr: Array
    left: Array


@takes(xr.Dataset, str, str)
def extrapolated(dataset: xr.Dataset, case: str, name: str) -> Extrapolated:
    """log x + (log x - log y) / (f - 1) for x at width n and y at n/f: free of what is linear in 1/n.

    Scales fall as n^(-1/2) before all else, so that y is brought to width n by f^(-1/2) first.
    """
    at = dataset.sel(case=case)
    narrow, wide = np.log(at[name].transpose("width", "depth").values * np.sqrt(dataset["width"].values[:, None]))
    wide_scale = np.log(float(dataset["width"][-1])) / 2
    errors = [(at[f"{name}_stderr"] / at[name]).isel(width=end).values for end in (0, 1)]
    factor = float(dataset["width"][1] / dataset["width"][0])
    step = (wide - narrow) / (factor - 1)
    stderr = np.hypot(factor * errors[1], errors[0]) / (factor - 1)
    return Extrapolated(wide + step - wide_scale, stderr, left_by_extrapolation(step, factor))


def left_by_extrapolation(step: ArrayLike, factor: float) -> Array:
    """f (a/n)^2, where a/n is the part linear in 1/n: extrapolation leaves -f b/n^2, b taken to be a^2 at most."""
    return np.asarray(factor * np.square(step))
