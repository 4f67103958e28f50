"""What a process of a pool has computed."""

from __future__ import annotations

from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

Result = TypeVar("Result")


def result_of(future: Future[Result]) -> Result:
    """The result, or what was raised in its place; ChildProcessError where the process was killed."""
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise ChildProcessError(
            "a process was killed from outside, as for want of memory; the same command continues from the pieces that "
            "are finished; fewer --workers need less"
        ) from error
