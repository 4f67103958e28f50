"""Printing to a reader that may leave early, as `python -m sims.NAME | head` does."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

# The status that shells give a program which the signal SIGPIPE has ended: 128 + 13.
READER_LEFT = 141


def while_read(work: Callable[[], int]) -> int:
    """The status of ``work``, or `READER_LEFT`, without a word, once nobody reads what it prints.

    What is left in the buffer is written here, not while Python ends, where a closed pipe could only be complained of.
    """
    try:
        status = work()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_LEFT
    return status
