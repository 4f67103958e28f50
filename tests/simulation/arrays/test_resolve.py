"""What is said where CuPy or a device is missing, before any work starts."""

from types import SimpleNamespace

import pytest

import meanfield as mf
from meanfield.execution import chunks
from meanfield.simulation import arrays
from tests import strict_arrays

NET = mf.MLP(depth=2, width=4)
INSTALL = r'pip install -e "\.\[cuda12\]"'


class CUDARuntimeError(RuntimeError):
    """As CuPy's."""


def _refuse(chunk):
    raise AssertionError("no work may start")


@pytest.fixture
def module(monkeypatch):
    """The stand-in in the place of the module, with all that is asked of it before a draw; no draw is made."""
    fake = strict_arrays.namespace()
    fake.cuda.runtime.getDeviceCount = lambda: 1
    fake.cuda.runtime.CUDARuntimeError = CUDARuntimeError
    monkeypatch.setattr(arrays, "import_module", lambda name: fake if name == "cupy" else None)
    monkeypatch.setattr(chunks, "compute_chunk", _refuse)
    arrays.arrays_of.cache_clear()
    yield fake
    arrays.arrays_of.cache_clear()


def _simulated():
    mf.simulate(NET, draws=2, seed=0, backend="cupy")


def test_without_cupy_the_install_line_is_given(module, monkeypatch):
    def absent(name):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(arrays, "import_module", absent)
    with pytest.raises(ModuleNotFoundError, match=f"needs CuPy, which is not installed .*{INSTALL}"):
        _simulated()


def test_without_a_driver_the_device_is_missed(module):
    def count():
        raise CUDARuntimeError("cudaErrorInsufficientDriver: too old")

    module.cuda.runtime.getDeviceCount = count
    with pytest.raises(OSError, match=f"needs a CUDA device, .*InsufficientDriver.* backend 'numpy'.*{INSTALL}"):
        _simulated()


def test_without_a_visible_device_it_is_missed(module):
    module.cuda.runtime.getDeviceCount = lambda: 0
    with pytest.raises(OSError, match="none is visible"):
        _simulated()


def test_without_cudas_libraries_the_install_line_is_given(module):
    class Missing:
        def __getattr__(self, name):
            raise ImportError("Failure finding libcurand.so")

    module.cuda.curand = Missing()
    with pytest.raises(ModuleNotFoundError, match=f"no CUDA libraries .*libcurand.*{INSTALL}"):
        _simulated()


def test_a_device_too_small_says_how_much_is_needed(module, monkeypatch):
    monkeypatch.setattr(arrays, "_cupy", lambda: (module, strict_arrays.special_functions()))
    with pytest.raises(MemoryError, match=r"1 networks at once .* needs about .* GiB, the device has 8 GiB; lower"):
        mf.simulate(mf.MLP(depth=64, width=8192), draws=2, seed=0, backend="cupy", weights="dense")


@pytest.mark.parametrize(
    ("net", "options", "message"),
    [
        (NET, {"backend": "torch"}, "backend is 'torch'; choose one of 'numpy', 'cupy'"),
        (NET, {"precision": "float16"}, "precision is 'float16'; choose one of 'float64', 'float32'"),
        (mf.TiedLoop(depth=2, width=4), {"backend": "cupy"}, "a TiedLoop is walked by backend 'numpy' in float64"),
        (mf.TiedLoop(depth=2, width=4), {"precision": "float32"}, "a TiedLoop is walked by backend 'numpy' in float64"),
    ],
)
def test_names_that_do_not_serve(net, options, message):
    with pytest.raises(ValueError, match=message):
        mf.simulate(net, draws=2, seed=0, **options)


def test_the_device_is_named_in_the_record(module, monkeypatch):
    monkeypatch.setattr(arrays, "_cupy", lambda: (module, SimpleNamespace(ndtr=None, expit=None, erf=None)))
    assert arrays.device_described("cupy") == {"device": "stand-in", "cupy": module.__version__}
    assert arrays.device_described("numpy") == {}
