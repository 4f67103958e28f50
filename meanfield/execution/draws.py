"""What all runs have: a number of draws and a seed, and what their datasets say of them."""

from __future__ import annotations

from typing import Any

from meanfield.execution.provenance import provenance
from meanfield.seeds import checked_seed
from meanfield.validation import require_draws, settle


class Draws:
    """How many networks a run draws, and the root of all their streams, checked when the run is made."""

    draws: int
    seed: int

    def __post_init__(self) -> None:
        settle(self, draws=require_draws("draws", self.draws), seed=checked_seed(self.seed))

    def attrs(self, **machine: str) -> dict[str, Any]:
        """What every measured dataset says of itself; seeds are text, as files hold no integers beyond 64 bits."""
        how = {"seed": str(self.seed), "draws": self.draws}
        return {"level": "measured", **how, "provenance": provenance(**how, **machine)}
