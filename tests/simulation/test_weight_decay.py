"""The convention of weight decay: Delta W = -eta (A + lambda W), as Zheng et al. 2026 write every update (eq. 16)."""

import numpy as np
import pytest

from meanfield.nets.block_net import BlockNet
from meanfield.optimizers.linear_algebra import dense
from meanfield.simulation.measures.blocks import copied, tabled
from meanfield.simulation.training.data import drawn_batch, drawn_weights

RATE, DECAY = 0.05, 0.3


@pytest.mark.parametrize("momentum", [False, True])
@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "lion", "sophia", "muon", "muon_kimi", "shampoo", "soap", "sso"])
def test_decay_is_multiplied_by_the_learning_rate(optimizer, momentum):
    """Of SSO's as well: it keeps the norm of weights as they stand, so that decay shrinks its sphere."""
    net = BlockNet(width=5, depth=2, input_width=3, multipliers=(0.9, 0.6, 0.7), variances=(0.3, 0.2, 0.4))
    weights, data = drawn_weights(net, 0, range(2)), drawn_batch(net, 0, range(2))
    given = {role: {"learning_rate": RATE, "weight_decay": DECAY} for role in ("input", "hidden", "output")}
    training = tabled(net, copied(weights), data, optimizer, given, momentum)
    directions = training.step()
    for name, before in weights.items():
        steps = np.stack([dense(direction) for direction in directions[name]])
        np.testing.assert_allclose(training.weights[name], before - RATE * (steps + DECAY * before), atol=1e-12)
