"""Which measured means can be trusted: planned before drawing, from exact spreads.

At depths of the order of the width a mean is made by draws so rare that no run sees them; the spread of the draws that
it does see then says nothing. The exact spreads of the overlap energy and of the label term are known beforehand. The
output term spreads further than the label term, so what is asked of B is a least number of draws for A and S.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from meanfield.verification.verdicts import CONVERGED_SHARE

OVERLAP_SPREAD = "overlap_energy_relative_spread"
LABEL_SPREAD = "label_term_relative_spread"

# A mean whose standard error is a larger part of it than this counts as not converged.
PRECISION = 0.1


def draws_needed(spread: ArrayLike, precision: float = PRECISION) -> NDArray[np.float64]:
    """Draws after which a mean has the relative standard error ``precision``: (spread / precision)^2."""
    return np.ceil((np.asarray(spread, dtype=float) / precision) ** 2)


def is_planned(measured: xr.Dataset, name: str) -> xr.DataArray:
    """Layers of which the run has draws enough for NAME; decided by theory, never by the draws."""
    spread = measured[OVERLAP_SPREAD if name == "overlap_energy" else LABEL_SPREAD]
    return spread.copy(data=draws_needed(spread) <= measured.attrs["draws"])


def is_converged(measured: xr.Dataset, name: str) -> xr.DataArray:
    """Layers that are planned for, and where neither the error nor the largest draw is much of the mean of NAME."""
    seen = measured[f"{name}_stderr"] <= PRECISION * measured[name]
    return is_planned(measured, name) & seen & (measured[f"{name}_largest_share"] <= CONVERGED_SHARE)


def layer_ranges(layers: ArrayLike) -> str:
    """Layer numbers in words: "3, 5 .. 9"."""
    found = np.asarray(layers)
    runs = np.split(found, np.flatnonzero(np.diff(found) > 1) + 1)
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]} .. {run[-1]}" for run in runs)
