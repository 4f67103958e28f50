"""Printing to a reader that may leave early, as `python -m sims.NAME | head` does, or is not there at all."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable

# The status that shells give a program which the signal SIGPIPE has ended: 128 + 13.
READER_LEFT = 141


def while_read(work: Callable[[], int]) -> int:
    """The status of ``work``, or `READER_LEFT`, without a word, once nobody reads what it prints.

    What is left in the buffer is written here, not while Python ends, where a closed pipe could only be complained of.

    Raises:
        OSError: no room for what is printed, where that goes to a file.
    """
    _open_closed()
    try:
        status = work()
        sys.stdout.flush()
    except BrokenPipeError:
        _forget()
        return READER_LEFT
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename is not None:
            raise
        _forget()
        raise OSError(f"cannot write to the standard output: {error.strerror}") from error
    return status


def _open_closed() -> None:
    """Streams that are closed from the start (>&-) take what is printed nowhere, before a file takes their place."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (it is open as long as the program runs)


def _forget() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
