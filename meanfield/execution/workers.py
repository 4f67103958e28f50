"""Who computes chunks: processes of this machine, none of which outlives this one, or a Dask scheduler's workers.

Workers of a scheduler may come, go and die while others continue.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing import active_children, current_process, get_context, parent_process, resource_tracker
from multiprocessing.process import BaseProcess
from platform import node
from threading import Thread
from typing import Any

from meanfield.common.validation import require_count, settle
from meanfield.execution import chunks
from meanfield.execution.chunks import Chunk, TimedPieces, one_thread
from meanfield.execution.digests import code_digest
from meanfield.signals import TERMINATED, termination_held

LOCAL = "local"
ADDRESS = re.compile(r"(tcp|tls)://.+:\d+")


@dataclass(frozen=True)
class Workers:
    """Who computes the draws: processes of this machine, or the workers of a Dask scheduler; no number depends on it.

    Attributes:
        processes: number of processes on this machine, at least 1; 1 computes in this process, None takes one process
            for every core, unless the work ends in this one before others would have begun.
        scheduler: None for plain processes; "local" for that many processes under a Dask scheduler that lives as long
            as the work; or the address of a running scheduler, "tcp://HOST:PORT", whose workers, on any machines, may
            come and go. They need this same version of the library, and one thread each.

    Raises:
        TypeError, ValueError: a bad count or address, or a count together with the address of a running scheduler.
        ModuleNotFoundError: a scheduler without dask.distributed. All before any work starts.

    Examples:
        >>> import meanfield as mf
        >>> alone = mf.Workers(1)  # draws in this process
        >>> mf.simulate(mf.MLP(depth=2, width=16), draws=4, seed=0, workers=alone).attrs["draws"]
        4
    """

    processes: int | None = None
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if self.processes is not None:
            settle(self, processes=require_count("workers", self.processes, why="processes"))
        if self.scheduler is None:
            return
        if not isinstance(self.scheduler, str) or not (self.scheduler == LOCAL or ADDRESS.fullmatch(self.scheduler)):
            raise ValueError(f"scheduler is {self.scheduler!r}; give its address, tcp://HOST:PORT, or 'local'")
        if self.remote and self.processes is not None:
            raise ValueError(
                f"workers is {self.processes}, but those of the scheduler at {self.scheduler} are already running; "
                "give a number of workers or the address of a scheduler, not both"
            )
        if find_spec("distributed") is None:
            raise ModuleNotFoundError(
                "a scheduler needs dask.distributed, which is not installed; "
                'install it with: python -m pip install -e ".[cluster]"'
            )

    @classmethod
    def of(cls, workers: int | Workers) -> Workers:
        """`Workers` of a number of processes; `Workers` are returned unchanged."""
        return workers if isinstance(workers, cls) else cls(require_count("workers", workers))

    @property
    def remote(self) -> bool:
        """Whether the workers were started by someone else, perhaps on other machines."""
        return self.scheduler not in (None, LOCAL)

    @property
    def here(self) -> int:
        """How many workers are known to share the memory of this machine."""
        return 0 if self.remote else self.processes or os.cpu_count() or 1


# Seconds that a process has to finish the file that it writes: once it is told to stop, or once its parent is gone.
GRACE = 10.0
ORPHANED = 4.0
KILLED = (
    "a process was killed from outside, as for want of memory; the same command continues from the pieces that are "
    "finished; fewer --workers need less"
)
UNGUARDED = (
    "the worker processes ended before they began: each first imports the main script, which must not call this on "
    'import; put the call under `if __name__ == "__main__":`, in a script that is a file, or take workers=1'
)


@contextmanager
def pool(count: int, prepare: Callable[..., None], *arguments: Any) -> Iterator[ProcessPoolExecutor]:
    """An executor of ``count`` fresh processes, each made ready by ``prepare(*arguments)``; an early end stops them.

    Raises:
        ChildProcessError: a process was killed, or none could begin.
    """
    leave_import()
    already_running, context = set(active_children()), get_context("spawn")
    begun = context.Semaphore(0)
    ready: dict[str, Any] = {"initializer": _begin, "initargs": (begun, prepare, *arguments)}
    executor = ProcessPoolExecutor(count, mp_context=context, **ready)
    try:
        yield executor
    except BaseException as error:
        with interrupts_held():
            _stop([process for process in active_children() if process not in already_running])
            _let_go_of_results(executor)
        if isinstance(error, BrokenProcessPool):
            raise ChildProcessError(KILLED if begun.acquire(block=False) else UNGUARDED) from None
        raise
    finally:
        with interrupts_held():
            executor.shutdown(cancel_futures=True)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold back Ctrl-C, SIGHUP and SIGTERM while processes start and stop.

    Processes inherit the mask of Ctrl-C and of SIGHUP, which terminals send to all of them, so that their parent alone
    handles it. SIGTERM, by which they are stopped, is held without a mask, so that they inherit none.
    """
    with termination_held():
        if not hasattr(signal, "pthread_sigmask"):
            yield
            return
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
        try:
            # The tracker of semaphores inherits that mask, too. It would let Ctrl-C through again if it started with
            # the first process; so it starts before.
            resource_tracker.ensure_running()
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave_import() -> None:
    """End this process, without a message, if it is a worker that still imports the main script.

    The script's call is not guarded, and the worker would start workers of its own; its parent reports that.
    """
    if getattr(current_process(), "_inheriting", False):
        raise SystemExit(1)


def _begin(begun: Any, prepare: Callable[..., None], *arguments: Any) -> None:
    Thread(target=_follow_parent, daemon=True).start()
    prepare(*arguments)
    begun.release()


def _follow_parent() -> None:
    """End this process when the one that started it is gone, however it ended: by SIGTERM, and by force if need be."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(ORPHANED)
        os._exit(TERMINATED)


def _stop(processes: list[BaseProcess]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(GRACE)
        process.kill()


def _let_go_of_results(executor: ProcessPoolExecutor) -> None:
    """Close this process's own end, for writing, of the pipe in which results come.

    A process that was stopped while it sent one has sent a part. The executor would wait for the rest for ever, as long
    as somebody could write it. It has no public name for this end.
    """
    executor._result_queue._writer.close()  # type: ignore[attr-defined]


# Seconds in which a scheduler must answer.
PATIENCE = 10
# How often a task that raises is tried again, so that one sick machine does not end a run.
RETRIES = 3

# Starts one chunk on some worker.
Submit = Callable[[Chunk], Future[TimedPieces]]


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


def compute_chunk_as(chunk: Chunk, code: str) -> TimedPieces:
    """The chunk's numbers and seconds, computed by a worker, whose code must be that of the process that asks."""
    if code_digest() != code:
        raise ValueError(
            f"a worker on {node()} has other code of meanfield, or under it, ({code_digest()}) than this process "
            f"({code}), and might draw other numbers; install the same versions of meanfield, NumPy, SciPy and Numba "
            "on all machines and restart the workers"
        )
    one_thread()
    return chunks.timed_chunk(chunk)


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
