"""What a measure is: what is read off the draws of a net, what that costs, and what a dataset says of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Self

import xarray as xr

from meanfield.common.arrays import Array
from meanfield.common.machine_memory import require_bytes
from meanfield.nets.net import Net

# Numbers of every draw by name, each (draws, ...).
Pieces = dict[str, Array]


class Measure(ABC):
    """What is read off every draw of a net, as frozen data: passing a measure asks for what it gives.

    A draw's numbers depend on the net, the measure, the seed and the draw alone.
    """

    def settled(self, net: Net) -> Self:
        """This measure, checked against the net and with its choices made; TypeError, ValueError if it has no place."""
        return self

    @abstractmethod
    def kind(self, net: Net) -> str:
        """The kind of weights that is drawn."""

    @abstractmethod
    def operations(self, net: Net) -> float:
        """Floating-point operations of a draw, all else counted as those that take the same time."""

    @abstractmethod
    def together(self, net: Net) -> int:
        """How many draws to carry at once; it changes speed, never a number."""

    def multiple(self, net: Net) -> int:
        """Draws that are made whole: chunks hold a multiple of so many."""
        return 1

    @abstractmethod
    def bytes(self, net: Net, draws: int) -> int:
        """Bytes at the peak of so many draws in one process."""

    def require_memory(self, net: Net, draws: int, workers: int) -> None:
        """Raise MemoryError, saying how much is needed, unless so many workers can draw at once."""
        needed = workers * self.bytes(net, draws)
        require_bytes(needed, f"drawing with {workers} worker(s)", "width, channels, grid, samples, depth or workers")

    @abstractmethod
    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """The numbers of these draws, by name."""

    @abstractmethod
    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        """What all draws say together; ``attrs`` are those of the run."""

    def machine(self) -> dict[str, str]:
        """What a record says of the machine beside its processor."""
        return {}

    def describe(self) -> dict[str, Any]:
        """The measure as plain values."""
        return {"measure": type(self).__name__, **{one.name: getattr(self, one.name) for one in fields(self)}}  # type: ignore[arg-type]
