"""What this process takes of its machine: no more memory than there is, one thread for its matrix products, and
time.

What takes long says how far it is, and what would take hours is refused with what it would take. A process with one
thing to do leaves out Dask, and most looks for garbage.
"""

import atexit
import gc
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from pathlib import Path
from threading import Event, Thread
from typing import Any, ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController
from tqdm import tqdm

from meanfield.common.validation import require_count

NUMBER_BYTES = 8
# Seconds of a processor beyond which a prediction is refused.
LONGEST_SECONDS = 3600.0
# Work that takes so long says so on a terminal, and from then on at this interval.
UNSAID_SECONDS, BEAT_SECONDS = 2.0, 1.0

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


# Processes, this one included, that do independent work on the memory of this machine.
_sharing = 1


def share_machine(processes: int) -> None:
    """From now on grant this process no more than its share of the machine's memory."""
    global _sharing
    _sharing = require_count("processes", processes, why="this one and those beside it")


def require_bytes(
    needed: float, what: str, remedy: str, present: int | None = None, owner: str = "the machine"
) -> None:
    """Raise MemoryError, saying how much is needed and what to lower, if ``owner`` has less memory in all."""
    if present is None:
        present = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // _sharing
        owner = owner if _sharing == 1 else f"{owner}, for each of {_sharing} simulations,"
    if needed > present:
        raise MemoryError(f"{what} needs about {_gib(needed)}, {owner} has {_gib(present)}; lower {remedy}")


def seconds_refusal(needed: float, what: str, remedy: str) -> str:
    """About how long it would take and what to do instead, where that is more than an hour; empty if it is not."""
    if needed <= LONGEST_SECONDS:
        return ""
    hours = f"{needed / 3600:.2g} hours of a processor; more than {LONGEST_SECONDS / 3600:g} is refused"
    return f"{what} takes about {hours}: {remedy}"


def machine_described() -> str:
    """Its cores, and their kind as the system names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not on Linux
        lines = []
    kinds = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return f"{os.cpu_count()} cores, {next(kinds, platform.processor() or platform.machine())}"


def progress(steps: Iterable[T], total: int, unit: str) -> Iterable[T]:
    """The steps as they are, with a bar on a terminal once they have taken two seconds, as that of drawing."""

    return tqdm(steps, total=total, unit=unit, delay=UNSAID_SECONDS, disable=None, leave=False) if total > 1 else steps


def says_how_long(function: Callable[P, R]) -> Callable[P, R]:
    """The function, of which a terminal is told, once it has taken two seconds, what is computed and for how long.

    A bar of `progress` moves when a step ends: what comes before the first of them, and steps that are long, would be
    silent. Of such functions that call each other the outermost says so.
    """

    @wraps(function)
    def said(*given: P.args, **named: P.kwargs) -> R:
        with _beating(function.__name__):
            return function(*given, **named)

    return said


# What is computed, and says so.
_told: list[str] = []


@contextmanager
def _beating(what: str) -> Iterator[None]:
    if _told:
        yield
        return
    bar = tqdm(desc=what, bar_format="{desc}: {elapsed}", delay=UNSAID_SECONDS, disable=None, leave=False)
    ended = Event()

    def beat() -> None:
        wait = UNSAID_SECONDS
        while not ended.wait(wait):
            bar.update(0)
            wait = BEAT_SECONDS

    beats = Thread(target=beat, daemon=True)
    _told.append(what)
    try:
        if not bar.disable:
            beats.start()
        yield
    finally:
        _told.clear()
        ended.set()
        if beats.ident is not None:
            beats.join()
        bar.close()


def on_one_thread() -> Any:
    """Matrix products of all libraries that are loaded stay on one thread: to the end of a ``with``, or from now on.

    Those here are many and small, and threads would wait for one another.
    """
    return _libraries(len(sys.modules)).limit(limits=1)


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """The libraries that have threads, looked for anew only once more modules are loaded: a search takes 4 ms."""
    return ThreadpoolController()


def _gib(count: float) -> str:
    return f"{count / 2**30:.3g} GiB"


def collect_seldom() -> None:
    """Let this process look for cycles of garbage rarely, and not at its end: 300,000 objects of imports never go."""
    gc.set_threshold(100 * gc.get_threshold()[0])
    atexit.register(gc.freeze)
