"""Inputs that a user gives in place of a net's own law."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meanfield.architectures import INPUT_LAYOUT, Sequential
from meanfield.validation import require_array

Array = NDArray[np.float64]

# Of the largest feature of a batch: energies go as its fourth power, those of the outputs as its sixth, and their
# squares are summed over draws.
LARGEST, SMALLEST = 1e20, 1e-20


def checked_inputs(architecture: Sequential, inputs: ArrayLike | None) -> Array | None:
    """A given batch as floats, (samples, channels, *grid), or None.

    Raises:
        TypeError, ValueError: no real numbers, another shape, values that are not finite, or a batch that leaves the
            first layer nothing to see, or nothing that floats can carry to the energies.
    """
    if inputs is None:
        return None
    batch = require_array("inputs", inputs, architecture.input_shape, INPUT_LAYOUT)
    size = float(np.abs(architecture.sigma.function(batch)).max())
    if size == 0:
        raise ValueError(
            f"inputs are 0 everywhere after the activation {architecture.activation!r}, so that no layer sees anything "
            "and no step moves anything: eta* would be infinite; give others"
        )
    if not SMALLEST <= size <= LARGEST:
        raise ValueError(
            f"inputs are of size {size:.3g} after the activation {architecture.activation!r}; energies go as the "
            f"fourth to sixth power, beyond what floats can hold: scale them to between {SMALLEST:g} and {LARGEST:g}"
        )
    return batch
