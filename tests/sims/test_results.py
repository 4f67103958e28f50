"""What a finished run leaves, and when it is read for a run's result."""

import netCDF4
import numpy as np
import pytest
import xarray as xr

from sims.common.results import CONTENTS, contents_digest
from sims.looped_update import STUDY as looped_update
from tests.sims.commands import finished_run, without_figure

ARGUMENTS = ["--loops", "2", "4", "--width", "8", "--draws", "4", "--workers", "1"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The bytes of a finished dataset."""
    path = tmp_path_factory.mktemp("finished") / "run.nc"
    finished_run(looped_update, ARGUMENTS, path)
    return path.read_bytes()


@pytest.fixture
def path(finished, tmp_path):
    """A finished dataset of one's own."""
    (tmp_path / "run.nc").write_bytes(finished)
    return tmp_path / "run.nc"


def _a_number(file):
    name = next(name for name, variable in file.variables.items() if variable.dtype == np.float64)
    file[name][...] = file[name][...] * (1 + 1e-15)


def _an_attribute(file):
    file.setncattr("draws", 5)


def _a_unit(file):
    file[next(iter(file.variables))].setncattr("units", "m")


def _a_variable(file):
    file.createVariable("more", "f8", ())[...] = 1.0


def _a_name(file):
    name = next(name for name in file.variables if name not in file.dimensions)
    file.renameVariable(name, f"{name}_renamed")


@pytest.mark.parametrize("change", [_a_number, _an_attribute, _a_unit, _a_variable, _a_name])
def test_a_dataset_that_somebody_changed_is_neither_read_nor_replaced(path, change, capsys):
    """Opened by NetCDF for appending, which a file that NetCDF made in memory refused (error -103)."""
    with netCDF4.Dataset(path, "a") as file:
        change(file)
    changed = path.read_bytes()
    assert without_figure(looped_update, ARGUMENTS, path) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"error: {path} was changed after this run wrote it")
    assert said.err.count("\n") == 1
    assert "reading" not in said.out
    assert path.read_bytes() == changed


def test_a_dataset_as_it_was_written_is_read(path, capsys):
    with netCDF4.Dataset(path, "a"):
        pass
    assert without_figure(looped_update, ARGUMENTS, path) == 0
    assert "reading the finished run" in capsys.readouterr().out


def test_force_replaces_what_somebody_changed(path, finished):
    with netCDF4.Dataset(path, "a") as file:
        _a_number(file)
    assert without_figure(looped_update, [*ARGUMENTS, "--force"], path) == 0
    (path.parent / "before.nc").write_bytes(finished)
    with xr.open_dataset(path) as again, xr.open_dataset(path.parent / "before.nc") as before:
        assert again.attrs[CONTENTS] == before.attrs[CONTENTS] == contents_digest(again)


def test_contents_are_the_same_once_they_are_read(tmp_path):
    """Files keep text, truth values and numbers in their own ways."""
    coords = {"case": ["a", "longer"], "rate": [0.1, np.nan], "seed": np.array([1, 2], dtype="int32")}
    variables = {
        "words": ("case", np.array(["one", "ü"], dtype=object)),
        "true": ("case", [True, False]),
        "single": (("case", "rate"), np.array([[np.inf, np.nan], [0.1, -0.0]], dtype="float32")),
        "none": ("empty", np.zeros(0)),
        "scalar": ((), 3, {"units": "1", "list": [1.0, 2.0], "one": [7]}),
        "text": ((), "text"),
    }
    attrs = {"int": 3, "float": 0.1, "words": ["a", "b"], "numbers": np.arange(3), "empty": ""}
    written = xr.Dataset(variables, coords, attrs).assign_coords(beside=("case", [1.5, 2.5]))
    written.to_netcdf(tmp_path / "run.nc", engine="netcdf4")
    read = xr.load_dataset(tmp_path / "run.nc", engine="netcdf4")
    assert contents_digest(read) == contents_digest(written)
    for other in (read.drop_vars("text"), read.assign_attrs(int=4), read.reset_coords("beside"), read.isel(rate=[0])):
        assert contents_digest(other) != contents_digest(written)


def test_a_link_to_a_dataset_stays(finished, tmp_path):
    """What it leads to is written, and so is what links beside it for figure and page lead to."""
    (tmp_path / "disk").mkdir()
    names = ("run.nc", "run.png", "run.html")
    for name in names:
        (tmp_path / name).symlink_to(tmp_path / "disk" / name)
    (tmp_path / "disk" / "run.png").write_bytes(b"an old picture")
    (tmp_path / "disk" / "run.html").write_text("an old page")
    assert without_figure(looped_update, [*ARGUMENTS, "--force"], tmp_path / "run.nc") == 0
    assert all((tmp_path / name).is_symlink() for name in names)
    assert (tmp_path / "disk" / "run.png").read_bytes() == b""
    assert (tmp_path / "disk" / "run.html").read_text().startswith("<!doctype html>")
    with xr.open_dataset(tmp_path / "disk" / "run.nc") as written:
        assert written.attrs[CONTENTS] == contents_digest(written)


@pytest.mark.filterwarnings("always::meanfield.common.files.DamagedFileWarning")
def test_a_command_says_in_one_line_which_piece_is_damaged(tmp_path, monkeypatch, capsys):
    from sims.common.results import Results

    with monkeypatch.context() as patched:
        patched.setattr(Results, "_write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert without_figure(looped_update, ARGUMENTS, tmp_path / "run.nc") == 130
    piece = min(tmp_path.glob(".*.pieces/*.npz"))
    piece.write_bytes(b"")
    capsys.readouterr()
    assert without_figure(looped_update, ARGUMENTS, tmp_path / "run.nc") == 0
    assert capsys.readouterr().err == (
        f"warning: the finished piece {piece} is damaged (it is cut off, or no file of NumPy) and is computed again\n"
    )


def test_every_simulation_reads_its_own_dataset(smoke_runs):
    """All kinds of numbers and words that simulations write come back as they were."""
    for name, dataset in smoke_runs.items():
        assert dataset.attrs[CONTENTS] == contents_digest(dataset), name
