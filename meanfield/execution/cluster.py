"""Computing chunks on the workers of a Dask scheduler, which may come, go and die while others continue."""

import logging
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, contextmanager
from platform import node
from typing import Any

from meanfield.execution import chunks
from meanfield.execution.chunks import Chunk, one_thread
from meanfield.execution.digests import code_digest
from meanfield.execution.processes import UNGUARDED
from meanfield.execution.team import Workers
from meanfield.simulation.measures.base import Pieces

# Seconds in which a scheduler must answer.
PATIENCE = 10
# How often a task that raises is tried again, so that one sick machine does not end a run.
RETRIES = 3

# Starts one chunk on some worker.
Submit = Callable[[Chunk], Future[Pieces]]


@contextmanager
def cluster(workers: Workers) -> Iterator[Submit]:
    """Chunks go to the scheduler's workers, which drop what is unfinished at the end."""
    from distributed import KilledWorker

    with ExitStack() as stack:
        client = _client(workers, stack)
        if not client.scheduler_info()["workers"]:
            print(f"the scheduler at {workers.scheduler} has no workers yet; waiting for some", file=sys.stderr)
        executor, code = client.get_executor(pure=False, retries=RETRIES), code_digest()
        try:
            yield lambda chunk: executor.submit(compute_chunk_as, chunk, code)
        except KilledWorker as error:
            raise MemoryError(
                f"several workers of the scheduler at {workers.scheduler} died computing the same task; most likely "
                "it needs more memory than a worker has: start fewer workers per machine, or lower width or grid"
            ) from error
        except (CancelledError, ValueError) as error:
            # A scheduler that goes while an answer is on its way leaves a future that says neither (a ValueError).
            if isinstance(error, ValueError) and client.status == "running":
                raise
            raise ConnectionError(
                f"the scheduler at {workers.scheduler} went away; finished pieces are kept where the run keeps any, "
                "and the same command continues from them"
            ) from error


def compute_chunk_as(chunk: Chunk, code: str) -> Pieces:
    """The chunk's numbers, computed by a worker, whose code must be that of the process that asks."""
    if code_digest() != code:
        raise ValueError(
            f"a worker on {node()} has other code of meanfield, or under it, ({code_digest()}) than this process "
            f"({code}), and might draw other numbers; install the same versions of meanfield, NumPy, SciPy and Numba "
            "on all machines and restart the workers"
        )
    one_thread()
    return chunks.compute_chunk(chunk)


def _client(workers: Workers, stack: ExitStack) -> Any:
    """A client of the scheduler, which is started here where it is "local"; the stack ends both."""
    from distributed import Client, LocalCluster

    # Errors of the client are raised here in one line; its log would add a traceback.
    log = logging.getLogger("distributed.client")
    stack.callback(log.setLevel, log.level)
    log.setLevel(logging.CRITICAL)
    if workers.remote:
        try:
            return stack.enter_context(Client(workers.scheduler, timeout=PATIENCE))
        except OSError as error:
            raise ConnectionError(
                f"no scheduler answers at {workers.scheduler} within {PATIENCE} s; start one with: dask scheduler"
            ) from error
    alone: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    try:
        here = LocalCluster(n_workers=workers.here, silence_logs=logging.CRITICAL, **alone)
    except RuntimeError as error:
        raise ChildProcessError(f"{UNGUARDED} ({error})") from None
    return stack.enter_context(Client(stack.enter_context(here)))
