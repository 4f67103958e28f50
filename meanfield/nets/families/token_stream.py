"""What nets share whose depth units are one block, over and over, on a stream of tokens."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

from meanfield.nets.net import Net
from meanfield.nets.units import Unit


class TokenStream(Net):
    """A net of ``depth`` blocks, all with the maps of the first one, on ``tokens`` tokens."""

    depth: int
    tokens: int
    activation: str
    outputs: int
    readout: str

    @property
    @abstractmethod
    def block(self) -> tuple[Unit, ...]:
        """The depth units of the first block."""

    @cached_property
    def is_tied(self) -> bool:
        """Whether blocks share weights; two of them tell, where a list of all takes minutes to make."""
        return self.replace(depth=2).is_tied if self.depth > 2 else super().is_tied
