"""The command on one update of a loop: slopes, verdicts, controls, figure, refusals."""

import numpy as np
import pytest

from figures import looped_update as figure
from meanfield.verification.verdicts import Verdict
from meanfield.verification.wang_2026 import loop_updates as claims
from sims.looped_update.__main__ import COMMAND as simulation
from tests.sims.commands import assert_refused, finished_run


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("updates") / "run.nc"
    return finished_run(simulation, ["--preset", "smoke", "--draws", "512", "--workers", "1"], path)


def test_verdicts(finished):
    assert claims.judge_recursion(finished).verdict is Verdict.CONFIRMED
    assert claims.judge_stable(finished, "isotropic").verdict is Verdict.CONFIRMED
    assert claims.judge_stable(finished, "aligned").verdict is Verdict.CONFIRMED
    assert claims.judge_below_threshold(finished).verdict is Verdict.REFUTED
    assert claims.judge_width(finished).verdict is Verdict.REFUTED
    assert len(claims.findings(finished)) == len(claims.JUDGES)


def test_the_printed_scaling_off_by_a_quarter_is_not_confirmed(finished):
    """Negative control: loops of alpha = 3/2 passed for such of 5/4."""
    renamed = finished.assign_coords(alpha=[0.5, 1.0, 1.25])
    assert claims.judge_stable(renamed, "isotropic").verdict is Verdict.REFUTED


def test_changes_of_another_scaling_are_not_the_recursion(finished):
    """Negative control: alpha off by 0.05, that is energies off by about L^-0.1."""
    name = "log_update_energy_mean_field"
    shifted = finished.assign({name: finished[name] - 0.1 * np.log(finished["loops"])})
    assert claims.judge_recursion(shifted).verdict is Verdict.REFUTED


def test_changes_alike_at_every_width_are_not_refuted(finished):
    """Negative control: aligned updates as flat as isotropic ones."""
    names = ("by_width", "by_width_stderr")
    flat = {name: finished[name].copy() for name in names}
    for name in names:
        flat[name].loc[{"update": "aligned"}] = finished[name].sel(update="isotropic").values
    assert claims.judge_width(finished.assign(flat)).verdict is Verdict.CONFIRMED


def test_figure_shows_the_numbers(finished):
    first = figure.draw(finished).axes[0]
    theory = np.exp(finished["log_update_energy_mean_field"].sel(alpha=0.5).values)
    np.testing.assert_allclose(first.lines[0].get_ydata(), theory / theory[0])


def test_printed_report(tmp_path, capsys):
    arguments = ["--loops", "2", "4", "--width", "16", "--draws", "4", "--workers", "1"]
    assert simulation.main([*arguments, "--out", str(tmp_path / "run.nc")]) == 0
    printed = capsys.readouterr().out
    for words in ("isotropic", "aligned", "Slopes of", "By width", "Verdicts", "run.png"):
        assert words in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--loops", "8"], "a slope needs two or more"),
        (["--loops", "0", "8"], "--loops is 0"),
        (["--width", "0"], "width is 0"),
        (["--draws", "1"], "one draw"),
    ],
)
def test_bad_input_gets_one_line(tmp_path, capsys, arguments, message):
    assert_refused(simulation, ["--preset", "smoke", *arguments], message, tmp_path, capsys)
