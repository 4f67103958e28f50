"""Mean-field scales of all depths from one recursion."""

from dataclasses import replace

import numpy as np
import pytest

import meanfield as mf
from meanfield.theory.learning_rate import scales_at, scales_by_depth


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_one_recursion_serves_all_depths(activation):
    options = {"channels": 16, "grid": (6,), "kernel": (3,), "readout": "convolution", "activation": activation}
    scales = scales_by_depth(mf.ConvNet(depth=12, **options))
    for depth in (1, 5, 12):
        predicted = mf.predict(mf.ConvNet(depth=depth, **options), level="mean_field")
        assert scales[depth - 1] == pytest.approx(float(predicted["label_term"].mean()) ** -0.5, rel=1e-12)


def test_nets_that_share_no_recursion_are_refused():
    for net in (
        mf.ConvNet(depth=2, channels=8, padding="zero", readout="convolution"),
        mf.ResidualMLP(depth=2, width=8),
        mf.ConvNet(depth=2, channels=8),
    ):
        with pytest.raises(ValueError, match="circular grids with equal layers, no skips and no pooling"):
            scales_by_depth(net)
        if not isinstance(net, mf.ResidualMLP):
            assert np.all(np.diff(scales_at(net, (1, 2, 5))) < 0)


@pytest.mark.parametrize("weight_variance", [1.7, 2.5])
def test_depths_share_one_recursion_off_the_fan_in_rule(weight_variance):
    net = mf.MLP(depth=6, width=32, activation="gelu", weight_variance=weight_variance)
    each = [float(mf.predict(replace(net, depth=d), level="mean_field").label_learning_rate_scale) for d in range(1, 7)]
    np.testing.assert_allclose(scales_by_depth(net), each, rtol=1e-10)
