"""Every cell of every printed table shows the numbers that its heading names."""

import pytest

import sims.common.tables
import sims.looped_energy as loops
from tests import shown as keeper
from tests.shown import first_runs, kept
from tests.sims.printed import shown

PRINTED = kept("printed")


def test_every_simulation_is_there(smoke_runs):
    assert set(first_runs(smoke_runs)) == set(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_cells_show_what_they_did_when_they_were_read(name, smoke_runs):
    """After a change to a report: ``python -m tests.shown``, and read what has become of its lines."""
    assert shown(name, smoke_runs[first_runs(smoke_runs)[name]], PRINTED[name]) == PRINTED[name]


def test_exchanged_columns_are_seen(smoke_runs, monkeypatch):
    monkeypatch.setattr(loops, "EPS", loops.EPS | {"sqrt": loops.EPS["linear"], "linear": loops.EPS["sqrt"]})
    assert shown("looped_energy", smoke_runs["looped_energy"]) != PRINTED["looped_energy"]


def test_a_wrong_sign_is_seen(smoke_runs, monkeypatch):
    right = sims.common.tables.signed
    monkeypatch.setattr(sims.common.tables, "signed", lambda value: right(-value))
    assert shown("looped_energy", smoke_runs["looped_energy"]) != PRINTED["looped_energy"]


def test_a_study_is_kept_in_a_file_of_its_own(smoke_run, tmp_path, monkeypatch):
    """The keeper writes it again from the run of this study, and no other."""
    text = (keeper.KEPT / "looped_update.txt").read_text(encoding="utf-8")
    monkeypatch.setattr(keeper, "KEPT", tmp_path)
    smoke_run("looped_update").to_netcdf(tmp_path / "looped_update.nc", engine="netcdf4")
    keeper.main(tmp_path)
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.txt")} == {
        "looped_update.txt": text
    }
