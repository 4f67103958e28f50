"""Walks up residual streams of any maps: the values of the forward pass, at any scale, and no more than they need."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.common.seeds import streams_by_purpose, streams_of_draws
from meanfield.nets.maps import Attention, Bias, Gate, Linear, Normalisation, Pointwise, Weight
from meanfield.nets.net import Chain, Unit
from meanfield.simulation import passes
from meanfield.simulation import passes as walk
from meanfield.simulation.draws import draw_inputs
from meanfield.simulation.measures.streams import POWERS, UPDATES, ResidualEnergies, StreamUpdates
from meanfield.simulation.weights import DrawnInTurn, draw_weights
from tests import naive
from tests.draws import drawn_by

DRAWS = 3


def _weight(name, rows, columns, *kernel):
    return Weight(name, (rows, columns, *kernel), 1 / columns)


def _attention(name=""):
    """Queries, keys and values side by side, attention, and back to the stream."""
    stack = Linear(tuple(_weight(letter + name, 4, 4) for letter in "qkv"))
    return (Normalisation("layer"), stack, Attention(heads=2, causal=True), Linear((_weight("o" + name, 4, 4),)))


def _feed_forward(activation, name=""):
    up, down = Linear((_weight("up" + name, 6, 4),)), Linear((_weight("down" + name, 4, 6),))
    return (up, Bias(Weight("b" + name, (6,), 0.5)), Pointwise(activation), down)


def _chain(*branches, multipliers=(0.5, 0.7)):
    units = [Unit(branch, skip, multipliers[skip % 2]) for skip, branch in enumerate(branches)]
    return Chain(units=tuple(units), input_channels=4, grid=(5,), inputs=2)


STREAMS = {
    "loop": mf.TiedLoop(depth=6, width=7, alpha=0.5),
    "independent": mf.TiedLoop(depth=6, width=7, alpha=0.5, tied=False),
    "looped transformer": _chain(*([_attention(), _feed_forward("relu")] * 3)),
    "transformer": _chain(*(map(_attention, "123")), *(_feed_forward("gelu", name) for name in "123")),
    "convolutions, tied": _chain(*[(Pointwise("tanh"), Linear((_weight("w", 4, 4, 3),), "zero"))] * 4),
    "normalised with epsilon": _chain(
        *[(Normalisation("rms", epsilon=40.0), Linear((_weight("e", 4, 4),)))] * 4, multipliers=(9.0, 9.0)
    ),
    "gated": _chain(*[(Linear((_weight("u", 6, 4),)), Gate("relu"), Linear((_weight("d", 4, 3),)))] * 4),
}
each_stream = pytest.mark.parametrize("net", STREAMS.values(), ids=STREAMS.keys())
draw_residual_energies, draw_stream_updates = drawn_by(ResidualEnergies), drawn_by(StreamUpdates)
each_kind = pytest.mark.parametrize("kind", ["dense", "lazy"])


LANGUAGE_MODEL = mf.Transformer(depth=2, width=4, tokens=5, vocabulary=3, readout="every", tied=True, inputs=2)


def test_a_stream_begins_behind_the_embedding_and_ends_below_the_readout():
    drawn = draw_residual_energies(LANGUAGE_MODEL, 0, range(DRAWS))
    weights = draw_weights(LANGUAGE_MODEL, streams_of_draws(0, "weights", range(DRAWS)), "dense")
    tokens = draw_inputs(LANGUAGE_MODEL, streams_by_purpose(0, range(DRAWS)))
    assert set(np.unique(tokens)) == {0.0, 1.0}
    np.testing.assert_array_equal(tokens.sum(axis=1), 1.0)
    embedded, *above = passes.forward(LANGUAGE_MODEL, weights, tokens).values[1:]
    np.testing.assert_allclose(drawn["initial_energy"], np.square(embedded).mean(axis=(1, 2, 3)))
    energies = [np.square(value).mean(axis=(1, 2, 3)) for value in above]
    np.testing.assert_allclose(drawn["residual_energy"].T, energies)
    with pytest.raises(ValueError, match="has units below its stream and a readout"):
        mf.simulate(LANGUAGE_MODEL, measure=StreamUpdates(), draws=2, seed=0)
    given = mf.simulate(LANGUAGE_MODEL, measure=ResidualEnergies(inputs=tokens[0].swapaxes(0, 1)), draws=2, seed=0)
    np.testing.assert_allclose(given["residual_energy"].sizes["step"], 4)


def _drawn(net, kind, size=1.0):
    weights = DrawnInTurn(net, streams_of_draws(0, "weights", range(DRAWS)), kind, right=1, left=0)
    return weights, size * np.random.default_rng(1).normal(size=(DRAWS, net.first_channels, net.inputs, net.sites))


@each_stream
@each_kind
def test_a_walk_goes_through_the_values_of_the_forward_pass(net, kind):
    weights, start = _drawn(net, kind)
    state = passes.forward(net, weights, start)
    total = np.zeros_like(start)
    steps = list(walk.walk(net, *_drawn(net, kind)))
    for step, unit, below, above in zip(steps, net.units, state.values[:-1], state.values[1:], strict=True):
        np.testing.assert_array_equal(step.before, below)
        np.testing.assert_array_equal(step.stream, above)
        total += unit.multiplier * step.increment
        np.testing.assert_allclose(step.total, total, rtol=1e-12, atol=1e-12)
        assert not step.exponent.any()
    for step, passage in zip(steps, state.passages, strict=True):
        np.testing.assert_array_equal(step.features, passage.input_of(len(passage.unit.branch) - 1))


@each_stream
@each_kind
def test_a_walk_in_powers_of_two_is_the_same_walk(net, kind, monkeypatch):
    """Of maps of degree 0, 1 and 2 and of none; each draw has its own power."""
    scales = np.array([1.0, 10.0, 1e3]).reshape(-1, 1, 1, 1)
    plain = list(walk.walk(net, *_drawn(net, kind, scales)))
    monkeypatch.setattr(walk, "LARGEST_EXPONENT", 1)
    scaled = list(walk.walk(net, *_drawn(net, kind, scales)))
    assert len(set(scaled[-1].exponent)) == DRAWS
    for expected, actual in zip(plain, scaled, strict=True):
        for name in ("features", "increment", "total", "stream"):
            restored = np.ldexp(getattr(actual, name), actual.exponent[:, None, None, None])
            np.testing.assert_allclose(restored, getattr(expected, name), rtol=1e-9, atol=1e-12 * scales.max())


def test_normalised_branches_do_not_notice_how_far_their_stream_is_gone():
    """At 2^2000, beyond floats, branches of degree 0 add what they add to a stream of size 1: nothing, beside it."""
    net = _chain(*[_attention()] * 2)
    weights, start = _drawn(net, "dense")
    unit = net.units[0]
    setting = passes.forward(net, weights, start).setting
    _, plain = walk._scaled_along(unit, start, None, setting)
    _, far = walk._scaled_along(unit, start, np.full(DRAWS, 2000), setting)
    near = walk._scaled_along(unit, start, np.full(DRAWS, 20), setting)[1]
    np.testing.assert_array_equal(near, plain * 2.0**-20)
    assert np.isfinite(far).all()
    assert not far.any()


@each_kind
def test_weights_live_from_their_first_use_to_their_last(kind):
    for net, most in ((STREAMS["loop"], 1), (STREAMS["independent"], 1), (STREAMS["looped transformer"], 7)):
        weights, start = _drawn(net, kind)
        alive = [len(weights) for _ in walk.walk(net, weights, start)]
        assert max(alive) == most
        assert not weights
        with pytest.raises(KeyError):
            weights[next(iter(net.weights))]


@each_stream
@each_kind
def test_the_split_adds_up_on_every_stream(net, kind):
    drawn = draw_residual_energies(net, 0, range(DRAWS), weights=kind)
    parts = drawn["initial_energy"][:, None] + drawn["cross_term"] + drawn["correlation_term"]
    np.testing.assert_allclose(parts, drawn["residual_energy"], rtol=1e-11)
    assert set(drawn) == {*POWERS, "initial_energy", "binary_exponent"}


@each_stream
@each_kind
@pytest.mark.parametrize("update", UPDATES)
def test_draws_of_a_stream_do_not_depend_on_their_company(net, kind, update):
    together = draw_stream_updates(net, 9, range(4), update=update, weights=kind)["stream_update_energy"]
    alone = [draw_stream_updates(net, 9, range(i, i + 1), update=update, weights=kind) for i in range(4)]
    np.testing.assert_allclose(together, np.concatenate([part["stream_update_energy"] for part in alone]), rtol=1e-7)
    assert (together > 0).all()


def test_given_inputs_start_every_draw():
    net = STREAMS["transformer"]
    batch = np.random.default_rng(0).normal(size=net.input_shape)
    drawn = draw_residual_energies(net, 0, range(2), inputs=batch)
    np.testing.assert_allclose(drawn["initial_energy"], np.full(2, np.mean(batch**2)), rtol=1e-12)


def test_features_of_several_sizes_have_no_overlaps():
    with pytest.raises(ValueError, match="of one size"):
        draw_residual_energies(STREAMS["looped transformer"], 0, range(2), correlations=True)
    drawn = draw_residual_energies(STREAMS["convolutions, tied"], 0, range(2), correlations=True)
    assert drawn["feature_overlap"].shape == drawn["increment_correlation"].shape == (2, 4, 4)


@pytest.mark.parametrize(
    ("net", "message"),
    [
        (mf.MLP(depth=2, width=4), "no unit of this MLP adds"),
        (mf.ResidualMLP(depth=2, width=4, tail=1), "unit 3 skips from None"),
        (Chain(units=(Unit((Pointwise("relu"),), 0), Unit((Pointwise("relu"),), 0)), input_channels=4), "unit 2"),
        (Chain(units=(Unit((Pointwise("relu"),), 0, 1.0, (Normalisation("rms"),)),), input_channels=4), r"1 map\(s\)"),
    ],
)
def test_what_is_no_residual_stream_is_refused(net, message):
    for draw in (draw_residual_energies, drawn_by(StreamUpdates)):
        with pytest.raises(ValueError, match=message):
            draw(net, 0, range(2))


@pytest.mark.parametrize("tied", [True, False])
def test_the_cost_of_a_loop_counts_what_its_draws_hold(tied):
    """By hand: the matrices, or the known vectors, of the weights that live at once."""
    loop = mf.TiedLoop(depth=10, width=100, tied=tied)
    walked, updated = (measure.stream_cost(loop) for measure in (ResidualEnergies(), StreamUpdates(update="gradient")))
    assert walked.draw_bytes("dense") == 8 * (100**2 + 10 * 100)
    known = 10 * 200 if tied else 200
    assert walked.draw_bytes("lazy") == 8 * (known + 10 * 100)
    matrices = 1 if tied else 10
    assert updated.draw_bytes("dense") == 8 * (matrices * 100**2 + 10 * 100 + 6 * 10 * 100)
    assert walked.operations("dense") == 150 * matrices * 100**2 + 20 * 10 * 100**2


def test_loops_are_their_naive_twins_by_units():
    loop = STREAMS["independent"]
    weights, start = _drawn(loop, "dense")
    matrices = [weights[f"W{step}"].matrix[0] for step in range(1, 7)]
    expected = naive.loop_streams(loop, matrices, start[0, :, 0, 0])[1:]
    for step, value in zip(walk.walk(loop, weights, start), expected, strict=True):
        np.testing.assert_allclose(step.stream[0, :, 0, 0], value, rtol=1e-12)
