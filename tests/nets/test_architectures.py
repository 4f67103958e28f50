"""Specs: what they derive, and what they refuse before any work."""

import json

import pytest

import meanfield as mf


def test_fan_in_rule_and_heads():
    net = mf.ConvNet(depth=2, channels=8, grid=(6, 6), kernel=(3, 2), input_channels=3, readout="convolution")
    assert net.weight_variances == pytest.approx([2 / (3 * 6), 2 / (8 * 6), 2 / (8 * 6)])
    heads = {head: mf.MLP(depth=1, width=10, head=head).head_variance for head in ("he", "fan_in", "mup")}
    assert heads == pytest.approx({"he": 0.2, "fan_in": 0.1, "mup": 0.01})
    assert mf.ConvNet(depth=1, channels=8).head_variance == pytest.approx(2 / 8)


def test_shapes():
    net = mf.ConvNet(depth=2, channels=(4, 5), grid=(6,), kernel=(3,), input_channels=1, inputs=2, outputs=7)
    assert net.weight_shapes == [(4, 1, 3), (5, 4, 3), (7, 5)]
    assert (net.input_shape, net.output_shape) == ((2, 1, 6), (2, 7))
    assert mf.MLP(depth=1, width=3).weight_shapes == [(3, 3), (10, 3)]


def test_equal_specs_are_equal_and_hashable():
    assert mf.MLP(depth=2, width=(4, 4)) == mf.MLP(depth=2, width=4)
    assert hash(mf.ConvNet(depth=1, channels=2, grid=[8])) == hash(mf.ConvNet(depth=1, channels=2, grid=(8,)))


def test_a_spec_survives_json():
    net = mf.ConvNet(depth=2, channels=(4, 5), grid=(6, 7), kernel=(3, 1))
    spec = json.loads(json.dumps(net.describe()))
    assert spec.pop("family") == "ConvNet"
    assert mf.ConvNet(**{k: tuple(v) if isinstance(v, list) else v for k, v in spec.items()}) == net


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth": 0}, "depth is 0; it must be at least 1"),
        ({"channels": 0}, "channels is 0"),
        ({"channels": (4, 4, 4)}, "channels has 3 entries for depth 2"),
        ({"grid": (2,)}, r"kernel \(3,\) is larger than the circular grid \(2,\).*padding 'zero'"),
        ({"grid": (8, 8)}, "kernel .* has 1 axes, grid .* has 2"),
        ({"grid": (8, 8, 8), "kernel": (1, 1, 1)}, "give 1 or 2"),
        ({"padding": "reflect"}, "padding is 'reflect'; choose one of 'circular', 'zero'"),
        ({"head": "lecun"}, "choose one of 'he', 'fan_in', 'mup'"),
        ({"activation": "swish"}, "choose one of 'relu', 'linear', 'gelu', 'tanh', 'silu'"),
        ({"readout": "max"}, "choose one of 'pooled', 'convolution'"),
        ({"inputs": 0}, "inputs is 0"),
        ({"input_channels": 0}, "input_channels is 0"),
        ({"outputs": 0}, "outputs is 0"),
        ({"weight_variance": 0}, "weight_variance is 0; it must be positive"),
        ({"weight_variance": float("nan")}, "weight_variance is nan"),
    ],
)
def test_bad_values_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        mf.ConvNet(**{"depth": 2, "channels": 4} | options)


@pytest.mark.parametrize("depth", [2.5, "3", True, None])
def test_counts_must_be_whole_numbers(depth):
    with pytest.raises(TypeError, match="must be a whole number"):
        mf.MLP(depth=depth, width=4)


def test_weight_variances_off_the_fan_in_rule():
    """He's 2/fan_in for any activation; q sigma_W^2 = 1 is the rule itself, and inputs give z^(1) variance 1."""
    gain = mf.MLP(depth=1, width=8, activation="gelu").sigma.gain
    he = mf.MLP(depth=2, width=8, activation="gelu", weight_variance=2)
    assert he.weight_variances == pytest.approx([2 / 8] * 3)
    assert he.input_energy == pytest.approx(1 / 2)
    same = mf.MLP(depth=2, width=8, activation="gelu", weight_variance=1 / gain)
    assert same.weight_variances == pytest.approx(mf.MLP(depth=2, width=8, activation="gelu").weight_variances)


def test_a_bounded_activation_cannot_give_every_variance():
    with pytest.raises(ValueError, match=r"takes E\[sigma\(x\)\^2\] = 1, and tanh reaches 0.97"):
        mf.MLP(depth=1, width=8, activation="tanh", weight_variance=1.0)
    mf.ConvNet(depth=1, channels=8, activation="tanh", weight_variance=1.0)  # white inputs are taken as they are


def test_residual_nets_keep_to_the_fan_in_rule():
    with pytest.raises(ValueError, match="leave it out, or take a plain net"):
        mf.ResidualMLP(depth=1, width=8, weight_variance=2.0)


def test_specs_take_keywords_only():
    with pytest.raises(TypeError):
        mf.MLP(3, 4)
