"""One thread per worker: no oversubscription. (Compiled kernels here are serial; only matrix products would thread.)"""

from __future__ import annotations

from threadpoolctl import threadpool_limits


def one_thread() -> None:
    """Keep matrix products of this process on one thread from now on."""
    threadpool_limits(1)
