"""The command on identities: verdicts, figure, refusals."""

import pytest

from meanfield.verification.verdicts import Verdict
from sims.claims.catalogue import CLAIMS
from sims.identities import label_average


@pytest.fixture(scope="module")
def finished(smoke_run):
    return smoke_run("identities")


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


# Worlds in which claims of this study get another verdict: their negative controls.


def label_term_not_of_kernels(runs):
    dataset = runs["identities"]
    return {"identities": dataset.assign(kernel_term=0 * dataset["kernel_term"] + 1.0)}


CONTROLS = {
    "A2": label_term_not_of_kernels,
}
