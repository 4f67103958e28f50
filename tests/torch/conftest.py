"""Tests of models of PyTorch run on one thread, as all others do."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
