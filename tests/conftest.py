"""Settings of the suite: one thread for its small matrix products, and which random examples hypothesis tries.

The suite tries the same examples in every run. ``pytest -m hypothesis --hypothesis-profile explore`` tries new ones,
and says after a failure with which ``--hypothesis-seed`` they come again.
"""

import fcntl
import gc
import os
import signal
from collections.abc import Mapping
from contextlib import contextmanager

# Before any library is loaded; threads that wait for each other take longer than the products of tests.
for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
# The references in JAX are compiled for small products: without optimisation and fusion in a third of the time. A JAX
# that does not know one of these flags (0.8 and 0.10 know all) names it and ends; XLA_FLAGS="" tests without them.
_WITHOUT = "backend_optimization_level=0", "llvm_disable_expensive_passes=true", "cpu_use_fusion_emitters=false"
_IN_ONE_PART = "cpu_parallel_codegen_split_count=1"
os.environ.setdefault("XLA_FLAGS", " ".join(f"--xla_{flag}" for flag in (*_WITHOUT, _IN_ONE_PART)))

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

# Shells let what runs in the background ignore Ctrl-C, and so would the commands that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_SHARED = {"deadline": None, "max_examples": 40, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("suite", derandomize=True, **_SHARED)
settings.register_profile("explore", print_blob=True, **_SHARED)
settings.load_profile("suite")


def pytest_collection_finish():
    """Modules and thousands of tests stay: no search for cycles of garbage has to pass through them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(1000 * gc.get_threshold()[0])


def pytest_sessionfinish():
    """What is left at the end stays: pytest searches it five times for errors that garbage hides, here it is once."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def no_overlap_energies():
    """For tests that read none; what is drawn besides is the same."""
    from tests.draws import terms_alone

    with terms_alone():
        yield


@pytest.fixture(scope="session")
def smoke(tmp_path_factory):
    """All claims at the smallest sizes: a folder with dataset, printed report and empty figure of every simulation.

    In this process, whose neighbours go on meanwhile. No published claim rests on a law of one's own.
    """
    from sims import simulation
    from sims.claims.__main__ import COMMAND as claims
    from tests.sims.commands import figures_left_out

    with _locked_folder(tmp_path_factory) as (folder, finished):
        if not finished.seek(0, os.SEEK_END):
            with figures_left_out():
                assert claims.main(["--preset", "smoke", "--workers", "1", "--out", str(folder)]) == 0
                simulation("depth_law").finished(["--preset", "smoke", "--seed", "0"], folder / "depth_law.nc")
            finished.write("whole")
    return folder


@pytest.fixture(scope="session")
def smoke_run(tmp_path_factory):
    """The dataset of a simulation's smoke run without further options, which the run of all claims reads or leaves."""
    import xarray as xr

    from sims import simulation
    from tests.sims.commands import figures_left_out

    def run(name):
        with _locked_folder(tmp_path_factory) as (folder, _):
            folder.mkdir(exist_ok=True)
            path, experiment = folder / f"{name}.nc", simulation(name)
            if path.exists():
                return xr.load_dataset(path, engine="netcdf4")
            seed = ["--seed", "0"] if "seed" in experiment.parse([]) else []
            with figures_left_out():
                return experiment.finished(["--preset", "smoke", *seed], path)

    return run


@contextmanager
def _locked_folder(tmp_path_factory):
    """The folder of smoke runs, with the file that says whether it is whole; who comes second waits for the first."""
    folder = _of_all_processes(tmp_path_factory) / "claims"
    with folder.with_suffix(".finished").open("a+") as finished:
        fcntl.flock(finished, fcntl.LOCK_EX)  # until the file is closed
        yield folder, finished


def _of_all_processes(tmp_path_factory):
    """The temporary folder of the session, one level above those of its processes under pytest-xdist."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def smoke_runs(smoke):
    """The datasets of these runs, by the name of the run; those that `smoke_run` adds to the folder do not count."""
    from sims.claims.catalogue import CLAIMS

    return Stored(smoke, {"depth_law"}.union(*(claim.runs for claim in CLAIMS.values())))


class Stored(Mapping):
    """The datasets of a folder of these names, each loaded when it is first asked for."""

    def __init__(self, folder, names):
        self._paths = {path.stem: path for path in sorted(folder.glob("*.nc")) if path.stem in names}
        self._loaded = {}

    def __getitem__(self, name):
        import xarray as xr

        if name not in self._loaded:
            self._loaded[name] = xr.load_dataset(self._paths[name], engine="netcdf4")
        return self._loaded[name]

    def __iter__(self):
        return iter(self._paths)

    def __len__(self):
        return len(self._paths)
