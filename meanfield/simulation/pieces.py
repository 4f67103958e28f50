"""How the nets and samples of a training step are cut, so that what a layer writes is still near when it is read."""

from __future__ import annotations

import numpy as np

from meanfield.nets.net import Net
from meanfield.simulation.arrays.convolution import draws_side_by_side
from meanfield.simulation.slabs import BLOCK_NUMBERS

# Bytes of the widest layer's values, about what the second cache of a core holds.
LAYER_BYTES = 1 << 20
# Samples below which tiles of sums become too low.
FEWEST_SAMPLES = 8


def piece(net: Net, nets: int, samples: int, precision: str) -> tuple[int, int]:
    """Nets, of so many side by side, and samples, of such a batch, that take one step of the passes together.

    Gradients of a batch are sums over its samples, so that pieces add up to rounding.
    """
    itemsize, channels = np.dtype(precision).itemsize, max(net.value_channels)
    together = draws_side_by_side(channels, itemsize)
    while nets % together:
        together //= 2
    most = max(LAYER_BYTES // (together * channels * net.sites * itemsize), FEWEST_SAMPLES)
    return together, min(samples, 1 << (most.bit_length() - 1))


def keep_freed_memory() -> None:
    """Have the C library of Linux keep what is freed for the next array, in place of fetching it page by page anew.

    It does so once a block as large as this was freed (`meanfield.simulation.slabs`); elsewhere nothing happens.
    """
    np.empty(BLOCK_NUMBERS)
