"""Compiled loops that are kept on disk are those of the code that stands there."""

import importlib
import sys

import pytest

CALLEE = "from meanfield.common.compiled import compiled\n\nSHIFT = {shift}\n\n\n@compiled({options})\n"
CALLEE += "def inner(x):\n    return {factor} * x + SHIFT\n"
CALLER = "from meanfield.common.compiled import compiled\nfrom {package}.callee import inner\n\n\n@compiled()\n"
CALLER += "def outer(x):\n    return inner(x) + 1.0\n"


@pytest.fixture
def outer(tmp_path, monkeypatch):
    """A compiled loop that calls one of another file, as a new process would find it after that was written."""
    package = f"kept_{tmp_path.name}"
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("")
    (tmp_path / package / "caller.py").write_text(CALLER.format(package=package))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr("numba.core.config.CACHE_DIR", "")  # beside the code, wherever else others are kept

    def loaded(factor, shift=0.0, options=""):
        (tmp_path / package / "callee.py").write_text(CALLEE.format(factor=factor, shift=shift, options=options))
        for name in [name for name in sys.modules if name.partition(".")[0] == package]:
            del sys.modules[name]
        importlib.invalidate_caches()
        return importlib.import_module(f"{package}.caller").outer

    yield loaded
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]


def _cache(tmp_path, ending):
    return sorted(tmp_path.glob(f"*/__pycache__/caller.outer*.{ending}"))


def test_a_loop_is_compiled_again_where_one_that_it_calls_has_changed(outer, tmp_path):
    """With Numba's own index, the second line gave 7 and the third 10 (the numbers of what stood there before)."""
    assert outer(2.0)(3.0) == 7.0
    assert outer(3.0)(3.0) == 10.0
    assert outer(3.0, shift=5.0)(3.0) == 15.0
    again = outer(2.0)
    assert again(3.0) == 7.0
    assert sum(again.stats.cache_hits.values()) == 1, "what has not changed is found"


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("left", [0, 10, -10])
def test_a_damaged_file_is_made_again(outer, tmp_path, ending, left):
    assert outer(2.0)(3.0) == 7.0
    (path,) = _cache(tmp_path, ending)
    path.write_bytes(path.read_bytes()[:left])
    made_again, found = outer(2.0), outer(2.0)
    assert made_again(3.0) == found(3.0) == 7.0
    assert sum(made_again.stats.cache_hits.values()) == 0
    assert sum(outer(2.0).stats.cache_hits.values()) == 0
    last = outer(2.0)
    assert last(3.0) == 7.0
    assert sum(last.stats.cache_hits.values()) == 1


def test_loops_run_where_nothing_can_be_kept(outer, tmp_path, monkeypatch):
    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", _full)
    assert outer(2.0)(3.0) == 7.0
    assert not _cache(tmp_path, "nbc")


def _full(*_):
    raise OSError(28, "No space left on device")
