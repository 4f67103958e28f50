"""Multipliers and variances of nets by the roles of their weights."""

import pytest

from meanfield.nets import BlockNet, Transformer, with_hyperparameters

ROLES = ("input", "hidden", "output", "input_bias", "hidden_bias")
GIVEN = {role: {"block_multiplier": 2.0 + at, "initial_variance": 10.0**at} for at, role in enumerate(ROLES)}


def test_multipliers_are_given_and_variances_those_of_the_base_model_times_a_factor():
    shape = {"depth": 3, "input_width": 4, "biases": True, "variances": (0.5, 0.25, 0.125), "bias_variance": 0.75}
    made = with_hyperparameters(BlockNet(width=8, **shape), BlockNet(width=2, **shape), GIVEN)
    assert [unit.multiplier for unit in made.all_units] == [2.0, 3.0, 3.0, 3.0, 4.0]
    expected = {"W0": 0.5, "b0": 750.0, "W2.1": 2.5, "b2.2": 7500.0, "readout": 12.5}
    assert {name: made.weights[name].variance for name in expected} == expected
    assert made.weight_shapes == BlockNet(width=8, **shape).weight_shapes


def test_refusals():
    net = Transformer(depth=2, width=4, tokens=3, vocabulary=5)
    with pytest.raises(ValueError, match="as many blocks"):
        with_hyperparameters(net, net.replace(depth=1), GIVEN)
    with pytest.raises(ValueError, match="none of 'output'"):
        with_hyperparameters(net, net, {role: GIVEN[role] for role in ("input", "hidden")})
