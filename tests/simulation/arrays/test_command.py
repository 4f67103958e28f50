"""--backend and --precision: they reach the draws, the name of the run and its record, and are refused in one line."""

import importlib

import pytest

from meanfield.execution import runs
from meanfield.simulation.arrays import resolve
from sims._command import Results
from tests.sims.commands import assert_refused, finished_run

SIMULATIONS = ("batch_size", "cnn_overlap", "cnn_padding", "cross_entropy", "mlp_depth", "residual_depth")
SINGLE = ["--backend", "cupy", "--precision", "float32"]


class Planned(Exception):
    """What would have been drawn."""


@pytest.fixture
def planned(monkeypatch):
    """Run a command as far as its draws: the name of the run, and what it would draw."""

    def plan(simulation, arguments):
        names = []
        monkeypatch.setattr(Results, "deliver", lambda self, measure, *_: names.append(self.run_key) or measure())
        module = importlib.import_module(f"sims.{simulation}")
        with pytest.raises(Planned) as wanted:
            module.main(["--preset", "smoke", *arguments])
        return names[0], wanted.value.args[0]

    def stop(wanted, **_):
        raise Planned(wanted)

    monkeypatch.setattr(runs, "simulate_all", stop)
    return plan


@pytest.mark.parametrize("simulation", SIMULATIONS)
def test_both_reach_every_draw_and_the_name_of_the_run(cupy, planned, simulation):
    name, drawn = planned(simulation, [])
    assert {(run.backend, run.precision) for run in drawn} == {("numpy", "float64")}
    other, drawn = planned(simulation, SINGLE)
    assert {(run.backend, run.precision) for run in drawn} == {("cupy", "float32")}
    assert other != name


def test_a_run_records_them_and_stays_in_one_process(cupy, tmp_path, monkeypatch):
    simulation = importlib.import_module("sims.cnn_overlap")
    wide = runs.simulate_all
    seen = []
    monkeypatch.setattr(runs, "simulate_all", lambda *a, workers, **k: seen.append(workers) or wide(*a, workers=1, **k))
    tiny = ["--depth", "2", "--channels", "4", "--grid", "4", "--draws", "8"]
    dataset = finished_run(simulation, [*tiny, *SINGLE], tmp_path / "run.nc")
    assert (dataset.attrs["backend"], dataset.attrs["precision"]) == ("cupy", "float32")
    assert "--backend cupy" in dataset.attrs["command"]
    assert seen[0].processes == 1


@pytest.mark.parametrize("simulation", ["cnn_overlap", "mlp_depth"])
def test_a_missing_device_is_one_line(simulation, tmp_path, capsys, monkeypatch):
    def absent(name):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(resolve, "import_module", absent)
    resolve.arrays_of.cache_clear()
    module = importlib.import_module(f"sims.{simulation}")
    assert_refused(module, ["--preset", "smoke", "--backend", "cupy"], 'pip install -e ".[cuda12]"', tmp_path, capsys)


def test_another_name_is_one_line(tmp_path, capsys):
    module = importlib.import_module("sims.mlp_depth")
    with pytest.raises(SystemExit) as refusal:
        module.main(["--backend", "torch", "--out", str(tmp_path / "run.nc")])
    assert refusal.value.code == 2
    assert "choose from" in capsys.readouterr().err
