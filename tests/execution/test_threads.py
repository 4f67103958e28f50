"""Worker processes keep their matrix products on one thread."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from threadpoolctl import threadpool_info

from meanfield.execution.chunks import one_thread


def _threads():
    """Threads of every BLAS once all that tasks use is loaded."""
    import meanfield.execution.chunks  # noqa: F401

    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def _in_a_worker(initializer):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=initializer) as pool:
        return pool.submit(_threads).result()


def test_one_thread_in_every_library(monkeypatch):
    for library in ("OPENBLAS", "OMP", "MKL"):  # which the suite sets for itself
        monkeypatch.delenv(f"{library}_NUM_THREADS", raising=False)
    limited = _in_a_worker(one_thread)
    assert limited
    assert set(limited) == {1}
