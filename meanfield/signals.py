"""What ends a program from outside: Ctrl-C, SIGTERM, a terminal that closes (SIGHUP), a reader of its output that
leaves.

An exception could end a program in the middle of an import or of a library's own work, some of which do not survive
that. So these signals raise one only where other processes are to be stopped, wait while a file is written, and may
end all else at once, as nothing is lost there.

This module stands in no room, as a command that only prints a list needs it, and no room loads in no time.
"""

import atexit
import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import current_thread, main_thread
from typing import Any, NoReturn

__all__ = [
    "ENDINGS",
    "INTERRUPTED",
    "TERMINATED",
    "Terminated",
    "end_when_interrupted",
    "interrupts_raised",
    "terminable",
    "termination_held",
    "when_terminated",
    "while_read",
]

# SIGHUP, of a terminal that closes, tells a program the same as SIGTERM does; some systems have none.
ENDINGS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
# The statuses that shells give a program which Ctrl-C, SIGTERM, or SIGPIPE (13), has ended.
INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM
READER_LEFT = 128 + 13


class Terminated(SystemExit):
    """A signal told this process to stop; a program that does not catch this ends with the status `TERMINATED`."""


def when_terminated(act: Callable[[], object]) -> AbstractContextManager[None]:
    """Let every signal of `ENDINGS` call ``act`` until the end of the block.

    One that the program has a handler of its own for stays as it is, as does one that is ignored, as SIGHUP is under
    nohup. Only the main thread can set a handler; nothing changes in others.
    """
    return _reacting(lambda number: act())


@contextmanager
def _reacting(act: Callable[[int], object]) -> Iterator[None]:
    """Act at a signal as `when_terminated` does, with the number of the signal."""
    before = {number: signal.getsignal(number) for number in ENDINGS}
    if current_thread() is not main_thread():
        yield
        return
    ours = [number for number, handler in before.items() if handler is signal.SIG_DFL or isinstance(handler, _Reaction)]
    for number in ours:
        signal.signal(number, _Reaction(act))
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, before[number])


def terminable() -> AbstractContextManager[None]:
    """Let `ENDINGS` raise `Terminated` until the end of the block, so that processes that were started are stopped."""
    return when_terminated(_raise)


@contextmanager
def termination_held() -> Iterator[None]:
    """Let the signals of `ENDINGS` take effect only after the block."""
    told: list[int] = []
    try:
        with _reacting(told.append):
            yield
    finally:
        for number in dict.fromkeys(told):
            signal.raise_signal(number)


class _Reaction:
    """A handler that is known to be of this module."""

    def __init__(self, act: Callable[[int], object]) -> None:
        self.act = act

    def __call__(self, number: int, _: Any) -> None:
        self.act(number)


def _raise() -> NoReturn:
    raise Terminated(TERMINATED)


def end_when_interrupted() -> None:
    """Let Ctrl-C end the process at once, with one line and the status `INTERRUPTED`: for commands, while they load.

    Only the main thread can set a handler, and one of the program's own stays as it is. Once the work is done, and
    Python takes down what was loaded, Ctrl-C changes nothing: Python would give the signal back to the system by then,
    which kills the process without a word, and large libraries take half a second to be taken down.
    """
    if current_thread() is main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
        atexit.register(_last)


# Whether Ctrl-C has raised in the work of a command.
_raised: list[bool] = []


def _last() -> None:
    """Leave Ctrl-C alone for good: Python gives every handler back to the system as it ends, but not this one.

    Where Ctrl-C has raised, end here with its status: if the exception has passed through a library that runs Python
    code from C, as PyTorch does while it loads, Python would kill itself by the signal, whatever its status is.
    """
    if signal.getsignal(signal.SIGINT) in (_end, signal.default_int_handler):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if _raised:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(INTERRUPTED)


@contextmanager
def interrupts_raised() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt until the end of the block, also where it would end the process at once."""
    if signal.getsignal(signal.SIGINT) is not _end:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        _raised.append(True)
        raise
    finally:
        signal.signal(signal.SIGINT, _end)


def _end(number: int, frame: Any) -> NoReturn:
    with suppress(OSError, AttributeError):  # nobody may read it, or it is kept from the terminal
        os.write(sys.stderr.fileno(), b"\ninterrupted\n")
    os._exit(INTERRUPTED)


def while_read(work: Callable[[], int]) -> int:
    """The status of ``work``, or `READER_LEFT`, without a message, once nobody reads what it prints.

    The buffer is flushed here: while Python ends, it could only complain of a closed pipe.

    Raises:
        OSError: no room for what is printed, where that goes to a file.
    """
    for name in ("stdout", "stderr"):
        # Streams that are closed from the start (>&-) get the null device, before a file takes their place.
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (it is open as long as the program runs)
    try:
        status = work()
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()
        return READER_LEFT
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename is not None:
            raise
        _forget_output()
        raise OSError(f"cannot write to the standard output: {error.strerror}") from error
    return status


def _forget_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
