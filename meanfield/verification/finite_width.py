"""How far a finite net may stand from the mean field: the allowance that comparisons make, stated once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meanfield.architectures import Sequential

Array = NDArray[np.float64]

# Relative excess per layer and 1/channels. For one site it is the leading coefficient of the exact finite-width
# recursion (3 l/n for l >> 1); sites only dilute it, and exp(3 l/n) covers the exact excess up to l/n = 1/2.
EXCESS_PER_LAYER = 3.0


def finite_width_allowance(architecture: Sequential, *, inputs_given: bool = False) -> Array:
    """Relative deviation from the mean field granted to layers 1 .. L: exp(3 sum_{h < l} 1/C_h) - 1.

    The correction is not a uniform O(1/C): it is a function of depth over channels. The sum starts at the input's
    channels when the input is drawn, and at the first layer's when it is given (its average is then exact).
    """
    channels = architecture.channels_by_layer
    below = channels[1:] if inputs_given else channels[:-1]
    return np.expm1(EXCESS_PER_LAYER * np.cumsum(1.0 / np.array(below, dtype=float)))
