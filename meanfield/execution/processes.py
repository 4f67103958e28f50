"""Processes of this machine that work for this one; none of them outlives it."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, current_process, get_context, parent_process, resource_tracker
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any

from meanfield.common.signals import TERMINATED, termination_held

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
