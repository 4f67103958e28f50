"""Tests of models of PyTorch run on one thread, as all others do, and each from the same seed."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def _one_seed(_one_thread):
    """Weights that a test's model draws for itself are the same alone, in any order and on any worker."""
    pytest.importorskip("torch").manual_seed(0)
