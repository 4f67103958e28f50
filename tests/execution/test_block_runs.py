"""Runs of nets of blocks: the same numbers however they are spread, and refusals before any work."""

import dataclasses

import numpy as np
import pytest

from meanfield.execution.run import Run, simulate_all
from meanfield.nets.block_net import BlockNet
from meanfield.optimizers.linear_algebra import dense
from meanfield.simulation.measures.block_updates import FirstDirections, FirstUpdates
from meanfield.simulation.measures.blocks import TrainedStreams, UpdateOrders, copied, middle_weights, tabled
from meanfield.simulation.training.data import drawn_batch, drawn_weights

NET = BlockNet(width=12, depth=2, variances=(0.1, 0.1, 0.5))
RATES = {role: {"learning_rate": 0.1} for role in ("input", "hidden", "output", "input_bias", "hidden_bias")}
TRAINED = {"optimizer": "muon", "hyperparameters": RATES, "momentum": True, "steps": 2}
SPLIT = TRAINED | {"momentum": False, "steps": [1, 2]}


def test_workers_change_nothing():
    runs = [
        Run(NET, TrainedStreams(**TRAINED), 3, 0),
        Run(NET, UpdateOrders(**SPLIT), 2, 1),
    ]
    alone, together = (simulate_all(runs, workers=workers) for workers in (1, 2))
    for whole_run, cut_run in zip(alone, together, strict=True):
        for name in whole_run:
            np.testing.assert_array_equal(whole_run[name], cut_run[name])


def test_measures_agree_with_each_other():
    """The last step of the trained streams, the first updates and the split describe one and the same step."""
    plain = TRAINED | {"momentum": False, "steps": 1}
    trained, updated, split = simulate_all(
        [
            Run(NET, TrainedStreams(**plain), 2, 0),
            Run(NET, FirstUpdates(hyperparameters={"muon": RATES}), 2, 0),
            Run(NET, UpdateOrders(**SPLIT), 2, 0),
        ]
    )
    step = trained["feature_update_norm"].sel(step=1)
    np.testing.assert_allclose(step, updated["feature_update_norm"].isel(optimizer=0))
    np.testing.assert_allclose(step.isel(block=-1), split["feature_update_norm"].isel(step=0))
    np.testing.assert_allclose(updated["order_norm"].isel(optimizer=0), split["order_norm"].isel(step=0))


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_biases_are_stepped_by_optimizers_of_elements(optimizer):
    """Optimizers of matrices leave biases to AdamW, whose first step is the sign at the learning rate."""
    net = dataclasses.replace(NET, biases=True, bias_variance=1.0, activation="relu")
    drawn = simulate_all([Run(net, FirstUpdates(hyperparameters={optimizer: RATES}), 2, 0)])[0]
    assert "order_norm" not in drawn
    sizes = drawn["bias_update_norm"].isel(optimizer=0)
    assert np.all(sizes <= 0.1 + 1e-12)
    assert np.all(sizes.max("bias") > 0.05)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"draws": 1}, ValueError, "one draw"),
        ({"seed": -1}, ValueError, "seed"),
        ({"measure": TrainedStreams(**TRAINED | {"optimizer": "losses"})}, ValueError, "'sgd'"),
        ({"net": BlockNet(width=10**7, depth=1)}, MemoryError, "drawing with 1 worker"),
    ],
)
def test_refusals(options, error, words):
    given = {"net": NET, "draws": 2, "seed": 0, "measure": TrainedStreams(**TRAINED)}
    with pytest.raises(error, match=words):
        simulate_all([Run(**(given | options))])


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "sophia", "muon", "sso", "shampoo-adamw"])
def test_first_directions_are_those_that_the_first_step_is_made_of(optimizer):
    """By role: the middle weight, its gradient (SGD's direction), and the direction of a step without momentum."""
    net = dataclasses.replace(NET, biases=True, bias_variance=1.0, activation="relu", samples=3, outputs=2)
    drawn = FirstDirections(optimizer=optimizer, hyperparameters=RATES).draw(net, 3, range(2))
    weights, batch = drawn_weights(net, 3, range(2)), drawn_batch(net, 3, range(2))
    made = {by: tabled(net, copied(weights), batch, by, RATES, momentum=False).step() for by in (optimizer, "sgd")}
    for place, name in enumerate(middle_weights(net)):
        for number in range(2):
            own = weights[name][number]
            direction, gradient = (dense(made[by][name][number]) for by in (optimizer, "sgd"))
            scale = np.sqrt(own.shape[1] / own.shape[0]) if own.shape[1] > 1 else np.sqrt(1 / own.shape[0])
            expected = [scale * np.linalg.norm(own, 2), scale * np.linalg.norm(direction, 2)]
            expected += [np.linalg.norm(gradient, 2), np.sqrt(np.mean(gradient**2))]
            np.testing.assert_allclose([values[number, place] for values in drawn.values()], expected, rtol=1e-3)
