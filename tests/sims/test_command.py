"""What all simulations share on the command line: help, refusals in one line, readers that leave early."""

import subprocess
import sys
import warnings
from argparse import Namespace
from pathlib import Path

import pytest
import xarray as xr

import sims
from meanfield.common.files import write_text_whole
from meanfield.common.validation import PremiseWarning
from meanfield.execution.workers import Workers
from sims import __main__ as commands
from sims import simulation as simulation_module
from sims.common import study
from sims.common.command import Preset, check_command, preset_lines, run_command
from sims.common.results import Results, require_dataset_name
from sims.common.study import Study
from tests.sims.commands import unread

SIMULATIONS = sims.NAMES
# What asks for a file, an optimizer or a model, and so has nothing to start from.
WITHOUT_PRESETS = {"check_recipe", "hyperparameters", "measure_model", "sweep"}
WITH_PRESETS = [name for name in SIMULATIONS if isinstance(simulation_module(name), Study)]


@pytest.mark.parametrize("error", [MemoryError(), OverflowError("too large"), ValueError("bad")])
def test_every_refusal_says_something_in_one_line(error, capsys):
    def refuse(_: Namespace) -> int:
        raise error

    assert run_command(refuse, Namespace()) == 2
    complaint = capsys.readouterr().err
    assert complaint.removeprefix("error: ").strip()
    assert complaint.count("\n") == 1


def test_a_premise_that_fails_is_one_line_and_other_warnings_are_left_to_python(capsys):
    def warn(_: Namespace) -> int:
        warnings.warn("few channels", PremiseWarning, stacklevel=1)
        warnings.warn("old option", UserWarning, stacklevel=1)
        return 0

    with warnings.catch_warnings(record=True) as others:
        warnings.simplefilter("always")
        assert run_command(warn, Namespace()) == 0
    assert capsys.readouterr().err == "warning: few channels\n"
    assert [str(other.message) for other in others] == ["old option"]


@pytest.mark.parametrize("name", WITH_PRESETS)
def test_help_says_what_every_preset_means(name, capsys):
    with pytest.raises(SystemExit):
        simulation_module(name).parse(["--help"])
    words = " ".join(capsys.readouterr().out.partition("presets, with")[2].split())
    for preset, values in simulation_module(name).presets.items():
        said = words.partition(f" {preset} ")[2]
        for option, value in values.items():
            shown = " ".join(map(str, value)) if isinstance(value, list) else str(value)
            assert f"--{option.replace('_', '-')} {shown}" in said


@pytest.mark.parametrize("name", WITH_PRESETS)
def test_help_says_what_a_first_run_takes(name, capsys):
    with pytest.raises(SystemExit):
        simulation_module(name).parse(["--help"])
    words = " ".join(capsys.readouterr().out.split())
    assert ("the first run compiles, about" in words) == bool(simulation_module(name).compiles)


def test_every_simulation_has_its_durations():
    """Those of blocks of matrices and of trained Transformers are NumPy's alone, and compile nothing."""
    compiled_by_none = {"coordinate_check", "spectral_condition", "training_assumptions", "update_orders"}
    compiled_by_none |= {"looped_rates", "looped_transformer", "reported_losses", "table_cells"}
    compiled_by_none |= {"transformer_coordinate_check", "hyperparameter_transfer"}
    compiled = {name for name in (*WITH_PRESETS, "claims") if simulation_module(name).compiles}
    assert {*WITH_PRESETS, "claims"} - compiled == compiled_by_none


@pytest.mark.parametrize("name", WITH_PRESETS)
def test_no_preset_is_refused(name, monkeypatch):
    """Without the key of the run, which refuses nothing and goes through every weight of a thousand layers."""
    monkeypatch.setattr(study, "run_key", lambda **_: "key")
    simulation = simulation_module(name)
    for preset in {*simulation.presets} - {"smoke"}:  # of which all runs are made, in the fixture `smoke`
        check_command(simulation.run, simulation.parse(["--preset", preset]), Workers(1))


def test_presets_stand_below_each_other():
    lines = preset_lines({"smoke": Preset("1 s", far_lines=[1, 2]), "default": Preset("2 s", depth=3)}).splitlines()[1:]
    assert [line.split() for line in lines] == [
        ["smoke", "1", "s", "--far-lines", "1", "2"],
        ["default", "2", "s", "--depth", "3"],
    ]


def test_help_draws_nothing():
    """But of sweeps, whose plan names figures."""
    parsers = f"""
import contextlib, io, sims, sys
for name in {sorted({*SIMULATIONS} - {"sweep"})}:
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        sims.simulation(name).parse(["--help"])
print("matplotlib" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", parsers], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


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


@pytest.mark.parametrize("name", sorted(set(SIMULATIONS) - WITHOUT_PRESETS))
def test_every_simulation_takes_a_preset(name):
    """As README says."""
    simulation = simulation_module(name)
    assert {"smoke", "default", "paper"} <= set(simulation.presets)
    for preset in simulation.presets:
        assert simulation.parse(["--preset", preset]).preset == preset


@pytest.mark.parametrize("name", [name for name in WITH_PRESETS if "times" in simulation_module(name).parse([])])
def test_times_multiplies_the_draws_and_the_nets_that_rates_are_tuned_on(name):
    """As reports advise it where verdicts lack either."""
    parse = simulation_module(name).parse
    once, thrice = (vars(parse(["--preset", "smoke", *more])) for more in ([], ["--times", "3"]))
    for counted in {"draws", "tuning_seeds"} & set(once):
        assert thrice[counted] == 3 * once[counted]
    assert parse(["--draws", "5", "--times", "3"]).draws == 15


@pytest.mark.parametrize(
    ("given", "named"),
    [("", True), ("--draws 16", True), ("--draws 16 --sizes 4 8 16", False), ("--preset paper", False)],
)
def test_reports_name_the_presets_that_would_change_something(given, named):
    command = f"python -m sims.depth_law {given}"
    larger = simulation_module("depth_law")._larger(xr.Dataset(attrs={"command": command}))
    assert any(option == "--preset paper" for option, _ in larger) is named


@pytest.mark.parametrize("times", ["0", "-1", "1.5", "x"])
def test_times_is_a_whole_number(times, capsys):
    with pytest.raises(SystemExit):
        simulation_module("mlp_depth").parse(["--times", times])
    assert f"--times: {times} must be a whole number of at least 1" in capsys.readouterr().err


@pytest.mark.parametrize("path", [".nc", "results/.nc"])
def test_an_ending_is_no_name(path):
    with pytest.raises(ValueError, match=rf"--out {path} is an ending without a name; give a file such as results/run"):
        require_dataset_name(Namespace(out=Path(path)))


def test_all_commands_are_listed_in_a_line_each(capsys):
    assert sorted(commands.commands()) == SIMULATIONS
    assert commands.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:]] == commands.commands()
    assert all(len(line.split()) > 3 for line in lines[2:])
    assert max(map(len, lines)) <= 100
    assert commands.main(["--help"]) == 0
    assert capsys.readouterr().out.splitlines() == lines


def test_a_new_command_needs_no_place_in_the_list(monkeypatch):
    known = [name for name in commands.FIRST if name != "looped_energy"]
    monkeypatch.setattr(commands, "FIRST", (*known,))
    assert "looped_energy" in commands.commands()[len(known) : -len(commands.LAST)]


@pytest.mark.parametrize(("given", "said"), [("mlp_depth", "sims.mlp_depth"), ("mlp", "sims.NAME")])
def test_the_list_runs_nothing(given, said, capsys):
    assert commands.main([given, "--preset", "smoke"]) == 2
    said = f"error: python -m sims lists the commands, and no more; run one as python -m {said}\n"
    assert capsys.readouterr().err == said


def test_the_list_is_a_command_without_heavy_imports():
    heavy = "import sys; from sims.__main__ import main; main([]); print('numpy' in sys.modules)"
    for arguments, last in (
        (["-c", heavy], "False"),
        (["-m", "sims"], f"  {'claims':30}{sims.listed('claims')}"),
    ):
        done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == last
