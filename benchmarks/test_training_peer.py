"""Steps of training beside PyTorch's, where it is installed: by turns, on one thread, in single precision."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest

from benchmarks.limits import Demand, Limit, products
from benchmarks.nets import described
from benchmarks.race import Race, Sizes
from benchmarks.training_step import drawn, torch_step, training
from meanfield.nets.conv_net import ConvNet

GROUP = "Steps of training beside PyTorch"
PRECISION = "float32"

# Channels, and nets side by side: 16 learning rates of 3 seeds.
NETS = {"one net": (32, 1), "48 nets side by side": (8, 48)}


def the_net(sizes: Sizes, channels: int) -> ConvNet:
    side = sizes("training_side", 14, 6)
    shape = {"grid": (side, side), "kernel": (3, 3), "input_channels": 1}
    return ConvNet(depth=sizes("training_depth", 12, 3), channels=channels, inputs=sizes("batch", 128, 16), **shape)  # type: ignore[arg-type]


def operations(net: ConvNet) -> float:
    """Of the products forward, back (but to the input) and into the gradients."""
    of_layers = [2.0 * prod(shape) * net.inputs * net.sites for shape in net.weight_shapes[:-1]]
    return 3 * sum(of_layers) - of_layers[0]


def require_same(net: ConvNet) -> None:
    """Three steps of a small net move weights alike, or the two would race on different things."""
    small = replace(net, depth=3, grid=(5, 4), inputs=11)
    ours, theirs = drawn(small, 2, "float64"), drawn(small, 2, "float64")
    step, (other, moved) = (
        training(small, ours, np.array([0.3, 0.2]), "float64").step,
        torch_step(small, theirs, 0.3, "float64"),
    )
    for _ in range(3):
        step()
        other()
    for one, matrix, start in zip(moved, ours.values(), theirs.values(), strict=True):
        np.testing.assert_allclose(one.detach().numpy().reshape(matrix[0].shape), matrix[0], rtol=1e-9, atol=1e-12)
        assert np.abs(matrix[0] - start[0]).max() > 1e-4


@pytest.mark.parametrize("which", NETS)
def test_step_beside_matrix_products(race: Race, sizes: Sizes, which: str) -> None:
    channels, nets = NETS[which]
    net, nets = the_net(sizes, channels), sizes("training_nets", nets, min(nets, 4))
    step = training(net, drawn(net, nets, PRECISION), np.geomspace(1e-3, 1e-1, nets), PRECISION).step
    named = {"group": GROUP, "what": f"{which}, {PRECISION}", "size": f"{described(net)}, {net.inputs} samples"}
    race(step, [products(nets * operations(net), PRECISION)], amount=nets, unit="steps", **named)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("which", NETS)
def test_step_beside_pytorch(race: Race, sizes: Sizes, which: str) -> None:
    """The limit is PyTorch's time for the same steps, net by net, so that the fraction says how many times faster."""
    pytest.importorskip("torch")
    channels, nets = NETS[which]
    net, nets = the_net(sizes, channels), sizes("training_nets", nets, min(nets, 4))
    require_same(net)
    weights = drawn(net, nets, PRECISION)
    step = training(net, weights, np.geomspace(1e-3, 1e-1, nets), PRECISION).step
    peer, _ = torch_step(net, weights, 1e-3, PRECISION)
    named = {"group": GROUP, "what": f"{which}, {PRECISION}", "size": f"{described(net)}, {net.inputs} samples"}
    limit = Limit("the same by PyTorch, net by net", peer, 1)
    race(step, [Demand(limit, nets)], amount=nets, unit="steps", **named)
