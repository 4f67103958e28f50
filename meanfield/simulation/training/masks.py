"""What dropout keeps in one forward pass of nets in training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from meanfield.common.seeds import stream


@dataclass(frozen=True)
class Masks:
    """Masks of D nets at one step, drawn in the order in which the pass asks for them; nets of one seed share them."""

    seeds: Sequence[int]
    step: int

    def of_nets(self, nets: slice) -> Masks:
        """Those of some nets, for a pass of their own."""
        return Masks(self.seeds[nets], self.step)

    def drawn(self, rate: float, shape: Sequence[int]) -> NDArray[np.bool_]:
        """Which of the values (D, C, B, S) are kept, each with probability 1 - rate."""
        own: dict[int, Any] = {
            seed: source.random(shape[1:], dtype=np.float32) >= rate for seed, source in self._sources.items()
        }
        return np.stack([own[seed] for seed in self.seeds])

    @cached_property
    def _sources(self) -> dict[int, Generator]:
        return {seed: stream(seed, "dropout", self.step) for seed in self.seeds}
