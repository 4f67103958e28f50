"""Who computes: refusals that need no scheduler, and the options of every simulation that draws."""

import argparse
from itertools import pairwise

import pytest

import meanfield as mf
import sims
from meanfield.execution import workers as team
from meanfield.execution.chunks import MOST_CHUNKS, MOST_DRAWS_PER_CHUNK
from meanfield.execution.run import Run
from meanfield.simulation.measures.energies import Energies
from sims import simulation as simulation_module
from sims.common.command import add_worker_options, worker_arguments

MODULES = sims.NAMES
SIZED = [name for name in MODULES if simulation_module(name).presets]
DRAWING = [name for name in SIZED if "workers" in simulation_module(name).parse([])]
SCHEDULER = "tcp://host:8786"


@pytest.fixture(autouse=True)
def with_dask(monkeypatch):
    """As where dask.distributed is installed; nothing here connects."""
    monkeypatch.setattr(team, "find_spec", lambda name: name)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ((0,), ValueError, "workers is 0; it must be at least 1"),
        ((True,), TypeError, "workers is True"),
        ((2.0,), TypeError, "workers is 2.0"),
        ((None, "host:8786"), ValueError, "scheduler is 'host:8786'; give its address, tcp://HOST:PORT, or 'local'"),
        ((None, "tcp://host"), ValueError, "scheduler is 'tcp://host'"),
        ((2, SCHEDULER), ValueError, "give a number of workers or the address of a scheduler, not both"),
    ],
)
def test_bad_workers_are_refused(given, error, message):
    with pytest.raises(error, match=message):
        mf.Workers(*given)


def test_without_dask_the_line_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(team, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install -e \"\.\[cluster\]\""):
        mf.Workers(scheduler="local")
    assert mf.Workers(2).here == 2


def test_only_workers_of_this_machine_share_its_memory():
    assert [mf.Workers(3).here, mf.Workers(3, "local").here, mf.Workers(scheduler=SCHEDULER).here] == [3, 3, 0]
    assert mf.Workers().here >= 1


@pytest.mark.parametrize("name", DRAWING)
def test_every_simulation_takes_a_scheduler_and_forgets_it(name):
    """The command in a dataset makes its numbers, wherever they are made."""
    parse = simulation_module(name).parse
    plain = parse(["--seed", "1"])
    for words in (["--scheduler", SCHEDULER], [f"--scheduler={SCHEDULER}"]):
        elsewhere = parse([*words, "--seed", "1"])
        assert elsewhere.scheduler == SCHEDULER
        assert elsewhere.command == plain.command


@pytest.mark.parametrize("workers", [mf.Workers(), mf.Workers(2), mf.Workers(2, "local"), mf.Workers(None, "local")])
def test_commands_inside_commands_get_the_same_workers(workers):
    parser = argparse.ArgumentParser()
    add_worker_options(parser)
    options = parser.parse_args(worker_arguments(workers))
    assert mf.Workers(options.workers, options.scheduler) == workers


def test_every_simulation_that_draws_is_seen():
    assert {"cnn_overlap", "looped_energy", "residual_depth", "claims"} <= set(DRAWING)


@pytest.mark.parametrize("draws", [2, 1000, 10**6 + 1, 10**8])
def test_long_runs_have_few_chunks(draws):
    chunks = Run(mf.ConvNet(depth=12, channels=128, grid=(8, 8), kernel=(3, 3)), Energies(), draws, 0).chunks()
    assert len(chunks) <= max(MOST_CHUNKS, draws / MOST_DRAWS_PER_CHUNK)
    assert [chunks[0].start, chunks[-1].stop] == [0, draws]
    assert all(chunk.stop == following.start for chunk, following in pairwise(chunks))


def test_runs_without_end_are_refused():
    with pytest.raises(ValueError, match="draws is 1000000000; it must be at most 100,000,000"):
        Run(mf.MLP(depth=2, width=8), Energies(), 10**9, 0).chunks()
