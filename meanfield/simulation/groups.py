"""Groups of draws on a device: how many draws it works on at once.

A device waits for the calls of the host, and the fewer draws a call serves, the longer. So its groups are larger than
the batches of a processor, whose caches ask for few. Their sizes depend on the net and on what is asked of it, never on
the device or the run: a library of a device chooses its algorithm for matrix products by their number, so that a draw
in other company would differ in rounding.
"""

from meanfield.common.machine import require_bytes
from meanfield.simulation.arrays import arrays_of

# Device memory of a group: a card of 8 GB holds it and what its library needs besides.
GROUP_BYTES = 4 << 30
# Fewer draws than these leave a device waiting: 7 draws of an MLP 1024 x 64 took an H100 37 ms, of which it worked 17.
# Groups of large draws take up to so many bytes for them, which a card of 16 GB holds.
FEWEST_DRAWS, LARGE_GROUP_BYTES = 64, 12 << 30
MOST_DRAWS_PER_GROUP = 1024

# Draws whose numbers come from the host are not drawn to be cut off: a group is filled up with copies of its last. It
# takes no more of them than keep the device at work as long as its calls last: the 250 calls of a step of training took
# 7 ms, in which a device multiplies some 10^11 times. The host holds the orders of the batches of as many runs.
MOST_RUNS_PER_GROUP, OPERATIONS_OF_GROUP = 256, 1e11

# How many times faster than a core a device works, roughly, so that chunks take about a second there too.
DEVICE_SPEED = 100


def draws_per_group(held: int) -> int:
    """How many draws of so many bytes are made together on a device, by its own streams."""
    return max(1, min(MOST_DRAWS_PER_GROUP, max(GROUP_BYTES // held, min(FEWEST_DRAWS, LARGE_GROUP_BYTES // held))))


def runs_per_group(held: int, operations: float) -> int:
    """How many draws whose numbers come from the host, of so many bytes and operations in a round of calls."""
    return max(1, min(MOST_RUNS_PER_GROUP, int(OPERATIONS_OF_GROUP // operations), draws_per_group(held)))


def require_device_memory(backend: str, draws: int, held: int, workers: int, remedy: str) -> None:
    """Raise MemoryError unless so many workers can hold a group on the device; raises as `arrays_of` without one."""
    present = arrays_of(backend, "float64").xp.cuda.Device().mem_info[1]
    what = f"drawing {draws} networks at once with {workers} worker(s)"
    require_bytes(workers * draws * held, what, remedy, present, "the device")
