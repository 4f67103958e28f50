"""The command on identities: verdicts, figure, refusals."""

import numpy as np
import pytest

from figures import identities as figure
from meanfield.verification.verdicts import Verdict
from sims.claims.catalogue import CLAIMS
from sims.identities import label_average
from sims.identities.study import STUDY as simulation
from tests.sims.commands import assert_refused, finished_run


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("identities") / "run.nc"
    return finished_run(simulation, ["--depth", "3", "--width", "4"], path)


def test_verdicts(finished):
    verdicts = {
        name: [check.judge(finished).verdict for check in CLAIMS[name].checks] for name in ("A2", "A16a", "A16b", "A19")
    }
    assert verdicts == {
        "A2": [Verdict.CONFIRMED, Verdict.CONFIRMED],
        "A16a": [Verdict.CONFIRMED, Verdict.CONFIRMED],
        "A16b": [Verdict.REFUTED],
        "A19": [Verdict.CONFIRMED, Verdict.CONFIRMED],
    }


def test_the_printed_constant_is_refuted(finished):
    assert label_average.judge_prefactor(finished).verdict is Verdict.REFUTED


def test_figure_shows_the_numbers(finished):
    labels, _, norms, *_ = figure.draw(finished).axes
    np.testing.assert_allclose(labels.lines[0].get_ydata(), finished["split"])
    np.testing.assert_allclose(norms.lines[0].get_ydata(), np.sort(finished["norm_ratio"]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--outputs", "13"], "--outputs is 13; all 2^M labels"),
        (["--width", "0"], "width is 0"),
        (["--seed", "-1"], "--seed is -1"),
        (["--width", "20000"], "1,600,060,000 weights, each of which is moved alone"),
        (["--depth", "1000000000"], "depth is 1000000000; it must be at most 1,000,000"),
    ],
)
def test_bad_input_gets_one_line(tmp_path, capsys, arguments, message):
    assert_refused(simulation, arguments, message, tmp_path, capsys)
