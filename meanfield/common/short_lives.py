"""What a process with one thing to do leaves out: Dask, and most looks for garbage."""

import atexit
import gc
import sys


def leave_out_dask() -> None:
    """Let this process do without Dask for good: xarray loads it where it is installed, which takes half a second."""
    sys.modules.setdefault("dask", None)  # type: ignore[arg-type]  # a module whose import fails


def collect_seldom() -> None:
    """Let this process look for cycles of garbage rarely, and not at its end: 300,000 objects of imports never go."""
    gc.set_threshold(100 * gc.get_threshold()[0])
    atexit.register(gc.freeze)
