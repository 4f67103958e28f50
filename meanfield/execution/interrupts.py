"""Ctrl-C and SIGTERM while other processes start and stop."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker

from meanfield.common.signals import termination_held


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold back Ctrl-C and SIGTERM while processes start and stop.

    They inherit the mask of Ctrl-C, so that it is the parent's business alone; of SIGTERM, by which they are stopped,
    there is none to inherit.
    """
    with termination_held():
        if not hasattr(signal, "pthread_sigmask"):
            yield
            return
        # Starting with the first process, the tracker would let Ctrl-C through again; so it starts before.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
