"""Processes of this machine that work for this one, and none that outlives it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, current_process, get_context, parent_process
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any

from meanfield.common.signals import TERMINATED
from meanfield.execution.interrupts import interrupts_held

# Seconds that a process has to finish the file that it writes: told to stop by the one that started it, or left by it.
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
    """So many fresh processes, each made ready by ``prepare(*arguments)``; whatever ends this early stops them.

    Raises:
        ChildProcessError: a process was killed, or none could begin.
    """
    leave_import()
    others, context = set(active_children()), get_context("spawn")
    begun = context.Semaphore(0)
    ready: dict[str, Any] = {"initializer": _begin, "initargs": (begun, prepare, *arguments)}
    executor = ProcessPoolExecutor(count, mp_context=context, **ready)
    try:
        yield executor
    except BaseException as error:
        with interrupts_held():
            _stop([process for process in active_children() if process not in others])
        if isinstance(error, BrokenProcessPool):
            raise ChildProcessError(KILLED if begun.acquire(block=False) else UNGUARDED) from None
        raise
    finally:
        with interrupts_held():
            executor.shutdown(cancel_futures=True)


def leave_import() -> None:
    """Where a worker process is still importing the main script: end it, without a word.

    It has come to a call that is not guarded and would start workers of its own; whoever started it says so.
    """
    if getattr(current_process(), "_inheriting", False):
        raise SystemExit(1)


def _begin(begun: Any, prepare: Callable[..., None], *arguments: Any) -> None:
    Thread(target=_follow_parent, daemon=True).start()
    prepare(*arguments)
    begun.release()


def _follow_parent() -> None:
    """End this process when the one that started it is gone, however it went: by SIGTERM, and if need be at once."""
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
