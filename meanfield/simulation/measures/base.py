"""What a measure is: what is read off the draws of a net, what that costs, and the dataset of it.

Groups of draws on a device: how many draws it works on at once.

A device waits for the calls of the host, and the fewer draws a call serves, the longer. So its groups are larger than
the batches of a processor, whose caches ask for few. Their sizes depend on the net and on what is asked of it, never on
the device or the run: a library of a device chooses its algorithm for matrix products by their number, so that a draw
in other company would differ in rounding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, NamedTuple, Self

import xarray as xr

from meanfield.common.machine import require_bytes
from meanfield.common.validation import Array, require_instance
from meanfield.nets.net import Net
from meanfield.nets.recognised import as_family
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


# Numbers of every draw by name, each (draws, ...).
Pieces = dict[str, Array]


class Cost(NamedTuple):
    """What one draw costs.

    Attributes:
        operations: floating-point operations; other work counts as the operations that take the same time.
        bytes: held at the peak.
        together: draws to carry at once, which changes speed and never a number.
    """

    operations: float
    bytes: int
    together: int


class Measure(ABC):
    """What is read off every draw of a net, as frozen data: to ask for numbers is to pass the measure that gives them.

    A draw's numbers depend on the net, the measure, the seed and the draw alone. Measures cost and draw once they are
    settled.

    Attributes:
        weights: the kind of weights that is drawn; "auto" leaves the choice to `settled`.
        backend: where the passes run, "numpy", or "cupy", a CUDA device.
        remedy: what to lower where memory does not suffice.
        fewest: draws of a run, at least; a mean takes two for its standard error.
    """

    weights: str
    backend: str = "numpy"
    remedy: ClassVar[str] = "width, channels, grid, samples, depth or workers"
    fewest: ClassVar[int] = 2

    def drawn_net(self, net: Net) -> Net:
        """What is drawn: of a chain with the units of a family, that family's net (`as_family`)."""
        return as_family(net)

    def settled(self, net: Net) -> Self:
        """This measure, checked against the net and with its choices made; TypeError, ValueError if it does not fit."""
        return self

    @abstractmethod
    def cost(self, net: Net) -> Cost:
        """What one draw costs."""

    def together(self, net: Net) -> int:
        """How many draws are carried together, as `cost` has it."""
        return self.cost(net).together

    def multiple(self, net: Net) -> int:
        """Draws that are made whole: chunks hold a multiple of so many."""
        return 1

    def bytes(self, net: Net, draws: int) -> int:
        """The memory at the peak of so many draws in one process, which carries some of them at a time."""
        cost = self.cost(net)
        return min(draws, cost.together) * cost.bytes

    def result_bytes(self, net: Net, draws: int) -> int:
        """What all draws find together, where that is much."""
        return 0

    def require_memory(self, net: Net, draws: int, workers: int) -> None:
        """Raise MemoryError, saying how much is needed, unless so many workers can draw at once.

        On a device they need its memory, and raise as `meanfield.simulation.arrays.arrays_of` without one.
        """
        if self.backend != "numpy":
            if workers:  # not those of a scheduler, whose machines are theirs
                cost = self.cost(net)
                require_device_memory(self.backend, cost.together, cost.bytes, workers, self.remedy)
            return
        needed = workers * self.bytes(net, draws) + self.result_bytes(net, draws)
        require_bytes(needed, f"drawing with {workers} worker(s)", self.remedy)

    @abstractmethod
    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """The numbers of these draws, by name."""

    @abstractmethod
    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        """What all draws say together; ``attrs`` are those of the run."""

    def describe(self) -> dict[str, Any]:
        """The measure as plain values."""
        return {"measure": type(self).__name__, **self.options}

    @property
    def options(self) -> dict[str, Any]:
        """The fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


def require_measure(measure: Any) -> None:
    """Raise TypeError unless this is a measure."""
    require_instance("measure", measure, Measure, "measures, such as meanfield.Energies(), or a list of them")
