"""Residual energies of nets in training: the split, the draws before training, optimizer steps, refusals."""

from dataclasses import replace

import numpy as np
import pytest

import meanfield as mf
from meanfield.optimizers import Muon
from meanfield.simulation.measures.streams import ResidualEnergies
from meanfield.simulation.passes import units_below
from meanfield.simulation.training.trained import TrainedResidualEnergies
from tests.draws import drawn_by

LOOPED = mf.Transformer(
    depth=3, width=8, heads=2, tokens=4, normalisation="rms", causal=True, activation="swiglu", rotary=True, tied=True
)
NETS = {
    "looped": LOOPED,
    "deep": replace(LOOPED, tied=False, scaling="multiplier_sqrt", readout="last"),
    "language model": replace(LOOPED, vocabulary=5, outputs=5, readout="every"),
    "loop": mf.TiedLoop(depth=4, width=12, alpha=0.5),
}
POST_NORM = {
    name: replace(NETS["language model"], norm="post", scaling="deepnorm", tied=tied)
    for name, tied in (("looped, post-norm", True), ("deep, post-norm", False))
}
STREAMS = NETS | POST_NORM


def draw(net, seed, draws, **fields):
    return TrainedResidualEnergies(**fields).draw(net, seed, draws)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("net", NETS.values(), ids=NETS)
def test_the_split_adds_up_after_every_step(net, precision):
    drawn = draw(net, 0, range(3), steps=4, rate=0.05, precision=precision)
    start = drawn["trained_initial_energy"][:, :, None]
    parts = start + drawn["trained_cross_term"] + drawn["trained_correlation_term"]
    np.testing.assert_allclose(parts, drawn["trained_residual_energy"], rtol=1e-12)
    assert (drawn["trained_loss"][:, -1] < drawn["trained_loss"][:, 0]).all()


@pytest.mark.parametrize("net", NETS.values(), ids=NETS)
def test_before_training_nets_are_those_that_are_walked(net):
    walked = drawn_by(ResidualEnergies)(net, 5, range(3))
    drawn = draw(net, 5, range(3), steps=1, correlations=True)
    for name in ("residual_energy", "cross_term", "correlation_term"):
        np.testing.assert_allclose(drawn[f"trained_{name}"][:, 0], walked[name], rtol=1e-10, atol=1e-12)
    overlaps, multipliers = (
        drawn["trained_increment_correlation"],
        [unit.multiplier for unit in net.units[units_below(net) :]],
    )
    total = np.einsum("s,dust,t->du", multipliers, overlaps, multipliers)
    np.testing.assert_allclose(total, drawn["trained_correlation_term"][:, :, -1], rtol=1e-10)


def test_the_next_token_is_the_class_of_a_token():
    training = TrainedResidualEnergies()._begun(NETS["language model"], 3, range(2))
    tokens, classes = training.data.inputs.argmax(axis=1), training.data.targets[:, 0]
    np.testing.assert_array_equal(classes[..., :-1], tokens[..., 1:])


def test_a_large_epsilon_holds_every_step_back():
    small, large = (draw(LOOPED, 0, range(1), steps=1, epsilon=value) for value in (1e3, 2e3))
    ratio = small["trained_stream_change"][:, 1] / large["trained_stream_change"][:, 1]
    np.testing.assert_allclose(ratio, 4.0, rtol=1e-2)


def test_an_embedding_trains_too():
    start = draw(NETS["language model"], 0, range(2), steps=1, rate=0.1)["trained_initial_energy"]
    assert (start[:, 1] != start[:, 0]).all()


@pytest.mark.parametrize("net", POST_NORM.values(), ids=POST_NORM)
def test_post_norm_streams_keep_their_energy_and_have_no_split(net):
    drawn = draw(net, 4, range(3), steps=4, rate=0.05)
    np.testing.assert_allclose(drawn["trained_residual_energy"], 1.0, rtol=1e-12)
    assert not {"trained_cross_term", "trained_correlation_term"} & set(drawn)
    assert (drawn["trained_loss"][:, -1] < drawn["trained_loss"][:, 0]).all()


@pytest.mark.parametrize("net", STREAMS.values(), ids=STREAMS)
def test_a_small_step_moves_the_stream_in_proportion_to_its_rate(net):
    near, far = (draw(net, 2, range(2), steps=1, rate=rate)["trained_stream_change"] for rate in (1e-7, 2e-7))
    assert not near[:, 0].any()
    np.testing.assert_allclose(far[:, 1], 4 * near[:, 1], rtol=1e-4)


def test_a_draw_does_not_depend_on_its_company():
    """In groups as large as any that train side by side."""
    count = TrainedResidualEnergies().together(LOOPED)
    together = draw(LOOPED, 9, range(count), steps=2, correlations=True)
    for name, values in together.items():
        alone = [draw(LOOPED, 9, range(i, i + 1), steps=2, correlations=True)[name] for i in range(count)]
        np.testing.assert_array_equal(values, np.concatenate(alone))


@pytest.mark.parametrize(("width", "depth", "count"), [(32, 16, 16), (64, 16, 4), (512, 16, 1)])
def test_small_nets_train_side_by_side(width, depth, count):
    """As many as the caches hold; chunks hold whole groups."""
    net, measure = replace(LOOPED, width=width, depth=depth, tokens=width // 2), TrainedResidualEnergies()
    assert measure.together(net) == measure.multiple(net) == count


def test_the_dataset_counts_updates_and_units():
    measured = mf.simulate(LOOPED, draws=2, seed=0, measure=TrainedResidualEnergies(steps=2))
    assert measured["trained_residual_energy"].dims == ("update", "step")
    assert measured["update"].values.tolist() == [0, 1, 2]
    assert measured["step"].values.tolist() == [1, 2, 3, 4, 5, 6]
    assert measured["trained_loss_stderr"].dims == ("update",)


@pytest.mark.parametrize(
    ("net", "fields", "message"),
    [
        (mf.MLP(depth=2, width=4), {}, "no unit of this MLP adds its branch"),
        (
            replace(LOOPED, norm="post"),
            {"correlations": True},
            r"unit 1 skips from 0 \(join 'add'\) and has 1 map\(s\) behind its join",
        ),
        (LOOPED, {"optimizer": Muon()}, "give an elementwise one"),
        (LOOPED, {"rate": 0}, "rate is 0"),
        (LOOPED, {"epsilon": -1}, "epsilon is -1"),
        (LOOPED, {"steps": 0}, "steps is 0"),
        (LOOPED, {"precision": "half"}, "precision is 'half'"),
    ],
)
def test_what_is_not_served_is_refused(net, fields, message):
    with pytest.raises((TypeError, ValueError), match=message):
        TrainedResidualEnergies(**fields).settled(net)


def test_nets_that_leave_the_floats_say_so():
    with pytest.raises(OverflowError, match="take a smaller learning rate"):
        draw(mf.TiedLoop(depth=300, width=8, alpha=0.0), 0, range(2), steps=2, precision="float32")
