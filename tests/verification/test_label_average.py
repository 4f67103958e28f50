"""The split by an average over labels, and a control that is none."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.common.seeds import stream
from meanfield.verification.verdicts import Verdict
from sims.identities.label_average import (
    _example,
    judge_prefactor,
    judge_split,
    label_average,
)


@pytest.fixture(scope="module", params=["relu", "linear", "gelu"])
def dataset(request):
    return label_average(mf.MLP(depth=3, width=5, outputs=2, activation=request.param), 1)


def test_verdicts(dataset):
    assert judge_split(dataset).verdict is Verdict.CONFIRMED
    assert judge_prefactor(dataset).verdict is Verdict.REFUTED
    np.testing.assert_allclose(dataset["kernel_term"] / dataset["label_term"], 2, rtol=1e-6)


def test_labels_that_depend_on_the_outputs_are_not_averaged_away(dataset):
    """Negative control: a thousandth of the update energy missing."""
    assert judge_split(dataset.assign(split=0.999 * dataset["split"])).verdict is not Verdict.CONFIRMED


def test_a_net_whose_units_are_off_is_drawn_again():
    """Of four units the ninth seed's first net has none that is on."""
    net = mf.MLP(depth=2, width=4, outputs=2)
    assert not _example(net, stream(9, "label average", 0))[-1].any()
    assert judge_split(label_average(net, 9)).verdict is Verdict.CONFIRMED


def test_nets_that_nothing_moves_are_refused():
    with pytest.raises(ValueError, match=r"depth 40 and width 1 .* give more width"):
        label_average(mf.MLP(depth=40, width=1, outputs=1), 0)
