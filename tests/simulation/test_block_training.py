"""Training of nets of blocks: updates against the rule written out, and nets that leave the floats."""

import numpy as np
import pytest
from meanfield.simulation.block_passes import forward, gradients, loss

from meanfield.nets.block_net import BlockNet
from meanfield.optimizers import OPTIMIZERS
from meanfield.simulation.block_training import begin, draw_trained_streams

NET = BlockNet(width=12, depth=2, variances=(0.1, 0.1, 0.5))


def rates(rate, **more):
    return {role: {"learning_rate": rate, **more} for role in ("input", "hidden", "output")}


def test_a_step_is_the_gradient_and_the_decay():
    training = begin(NET, 0, 0, "sgd", rates(0.3, weight_decay=0.2), False)
    before = training.parameters.copy()
    slopes, _ = gradients(NET, before, training.batch, forward(NET, before, training.batch.inputs))
    training.step()
    for old, new, slope in zip(before.matrices, training.parameters.matrices, slopes, strict=True):
        np.testing.assert_allclose(new, old - 0.3 * (slope.slope.dense() + 0.2 * old))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_small_steps_of_every_optimizer_lower_the_loss(optimizer):
    training = begin(NET, 1, 0, optimizer, rates(1e-3), True)
    losses = []
    for _ in range(6):
        losses.append(loss(training.look().output, training.batch.labels))
        training.step()
    assert np.all(np.diff(losses) < 0)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "muon", "shampoo", "soap"])
def test_nets_that_leave_the_floats_are_nan_from_there_on(optimizer):
    options = {"seed": 0, "draws": range(2), "weights": "dense", "momentum": True, "steps": 4}
    found = draw_trained_streams(NET, optimizer=optimizer, hyperparameters=rates(1e90), **options)
    assert np.isfinite(found["feature_norm"][:, 0]).all()
    assert not np.isfinite(found["feature_norm"][:, -1]).any()
    calm = draw_trained_streams(NET, optimizer=optimizer, hyperparameters=rates(1e-2), **options)
    assert all(np.isfinite(values).all() for values in calm.values())
