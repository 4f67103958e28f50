"""Nets in stages: where layers, channels and grids lie, the weights that follow, and what is refused."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.nets.maps import AveragePooling, Linear, Pointwise, Pooling, Weight
from meanfield.nets.net import Chain, Unit

PLANE = {"grid": (16, 16), "kernel": (3, 3)}


def test_stages_halve_the_grid_and_double_the_channels():
    net = mf.StagedConvNet(depth=6, channels=4, input_channels=3, **PLANE)
    assert net.value_grids == ((16, 16),) * 3 + ((8, 8),) * 2 + ((4, 4),) * 2
    assert net.value_channels == (3, 4, 4, 8, 8, 16, 16)
    fan_in = np.array([shape[1] * 9 for shape in net.weight_shapes[:-1]])
    np.testing.assert_allclose(net.weight_variances[:-1], 2 / fan_in)
    strides = [unit.branch[-1].stride for unit in net.units]
    assert strides == [(), (), (2, 2), (), (2, 2), ()]
    assert net.output_shape == (1, 10)
    assert net.replace(readout="convolution").output_shape == (1, 10, 4, 4)


def test_pooling_averages_the_features_before_a_stencil_of_the_next_grid():
    net = mf.StagedConvNet(depth=4, stages=2, channels=4, downsampling="pooling", **PLANE)
    strided = net.replace(downsampling="stride")
    assert net.units[2].branch[:2] == (Pointwise("relu"), AveragePooling((2, 2)))
    assert net.units[2].branch[2].stride == ()
    assert net.value_shapes == strided.value_shapes
    assert net.weights == strided.weights


@pytest.mark.parametrize("downsampling", ["stride", "pooling"])
def test_a_block_that_changes_has_a_linear_map_on_its_skip(downsampling):
    net = mf.StagedResidualConvNet(
        depth=4, stages=2, channels=4, block_depth=2, scaling="init", stem=1, downsampling=downsampling, **PLANE
    )
    stem, first, _, changing, last = net.units
    assert (stem.skip, first.skip, changing.skip, last.skip) == (None, 1, 3, 4)
    assert first.shortcut == last.shortcut == ()
    assert [part.stride for part in changing.branch if part.weights] == [(2, 2), ()]
    assert [type(part) for part in changing.shortcut] == [AveragePooling] * (downsampling == "pooling") + [Linear]
    weight = net.weights["shortcut3"]
    assert weight == Weight("shortcut3", (8, 4, 1, 1), 0.25)
    np.testing.assert_allclose(net.weights["W3.1"].variance, 2 / (4 * 36))
    np.testing.assert_allclose(net.weights["W0.1"].variance, 2 / 36)


def test_a_net_of_one_stage_is_the_net_without_stages():
    plain = mf.ConvNet(depth=3, channels=4, grid=(8,), head="fan_in", readout="convolution")
    staged = mf.StagedConvNet(depth=3, channels=4, grid=(8,), head="fan_in", readout="convolution", stages=1)
    assert staged.units == plain.units
    assert staged.readout_unit == plain.readout_unit
    residual = mf.ResidualConvNet(depth=3, channels=4, scaling="multiplier_sqrt", stem=1, block_depth=2)
    stages = mf.StagedResidualConvNet(depth=3, channels=4, scaling="multiplier_sqrt", stem=1, block_depth=2, stages=1)
    by_any_name = [
        [(unit.skip, unit.multiplier, [w.variance for part in unit.maps for w in part.weights]) for unit in net.units]
        for net in (residual, stages)
    ]
    assert by_any_name[0] == by_any_name[1]


def test_what_says_the_same_is_the_same_net():
    net = mf.StagedConvNet(depth=4, stages=2, channels=4, stride=2, **PLANE)
    assert net == mf.StagedConvNet(depth=4, stages=(2, 2), channels=(4, 8), stride=(2, 2), **PLANE)
    assert net == mf.StagedConvNet(depth=np.int64(4), stages=np.int64(2), channels=np.int32(4), **PLANE)
    assert net.describe()["stages"] == 2


REFUSED = {
    "no multiple of 3 stages; give the layers of each, such as stages=.3, 2, 2.": {"depth": 7},
    "depth 2 is less than the 3 stages": {"depth": 2},
    "stages .1, 2. hold 3 layers, and depth is 6": {"stages": (1, 2)},
    "channels has 2 entries for 3 stages": {"channels": (1, 2)},
    "stage 3: stride .2, 2. does not divide the circular grid .3, 3.": {"grid": (6, 6), "kernel": (1, 1)},
    "stage 3: kernel .3, 3. is larger than the circular grid .2, 2.": {"grid": (8, 8)},
    "stage 2: windows of .2, 2. sites do not tile the grid .5, 8.": {
        "grid": (5, 8),
        "padding": "zero",
        "downsampling": "pooling",
    },
    "stride .2,. has 1 axes, grid .16, 16. has 2": {"stride": (2,)},
    "stride is 0; it must be at least 1": {"stride": 0},
    "downsampling is 'max'; choose one of 'stride', 'pooling'": {"downsampling": "max"},
    "stages is 0; it must be at least 1": {"stages": 0},
}


@pytest.mark.parametrize(("message", "fields"), REFUSED.items(), ids=range(len(REFUSED)))
def test_what_does_not_fit_is_refused(message, fields):
    with pytest.raises(ValueError, match=message):
        mf.StagedConvNet(**{"depth": 6, "channels": 4, **PLANE, **fields})


def test_a_stream_without_a_stem_starts_from_an_input_of_its_channels():
    with pytest.raises(ValueError, match="3 channels and the first stage 4: blocks cannot add to it; give stem=1"):
        mf.StagedResidualConvNet(depth=3, channels=4, input_channels=3)


def test_a_zero_padded_grid_is_rounded_up():
    net = mf.StagedConvNet(depth=3, channels=2, grid=(5, 7), kernel=(3, 3), padding="zero")
    assert net.grid_by_stage == ((5, 7), (3, 4), (2, 2))


def test_units_on_other_grids_are_not_added():
    narrow = Unit((Linear((Weight("a", (2, 2, 2), 1.0),), stride=(2,)),), 0)
    with pytest.raises(
        ValueError, match=r"unit 1: its branch is on a grid \(2,\), value 0 on \(4,\); give the unit a shor"
    ):
        Chain(units=(narrow,), input_channels=2, grid=(4,))
    Chain(units=(Unit(narrow.branch, 0, shortcut=(AveragePooling((2,)),)),), input_channels=2, grid=(4,))
    with pytest.raises(ValueError, match="a shortcut and no skip"):
        Chain(units=(Unit(narrow.branch, shortcut=(AveragePooling((2,)),)),), input_channels=2, grid=(4,))
    wide = (Linear((Weight("a", (3, 2, 2), 1.0),), stride=(2,)),)
    with pytest.raises(ValueError, match="3 channels, value 0 has 2 behind the shortcut"):
        Chain(units=(Unit(wide, 0, shortcut=(AveragePooling((2,)),)),), input_channels=2, grid=(4,))


def test_a_tied_weight_keeps_to_one_grid():
    weight = Weight("tied", (2, 2, 2), 0.5)
    down = Unit((Pointwise("tanh"), Linear((weight,), stride=(2,))))
    with pytest.raises(ValueError, match=r"weight 'tied' acts on a grid \(4,\) and on another, \(2,\)"):
        Chain(units=(down, Unit((Pointwise("tanh"), Linear((weight,))))), input_channels=2, grid=(4,))


@pytest.mark.parametrize("spec", [Linear((Weight("a", (2, 2), 1.0),), stride=2), AveragePooling(2)])
def test_steps_are_one_number_an_axis(spec):
    with pytest.raises(TypeError, match="is 2; give a tuple"):
        Chain(units=(Unit((spec,)),), input_channels=2, grid=(4,))


def test_measures_that_need_one_grid_say_so():
    net = mf.StagedConvNet(depth=4, stages=2, channels=4, grid=(8,), readout="convolution")
    with pytest.raises(ValueError, match=r"by_site takes the same sites .* grids \(8,\), \(4,\)"):
        mf.simulate(net, draws=2, seed=0, by_site=True)
    with pytest.raises(ValueError, match=r"labels 'teacher' .* different grids"):
        mf.simulate(net, draws=2, seed=0, batch=mf.Batch(labels="teacher"))
    pooled = net.replace(readout="pooled")
    assert mf.simulate(pooled, draws=2, seed=0, batch=mf.Batch(labels="teacher"))["label_term"].shape == (4,)
    last = Chain(
        units=net.units,
        readout_unit=Unit((Pooling("last"), Linear((Weight("r", (1, 8), 0.1),)))),
        input_channels=4,
        grid=(8,),
    )
    assert last.output_shape == (1, 1)
