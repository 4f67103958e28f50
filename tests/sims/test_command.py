"""What all simulations share on the command line: help, refusals in one line, readers that leave early."""

import subprocess
import sys
from argparse import Namespace
from importlib import import_module
from pathlib import Path

import pytest

import sims
from meanfield.execution.team import Workers
from meanfield.files import write_text_whole
from sims._command import check_command, preset_lines, run_command
from sims._durations import COMPILING, DURATIONS
from sims._results import Results
from tests.sims.commands import unread

SIMULATIONS = [path.stem for path in sorted(Path(sims.__file__).parent.glob("[a-z]*.py"))]
WITH_PRESETS = [name for name in SIMULATIONS if isinstance(getattr(import_module(f"sims.{name}"), "PRESETS", ()), dict)]


@pytest.mark.parametrize("error", [MemoryError(), OverflowError("too large"), ValueError("bad")])
def test_every_refusal_says_something_in_one_line(error, capsys):
    def refuse(_: Namespace) -> int:
        raise error

    assert run_command(refuse, Namespace()) == 2
    complaint = capsys.readouterr().err
    assert complaint.removeprefix("error: ").strip()
    assert complaint.count("\n") == 1


@pytest.mark.parametrize("name", WITH_PRESETS)
def test_help_says_what_every_preset_means(name, capsys):
    with pytest.raises(SystemExit):
        import_module(f"sims.{name}").parse(["--help"])
    words = " ".join(capsys.readouterr().out.partition("presets, with")[2].split())
    for preset, values in import_module(f"sims.{name}").PRESETS.items():
        said = words.partition(f" {preset} ")[2]
        for option, value in values.items():
            shown = " ".join(map(str, value)) if isinstance(value, list) else str(value)
            assert f"--{option.replace('_', '-')} {shown}" in said


@pytest.mark.parametrize("name", WITH_PRESETS)
def test_help_says_what_a_first_run_takes(name, capsys):
    with pytest.raises(SystemExit):
        import_module(f"sims.{name}").parse(["--help"])
    words = " ".join(capsys.readouterr().out.split())
    assert ("the first run compiles, about" in words) == (name in COMPILING)


def test_every_simulation_has_its_durations():
    """Those of blocks of matrices are NumPy's alone, and compile nothing."""
    compiled_by_none = {"coordinate_check", "spectral_condition", "training_assumptions", "update_orders"}
    assert set(DURATIONS) == set(WITH_PRESETS) | {"claims"}
    assert set(DURATIONS) - set(COMPILING) == compiled_by_none


@pytest.mark.parametrize("name", WITH_PRESETS)
def test_no_preset_is_refused(name):
    simulation = import_module(f"sims.{name}")
    for preset in simulation.PRESETS:
        check_command(simulation.run, simulation.parse(["--preset", preset]), Workers(1))


def test_presets_stand_below_each_other():
    lines = preset_lines("none", {"smoke": {"far_lines": [1, 2]}, "default": {"depth": 3}}).splitlines()[1:]
    assert [line.split() for line in lines] == [["smoke", "--far-lines", "1", "2"], ["default", "--depth", "3"]]


def test_help_imports_nothing_heavy():
    parsers = f"""
import contextlib, importlib, io, sys
for name in {SIMULATIONS}:
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        importlib.import_module(f"sims.{{name}}").parse(["--help"])
print([name for name in ("numpy", "xarray", "matplotlib", "numba") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", parsers], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_reader_that_has_left_ends_the_command_without_a_word():
    sizes = ["--width", "8", "--depth", "8", "--base-width", "4", "--base-depth", "4"]
    assert unread("sims.hyperparameters", "--optimizer", "sgd", *sizes) == (141, "")


def test_a_folder_is_no_place_for_a_file(tmp_path):
    """With --force too, before any work; the message names what was given, and no temporary file."""
    (tmp_path / "run.nc").mkdir()
    options = Namespace(out=tmp_path / "run.nc", force=True, command="", check_only=False)
    with pytest.raises(IsADirectoryError, match=r"cannot write the file .*/run.nc: it is a folder"):
        Results("name", "key", options).finished()
    with pytest.raises(IsADirectoryError, match=r"run.nc: it is a folder"):
        write_text_whole(tmp_path / "run.nc", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["run.nc"]


@pytest.mark.parametrize("name", WITH_PRESETS)
def test_times_multiplies_the_draws(name):
    parse = import_module(f"sims.{name}").parse
    assert parse(["--preset", "smoke", "--times", "3"]).draws == 3 * parse(["--preset", "smoke"]).draws
    assert parse(["--draws", "5", "--times", "3"]).draws == 15


@pytest.mark.parametrize("times", ["0", "-1", "1.5", "x"])
def test_times_is_a_whole_number(times, capsys):
    with pytest.raises(SystemExit):
        import_module("sims.mlp_depth").parse(["--times", times])
    assert f"--times: {times} must be a whole number of at least 1" in capsys.readouterr().err
