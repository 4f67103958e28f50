"""Computing chunks on any number of processes, keeping what is finished, and stopping cleanly."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context

from threadpoolctl import threadpool_limits
from tqdm import tqdm

from meanfield.execution import chunks
from meanfield.execution.chunks import Chunk, Pieces
from meanfield.execution.storage import PieceStore


def all_pieces(wanted: list[Chunk], workers: int, store: PieceStore | None) -> list[Pieces]:
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


def _computed(tasks: list[tuple[int, Chunk]], workers: int) -> Iterator[tuple[int, Pieces]]:
    """Yield (index, numbers) of every task as it is finished."""
    if workers == 1 or len(tasks) <= 1:
        with threadpool_limits(1):
            for index, chunk in tasks:
                yield index, chunks.compute_chunk(chunk)
        return
    pool = ProcessPoolExecutor(min(workers, len(tasks)), mp_context=get_context("spawn"), initializer=_prepare_worker)
    try:
        with _interrupts_held():
            indices = {pool.submit(chunks.compute_chunk, chunk): index for index, chunk in tasks}
        for future in as_completed(indices):
            yield indices[future], future.result()
    finally:
        with _interrupts_held():
            pool.shutdown(cancel_futures=True)


def _prepare_worker() -> None:
    """One thread per worker: no oversubscription."""
    threadpool_limits(1)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold back Ctrl-C while processes start and stop; they inherit the mask, so it is the parent's business alone."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
