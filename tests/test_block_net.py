"""The spec of nets of blocks: shapes and refusals."""

import pytest

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
