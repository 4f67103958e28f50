"""The spec of nets of blocks: shapes and refusals."""

import pytest

import meanfield as mf
from meanfield.nets.block_net import BlockNet


def test_shapes_and_roles():
    net = BlockNet(width=8, depth=2, block_depth=3, block_width=5, input_width=4)
    assert net.shapes == ((8, 4), *[(5, 8), (5, 5), (8, 5)] * 2, (1, 8))
    assert net.roles == ("input", *["hidden"] * 6, "output")
    assert BlockNet(width=8, depth=1, block_depth=1).shapes == ((8, 16), (8, 8), (1, 8))
    assert BlockNet(width=8, depth=1, multipliers=[1, 0.5, 2]).of_role("multipliers", "hidden") == 0.5


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"width": 0}, ValueError, "width is 0"),
        ({"depth": 1.5}, TypeError, "depth is 1.5"),
        ({"activation": "gelu"}, ValueError, "'linear', 'relu'"),
        ({"outputs": 0}, ValueError, "outputs is 0"),
        ({"biases": 1}, TypeError, "True or False"),
        ({"variances": (1.0, 1.0)}, ValueError, "three numbers"),
        ({"variances": (1.0, -1.0, 1.0)}, ValueError, "below zero"),
        ({"multipliers": (1.0, float("nan"), 1.0)}, ValueError, "finite"),
        ({"multipliers": (1.0, "x", 1.0)}, TypeError, "must be a finite number"),
    ],
)
def test_refusals(options, error, words):
    with pytest.raises(error, match=words):
        BlockNet(**({"width": 4, "depth": 2} | options))


def test_weights_have_the_role_of_their_place():
    net = BlockNet(width=4, depth=1, biases=True)
    roles = {"W0": "input", "b0": "input_bias", "W1.1": "hidden", "b1.2": "hidden_bias", "readout": "output"}
    assert {name: net.role_of(name) for name in roles} == roles
    assert [mf.MLP(depth=2, width=3).role_of(name) for name in ("W1", "W2", "readout")] == ["input", "hidden", "output"]
    assert mf.TiedLoop(depth=3, width=4).role_of("W") == "hidden"


def test_several_outputs_have_a_readout_of_as_many_rows():
    net = BlockNet(width=4, depth=1, outputs=3)
    assert net.shapes[-1] == net.weights["readout"].shape == (3, 4)
    assert net.output_shape == (2, 3)
