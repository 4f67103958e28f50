"""Ratios of nets in training against what their definitions give matrix by matrix and sample by sample."""

import dataclasses

import numpy as np
import pytest

from meanfield.nets.block_net import BlockNet
from meanfield.optimizers.linear_algebra import dense
from meanfield.simulation.arrays import NUMPY
from meanfield.simulation.measures.block_updates import TrainingAssumptions
from meanfield.simulation.passes import forward
from meanfield.simulation.training.data import drawn_weights, given_data
from meanfield.simulation.training.gradients import gradients
from meanfield.simulation.training.losses import Logistic
from meanfield.simulation.weights import given_weights
from tests.naive import block_streams, label_loss

NET = BlockNet(
    width=7, depth=2, input_width=5, samples=4, activation="relu", multipliers=(1, 0.5, 0.2), variances=(0.4, 0.3, 2)
)
RATES = {"input": {"learning_rate": 0.4}, "hidden": {"learning_rate": 0.2}, "output": {"learning_rate": 0.6}}
SOURCE = np.random.default_rng(0)
INPUTS, LABELS = SOURCE.standard_normal((5, 4)), np.array([1.0, -1.0, 1.0, -1.0])


def drawn(net=NET, inputs=INPUTS, labels=LABELS, steps=(1, 3), **how):
    measure = TrainingAssumptions(hyperparameters=RATES, steps=steps, inputs=inputs, labels=labels, **how)
    return measure.draw(net, 0, range(2))


def norm(matrix):
    return np.sqrt(matrix.shape[1] / matrix.shape[0]) * np.linalg.norm(matrix, 2)


def sample_moves(weights, sample):
    """-eta grad of one sample's own loss, of every matrix."""
    data = given_data(NET, INPUTS[:, [sample]].T, LABELS[[sample]], Logistic())
    state = forward(NET, given_weights(NET, {name: weight[None] for name, weight in weights.items()}), data.inputs)
    slopes = gradients(state, Logistic().slope(state.output, data.targets, NUMPY))
    return {
        name: -RATES[NET.role_of(name)]["learning_rate"] * dense(weight.slope)[0] for name, weight in slopes.items()
    }


def by_hand(draw):
    """Weights before and after steps 1, 2, 3, and every sample's own moves."""
    now = {name: weight[0] for name, weight in drawn_weights(NET, 0, range(draw, draw + 1)).items()}
    steps = []
    for _ in range(3):
        own = [sample_moves(now, sample) for sample in range(4)]
        moved = {name: w + np.mean([moves[name] for moves in own], axis=0) for name, w in now.items()}
        steps.append((now, moved, own))
        now = moved
    return steps


def shares(old, new):
    size = np.linalg.norm
    return [size(b, axis=0) / (size(a, axis=0) + size(b - a, axis=0)) for a, b in zip(old, new, strict=True)]


@pytest.mark.parametrize("draw", [0, 1])
@pytest.mark.parametrize("place", [0, 1])
def test_every_ratio_is_its_definition(draw, place):
    ratios = {name: values[draw, place] for name, values in drawn().items()}
    steps = by_hand(draw)
    start, (before, after, own) = steps[0][0], steps[2 * place]
    looks = (block_streams(NET, weights, INPUTS) for weights in (before, after, start))
    (seen, output, read), (then, *_), (first, *_) = looks
    moves = {name: after[name] - before[name] for name in before}
    triples = [(start[name], before[name], after[name]) for name in before]
    weights = [norm(new) / (norm(old) + norm(new - old)) for _, old, new in triples]
    travels = [norm(new) / (norm(old) + norm(new - old)) for old, _, new in triples]
    given = [before[name] @ read[name] for name in before if name != "readout"]
    kept = [np.linalg.norm(np.maximum(values, 0), axis=0) / np.linalg.norm(values, axis=0) for values in given]
    samples = [
        [
            np.linalg.norm(own[i][name] @ z[:, i]) / (4 * np.linalg.norm(moves[name] @ z[:, i]))
            for name, z in read.items()
        ]
        for i in range(4)
    ]
    expected = {
        "training_loss": label_loss(output, LABELS),
        "weight_step_ratio": weights,
        "weight_travel_ratio": travels,
        "feature_step_ratio": np.mean(shares(seen, then), axis=1),
        "feature_travel_ratio": np.mean(shares(first, then), axis=1),
        "activation_ratio": np.mean(kept, axis=1),
        "sample_update_ratio": np.mean(samples, axis=0),
    }
    for kind, found_by in (("weight", before), ("update", moves)):
        gains = {name: np.sqrt(np.mean((found_by[name] @ z) ** 2) / np.mean(z**2)) for name, z in read.items()}
        expected[f"{kind}_alignment"] = [gain / norm(found_by[name]) for name, gain in gains.items()]
    assert set(ratios) == set(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(ratios[name], values, rtol=1e-6, err_msg=name)


def test_copies_of_one_sample_make_an_update_of_so_many_times_its_own_part():
    inputs = np.repeat(INPUTS[:, :1], 4, axis=1)
    ratios = drawn(inputs=inputs, labels=np.ones(4))["sample_update_ratio"]
    np.testing.assert_allclose(ratios, 1 / 4)


def test_samples_that_share_no_direction_leave_the_input_layer_to_each_other():
    """Orthogonal inputs: in the input layer a sample's own part is the whole update, whatever the others do."""
    ratios = drawn(inputs=2 * np.eye(5)[:, :4])["sample_update_ratio"]
    np.testing.assert_allclose(ratios[..., 0], 1.0)
    assert np.abs(ratios[..., 1:-1] - 1).mean() > 0.2


def test_linear_nets_keep_all():
    measured = drawn(dataclasses.replace(NET, activation="linear"))
    np.testing.assert_array_equal(measured["activation_ratio"], 1.0)


def test_single_precision_is_the_same_net_rounded():
    """The readout's sample ratio is left out: its denominator is one number, which may be all but zero."""
    double, single = drawn(), drawn(precision="float32")
    for name, values in double.items():
        kept = slice(None, -1 if name == "sample_update_ratio" else None)
        np.testing.assert_allclose(single[name][..., kept], values[..., kept], rtol=1e-4, err_msg=name)


def test_the_first_step_of_lion_moves_every_element_by_its_rate():
    ratios = drawn(steps=[1], optimizer="lion")
    assert "sample_update_ratio" not in ratios
    start = {name: weight[0] for name, weight in drawn_weights(NET, 0, range(1)).items()}
    own = [sample_moves(start, sample) for sample in range(4)]
    signs = {name: np.sign(np.mean([moves[name] for moves in own], axis=0)) for name in start}
    moved = {name: RATES[NET.role_of(name)]["learning_rate"] * sign for name, sign in signs.items()}
    expected = [norm(start[name] + move) / (norm(start[name]) + norm(move)) for name, move in moved.items()]
    np.testing.assert_allclose(ratios["weight_step_ratio"][0, 0], expected, rtol=1e-6)


def test_an_unknown_optimizer_is_refused():
    measure = TrainingAssumptions(hyperparameters=RATES, steps=[1], inputs=INPUTS, labels=LABELS, optimizer="adam")
    with pytest.raises(ValueError, match="optimizer"):
        measure.settled(NET)
