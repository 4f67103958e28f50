"""Training of nets of blocks: updates against the rule written out, and nets that leave the floats."""

import dataclasses

import numpy as np
import pytest

from meanfield.nets.families.block_net import BlockNet
from meanfield.optimizers import OPTIMIZERS
from meanfield.optimizers.linear_algebra.factored import dense
from meanfield.simulation.measures.blocks.training import TrainedStreams, copied
from meanfield.simulation.training.gradients import gradients

NET = BlockNet(width=12, depth=2, variances=(0.1, 0.1, 0.5))
FULL = dataclasses.replace(NET, samples=9, outputs=3, activation="relu", biases=True, bias_variance=0.1)


def rates(rate, **more):
    """By role; SOAP needs an epsilon, for slots that no squared gradient has come in yet."""
    more = {"soap_epsilon": 1e-3} | more
    roles = ("input", "hidden", "output", "input_bias", "hidden_bias")
    return {role: {"learning_rate": rate, **more} for role in roles}


def begun(net, seed, optimizer, table, momentum):
    """Two draws before their first step."""
    measure = TrainedStreams(optimizer=optimizer, hyperparameters=table, momentum=momentum, steps=1)
    return measure.begun(net, seed, range(2))


def test_a_step_is_the_gradient_and_the_decay():
    training = begun(NET, 0, "sgd", rates(0.3, weight_decay=0.2), False)
    before = copied(training.weights)
    slopes = gradients(training.look(), training.slope())
    training.step()
    for name, old in before.items():
        np.testing.assert_allclose(training.weights[name], old - 0.3 * (dense(slopes[name].slope) + 0.2 * old))


@pytest.mark.parametrize("net", [NET, FULL], ids=["as the paper's", "full rank"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_small_steps_of_every_optimizer_lower_the_loss(optimizer, net):
    training = begun(net, 1, optimizer, rates(1e-3), True)
    losses = []
    for _ in range(6):
        losses.append(training.losses())
        training.step()
    assert np.all(np.diff(losses, axis=0) < 0)


@pytest.mark.parametrize("net", [NET, FULL], ids=["as the paper's", "full rank"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_draws_side_by_side_are_those_one_by_one(optimizer, net):
    measure = TrainedStreams(optimizer=optimizer, hyperparameters=rates(1e-2), momentum=True, steps=3)
    both, alone = measure.draw(net, 0, range(2)), measure.draw(net, 0, range(1, 2))
    for name, values in alone.items():
        np.testing.assert_array_equal(both[name][1:], values)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "muon", "shampoo", "soap"])
def test_nets_that_leave_the_floats_are_nan_from_there_on(optimizer):
    def trained(rate):
        measure = TrainedStreams(optimizer=optimizer, hyperparameters=rates(rate), momentum=True, steps=4)
        return measure.draw(NET, 0, range(2))

    drawn = trained(1e90)
    assert np.isfinite(drawn["feature_norm"][:, 0]).all()
    assert not np.isfinite(drawn["feature_norm"][:, -1]).any()
    assert all(np.isfinite(values).all() for values in trained(1e-2).values())
