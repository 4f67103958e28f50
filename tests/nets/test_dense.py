"""Nets whose blocks are set beside what they read: sizes, weights, the passes by hand, and what is refused."""

from itertools import pairwise

import numpy as np
import pytest

import meanfield as mf
from meanfield.nets.maps import Linear, Weight
from meanfield.nets.net import Unit
from tests.draws import given_draw

GRID = {"depth": 2, "growth": 3, "width": 4, "grid": (3, 2)}


def test_values_grow_and_weights_follow_the_fan_in_rule():
    net = mf.DenseNet(**GRID, stem=1, input_width=5, kernel=(2,), activation="gelu")
    assert net.value_channels == (5, 4, 7, 10)
    assert net.weight_shapes == [(4, 5, 2, 2), (3, 4, 2, 2), (3, 7, 2, 2), (10, 10)]
    gain = net.plain.sigma.gain
    np.testing.assert_allclose(np.array(net.weight_variances) * gain, [1 / 20, 1 / 16, 1 / 28, 1 / 10])
    assert mf.DenseNet(depth=1, growth=2, width=3).input_law == "normalised"
    assert net.input_law == "white"


@pytest.mark.parametrize("head", ["he", "fan_in", "mup"])
def test_the_readout_sees_all_channels(head):
    for readout, shape, fan_in in (
        ("pooled", (10, 10), 10),
        ("convolution", (10, 10, 3, 3), 90),
        ("flatten", (10, 60), 60),
    ):
        net = mf.DenseNet(
            **GRID | {"grid": (4, 6)} if readout == "convolution" else GRID, readout=readout, head=head, padding="zero"
        )
        assert net.weight_shapes[-1] == shape
        assert net.weight_variances[-1] == pytest.approx(
            {"he": 2 / fan_in, "fan_in": 1 / fan_in, "mup": fan_in**-2}[head]
        )


def test_a_value_is_the_one_below_and_what_the_block_makes_of_it():
    net = mf.DenseNet(depth=3, growth=2, width=3, outputs=2)
    weights, inputs, _ = given_draw(net, 0)
    *values, outputs = mf.pre_activations(net, weights, inputs)
    below = inputs
    for weight, value in zip(weights, values, strict=False):
        made = np.maximum(below, 0) @ weight.T
        np.testing.assert_allclose(value, np.concatenate([below, made], axis=1), rtol=1e-13)
        below = value
    np.testing.assert_allclose(outputs, np.maximum(below, 0) @ weights[-1].T, rtol=1e-13)


def test_no_step_moves_the_input_and_parts_keep_their_changes():
    """The change of a value is that of the value below, but for its own channels."""
    net = mf.DenseNet(depth=3, growth=2, width=3)
    changes = mf.one_step(net, *given_draw(net, 1))
    assert not changes[0][:, :3].any()
    for below, above in pairwise(changes):
        np.testing.assert_array_equal(above[:, : below.shape[1]], below)
        assert above[:, below.shape[1] :].all()


def test_energies_are_means_over_all_channels_of_a_value():
    net = mf.DenseNet(depth=2, growth=2, width=3)
    drawn = mf.simulate(net, draws=50, seed=0)
    with_stem = mf.simulate(mf.DenseNet(depth=2, growth=2, width=3, stem=1), draws=50, seed=0)
    assert drawn.update_energy.shape == (2,)
    assert with_stem.update_energy.shape == (3,)
    kernel = drawn.attrs["overlap_method"]
    assert kernel == "dense"
    assert mf.simulate(net.replace(growth=200), draws=2, seed=0).attrs["overlap_method"] == "none"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"growth": 0}, "growth"),
        ({"width": -1}, "width"),
        ({"depth": 0}, "depth"),
        ({"input_width": 5}, "without a stem the input is the first value; give stem=1"),
        ({"head": "other"}, "head"),
        ({"activation": "other"}, "activation"),
        ({"padding": "other"}, "padding"),
        ({"readout": "last"}, "readout"),
        ({"grid": (3, 3, 3)}, "3 axes; give 1 or 2"),
        ({"grid": (4, 4), "kernel": (2, 2, 2)}, "kernel"),
        ({"grid": (2,)}, "larger than the circular grid"),
        ({"outputs": 0}, "outputs"),
    ],
)
def test_bad_fields_are_refused(changes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        mf.DenseNet(**{"depth": 2, "growth": 3, "width": 4} | changes)


LINEAR = Linear((Weight("W", (2, 3), 1.0),))


@pytest.mark.parametrize(
    ("unit", "message"),
    [
        (Unit((LINEAR,), join="concat"), "unit 1: its join is 'concat', and it skips from no value; give it skip"),
        (Unit((LINEAR,), 0, join="beside"), "unit 1: join is 'beside'; choose one of 'add', 'concat'"),
        (Unit((LINEAR,), 0), "its branch has 2 channels, value 0 has 3"),
        (Unit((LINEAR,), 1, join="concat"), "it skips from value 1; values 0 .. 0 lie below it"),
    ],
)
def test_bad_joins_are_refused(unit, message):
    with pytest.raises(ValueError, match=message):
        mf.Chain(units=(unit,), input_channels=3)
    assert mf.Chain(units=(Unit((LINEAR,), 0, join="concat"),), input_channels=3).value_channels == (3, 5)


def test_measures_of_streams_refuse_blocks_that_add_to_nothing():
    net = mf.DenseNet(depth=2, growth=4, width=4)
    for measure in (mf.StreamUpdates(), mf.ResidualEnergies()):
        with pytest.raises(ValueError, match="no unit of this DenseNet adds its branch to the value below it"):
            mf.simulate(net, measure=measure, draws=2, seed=0)
    with pytest.raises(ValueError, match="it may skip from value 0, by join 'add'"):
        mf.simulate(net.replace(grid=(4,)), measure=mf.TangentPropagation(), draws=2, seed=0)
