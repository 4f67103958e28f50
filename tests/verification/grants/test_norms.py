"""What judges of the norms of trained blocks grant, and which mean over draws they follow."""

from functools import partial

import numpy as np
import pytest

from meanfield.verification.verdicts import Verdict
from sims import spectral_condition, training_assumptions, update_orders
from tests.verification.grants.made import in_draws


@pytest.mark.parametrize(("exponent", "refuted"), [(-0.51, False), (-0.49, True)])
def test_nothing_is_granted_to_second_orders_that_fall_as_a_root(exponent, refuted, smoke_runs):
    dataset = smoke_runs["update_orders-optimizers-muon"]
    for table, power in (("many", 0.0), ("one", exponent)):
        dataset = in_draws(dataset, "order_norm_by_depth", "depth", power, table=table)
    assert (update_orders.judge_second_order(dataset).verdict is Verdict.REFUTED) == refuted


@pytest.mark.parametrize(
    ("run", "norm", "judge"),
    [
        (
            "spectral_condition-optimizers-sgd-times-6",
            "feature_norm",
            partial(spectral_condition.judge_group, name="features"),
        ),
        (
            "training_assumptions-times-3",
            "activation_ratio",
            partial(training_assumptions.judge_assumption, name="G.2"),
        ),
    ],
)
def test_exponents_of_norms_that_are_all_but_exact_may_be_off_by_a_thousandth(run, norm, judge, smoke_runs):
    for share, refuted in ((0.9, False), (1.1, True)):
        dataset = smoke_runs[run]
        for along in ("width", "depth"):
            dataset = in_draws(dataset, f"{norm}_by_{along}", along, 0.001 * share)
        assert (judge(dataset).verdict is Verdict.REFUTED) == refuted


def test_of_biases_the_mean_over_draws_is_followed(smoke_runs):
    """It stays here, while draws scatter the more the wider the net: their mean square grows by an exponent of 0.01."""
    dataset, name = smoke_runs["spectral_condition-biases-optimizers-sgd-times-6"], "update_product"
    bias = next(label for label in map(str, dataset[f"{name}_name"].values) if "|db" in label)
    values, apart = dataset[f"{name}_by_width"].astype(float).copy(), 1 - 2 * (dataset["draw"] % 2)
    scattered = 1 + 0.1 * apart * np.log2(dataset["width"] / dataset["width"][0])
    place = {f"{name}_name": bias}
    values.loc[place] = (scattered + 0 * values.sel(place)).transpose(*values.sel(place).dims).values
    rows = spectral_condition._rows(dataset.assign({values.name: values}), name)
    found = [row.slope.plain for row in rows if row.name == bias and row.direction == "width"]
    assert found == [pytest.approx(0.0, abs=1e-3)]
