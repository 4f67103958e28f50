"""Sweeps: every point is the run that its command makes, joined over the grid; refusals before any work."""

import shlex
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from figures import figure_names
from sims import simulation as simulation_module
from sims import sweep as sweep_module
from sims.common import results as _results
from sims.looped_update import STUDY as looped_update
from sims.sweep import COMMAND as sweep
from sims.sweep import combined, planned, read_plan
from tests.sims.commands import figures_left_out

CONFIG = """
simulation = "looped_update"
[fixed]
width = 16
draws = 4
[sweep]
loops = [[2, 4], [2, 8]]
weight-variance = [1.0, 2.0]
"""


def _load(path):
    with xr.open_dataset(path, engine="netcdf4") as stored:
        return stored.load()


def _run(folder, config, name="run"):
    (folder / "config.toml").write_text(config)
    arguments = ["--config", str(folder / "config.toml"), "--workers", "1", "--out", str(folder / f"{name}.nc")]
    return sweep.main(arguments)


@pytest.fixture(scope="module", autouse=True)
def without_figures():
    """They take most of the time of so small runs, and have tests of their own."""
    with figures_left_out():
        yield


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    assert _run(folder, CONFIG) == 0
    return folder, _load(folder / "run.nc")


def test_every_point_is_the_run_that_its_command_makes(swept, tmp_path):
    dataset = swept[1]
    # The datasets have a dim "loops" of their own.
    assert dataset["update_energy"].dims == ("loops_swept", "weight_variance", "update", "alpha", "loops")
    assert dataset["loops_swept"].values.tolist() == ["2 4", "2 8"]
    assert dataset["weight_variance"].values.tolist() == [1.0, 2.0]
    point = dataset.sel(loops_swept="2 8", weight_variance=2.0)
    words = shlex.split(str(point["command"].values))
    assert words[:3] == ["python", "-m", "sims.looped_update"]
    assert looped_update.main([*words[3:], "--workers", "1", "--out", str(tmp_path / "alone.nc")]) == 0
    alone = _load(tmp_path / "alone.nc")
    assert alone.attrs["weight_variance"] == 2.0
    for name, values in alone.data_vars.items():
        np.testing.assert_array_equal(point[name].sel(loops=[2, 8]) if "loops" in values.dims else point[name], values)


def test_ragged_points_join_outer(swept):
    energy = swept[1]["update_energy"]
    assert energy["loops"].values.tolist() == [2, 4, 8]
    np.testing.assert_array_equal(energy.isnull().all(("update", "alpha", "weight_variance")), [[0, 0, 1], [0, 1, 0]])
    assert int(energy.isnull().sum()) == energy.size // 3


def test_points_draw_independently(swept):
    commands = swept[1]["command"].values.ravel()
    seeds = {word for command in commands for word in command.split() if word.startswith("--seed=")}
    assert len(seeds) == len(commands) == 4


def test_an_interrupted_sweep_continues_and_a_longer_one_runs_what_is_new(tmp_path, monkeypatch):
    drawn, interrupted_at = [], 2
    draw = _results.simulate_all

    def counted(*arguments, **options):
        if len(drawn) == interrupted_at:
            raise KeyboardInterrupt
        drawn.append(arguments)
        return draw(*arguments, **options)

    monkeypatch.setattr(_results, "simulate_all", counted)
    config = CONFIG.replace("loops = [[2, 4], [2, 8]]\n", "").replace("width = 16", "width = 16\nloops = [2, 4]")
    config = config.replace("[1.0, 2.0]", "[1.0, 1.5, 2.0]")
    with pytest.raises(SystemExit) as ended:
        _run(tmp_path, config)
    assert ended.value.code == 130
    assert len(list(tmp_path.glob("looped_update-points/*.nc"))) == 2
    assert not (tmp_path / "run.nc").exists()
    interrupted_at = 9
    assert _run(tmp_path, config) == 0
    assert len(drawn) == 3
    assert _run(tmp_path, config) == 0
    assert len(drawn) == 3
    assert _run(tmp_path, config.replace("2.0]", "2.0, 2.5]"), "longer") == 0
    assert len(drawn) == 4
    short, longer = (_load(tmp_path / f"{name}.nc") for name in ("run", "longer"))
    np.testing.assert_array_equal(longer["update_energy"][:3], short["update_energy"])


def test_what_draws_nothing_can_be_swept(tmp_path):
    assert _run(tmp_path, 'simulation = "learning_rate_scale"\n[sweep]\ndepth = [3, 5]\noutputs = [1, 10]\n') == 0
    dataset = _load(tmp_path / "run.nc")
    scale = dataset["label_learning_rate_scale"]
    assert scale.dims == ("depth_swept", "outputs", "family", "depth")
    assert scale.isel(outputs=0, family=0).isnull().values.tolist() == [[False] * 3 + [True] * 2, [False] * 5]


@pytest.mark.parametrize("simulation", sorted({*figure_names()} - {"reported_losses", "depth_law"}))
def test_every_simulation_can_be_swept(simulation):
    """Over whichever of its sizes it has; its parser says which. Printed tables have none, a law's are in --set."""
    has = simulation_module(simulation).parse([])
    sizes = {name: [8, 16] for name in ("width", "channels") if name in has} or {"tokens": [8, 16]}
    plan = planned(simulation, {}, sizes)
    assert len(plan.points) == 2 ** len(sizes) > 1
    assert plan.points[0].arguments[0] == f"--{next(iter(sizes))}=8"


def test_the_example_is_a_plan():
    plan = read_plan(Path(sweep_module.__file__).parent.parent / "docs" / "sweep.toml")
    assert len(plan.points) == 4
    example = sweep_module.EXAMPLE
    assert all(line in example for line in ('simulation = "looped_update"', "[fixed]", "[sweep]", "--config"))


def test_bare_dims_of_different_lengths_are_numbered():
    points = [xr.Dataset({"x": ("entry", np.arange(n))}, attrs={"command": f"run {n}"}) for n in (2, 3)]
    joined = combined({"size": [2, 3]}, points)
    np.testing.assert_array_equal(joined["x"], [[0, 1, np.nan], [0, 1, 2]])
    assert joined["command"].values.tolist() == ["run 2", "run 3"]


BEGIN = 'simulation = "looped_update"\n'


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("simulation = looped", "is no TOML: "),
        ("[sweep]\nwidth = [8]", "names no simulation"),
        ('simulation = "looped"\n[sweep]\nwidth = [8]', "simulation is 'looped'; choose one of '"),
        (BEGIN + "grid = 1", "is 'grid'; choose one of 'simulation', 'fixed', 'sweep'"),
        (BEGIN + "sweep = 1", "sweep is 1; make it a table"),
        (BEGIN, "[sweep] is empty"),
        (BEGIN + "[sweep]\nwidth = []", "width is swept over []; give a list of one or more values"),
        (BEGIN + "[sweep]\nwidth = 8", "width is swept over 8; give a list"),
        (BEGIN + "[sweep]\nwidth = [8, 8]", "holds a value twice"),
        (BEGIN + "[sweep]\nwidht = [8]", "parameter of sims.looped_update is 'widht'; choose one of 'loops', 'width'"),
        (BEGIN + "[sweep]\nwidth = [8]\n[fixed]\ndepth = 3", "is 'depth'; choose one of"),
        (BEGIN + "[sweep]\nwidth = [8]\n[fixed]\nwidth = 3", "width is both fixed and swept"),
        (BEGIN + "[sweep]\nweight-variance = [1.0]\nweight_variance = [2.0]", "twice, with - and with _"),
        (BEGIN + "[sweep]\nworkers = [1, 2]", "is 'workers'; choose one of"),
        (BEGIN + '[sweep]\nwidth = [8, "x"]', "argument --width: invalid int value: 'x'"),
        (BEGIN + "[sweep]\nseed = [-1]", "seed is -1"),
        ('simulation = "cnn_overlap"\n[sweep]\ndepth = [[2, 3]]', "unrecognized arguments: 3"),
    ],
)
def test_bad_configurations_get_one_line_before_any_work(tmp_path, capsys, monkeypatch, config, message):
    _refused_before_any_work(tmp_path, capsys, monkeypatch, config, message)


def _refused_before_any_work(tmp_path, capsys, monkeypatch, config, message):
    monkeypatch.setattr(sweep_module, "_swept", None)
    assert _run(tmp_path, config) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""


def test_a_missing_configuration_is_named(tmp_path, capsys):
    assert sweep.main(["--config", str(tmp_path / "none.toml")]) == 2
    assert "none.toml" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (CONFIG.replace("[1.0, 2.0]", "[1.0, -1.0]"), "--weight-variance=-1.0 --seed="),
        (CONFIG.replace("[1.0, 2.0]", "[1.0, -1.0]"), ": weight_variance is -1; it must be positive"),
        (CONFIG.replace("[[2, 4], [2, 8]]", "[[2, 4], [2]]"), ": --loops [2] is one number; a slope needs two or more"),
        (BEGIN + "[sweep]\ndraws = [4, 1]", ": --draws is 1; it must be at least 2"),
        (
            'simulation = "mlp_depth"\n[sweep]\nwidth = [8, 1_000_000_000_000]\n[fixed]\nprecision = "float32"',
            ": drawing with 1 worker(s) needs about",
        ),
        ('simulation = "learning_rate_scale"\n[sweep]\ntransfer = [0.1]\n[fixed]\nstart = 2', "parameter of sims."),
        (
            'simulation = "learning_rate_scale"\n[sweep]\ntransfer = [0.1]\n[fixed]\nfrom = 2\nto = 4',
            ": it writes no dataset; leave out what only prints",
        ),
    ],
)
def test_what_a_simulation_refuses_is_refused_before_any_point_runs(tmp_path, capsys, monkeypatch, config, message):
    """Values that a parser takes and a simulation does not, at the last point."""
    _refused_before_any_work(tmp_path, capsys, monkeypatch, config, message)


def test_a_configuration_that_is_no_text_is_named(tmp_path, capsys):
    (tmp_path / "run.toml").write_bytes(b"\xff\xfe")
    assert sweep.main(["--config", str(tmp_path / "run.toml")]) == 2
    complaint = capsys.readouterr().err
    assert f"{tmp_path / 'run.toml'} is no TOML: " in complaint
    assert complaint.count("\n") == 1


def test_another_file_of_the_same_name_is_another_point(tmp_path, monkeypatch):
    """A finished sweep over images that have changed since was read as if it were theirs."""
    monkeypatch.chdir(tmp_path)
    keys = []
    for images in (np.zeros((4, 1, 8, 8)), np.ones((4, 1, 8, 8)), np.ones((4, 1, 8, 8))):
        np.save("images.npy", images)
        fixed = {"preset": "smoke", "input": "images.npy", "grid": [8, 8]}
        keys.append(planned("cnn_overlap", fixed, {"depth": [2, 3]}).key)
    assert keys[0] != keys[1] == keys[2]
