"""Specs of residual nets: what they derive, and what they refuse."""

import numpy as np
import pytest

import meanfield as mf


def test_layers_of_a_mixed_backbone():
    net = mf.ResidualMLP(depth=2, width=5, block_depth=3, stem=1, tail=2, input_width=4, scaling="multiplier_linear")
    assert net.unit_ends == (1, 4, 7, 8, 9)
    assert [layer.skip for layer in net.layers] == [None, None, None, 1, None, None, 4, None, None]
    assert [layer.multiplier for layer in net.layers] == [1, 1, 1, 0.5, 1, 1, 0.5, 1, 1]
    assert net.weight_shapes[0] == (5, 4)


@pytest.mark.parametrize(("scaling", "inside"), [("init", 0.25), ("multiplier_sqrt", 1.0), ("none", 1.0)])
def test_init_scales_every_branch_tensor_and_nothing_else(scaling, inside):
    net = mf.ResidualMLP(depth=4, width=8, block_depth=2, stem=1, tail=1, scaling=scaling)
    factors = np.array(net.weight_variances[:-1]) * 8 / 2
    np.testing.assert_allclose(factors, [1, *[inside] * 8, 1])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"scaling": "sqrt"}, ValueError, "'init', 'multiplier_sqrt', 'multiplier_linear', 'none'"),
        ({"block_depth": 0}, ValueError, "block_depth is 0; it must be at least 1"),
        ({"stem": -1}, ValueError, "stem is -1"),
        ({"width": (4, 5, 6)}, ValueError, "one stream, so give one number"),
        ({"input_width": 3}, ValueError, "the input has 3 channels and the stream 4.*give stem=1"),
        ({"tail": 1.5}, TypeError, "tail is 1.5; it must be a whole number"),
    ],
)
def test_bad_specs_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        mf.ResidualMLP(**({"depth": 3, "width": 4} | options))


def test_a_thin_input_needs_a_stem():
    assert mf.ResidualConvNet(depth=3, channels=8, input_channels=3, stem=1).weight_shapes[0] == (8, 3, 3)
    with pytest.raises(ValueError, match="stem=1"):
        mf.ResidualConvNet(depth=3, channels=8, input_channels=3)
