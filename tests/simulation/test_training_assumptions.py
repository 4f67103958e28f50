"""Ratios of nets in training against what their definitions give matrix by matrix and sample by sample."""

import dataclasses

import numpy as np
import pytest
from meanfield.simulation.block_passes import Batch, Parameters, draw_parameters, forward, gradients, loss

from meanfield.nets.block_net import BlockNet
from meanfield.simulation.training_assumptions import draw_training_assumptions

NET = BlockNet(
    width=7, depth=2, input_width=5, samples=4, activation="relu", multipliers=(1, 0.5, 0.2), variances=(0.4, 0.3, 2)
)
RATES = {"input": {"learning_rate": 0.4}, "hidden": {"learning_rate": 0.2}, "output": {"learning_rate": 0.6}}
SOURCE = np.random.default_rng(0)
INPUTS, LABELS = SOURCE.standard_normal((5, 4)), np.array([1.0, -1.0, 1.0, -1.0])


def drawn(net=NET, inputs=INPUTS, labels=LABELS, steps=(1, 3)):
    options = {"seed": 0, "draws": range(2), "weights": "dense", "hyperparameters": RATES, "steps": steps}
    return draw_training_assumptions(net, inputs=inputs, labels=labels, **options)


def norm(matrix):
    return np.sqrt(matrix.shape[1] / matrix.shape[0]) * np.linalg.norm(matrix, 2)


def sample_moves(parameters, sample):
    """-eta grad of one sample's own loss, of every matrix."""
    alone = dataclasses.replace(NET, samples=1)
    batch = Batch(INPUTS[:, [sample]], LABELS[[sample]])
    slopes, _ = gradients(alone, parameters, batch, forward(alone, parameters, batch.inputs))
    rates = [RATES[role]["learning_rate"] for role in NET.roles]
    return [-rate * slope.slope.dense() for rate, slope in zip(rates, slopes, strict=True)]


def by_hand(draw):
    """Parameters before and after steps 1, 2, 3, and every sample's own moves."""
    now = draw_parameters(NET, 0, draw)
    found = []
    for _ in range(3):
        own = [sample_moves(now, sample) for sample in range(4)]
        moved = [w + np.mean(moves, axis=0) for w, *moves in zip(now.matrices, *own, strict=True)]
        found.append((now, Parameters(moved, []), own))
        now = found[-1][1]
    return found


def shares(old, new):
    size = np.linalg.norm
    return [size(b, axis=0) / (size(a, axis=0) + size(b - a, axis=0)) for a, b in zip(old, new, strict=True)]


@pytest.mark.parametrize("draw", [0, 1])
@pytest.mark.parametrize("place", [0, 1])
def test_every_ratio_is_its_definition(draw, place):
    found = {name: values[draw, place] for name, values in drawn().items()}
    steps = by_hand(draw)
    start, (before, after, own) = steps[0][0], steps[2 * place]
    seen, then, first = (forward(NET, one, INPUTS) for one in (before, after, start))
    moves = [new - old for old, new in zip(before.matrices, after.matrices, strict=True)]
    triples = list(zip(start.matrices, before.matrices, after.matrices, strict=True))
    weights = [norm(new) / (norm(old) + norm(new - old)) for _, old, new in triples]
    travels = [norm(new) / (norm(old) + norm(new - old)) for old, _, new in triples]
    given = [w @ z for w, z in zip(before.matrices[:-1], seen.inputs, strict=False)]
    kept = [np.linalg.norm(np.maximum(one, 0), axis=0) / np.linalg.norm(one, axis=0) for one in given]
    samples = [
        [
            np.linalg.norm(own[i][m] @ z[:, i]) / (4 * np.linalg.norm(move @ z[:, i]))
            for m, (move, z) in enumerate(zip(moves, seen.inputs, strict=True))
        ]
        for i in range(4)
    ]
    expected = {
        "training_loss": loss(seen.output, LABELS),
        "weight_step_ratio": weights,
        "weight_travel_ratio": travels,
        "feature_step_ratio": np.mean(shares(seen.streams, then.streams), axis=1),
        "feature_travel_ratio": np.mean(shares(first.streams, then.streams), axis=1),
        "activation_ratio": np.mean(kept, axis=1),
        "sample_update_ratio": np.mean(samples, axis=0),
    }
    for kind, matrices in (("weight", before.matrices), ("update", moves)):
        gains = [np.sqrt(np.mean((a @ z) ** 2) / np.mean(z**2)) for a, z in zip(matrices, seen.inputs, strict=True)]
        expected[f"{kind}_alignment"] = [gain / norm(a) for gain, a in zip(gains, matrices, strict=True)]
    assert set(found) == set(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-6, err_msg=name)


def test_copies_of_one_sample_make_an_update_of_so_many_times_its_own_part():
    inputs = np.repeat(INPUTS[:, :1], 4, axis=1)
    found = drawn(inputs=inputs, labels=np.ones(4))["sample_update_ratio"]
    np.testing.assert_allclose(found, 1 / 4)


def test_samples_that_share_no_direction_leave_the_input_layer_to_each_other():
    """Orthogonal inputs: in the input layer a sample's own part is the whole update, whatever the others do."""
    found = drawn(inputs=2 * np.eye(5)[:, :4])["sample_update_ratio"]
    np.testing.assert_allclose(found[..., 0], 1.0)
    assert np.abs(found[..., 1:-1] - 1).mean() > 0.2


def test_linear_nets_keep_all():
    found = drawn(dataclasses.replace(NET, activation="linear"))
    np.testing.assert_array_equal(found["activation_ratio"], 1.0)
