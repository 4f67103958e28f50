"""Several simulations at once, each in one process of its own.

A simulation alone starts its processes, imports, and ends with work that only one of them does: side by side, cores are
busy meanwhile.
"""

from __future__ import annotations

import contextlib
import io
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from threading import RLock
from typing import Any, TypeVar

from tqdm import tqdm

from meanfield.execution.interrupts import interrupts_held
from meanfield.execution.threads import one_thread

Job = TypeVar("Job")
Outcome = TypeVar("Outcome")

STOPPED = 128 + signal.SIGTERM


def side_by_side(
    work: Callable[[Job], Outcome], jobs: Sequence[Job], processes: int
) -> Iterator[tuple[int, Outcome, str]]:
    """Yield (index, outcome, what was said on stderr) of every job as it is finished, so many at a time.

    Raises:
        SystemExit: with the status of the first job that refused or failed to finish, after printing what it said; the
            other processes are stopped, and find their finished pieces when they are run again.
    """
    with _pool(processes) as pool:
        for index, outcome, status, said in pool.imap_unordered(partial(_told, work), list(enumerate(jobs))):
            if status is not None:
                print(said, end="", file=sys.stderr)
                raise SystemExit(status)
            yield index, outcome, said


@contextmanager
def _pool(processes: int) -> Iterator[Any]:
    """Processes that leave Ctrl-C to this one, which stops them whenever it goes on."""
    with interrupts_held():
        pool = get_context("spawn").Pool(processes, initializer=_start)
    try:
        yield pool
    finally:
        with interrupts_held():
            pool.terminate()
            pool.join()


def _start() -> None:
    """One thread; and progress bars by a lock that a process which is stopped does not leave to the system."""
    one_thread()
    tqdm.set_lock(RLock())


def _told(work: Callable[[Job], Outcome], job: tuple[int, Job]) -> tuple[int, Outcome | None, Any, str]:
    """(index, outcome, None, stderr) of a job, or (index, None, status, stderr) where it leaves with a status."""
    index, what = job
    said = io.StringIO()
    with contextlib.redirect_stderr(said), _stopped_by_an_exception():
        try:
            return index, work(what), None, said.getvalue()
        except SystemExit as leaving:
            if leaving.code == STOPPED:
                raise
            return index, None, leaving.code, said.getvalue()


@contextmanager
def _stopped_by_an_exception() -> Iterator[None]:
    """Leave no file half written when this process is told to stop."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(STOPPED))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
