"""Memory for many arrays of similar lifetimes, taken from the system in few large blocks that serve draw after draw."""

from math import prod

import numpy as np
from numpy.typing import NDArray

from meanfield.common.arrays import Array

# Large enough that NumPy asks the system for huge pages (a page fault per 2 MiB instead of per 4 KiB: touching new
# memory then takes a third of the time). Just below 32 MiB, the largest block after whose release the C library of
# Linux keeps freed memory, up to twice the block, for the next request (mallopt(3), M_MMAP_THRESHOLD).
BLOCK_BYTES = 30 << 20

# Blocks that wait for the next draw, as touching new memory takes a sixth of a large draw's time; at most so many.
MOST_SPARE = 16
_spare: list[NDArray[np.uint8]] = []
# The C library keeps memory, as above, once a block has been released; so values beside the blocks stay in place, too.
np.empty(BLOCK_BYTES, np.uint8)


class Slabs:
    """Uninitialised arrays from large blocks; a block serves anew when none of its arrays is in use."""

    def __init__(self, precision: str = "float64") -> None:
        self._precision = np.dtype(precision)
        self._rest = np.empty(0, precision)

    def empty(self, shape: tuple[int, ...]) -> Array:
        """An uninitialised array of this shape."""
        numbers = prod(shape)
        if numbers > self._rest.size:
            self._rest = self._block(numbers)
        numbers_given, self._rest = self._rest[:numbers], self._rest[numbers:]
        return numbers_given.reshape(shape)

    def _block(self, numbers: int) -> Array:
        if numbers * self._precision.itemsize > BLOCK_BYTES:
            return np.empty(numbers, self._precision)
        return np.asarray(_Lent()).view(self._precision)


class _Lent:
    """A block that becomes a spare one with the end of the last array that uses it, all of which refer to this."""

    def __init__(self) -> None:
        self._block = _spare.pop() if _spare else np.empty(BLOCK_BYTES, np.uint8)
        self.__array_interface__ = self._block.__array_interface__

    def __del__(self, spare: list[NDArray[np.uint8]] = _spare) -> None:
        if len(spare) < MOST_SPARE:
            spare.append(self._block)


def give_back() -> None:
    """Leave the spare blocks to the system."""
    _spare.clear()
