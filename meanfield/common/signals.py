"""SIGTERM: what it ends leaves files whole and no process behind.

An exception could end a program in the middle of an import or of a library's own work, some of which do not survive
that. So SIGTERM raises one only where other processes are to be stopped, waits while a file is written, and may end all
else at once, as nothing is lost there.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import current_thread, main_thread
from typing import Any, NoReturn

# The status that shells give a program which SIGTERM has ended.
TERMINATED = 128 + signal.SIGTERM


class Terminated(SystemExit):
    """This process was told to stop by SIGTERM; a program that does not look ends with the status `TERMINATED`."""


@contextmanager
def when_terminated(act: Callable[[], object]) -> Iterator[None]:
    """Let SIGTERM do this until the end of the block; where the program has a handler of its own, that one stays.

    Only the main thread can set a handler; nothing changes in others.
    """
    before = signal.getsignal(signal.SIGTERM)
    own = before is signal.SIG_DFL or isinstance(before, _Reaction)
    if not own or current_thread() is not main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, _Reaction(act))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def terminable() -> AbstractContextManager[None]:
    """Let SIGTERM raise `Terminated` until the end of the block, so that processes that were started are stopped."""
    return when_terminated(_raise)


@contextmanager
def termination_held() -> Iterator[None]:
    """Let SIGTERM do what it does once the block is done."""
    told: list[bool] = []
    try:
        with when_terminated(lambda: told.append(True)):
            yield
    finally:
        if told:
            signal.raise_signal(signal.SIGTERM)


class _Reaction:
    """A handler that is known to be of this module."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.act = act

    def __call__(self, *_: Any) -> None:
        self.act()


def _raise() -> NoReturn:
    raise Terminated(TERMINATED)
