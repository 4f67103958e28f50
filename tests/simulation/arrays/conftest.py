"""The device of these tests: a strict stand-in on every machine, and CuPy's where there is one."""

import numpy as np
import pytest

from meanfield.common.seeds import stream
from meanfield.simulation import arrays
from meanfield.simulation.measures import base
from tests import strict_arrays


@pytest.fixture(params=["stand-in", pytest.param("device", marks=pytest.mark.gpu)])
def cupy(request, monkeypatch):
    """What stands behind the backend "cupy" for the length of a test, in small groups."""
    arrays.arrays_of.cache_clear()
    if request.param == "stand-in":
        modules = strict_arrays.namespace(), strict_arrays.special_functions()
        monkeypatch.setattr(arrays, "_cupy", lambda: modules)
    else:
        try:
            arrays.arrays_of("cupy", "float64")
        except (ModuleNotFoundError, OSError) as missing:
            pytest.skip(str(missing))
    monkeypatch.setattr(base, "MOST_DRAWS_PER_GROUP", 8)
    yield "cupy"
    arrays.arrays_of.cache_clear()


class HostNormals:
    """The numbers that the host draws, one stream for every draw, on the device."""

    def __init__(self, xp, seed, purpose, draws, precision):
        self._xp, self._precision = xp, precision
        self._generators = [stream(seed, purpose, draw) for draw in draws]

    def drawn(self, shape, deviation):
        drawn = np.stack([deviation * generator.standard_normal(shape[1:]) for generator in self._generators])
        return self._xp.asarray(drawn, dtype=self._precision)


@pytest.fixture
def host_normals(monkeypatch):
    """The device draws the weights that the host draws."""
    monkeypatch.setattr(arrays, "GroupNormals", HostNormals)
    arrays.arrays_of.cache_clear()
