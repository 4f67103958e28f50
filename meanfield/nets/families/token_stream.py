"""What nets share whose depth units are one block, over and over, on a stream of tokens."""

from __future__ import annotations

from abc import abstractmethod

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
