"""Which drawn means of plain nets to trust: those that exact spreads plan for, where the draws then agree.

At depths of the order of the width a mean is made by draws so rare that no run sees them; the spread of the draws that
it does see then says nothing. The exact spreads of the overlap energy and of the label term are known beforehand, and
with them how many draws a mean takes. The output term spreads further than the label term, so what is asked of B is a
least number of draws for A and S.
"""

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from meanfield.common.validation import takes
from meanfield.verification.verdicts import CONVERGED_SHARE

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
