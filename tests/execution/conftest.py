"""Processes that tests start find their kernels compiled."""

import pytest

import meanfield as mf


@pytest.fixture(scope="session", autouse=True)
def _kernels():
    """Else each would compile them for itself, several at a time."""
    net = mf.ConvNet(depth=2, channels=4, grid=(4, 4), kernel=(3, 3), readout="convolution")
    for weights in ("dense", "lazy"):
        mf.simulate(net, draws=2, seed=0, weights=weights)
