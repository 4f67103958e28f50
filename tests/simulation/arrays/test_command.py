"""--backend and --precision: they reach the draws, the name of the run and its record, and are refused in one line."""

import json
from itertools import product

import pytest

from meanfield.simulation import arrays
from meanfield.theory import exact
from meanfield.transfer import tuning
from sims import simulation as simulation_module
from sims.common import results
from tests.sims.commands import assert_refused, finished_run

FAR = ["--far-lines", "4", "5", "6", "--far-squares", "4"]
# The simulations, with sizes at which their theory takes no time.
SIMULATIONS = {
    "batch_size": ["--batches", "1", "2", "3", "--depth", "2"],
    "cnn_overlap": ["--depth", "2"],
    "cnn_padding": ["--lines", "4", "--squares", "4", "--depths", "1", "2", "3", *FAR],
    "cross_entropy": [],
    "mlp_depth": ["--depth", "2"],
    "residual_depth": [],
}
SINGLE = ["--backend", "cupy", "--precision", "float32"]


class Planned(Exception):
    """What would have been drawn."""


@pytest.fixture
def planned(monkeypatch):
    """Run a command as far as its draws: the name of the run, and how to learn what it would draw."""

    def plan(simulation, arguments):
        datasets = []
        monkeypatch.setattr(
            results.Results, "deliver", lambda self, measure, *_: datasets.extend([self.run_key, measure]) or 0
        )
        module = simulation_module(simulation)
        assert module.main(["--preset", "smoke", *SIMULATIONS[simulation], *arguments]) == 0
        return datasets

    def stop(wanted, **_):
        raise Planned(wanted)

    monkeypatch.setattr(results, "simulate_all", stop)
    for spread in ("label_spread", "relative_spread"):  # the slow part of what stands beside the draws
        monkeypatch.setattr(exact, spread, lambda net: [1.0] * net.depth)
    return plan


@pytest.mark.parametrize("simulation", SIMULATIONS)
def test_both_reach_every_draw_and_the_name_of_the_run(cupy, planned, simulation):
    choices = product(("numpy", "cupy"), ("float64", "float32"))
    names = [planned(simulation, ["--backend", backend, "--precision", kind])[0] for backend, kind in choices]
    assert len(set(names)) == 4
    measure = planned(simulation, SINGLE)[1]
    with pytest.raises(Planned) as wanted:
        measure()
    assert {(run.measure.backend, run.measure.precision) for run in wanted.value.args[0]} == {("cupy", "float32")}


def test_a_run_records_them_and_stays_in_one_process(cupy, tmp_path, monkeypatch):
    simulation = simulation_module("cnn_overlap")
    drawn, seen = results.simulate_all, []

    def noted(wanted, *, workers, store):
        seen.append(workers)
        return drawn(wanted, workers=workers, store=store)

    monkeypatch.setattr(results, "simulate_all", noted)
    tiny = ["--depth", "2", "--channels", "4", "--grid", "4", "--draws", "8"]
    dataset = finished_run(simulation, [*tiny, *SINGLE], tmp_path / "run.nc")
    assert (dataset.attrs["backend"], dataset.attrs["precision"]) == ("cupy", "float32")
    assert "--backend cupy" in dataset.attrs["command"]
    assert {"code", "seeds", "device", "cupy"} <= set(json.loads(dataset.attrs["provenance"]))
    assert seen[0].processes == 1


@pytest.mark.parametrize("simulation", ["cnn_overlap", "mlp_depth"])
def test_a_missing_device_is_one_line(simulation, tmp_path, capsys, monkeypatch):
    def absent(name):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(arrays, "import_module", absent)
    arrays.arrays_of.cache_clear()
    module = simulation_module(simulation)
    assert_refused(module, ["--preset", "smoke", "--backend", "cupy"], 'pip install -e ".[cuda12]"', tmp_path, capsys)


def test_another_name_is_one_line(tmp_path, capsys):
    module = simulation_module("mlp_depth")
    with pytest.raises(SystemExit) as refusal:
        module.main(["--backend", "torch", "--out", str(tmp_path / "run.nc")])
    assert refusal.value.code == 2
    assert "choose from" in capsys.readouterr().err


@pytest.mark.parametrize("simulation", ["learning_rate_search", "learning_rate_transfer", "looped_rates"])
def test_simulations_that_train_hand_it_to_every_net(cupy, monkeypatch, simulation):
    """To the nets whose rates are searched for, and to the name of the run."""
    backends, keys, planned_run = set(), [], tuning.training_run

    def noted(*given, **how):
        backends.add(how["backend"])
        return planned_run(*given, **how)

    monkeypatch.setattr(tuning, "training_run", noted)
    monkeypatch.setattr(results.Results, "deliver", lambda self, *_: keys.append(self.run_key) or 0)
    for backend in ("numpy", "cupy"):
        backends.clear()
        assert simulation_module(simulation).main(["--preset", "smoke", "--backend", backend]) == 0
        assert backends == {backend}
    assert keys[0] != keys[1]
