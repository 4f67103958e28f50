"""Draws on a device are made in groups of fixed size and place, whichever draws were asked for.

A device's library chooses its algorithm for matrix products by their number, so that a draw in other company would
differ in rounding; and one stream of random numbers for many draws costs far less than one for each. So every group is
made whole, and draws that are not wanted are cut off: a draw's numbers depend on its group alone.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from meanfield.common.arrays import Array
from meanfield.common.machine import require_bytes
from meanfield.nets.activations import ACTIVATIONS
from meanfield.nets.maps import Pointwise
from meanfield.nets.net import Net
from meanfield.simulation.arrays.float_range import overflow_silent, require_energies, require_range
from meanfield.simulation.arrays.resolve import arrays_of
from meanfield.simulation.cost import draw_bytes
from meanfield.simulation.measures.update_energy import LARGEST, draw_energies

# Device memory of a group: a card of 8 GB holds it and what its library needs besides. These two numbers decide which
# draws share a stream.
GROUP_BYTES = 4 << 30
MOST_DRAWS_PER_GROUP = 1024

# How many times faster than a core a device works, roughly, so that chunks take about a second there too.
DEVICE_SPEED = 100


def draw_energies_on(
    net: Net,
    seed: int,
    draws: range,
    weights: str = "dense",
    backend: str = "numpy",
    precision: str = "float64",
    **options: Any,
) -> dict[str, Array]:
    """`draw_energies` with the arrays of a backend: these draws alone on the host, whole groups on a device.

    Raises OverflowError where the precision does not reach.
    """
    arrays = arrays_of(backend, precision)

    def energies(wanted: range) -> dict[str, Array]:
        with overflow_silent():
            return draw_energies(net, seed, wanted, weights=weights, arrays=arrays, **options)

    if arrays.normals is None:
        numbers = energies(draws)
    else:
        numbers = in_whole_groups(energies, draws, draws_per_group(net, weights, precision))
    if precision == "float32":
        changes = {name: np.sqrt(numbers[name]) for name in ("label_term", "output_term")}
        require_range({"a pre-activation": numbers.pop(LARGEST)[:, 1:], **changes})
    # All gates that can be shut may be shut at once.
    used = {part.activation for unit in net.units for part in unit.maps if isinstance(part, Pointwise)}
    require_energies(numbers, may_vanish=any(not ACTIVATIONS[name].gate(np.array(-1.0)) for name in used))
    return numbers


def draws_per_group(net: Net, weights: str, precision: str) -> int:
    """Draws of a group; it depends on the net, its weights and the precision, never on the device or the run."""
    return int(max(1, min(MOST_DRAWS_PER_GROUP, GROUP_BYTES // draw_bytes(net, weights, precision))))


def require_device_memory(net: Net, workers: int, weights: str, precision: str) -> None:
    """Raise MemoryError unless so many workers can hold a group on the device; raises as `arrays_of` without one."""
    present = arrays_of("cupy", precision).xp.cuda.Device().mem_info[1]
    draws = draws_per_group(net, weights, precision)
    needed = workers * draws * draw_bytes(net, weights, precision)
    remedy = "channels, grid, samples, depth or workers"
    require_bytes(needed, f"drawing {draws} networks at once with {workers} worker(s)", remedy, present, "the device")


def in_whole_groups(measure: Callable[[range], dict[str, Array]], draws: range, size: int) -> dict[str, Array]:
    """What ``measure`` gives for these draws, by name, from all groups that hold one of them."""
    first = draws.start // size * size
    groups = [measure(range(start, start + size)) for start in range(first, draws.stop, size)]
    wanted = slice(draws.start - first, draws.stop - first)
    return {name: np.concatenate([group[name] for group in groups])[wanted] for name in groups[0]}
