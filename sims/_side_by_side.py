"""Several simulations at once, each in one process of its own.

A simulation alone starts its processes, imports, and ends with work that only one of them does: side by side, cores are
busy meanwhile.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from threading import RLock
from typing import Any, TypeVar

from tqdm import tqdm

from meanfield.execution.futures import result_of
from meanfield.execution.interrupts import interrupts_held
from meanfield.execution.threads import one_thread
from meanfield.memory import share_machine

Job = TypeVar("Job")
Outcome = TypeVar("Outcome")

STOPPED = 128 + signal.SIGTERM
# Seconds that a process has to leave its files whole when it is told to stop.
GRACE = 10.0


def side_by_side(
    work: Callable[[Job], Outcome], jobs: Sequence[Job], processes: int
) -> Iterator[tuple[int, Outcome, str]]:
    """Yield (index, outcome, what was said on stderr) of every job as it is finished, so many at a time.

    Whatever ends this early stops the other processes, which find their finished pieces when they are run again.

    Raises:
        SystemExit: with the status of the first job that refused or failed to finish, after printing what it said.
        ChildProcessError: a process was killed.
    """
    with _pool(processes) as pool:
        with interrupts_held():
            indices = {pool.submit(_told, work, job): index for index, job in enumerate(jobs)}
        for future in as_completed(indices):
            outcome, status, said = result_of(future)
            if status is not None:
                print(said, end="", file=sys.stderr)
                raise SystemExit(status)
            yield indices.pop(future), outcome, said


@contextmanager
def _pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that leave Ctrl-C to this one, and are stopped when it goes on or is itself told to stop."""
    others = set(active_children())
    options: dict[str, Any] = {"initializer": _start, "initargs": (processes,)}
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"), **options)
    try:
        with _stopped_by_an_exception():
            yield pool
    finally:
        with interrupts_held():
            mine = [process for process in active_children() if process not in others]
            for process in mine:
                process.terminate()
            for process in mine:
                process.join(GRACE)
                process.kill()
            pool.shutdown(cancel_futures=True)


def _start(processes: int) -> None:
    """One thread, a share of the memory, and progress bars by a lock that a stopped process does not leave behind."""
    one_thread()
    share_machine(processes)
    tqdm.set_lock(RLock())


def _told(work: Callable[[Job], Outcome], job: Job) -> tuple[Any, Any, str]:
    """(outcome, None, stderr) of a job, or (None, status, stderr) where it leaves with a status."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), _stopped_by_an_exception():
            return work(job), None, said.getvalue()
    except SystemExit as leaving:
        if leaving.code == STOPPED:
            os._exit(STOPPED)  # the job has cleaned up, and the pool would only hand out the next
        return None, leaving.code, said.getvalue()
    except Exception:
        print(said.getvalue(), end="", file=sys.stderr)
        raise


@contextmanager
def _stopped_by_an_exception() -> Iterator[None]:
    """Leave no file half written, and no process behind, when this process is told to stop."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(STOPPED))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
