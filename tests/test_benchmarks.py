"""The benchmarks run, their arithmetic is right, and no simulation that draws is left out. Speeds are not tested."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import meanfield as mf
import sims
from benchmarks import gpu_training, limits, table
from benchmarks.counting import counted
from benchmarks.test_simulations import NAMES
from meanfield.simulation import arrays
from meanfield.simulation.measures import base
from meanfield.simulation.measures.energies import draw_energies
from tests import strict_arrays

ROOT = Path(mf.__file__).parent.parent


@pytest.mark.parametrize(("least", "calls"), [(0.0, 1), (1.0, 1), (5.0, 1 + 3)])
def test_a_demand_takes_its_share_of_the_limit(monkeypatch, least, calls):
    passed = []
    monkeypatch.setattr(limits, "clock", lambda: 2.0 * len(passed))
    monkeypatch.setattr(limits, "LEAST_SECONDS", least)
    limit = limits.Limit("four in two seconds", lambda: passed.append(1), 4.0)
    assert limits.Demand(limit, 6.0).seconds() == 3.0
    assert len(passed) == calls


def test_random_numbers_of_lazy_and_dense_draws_are_all_counted():
    net = mf.MLP(depth=3, width=512, outputs=7)
    lazy = counted(lambda: draw_energies(net, 0, range(2), weights="lazy"))
    dense = counted(lambda: draw_energies(net, 0, range(2), weights="dense"))
    # A column forward, two back and two along, per layer; nothing is carried below the first.
    assert lazy.numbers == 2 * (512 + 2 * 5 * 512 + net.outputs + 2 * 512)
    assert lazy.operations == 0
    assert lazy.revealed > 0
    weights = 3 * 512**2 + net.outputs * 512
    assert dense.numbers == 2 * weights
    assert dense.revealed == 0
    assert dense.operations == 2 * 2 * (512**2 + 2 * 5 * 512**2 + 3 * net.outputs * 512)


@pytest.mark.parametrize(
    ("seconds", "words"), [(2.0, "2 s"), (0.01234, "12.3 ms"), (5e-5, "50 us"), (2.5e-8, "25 ns"), (2e-10, "0.2 ns")]
)
def test_durations(seconds, words):
    assert table.duration(seconds) == words


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (7.4e10, "FLOP", "74 GFLOP/s"),
        (1.5e4, "B", "15 kB/s"),
        (3.1e8, "numbers", "310 M numbers/s"),
        (0.5, "draws", "0.5 draws/s"),
    ],
)
def test_rates(value, unit, words):
    assert table.rate(value, unit) == words


def test_the_quick_suite_runs_and_every_simulation_that_draws_has_its_line(tmp_path):
    pytest.importorskip("pytest_benchmark")
    written = tmp_path / "benchmarks.md"
    command = [sys.executable, "-m", "benchmarks", "--quick", "--out", str(written)]
    # As from a shell: what says that this process is one of several would disable the benchmarks.
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ran = subprocess.run(command, cwd=ROOT, env=alone, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in written.read_text().splitlines()]
    timed = [cells for cells in lines if len(cells) == len(table.COLUMNS) and cells[0] not in ("what", "---")]
    preset = {name for name in sims.NAMES if sims.simulation(name).presets}
    # The first runs the others; the last three draw nothing.
    assert set(NAMES) == preset - {"claims", "identities", "learning_rate_scale", "reported_losses"}
    assert set(NAMES) <= {cells[0].partition(":")[0] for cells in timed}
    fractions = [float(cells[-1].split()[0]) for cells in timed]
    assert all(0 < fraction < float("inf") for fraction in fractions)


@pytest.mark.parametrize("name", ["gpu_draws", "gpu_training"])
def test_without_a_device_they_say_so(name, monkeypatch, capsys):
    def absent(*_):
        raise OSError("no device")

    module = import_module(f"benchmarks.{name}")
    monkeypatch.setattr(module, "arrays_of", absent)
    monkeypatch.setattr(sys, "argv", [name])
    assert module.main() == 0
    assert capsys.readouterr().out == "skipped: no device\n"


@pytest.mark.parametrize("name", ["residual MLP, n = 64, L = 16", "residual CNN, 16 channels, L = 8"])
def test_pytorch_trains_the_same_nets_on_a_device(name, monkeypatch):
    """By the stand-in for one, and by PyTorch on the processor."""
    pytest.importorskip("torch")
    modules = strict_arrays.namespace(), strict_arrays.special_functions()
    monkeypatch.setattr(arrays, "_cupy", lambda: modules)
    arrays.arrays_of.cache_clear()
    net = gpu_training.NETS[name]
    measure = gpu_training.measure_of(net, "cupy", 3)
    monkeypatch.setattr(base, "MOST_DRAWS_PER_GROUP", 4)
    peer = gpu_training.ByTorch(net, measure, "cpu", compiled=False)
    theirs = peer.losses(gpu_training.COMPARED)
    np.testing.assert_allclose(theirs, gpu_training.ours(net, measure, gpu_training.COMPARED), rtol=1e-5)
    assert theirs.shape == (3, gpu_training.COMPARED)
    arrays.arrays_of.cache_clear()
