"""The median over draws of a quantity, which is what a net meets, with its error.

A dataset holds the quantiles 0.1, 0.5 and 0.9 of the drawn nets (`meanfield.quantities.registry.SHARES`).
"""

from math import isfinite, log, pi, sqrt

import xarray as xr

from meanfield.common.validation import require_instance

# Standard deviations between the quantiles 0.1 and 0.9 of a Gaussian.
TENTHS = 2.563
# Why drawn nets do not move, and what to do.
STILL = "units have died or inputs are 0; give a larger width, a smaller depth or other inputs"


def median_over_draws(measured: xr.Dataset, name: str) -> tuple[float, float]:
    """The median of NAME, and its standard error; infinite where a tenth or more of the drawn nets are infinite.

    The error is that of the middle of a Gaussian, (pi/2)^(1/2) times the spread of the logarithms over draws^(1/2),
    with the spread that the quantiles 0.1 and 0.9 tell. Two such errors hold 0.94 of the medians of 16 or 32
    log-normal draws, and 0.95 of those of 64 or more. The values that stand draws^(1/2) / 2 places above and below the
    median (NAME_quantile_stderr) ask for no law, but they hold 0.87 of the medians of 32 draws and 0.94 of those of
    512: where few draws stand in the middle, how far they lie apart says little.
    """
    require_instance("measured", measured, xr.Dataset, "a dataset of drawn nets")
    if f"{name}_quantile" not in measured:
        raise ValueError(f"the dataset has no quantiles of {name!r} over draws: give the name of a measured quantity")
    low, middle, high = map(float, measured[f"{name}_quantile"].values)
    return middle, middle * sqrt(pi / 2 / measured.attrs["draws"]) * log(high / low) / TENTHS


def median_scale(scales: xr.Dataset, scale: str) -> tuple[float, float]:
    """The median over draws of one of the scales of `step_scales`, and its relative standard error.

    Raises:
        ValueError: nets that no rate moves, in half or more of the draws.
    """
    median, error = median_over_draws(scales, scale)
    if not isfinite(median):
        raise ValueError(
            f"half or more of the drawn nets do not move at their first step, as their gradients are 0: {STILL}"
        )
    return median, error / median
