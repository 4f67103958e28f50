"""One thread per worker: no oversubscription. (Compiled kernels here are serial; only matrix products would thread.)"""

from __future__ import annotations

from threadpoolctl import threadpool_limits

# A limit reaches the libraries that are loaded by then: a fresh process must load all that its tasks will use.
import meanfield.execution.chunks  # noqa: F401


def one_thread() -> None:
    """Keep matrix products of this process on one thread from now on."""
    threadpool_limits(1)
