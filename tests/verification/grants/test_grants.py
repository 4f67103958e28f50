"""What judges grant beside standard errors: numbers a tenth inside are not refuted, a tenth outside they are.

Each case makes the numbers of a run anew, as far from a claim as a ``share`` of what is granted, with errors of a
millionth. The grants stand here in numbers of their own, so that a constant of a judge cannot change unseen; where a
run itself holds what is granted, it is given a number here, from which the judge's grant follows.
"""

import pytest

from meanfield.verification.verdicts import Verdict
from tests.verification.grants import batches, blocks, loops, optimizers, plain_nets

DRAWN = loops.DRAWN | plain_nets.DRAWN | batches.DRAWN | blocks.DRAWN | optimizers.DRAWN
COMPUTED = loops.COMPUTED | plain_nets.COMPUTED | batches.COMPUTED | blocks.COMPUTED


@pytest.mark.parametrize("name", DRAWN)
def test_no_more_is_granted_than_is_said(name, smoke_run):
    simulation, made, judge = DRAWN[name]
    dataset = smoke_run(simulation)
    assert judge(made(dataset, 0.9)).verdict is not Verdict.REFUTED
    assert judge(made(dataset, 1.1)).verdict is Verdict.REFUTED


@pytest.mark.parametrize("name", COMPUTED)
def test_computed_numbers_are_confirmed_within_what_is_said_alone(name, smoke_run):
    simulation, made, judge = COMPUTED[name]
    dataset = smoke_run(simulation)
    assert judge(made(dataset, 0.9)).verdict is Verdict.CONFIRMED
    assert judge(made(dataset, 1.1)).verdict is not Verdict.CONFIRMED


@pytest.mark.parametrize("name", ["terms by batch", "terms of padding"])
def test_finite_width_is_granted_above_the_mean_field_alone(name, smoke_run):
    simulation, made, judge = DRAWN[name]
    assert judge(made(smoke_run(simulation), -0.5)).verdict is Verdict.REFUTED
