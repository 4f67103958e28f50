"""One run: draws of one net, and what is read off them; and several runs on one set of workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common.seeds import checked_seed
from meanfield.common.validation import require_draws, settle
from meanfield.execution.chunks import Chunk, plan
from meanfield.execution.provenance import provenance
from meanfield.execution.storage import PieceStore
from meanfield.execution.team import Workers
from meanfield.execution.workers import all_pieces
from meanfield.simulation.measures.base import Pieces


@dataclass(frozen=True)
class Run:
    """Draws of a net under a measure, checked when the run is made.

    Attributes:
        net: what is drawn, a `Net`.
        measure: what is read off every draw, a `Measure`.
        draws: how many, at least 2.
        seed: the root of all streams.
    """

    net: Any
    measure: Any
    draws: int
    seed: int

    def __post_init__(self) -> None:
        settle(self, draws=require_draws("draws", self.draws), seed=checked_seed(self.seed))
        settle(self, measure=self.measure.settled(self.net))

    def chunks(self) -> list[Chunk]:
        """The plan of this run."""
        whole = Chunk(self.net, self.measure, self.seed, 0, self.draws)
        return plan(whole, self.measure.operations(self.net), self.measure.multiple(self.net))

    def require_memory(self, workers: int) -> None:
        """Raise MemoryError unless so many workers can draw at once."""
        self.measure.require_memory(self.net, self.draws, workers)

    def dataset(self, pieces: list[Pieces]) -> xr.Dataset:
        """The dataset of all finished chunks, in order; seeds are text, as files hold no integers beyond 64 bits."""
        values = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        how: dict[str, Any] = {"seed": str(self.seed), "draws": self.draws}
        record = provenance(**how, **self.measure.machine())
        return self.measure.dataset(self.net, values, {"level": "measured", **how, "provenance": record})


def simulate_all(
    runs: Sequence[Run], *, workers: int | Workers = 1, store: PieceStore | None = None
) -> list[xr.Dataset]:
    """Several runs on one set of workers, with one progress bar; checks all before any starts."""
    workers = Workers.of(workers)
    plans = [run.chunks() for run in runs]
    for run in runs:
        run.require_memory(workers.here)
    pieces = iter(all_pieces([chunk for chunks in plans for chunk in chunks], workers, store))
    return [run.dataset([next(pieces) for _ in chunks]) for run, chunks in zip(runs, plans, strict=True)]


def simulate_one(run: Run, workers: int | Workers, resume_in: Path | None) -> xr.Dataset:
    """One run, with finished pieces kept in a folder if one is given."""
    return simulate_all([run], workers=workers, store=None if resume_in is None else PieceStore(Path(resume_in)))[0]
