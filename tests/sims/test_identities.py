"""The command on identities: verdicts, figure, refusals."""

import pytest

from meanfield.verification.catalogue import CLAIMS
from meanfield.verification.verdicts import Verdict
from meanfield.verification.zhang_2026.identities import label_average
from sims.identities.__main__ import COMMAND as simulation
from tests.sims.commands import finished_run


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
