"""Runs: draws of nets under measures, computed on one set of workers, which may stop and continue."""

import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import as_completed
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from tqdm import tqdm

from meanfield.common.machine import on_one_thread
from meanfield.common.seeds import checked_seed
from meanfield.common.signals import terminable
from meanfield.common.validation import require_draws, require_instance, require_instances, settle
from meanfield.execution import chunks
from meanfield.execution.chunks import Chunk, one_thread
from meanfield.execution.cluster import Submit, cluster
from meanfield.execution.digests import provenance
from meanfield.execution.pieces import PieceStore
from meanfield.execution.processes import interrupts_held, leave_import, pool
from meanfield.execution.team import Workers
from meanfield.nets.families.known import require_net
from meanfield.simulation.measures.base import Pieces, require_measure
from meanfield.simulation.weights.slabs import give_back

# Seconds of a processor that a process takes to begin, with what it imports: work that ends before is not shared out.
BEGINNING = 2.0


@dataclass(frozen=True)
class Run:
    """Draws of a net under a measure, checked when the run is made; `simulate_all` computes it.

    Attributes:
        net: what is drawn, a `Net`; of a chain with the units of a family that family's net.
        measure: what is read off every draw, such as `meanfield.Energies()`.
        draws: how many, at least as many as the measure needs, which is 2 for means.
        seed: the root of all streams.

    Raises:
        TypeError, ValueError: what is no net or no measure, a bad count, or a net or options that the measure does not
            serve.
    """

    net: Any
    measure: Any
    draws: int
    seed: int

    def __post_init__(self) -> None:
        require_net(self.net, units=True)
        require_measure(self.measure)
        settle(self, draws=require_draws("draws", self.draws, self.measure.fewest), seed=checked_seed(self.seed))
        settle(self, net=self.measure.drawn_net(self.net))
        settle(self, measure=self.measure.settled(self.net))

    def chunks(self) -> list[Chunk]:
        """The plan of this run."""
        all_draws = Chunk(self.net, self.measure, self.seed, 0, self.draws)
        return chunks.plan(all_draws, self.measure.operations(self.net), self.measure.multiple(self.net))

    def require_memory(self, workers: int) -> None:
        """Raise MemoryError unless so many workers can draw at once."""
        self.measure.require_memory(self.net, self.draws, workers)

    def dataset(self, pieces: list[Pieces]) -> xr.Dataset:
        """The dataset of all finished chunks, in order; seeds are text, as files hold no integers beyond 64 bits."""
        values = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        how: dict[str, Any] = {"seed": str(self.seed), "draws": self.draws}
        record = provenance(**how, **self.measure.machine())
        return self.measure.dataset(self.net, values, {"level": "measured", **how, "provenance": record})


def store_in(resume_in: Any) -> PieceStore | None:
    """Where finished pieces are kept: in this folder, or nowhere."""
    if resume_in is None:
        return None
    return PieceStore(Path(require_instance("resume_in", resume_in, str | PathLike, "the path of a folder, or None")))


def simulate_all(
    runs: Sequence[Run], *, workers: int | Workers = 1, store: PieceStore | None = None
) -> list[xr.Dataset]:
    """Several runs on one set of workers, with one progress bar, as sweeps over nets need them.

    Args:
        runs: each a net, a measure, draws and a seed.
        workers: number of processes, where 1 computes in this one; or `Workers`.
        store: where finished pieces are kept, so that a rerun continues from them.

    Returns:
        One dataset for each run, in order.

    Raises:
        TypeError: what are no runs, no workers or no store.
        MemoryError: more than the machine has; before any run starts.
    """
    runs = require_instances("runs", runs, Run, "runs, such as meanfield.Run(net, meanfield.Energies(), draws, seed)")
    if store is not None:
        require_instance("store", store, PieceStore, "a meanfield.execution.PieceStore of a folder, or None")
    workers = Workers.of(workers)
    plans = [run.chunks() for run in runs]
    for run in runs:
        run.require_memory(workers.here)
    try:
        pieces = iter(_all_pieces([chunk for plan in plans for chunk in plan], workers, store))
    finally:
        give_back()
    return [run.dataset([next(pieces) for _ in plan]) for run, plan in zip(runs, plans, strict=True)]


def _all_pieces(plan: list[Chunk], workers: Workers, store: PieceStore | None) -> list[Pieces]:
    """Every chunk's numbers in order: from the store where they are, computed and stored where not, equal ones once."""
    keys = chunks.keys(plan) if store else [str(number) for number in range(len(plan))]
    draws = {key: chunk.stop - chunk.start for key, chunk in zip(keys, plan, strict=True)}
    stored = {key: store.load(key, count) if store else None for key, count in draws.items()}
    pieces = {key: piece for key, piece in stored.items() if piece is not None}
    missing = {key: chunk for key, chunk in zip(keys, plan, strict=True) if key not in pieces}
    bar = tqdm(total=len(stored), initial=len(pieces), unit="chunk", delay=2, disable=None, leave=False)
    with bar as progress, closing(_computed(list(missing.items()), workers)) as computed:
        for key, piece in computed:
            if store:
                store.save(key, piece)
            pieces[key] = piece
            progress.update()
    return [pieces[key] for key in keys]


def _computed(tasks: list[tuple[str, Chunk]], workers: Workers) -> Generator[tuple[str, Pieces]]:
    """Yield (key, numbers) of every task as it is finished."""
    rest = deque(tasks)
    alone_until = time.process_time() + _seconds_alone(tasks, workers)
    with on_one_thread():
        while rest and workers.scheduler is None and (len(rest) == 1 or time.process_time() < alone_until):
            key, chunk = rest.popleft()
            yield key, chunks.compute_chunk(chunk)
    if not rest:
        return
    leave_import()
    with terminable(), ExitStack() as stack:
        with interrupts_held():
            submit = stack.enter_context(_processes(workers, rest) if workers.scheduler is None else cluster(workers))
            keys = {submit(chunk): key for key, chunk in rest}
        for future in as_completed(keys):
            # Popped, so that a scheduler need not hold what has arrived here.
            yield keys.pop(future), future.result()


def _seconds_alone(tasks: Sequence[tuple[str, Chunk]], workers: Workers) -> float:
    """How long this process works alone before others begin: as long as they take to, if no number of them is given.

    None at all where the work is known to be long.
    """
    if workers.here == 1:
        return float("inf")
    is_long = sum(chunk.seconds for _, chunk in tasks) > 2 * BEGINNING
    return 0.0 if workers.processes or is_long else BEGINNING


@contextmanager
def _processes(workers: Workers, tasks: Sequence[tuple[str, Chunk]]) -> Iterator[Submit]:
    """Chunks go to processes of this machine."""
    with pool(min(workers.here, len(tasks)), one_thread) as executor:
        yield lambda chunk: executor.submit(chunks.compute_chunk, chunk)
