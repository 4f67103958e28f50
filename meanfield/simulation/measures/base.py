"""What a measure is: what is read off the draws of a net, what that costs, and the dataset of it."""

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
from meanfield.simulation.groups import require_device_memory

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
