"""The split by an average over labels, and a control that is none."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.verification.verdicts import Verdict
from meanfield.verification.zhang_2026.identities.label_average import judge_prefactor, judge_split, label_average


@pytest.fixture(scope="module", params=["relu", "linear", "gelu"])
def found(request):
    return label_average(mf.MLP(depth=3, width=5, outputs=2, activation=request.param), 1)


def test_verdicts(found):
    assert judge_split(found).verdict is Verdict.CONFIRMED
    assert judge_prefactor(found).verdict is Verdict.REFUTED
    np.testing.assert_allclose(found["kernel_term"] / found["label_term"], 2, rtol=1e-6)


def test_labels_that_depend_on_the_outputs_are_not_averaged_away(found):
    """Negative control: a thousandth of the update energy missing."""
    assert judge_split(found.assign(split=0.999 * found["split"])).verdict is not Verdict.CONFIRMED
