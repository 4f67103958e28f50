"""Several simulations at once, each in one process of its own.

A simulation alone starts its processes, imports, and ends with work that only one of them does: side by side, cores are
busy meanwhile.
"""

import contextlib
import io
import os
import sys
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import as_completed
from threading import RLock
from typing import Any, TypeVar

from tqdm import tqdm

from meanfield.common import TERMINATED, share_machine, terminable, when_terminated
from meanfield.execution import interrupts_held, one_thread, pool

Job = TypeVar("Job")
Outcome = TypeVar("Outcome")


def side_by_side(
    work: Callable[[Job], Outcome], jobs: Sequence[Job], processes: int
) -> Generator[tuple[int, Outcome, str]]:
    """Yield (index, outcome, what was said on stderr) of every job as it is finished, so many at a time.

    Whatever ends this early stops the other processes, which find their finished pieces when they are run again.

    Raises:
        SystemExit: with the status of the first job that refused or failed to finish, after printing what it said.
        ChildProcessError: a process was killed.
    """
    with terminable(), pool(processes, _start, processes) as executor:
        with interrupts_held():
            indices = {executor.submit(_told, work, job): index for index, job in enumerate(jobs)}
        for future in as_completed(indices):
            outcome, status, said = future.result()
            if status is not None:
                print(said, end="", file=sys.stderr)
                raise SystemExit(status)
            yield indices.pop(future), outcome, said


def _start(processes: int) -> None:
    """One thread, a share of the memory, and progress bars by a lock that a stopped process does not leave behind."""
    one_thread()
    share_machine(processes)
    tqdm.set_lock(RLock())


def _told(work: Callable[[Job], Outcome], job: Job) -> tuple[Any, Any, str]:
    """(outcome, None, stderr) of a job, or (None, status, stderr) where it leaves with a status."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), when_terminated(lambda: os._exit(TERMINATED)):
            return work(job), None, said.getvalue()
    except SystemExit as leaving:
        return None, leaving.code, said.getvalue()
    except Exception:
        print(said.getvalue(), end="", file=sys.stderr)
        raise
