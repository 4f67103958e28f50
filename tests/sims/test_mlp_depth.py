"""The command on fully-connected nets: tables, verdicts, files, refusals."""

import numpy as np
import pytest
import xarray as xr

from figures import mlp_depth as figure
from meanfield.verification.exactness import judge_exact
from meanfield.verification.verdicts import Verdict
from sims import mlp_depth as simulation


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("mlp") / "run.nc"
    arguments = ["--depth", "12", "--width", "64", "--draws", "4096", "--workers", "1", "--out", str(path)]
    assert simulation.main(arguments) == 0
    with xr.open_dataset(path, engine="h5netcdf") as stored:
        return stored.load()


def test_draws_confirm_the_exact_expectation(finished):
    assert judge_exact(finished, "label_term").verdict is Verdict.CONFIRMED


def test_a_wrong_expectation_is_refuted(finished):
    """Negative control: 20 % off at every layer."""
    wrong = finished.assign(label_term_exact=1.2 * finished["label_term_exact"])
    assert judge_exact(wrong, "label_term").verdict is Verdict.REFUTED


def test_figure_shows_the_numbers(finished):
    growth, ratio = figure.draw(finished).axes
    np.testing.assert_array_equal(growth.lines[0].get_ydata(), finished["label_term_mean_field"].values)
    measured = ratio.containers[0].lines[0].get_ydata()
    np.testing.assert_allclose(measured, (finished["label_term"] / finished["label_term_exact"]).values)


def test_printed_report(tmp_path, capsys):
    arguments = ["--preset", "smoke", "--depth", "3", "--width", "16", "--draws", "8", "--workers", "1"]
    assert simulation.main([*arguments, "--out", str(tmp_path / "run.nc")]) == 0
    printed = capsys.readouterr().out
    for words in ("label term B", "spread of F", "l/n = 0.125", "Output over label term", "Verdicts", "run.png"):
        assert words in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--width", "0"], "width is 0"),
        (["--draws", "1"], "one draw"),
        (["--head", "x"], "'he', 'fan_in', 'mup'"),
        (["--activation", "gelu"], "activation of an exact recursion is 'gelu'; choose one of 'relu', 'linear'"),
    ],
)
def test_bad_input_gets_one_line(tmp_path, capsys, arguments, message):
    assert simulation.main([*arguments, "--out", str(tmp_path / "run.nc")]) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1
