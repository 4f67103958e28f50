"""Memory for many arrays of similar lifetimes, taken from the system in few large blocks."""

from math import prod

import numpy as np

from meanfield.common.arrays import Array

# Large enough that NumPy asks the system for huge pages (a page fault per 2 MiB instead of per 4 KiB: touching new
# memory then takes a third of the time). Just below 32 MiB, the largest block after whose release the C library of
# Linux keeps freed memory, up to twice the block, for the next request (mallopt(3), M_MMAP_THRESHOLD): so batch after
# batch of draws runs in the same memory.
BLOCK_NUMBERS = 30 << 17


class Slabs:
    """Uninitialised arrays from large blocks; a block is freed when none of its arrays is in use."""

    def __init__(self, precision: str = "float64") -> None:
        self._rest = np.empty(0, precision)

    def empty(self, shape: tuple[int, ...]) -> Array:
        """An uninitialised array of this shape."""
        numbers = prod(shape)
        if numbers > self._rest.size:
            self._rest = np.empty(max(numbers, BLOCK_NUMBERS), self._rest.dtype)
        numbers_given, self._rest = self._rest[:numbers], self._rest[numbers:]
        return numbers_given.reshape(shape)
