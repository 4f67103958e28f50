"""What draws of a first step say of the four rates at which it moves a net by 1, and the median of any quantity.

S_l        mean square of the change of value l
S_l / c_l  the same over the mean square of value l itself, of the same draw
S_out      mean square of the change of the outputs

The median over draws is what a net meets: a dataset holds the quantiles 0.1, 0.5 and 0.9 of drawn nets (`SHARES`).
"""

from collections.abc import Mapping
from math import isfinite, log, pi, sqrt

import numpy as np
import xarray as xr

from meanfield.common.estimates import DrawStatistic, Estimate, inverse_root, quantiles, summarise
from meanfield.common.validation import Array, require_instance
from meanfield.quantities.registry import SHARES

# Standard deviations between the quantiles 0.1 and 0.9 of a Gaussian.
TENTHS = 2.563
# Why drawn nets do not move, and what to do.
STILL = "units have died or inputs are 0; give a larger width, a smaller depth or other inputs"

Estimates = dict[str, Estimate | DrawStatistic]


def update_estimates(values: Mapping[str, Array]) -> Estimates:
    """All that `scale_estimates` and `energy_quantiles` say, with the means over draws of S_l and of its mean over l.

    Args:
        values: update_energy and what `scale_estimates` takes; the mean over l is that of counted_update_energy where
            that is given beside.
    """
    energy = values["update_energy"]
    counted = values.get("counted_update_energy", energy)
    mean = summarise(counted.mean(axis=1, keepdims=True))
    means: Estimates = {
        "update_energy": summarise(energy),
        "mean_update_energy": mean,
        "learning_rate_scale": inverse_root(mean),
    }
    return means | energy_quantiles(energy, counted) | scale_estimates(values)


def scale_estimates(values: Mapping[str, Array]) -> Estimates:
    """What draws of relative_update_energy (N, L) and output_update_energy (N, 1) say, with their scales.

    Where some l has no S_l / c_l (NaN), means over l leave it out; they are over counted_relative_update_energy where
    that is given beside and some l of it has a value. The last layer is the last l, but where last_update_energy (N,)
    is given beside, which is the S_l / c_l of another.
    """
    relative, outputs = values["relative_update_energy"], values["output_update_energy"]
    last = values.get("last_update_energy", relative[:, -1])
    counted = values.get("counted_relative_update_energy", relative)
    counted = relative if np.isnan(counted).any(axis=0).all() else counted
    absent = np.isnan(counted).any(axis=0)
    there = counted[:, ~absent] if absent.any() else counted
    of_scales = {"relative": there.mean(axis=1), "last": last, "output": outputs[:, 0]}
    estimates: Estimates = {
        "relative_update_energy": summarise(relative),
        "output_update_energy": summarise(outputs),
        "relative_update_energy_quantile": quantiles(relative, np.array(SHARES)),
        "output_update_energy_quantile": quantiles(outputs[:, 0], np.array(SHARES)),
    }
    for name, energy in of_scales.items():
        estimates |= _scale_estimates(f"{name}_learning_rate_scale", energy)
    return estimates


def _scale_estimates(name: str, energies: Array) -> Estimates:
    """The rate at which the mean of energies (N,) is 1, and quantiles of those at which each is."""
    return {name: inverse_root(summarise(energies[:, None])), f"{name}_quantile": _scale_quantiles(energies)}


def energy_quantiles(energy: Array, counted: Array | None = None) -> Estimates:
    """Of S_l over draws (N, L), and of the rate at which its mean over the layers of a draw is 1.

    The mean is that of ``counted``, where it is given.
    """
    return {
        "update_energy_quantile": quantiles(energy, np.array(SHARES)),
        "learning_rate_scale_quantile": _scale_quantiles((energy if counted is None else counted).mean(axis=1)),
    }


def _scale_quantiles(energies: Array) -> DrawStatistic:
    """Of the rates at which energies (N,) are 1, infinite where nothing moves."""
    with np.errstate(divide="ignore"):
        return quantiles(energies**-0.5, np.array(SHARES))


def relative(energies: Array, c: Array) -> Array:
    """S_l / c_l, 0 where nothing moves."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(energies > 0, energies / c, 0.0)


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
