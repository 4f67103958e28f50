"""Computing chunks on any number of processes, keeping what is finished, and stopping cleanly."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import as_completed
from contextlib import ExitStack, closing, contextmanager

from threadpoolctl import threadpool_limits
from tqdm import tqdm

from meanfield.common.signals import terminable
from meanfield.execution import chunks
from meanfield.execution.chunks import Chunk
from meanfield.execution.cluster import Submit, cluster
from meanfield.execution.interrupts import interrupts_held
from meanfield.execution.processes import leave_import, pool
from meanfield.execution.storage import PieceStore
from meanfield.execution.team import Workers
from meanfield.execution.threads import one_thread
from meanfield.simulation.measures.base import Pieces


def all_pieces(wanted: list[Chunk], workers: Workers, store: PieceStore | None) -> list[Pieces]:
    """Every chunk's numbers in order: from the store where they are, computed and stored where not."""
    found = [store.load(chunk.key) if store else None for chunk in wanted]
    missing = [index for index, piece in enumerate(found) if piece is None]
    done = len(wanted) - len(missing)
    computed = closing(_computed([(index, wanted[index]) for index in missing], workers))
    shown = tqdm(total=len(wanted), initial=done, unit="chunk", delay=2, disable=None, leave=False)
    with shown as progress, computed as pieces:
        for index, piece in pieces:
            if store:
                store.save(wanted[index].key, piece)
            found[index] = piece
            progress.update()
    return [piece for piece in found if piece is not None]


def _computed(tasks: list[tuple[int, Chunk]], workers: Workers) -> Generator[tuple[int, Pieces]]:
    """Yield (index, numbers) of every task as it is finished."""
    if not tasks or (workers.scheduler is None and (workers.here == 1 or len(tasks) == 1)):
        with threadpool_limits(1):
            for index, chunk in tasks:
                yield index, chunks.compute_chunk(chunk)
        return
    leave_import()
    with terminable(), ExitStack() as stack:
        with interrupts_held():
            submit = stack.enter_context(_processes(workers, tasks) if workers.scheduler is None else cluster(workers))
            indices = {submit(chunk): index for index, chunk in tasks}
        for future in as_completed(indices):
            # Popped, so that a scheduler need not hold what has arrived here.
            yield indices.pop(future), future.result()


@contextmanager
def _processes(workers: Workers, tasks: list[tuple[int, Chunk]]) -> Iterator[Submit]:
    """Chunks go to processes of this machine."""
    with pool(min(workers.here, len(tasks)), one_thread) as executor:
        yield lambda chunk: executor.submit(chunks.compute_chunk, chunk)
