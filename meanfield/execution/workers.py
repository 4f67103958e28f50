"""Computing chunks on any number of processes, keeping what is finished, and stopping cleanly."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context

from threadpoolctl import threadpool_limits
from tqdm import tqdm

from meanfield.execution import chunks
from meanfield.execution.chunks import Chunk, Pieces
from meanfield.execution.cluster import Submit, cluster
from meanfield.execution.futures import result_of
from meanfield.execution.interrupts import interrupts_held
from meanfield.execution.storage import PieceStore
from meanfield.execution.team import Workers
from meanfield.execution.threads import one_thread


def all_pieces(wanted: list[Chunk], workers: Workers, store: PieceStore | None) -> list[Pieces]:
    """Every chunk's numbers in order: from the store where they are, computed and stored where not."""
    found = [store.load(chunk.key) if store else None for chunk in wanted]
    missing = [index for index, piece in enumerate(found) if piece is None]
    done = len(wanted) - len(missing)
    with tqdm(total=len(wanted), initial=done, unit="chunk", delay=2, disable=None, leave=False) as progress:
        for index, piece in _computed([(index, wanted[index]) for index in missing], workers):
            if store:
                store.save(wanted[index].key, piece)
            found[index] = piece
            progress.update()
    return [piece for piece in found if piece is not None]


def _computed(tasks: list[tuple[int, Chunk]], workers: Workers) -> Iterator[tuple[int, Pieces]]:
    """Yield (index, numbers) of every task as it is finished."""
    if not tasks or (workers.scheduler is None and (workers.here == 1 or len(tasks) == 1)):
        with threadpool_limits(1):
            for index, chunk in tasks:
                yield index, chunks.compute_chunk(chunk)
        return
    with ExitStack() as stack:
        with interrupts_held():
            submit = stack.enter_context(_processes(workers, tasks) if workers.scheduler is None else cluster(workers))
            indices = {submit(chunk): index for index, chunk in tasks}
        for future in as_completed(indices):
            # Popped, so that a scheduler need not hold what has arrived here.
            yield indices.pop(future), result_of(future)


@contextmanager
def _processes(workers: Workers, tasks: list[tuple[int, Chunk]]) -> Iterator[Submit]:
    """Chunks go to processes of this machine."""
    count = min(workers.here, len(tasks))
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=one_thread)
    try:
        yield lambda chunk: pool.submit(chunks.compute_chunk, chunk)
    finally:
        with interrupts_held():
            pool.shutdown(cancel_futures=True)
