"""Single precision ends where double precision does not: draws whose numbers leave its range are refused, not averaged.

Sizes change from layer to layer by a factor, so numbers that fade pass close to the smallest before they are lost, and
those that grow end as infinity: it is enough to look at every layer's pre-activations and at its change.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import numpy as np
from numpy.typing import NDArray

from meanfield.simulation.arrays.arrays import Arrays

Array = NDArray[np.float64]

# Below this the errors behind a change, smaller by up to the fan-in, near the smallest number that is kept in full,
# 1.2e-38.
LEAST = 1e-30


@contextmanager
def overflow_silent(arrays: Arrays) -> Iterator[None]:
    """In single precision, no warnings of what `require_range` refuses."""
    with np.errstate(over="ignore", invalid="ignore") if arrays.precision == "float32" else nullcontext():
        yield


def require_range(sizes: dict[str, Array]) -> None:
    """Raise OverflowError unless all sizes, (D, layers) by what they are of, are 0 or well inside the range."""
    for what, values in sizes.items():
        bad = ~np.isfinite(values) | ((values > 0) & (values < LEAST))
        if bad.any():
            draw, layer = np.argwhere(bad)[0]
            raise OverflowError(
                f"{what} has size {values[draw, layer]:.2g} at layer {layer + 1} in some draw, outside the range of "
                f"float32 ({LEAST:g} to 3e38, with room for what they are made of); take precision 'float64'"
            )
