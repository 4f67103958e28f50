"""Carrying a learning rate between depths."""

from dataclasses import replace

import numpy as np
import pytest

import meanfield as mf
from meanfield.theory.learning_rate import scales_by_depth


@pytest.mark.parametrize(("start", "end"), [(3, 10), (12, 48), (48, 12), (1, 1000)])
def test_finite_depth_rule_of_relu_nets(start, end):
    """sqrt((L0+1)(L0^2+L0+1) / ((L+1)(L^2+L+1))), whatever the width."""
    nets = [mf.MLP(depth=depth, width=64) for depth in (start, end)]
    law = np.sqrt((start + 1) * (start**2 + start + 1) / ((end + 1) * (end**2 + end + 1)))
    assert mf.transfer_learning_rate(0.3, *nets) == pytest.approx(0.3 * law, rel=1e-12)


def test_power_law_is_the_limit_and_not_the_rule():
    """From 3 to 12 layers the two differ by 28 %, from 12 to 48 by 6 %; asymptotically they agree."""
    for start, end, gap in [(3, 12, 0.277), (12, 48, 0.064), (1000, 4000, 0.00075)]:
        nets = [mf.MLP(depth=depth, width=64) for depth in (start, end)]
        finite, power = (mf.transfer_learning_rate(1.0, *nets, rule=rule) for rule in ("finite_depth", "power_law"))
        assert power == pytest.approx((end / start) ** -1.5)
        assert finite / power - 1 == pytest.approx(gap, rel=0.01)


def test_exact_rule_knows_width_and_outputs():
    """Many outputs make the output term dominate: the rate must fall more steeply than the label term alone says."""
    few, many = ([mf.MLP(depth=depth, width=20_000, outputs=outputs) for depth in (10, 100)] for outputs in (1, 20_000))
    finite = mf.transfer_learning_rate(1.0, *few)
    assert mf.transfer_learning_rate(1.0, *few, rule="exact") == pytest.approx(finite, rel=0.02)
    assert mf.transfer_learning_rate(1.0, *many, rule="exact") < 0.5 * finite


@pytest.mark.parametrize("readout", ["pooled", "convolution"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_one_recursion_serves_all_depths(readout, activation):
    options = {"channels": 16, "grid": (6,), "kernel": (3,), "readout": readout, "activation": activation}
    scales = scales_by_depth(mf.ConvNet(depth=12, **options))
    for depth in (1, 5, 12):
        found = mf.predict(mf.ConvNet(depth=depth, **options), level="mean_field")
        energy = found["overlap_energy" if readout == "pooled" else "label_term"]
        assert scales[depth - 1] == pytest.approx(float(energy.mean()) ** -0.5, rel=1e-12)


@pytest.mark.parametrize(
    ("rate", "options", "error", "message"),
    [
        (0.0, {}, ValueError, "positive and finite"),
        (float("nan"), {}, ValueError, "positive and finite"),
        ("0.1", {}, TypeError, "positive number"),
        (0.1, {"rule": "linear"}, ValueError, "'finite_depth', 'power_law', 'exact'"),
    ],
)
def test_bad_rates_and_rules_are_refused(rate, options, error, message):
    nets = [mf.MLP(depth=depth, width=8) for depth in (2, 4)]
    with pytest.raises(error, match=message):
        mf.transfer_learning_rate(rate, *nets, **options)


def test_nets_that_a_rule_does_not_serve_are_refused():
    with pytest.raises(ValueError, match="two families"):
        mf.transfer_learning_rate(0.1, mf.MLP(depth=2, width=8), mf.ConvNet(depth=2, channels=8))
    with pytest.raises(ValueError, match="level for ConvNet"):
        mf.transfer_learning_rate(0.1, *[mf.ConvNet(depth=d, channels=8) for d in (2, 4)], rule="exact")
    with pytest.raises(ValueError, match="circular grids"):
        scales_by_depth(mf.ConvNet(depth=2, channels=8, padding="zero"))
    with pytest.raises(ValueError, match="no skips"):
        scales_by_depth(mf.ResidualMLP(depth=2, width=8))


@pytest.mark.parametrize("weight_variance", [1.7, 2.5])
def test_depths_share_one_recursion_off_the_fan_in_rule(weight_variance):
    net = mf.MLP(depth=6, width=32, activation="gelu", weight_variance=weight_variance)
    each = [float(mf.predict(replace(net, depth=d), level="mean_field").label_learning_rate_scale) for d in range(1, 7)]
    np.testing.assert_allclose(scales_by_depth(net), each, rtol=1e-10)
