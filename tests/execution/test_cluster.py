"""Workers of a Dask scheduler: the bits of a local run, whatever happens to a worker; refusals in one line."""

import json
import os
import signal
import time
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from threadpoolctl import threadpool_info, threadpool_limits

import meanfield as mf
from meanfield.execution import chunks
from meanfield.execution import workers as cluster
from meanfield.execution.chunks import PieceStore
from meanfield.execution.digests import code_digest
from meanfield.execution.run import Run, simulate_all
from meanfield.simulation.measures.energies import Energies
from meanfield.transfer.tuning import Tuning, tune_all
from sims.common.study import Study
from sims.looped_update import STUDY as looped_update

distributed = pytest.importorskip("distributed", reason="needs the extra cluster")
psutil = pytest.importorskip("psutil", reason="comes with the extra cluster")

NET = mf.ConvNet(depth=3, channels=8, grid=(5,), kernel=(3,))
RUN = Run(NET, Energies(), draws=40, seed=3)
DRAWS_PER_CHUNK = 2
ANY_PORT = "127.0.0.1:0"


@pytest.fixture(scope="module")
def running():
    """A scheduler with two worker processes on the loopback interface."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=ANY_PORT, silence_logs="CRITICAL"
    ) as cluster:
        yield cluster


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(chunks, "MOST_DRAWS_PER_CHUNK", DRAWS_PER_CHUNK)


class Hooked(PieceStore):
    """A store that does something once, when so many pieces are finished."""

    def __init__(self, folder, after, action):
        super().__init__(folder)
        object.__setattr__(self, "saved", [])
        object.__setattr__(self, "after", after)
        object.__setattr__(self, "action", action)

    def save(self, *piece):
        super().save(*piece)
        self.saved.append(piece[0])
        if len(self.saved) == self.after:
            self.action()


def test_a_worker_killed_in_the_middle_changes_no_bit(running, small_chunks, tmp_path):
    with distributed.Client(running) as client:
        victim = next(iter(client.run(os.getpid).values()))
    store = Hooked(tmp_path / "pieces", after=3, action=lambda: os.kill(victim, signal.SIGKILL))
    (drawn,) = simulate_all([RUN], workers=mf.Workers(scheduler=running.scheduler_address), store=store)
    with pytest.raises(ProcessLookupError):
        os.kill(victim, 0)
    assert len(store.saved) == len(set(store.saved)) == len(RUN.chunks()) == RUN.draws // DRAWS_PER_CHUNK
    xr.testing.assert_identical(drawn, simulate_all([RUN], workers=1)[0])


def test_a_search_of_rates_changes_no_bit_where_a_worker_is_killed(running, tmp_path):
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, 64)
    data = random.standard_normal((64, 4)) + 2 * np.eye(3, 4)[labels], labels
    net = mf.MLP(depth=2, width=8, input_width=4, outputs=3)
    tuning = Tuning(net=net, data=data, training={"epochs": 1, "batch_size": 8}, seeds=[1, 2, 3])
    with distributed.Client(running) as client:
        victim = next(iter(client.run(os.getpid).values()))
    store = Hooked(tmp_path / "pieces", after=4, action=lambda: os.kill(victim, signal.SIGKILL))
    (searched,) = tune_all([tuning], workers=mf.Workers(scheduler=running.scheduler_address), store=store)
    with pytest.raises(ProcessLookupError):
        os.kill(victim, 0)
    assert len(store.saved) > 4, "the search went on"
    xr.testing.assert_identical(searched, tune_all([tuning])[0])


def test_a_run_begun_there_is_finished_here(running, small_chunks, tmp_path):
    def interrupt():
        raise KeyboardInterrupt

    workers, folder = mf.Workers(scheduler=running.scheduler_address), tmp_path / "pieces"
    with pytest.raises(KeyboardInterrupt):
        simulate_all([RUN], workers=workers, store=Hooked(folder, after=5, action=interrupt))
    assert len(list(folder.glob("*.npz"))) == 5
    (drawn,) = simulate_all([RUN], workers=1, store=PieceStore(folder))
    xr.testing.assert_identical(drawn, simulate_all([RUN], workers=1)[0])


def test_the_command_writes_the_same_dataset(running, tmp_path, monkeypatch):
    monkeypatch.setattr(Study, "pictures", lambda *_: {})  # most of the time, and tested elsewhere
    arguments = ["--loops", "2", "4", "--width", "16", "--draws", "4"]
    datasets = []
    # Here first: this process then compiles what two workers there would compile at once.
    for name, who in (("here", ["--workers", "1"]), ("there", ["--scheduler", running.scheduler_address])):
        path = tmp_path / f"{name}.nc"
        assert looped_update.main([*arguments, *who, "--out", str(path)]) == 0
        with xr.open_dataset(path, engine="netcdf4") as stored:
            datasets.append(stored.load())
    made = [json.loads(dataset.attrs.pop("made")) for dataset in datasets]
    assert all(run.keys() == {"machine", "processor_seconds"} for run in made), "in which alone they differ"
    xr.testing.assert_identical(*datasets)
    assert datasets[0].attrs["command"] == "python -m sims.looped_update " + " ".join(arguments)


def test_workers_with_other_code_are_refused(running, monkeypatch):
    monkeypatch.setattr(cluster, "code_digest", lambda: "0123")
    with pytest.raises(ValueError, match=r"has other code of meanfield, .* than this process \(0123\)"):
        simulate_all([RUN], workers=mf.Workers(scheduler=running.scheduler_address))


def test_a_task_takes_one_thread_of_its_worker():
    (chunk, *_) = RUN.chunks()
    with threadpool_limits(2):
        assert any(library["num_threads"] == 2 for library in threadpool_info())
        cluster.compute_chunk_as(chunk, code_digest())
        assert all(library["num_threads"] == 1 for library in threadpool_info())


def test_a_task_that_kills_its_workers_is_named(running, monkeypatch):
    monkeypatch.setattr(cluster, "compute_chunk_as", lambda chunk, code: os._exit(1))
    running.scheduler.allowed_failures, before = 0, running.scheduler.allowed_failures
    try:
        with pytest.raises(MemoryError, match=r"died computing the same task; .* start fewer workers per machine"):
            simulate_all([RUN], workers=mf.Workers(scheduler=running.scheduler_address))
    finally:
        running.scheduler.allowed_failures = before


def test_a_scheduler_that_goes_away_is_named(small_chunks, tmp_path):
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=ANY_PORT, protocol="tcp") as passing:
        workers = mf.Workers(scheduler=passing.scheduler_address)
        store = Hooked(tmp_path / "pieces", after=2, action=passing.close)
        # So many chunks that a busy machine has not made them all before the second is saved.
        long = replace(RUN, draws=20 * RUN.draws)
        with pytest.raises(ConnectionError, match="went away; finished pieces are kept"):
            simulate_all([long], workers=workers, store=store)
    assert len(store.saved) < len(long.chunks())


def test_a_future_that_is_lost_with_its_scheduler_says_so():
    """distributed unpacks the answer of a future that is cancelled meanwhile, and raises ValueError."""
    with pytest.raises(ConnectionError, match="went away"):
        _lose_a_future()


def _lose_a_future():
    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=ANY_PORT, protocol="tcp") as passing,
        cluster.cluster(mf.Workers(scheduler=passing.scheduler_address)),
    ):
        passing.close()
        deadline = time.monotonic() + 30
        while distributed.default_client().status == "running" and time.monotonic() < deadline:
            time.sleep(0.01)
        raise ValueError("too many values to unpack (expected 3)")


def test_a_local_scheduler_ends_with_the_run():
    before = set(psutil.Process().children(recursive=True))
    drawn = mf.simulate(NET, draws=4, seed=3, workers=mf.Workers(1, "local"))
    xr.testing.assert_identical(drawn, mf.simulate(NET, draws=4, seed=3))
    assert not [child for child in psutil.Process().children(recursive=True) if child not in before]


def test_no_answer_gets_one_line(monkeypatch, tmp_path, capfd):
    monkeypatch.setattr(cluster, "PATIENCE", 0.2)
    arguments = ["--loops", "2", "4", "--width", "16", "--draws", "4", "--out", str(tmp_path / "run.nc")]
    assert looped_update.main([*arguments, "--scheduler", "tcp://127.0.0.1:1"]) == 2
    shown = capfd.readouterr()
    assert "no scheduler answers at tcp://127.0.0.1:1" in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""
