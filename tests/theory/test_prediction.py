"""Energies that leave the range of floats with depth: their logarithms, or one line; and options that levels refuse."""

from dataclasses import replace

import numpy as np
import pytest

import meanfield as mf
from meanfield.theory import mean_field_profiles
from meanfield.theory.mean_field.label_term import label_profiles

PLAIN = {"depth": 5, "activation": "relu", "outputs": 3}


@pytest.mark.parametrize("head", ["he", "fan_in", "mup"])
@pytest.mark.parametrize("weight_variance", [0.3, 2.0, 5.0])
@pytest.mark.parametrize("inputs", [None, "given"])
@pytest.mark.parametrize(
    "net",
    [
        lambda **options: mf.MLP(width=6, **options),
        lambda **options: mf.MLP(width=6, **(options | {"activation": "linear"})),
        lambda **options: mf.ConvNet(channels=4, grid=(5,), readout="convolution", **options),
        lambda **options: mf.ConvNet(channels=4, grid=(5,), padding="zero", readout="convolution", **options),
        lambda **options: mf.ConvNet(channels=4, grid=(5,), **options),
    ],
    ids=["mlp", "linear mlp", "circular", "zero padding", "pooled"],
)
def test_the_variance_of_weights_is_a_matter_of_powers(net, inputs, weight_variance, head):
    """Against the recursion itself, which carries the variance from layer to layer."""
    varied = net(**PLAIN, weight_variance=weight_variance, head=head)
    given = np.random.default_rng(0).normal(size=varied.input_shape) if inputs else None
    predicted = mf.predict(varied, level="mean_field", inputs=given)
    overlap, profile = mean_field_profiles(varied, given)
    label = profile.mean(axis=1)
    np.testing.assert_allclose(predicted.overlap_energy, overlap, rtol=1e-12)
    np.testing.assert_allclose(predicted.log_overlap_energy, np.log(overlap), rtol=1e-12, atol=1e-12)
    if varied.is_pooled:
        label = label_profiles(varied, given).mean(axis=1)
    np.testing.assert_allclose(predicted.label_term, label, rtol=1e-12)
    np.testing.assert_allclose(predicted.label_learning_rate_scale, label.mean() ** -0.5, rtol=1e-12)


@pytest.mark.parametrize("weight_variance", [10.0, 0.4])
@pytest.mark.parametrize(
    ("net", "names"),
    [
        (mf.MLP(depth=2, width=8), ("overlap_energy", "label_term", "label_learning_rate_scale")),
        (mf.ConvNet(depth=2, channels=8), ("overlap_energy", "label_term", "update_energy")),
    ],
)
def test_logarithms_stay_finite_at_any_depth(net, names, weight_variance):
    """A factor 5 a layer, or 1/5, beyond the 470 that floats hold: F goes as its square, B as itself, and F
    polynomially besides.
    """
    predicted = mf.predict(replace(net, depth=500, weight_variance=weight_variance), level="mean_field")
    for name in names:
        assert np.isfinite(predicted[f"log_{name}"]).all()
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(predicted[name], np.exp(predicted[f"log_{name}"].values), rtol=1e-9)
    growth = float(predicted.log_overlap_energy[-1] - predicted.log_overlap_energy[-2])
    assert growth == pytest.approx(2 * np.log(weight_variance / 2), abs=0.01)


@pytest.mark.parametrize(
    "net",
    [
        mf.MLP(depth=1200, width=8, activation="tanh", weight_variance=4.0),
        mf.MLP(depth=1200, width=8, activation="gelu"),
        mf.MLP(depth=1200, width=8, activation="silu", weight_variance=1.0),
        mf.ResidualMLP(depth=1200, width=8, scaling="none"),
    ],
    ids=["tanh", "gelu", "silu", "residual"],
)
def test_what_is_no_power_is_refused_in_one_line(net):
    with pytest.raises(OverflowError, match=rf"this {type(net).__name__} of depth \d+ is outside what a float holds"):
        mf.predict(net, level="mean_field")


def test_batches_of_such_nets_are_refused_too():
    net = mf.MLP(depth=2000, width=8, weight_variance=4.0, inputs=2)
    with pytest.raises(OverflowError, match="outside what a float holds"):
        mf.predict(net, level="mean_field", batch=mf.Batch(input_correlation=0.5))


@pytest.mark.parametrize("asked", [{"spread": True}, {"pairs": [((1, 1), (1, 1))]}])
@pytest.mark.parametrize("under", [{"batch": mf.Batch()}, {"loss": "cross_entropy"}, {}])
def test_options_of_another_level_are_refused_and_not_dropped(asked, under):
    with pytest.raises(ValueError, match="predicted at level 'exact' alone; level is 'mean_field'"):
        mf.predict(mf.MLP(depth=2, width=3), level="mean_field", **asked, **under)


def test_batches_have_no_exact_level():
    with pytest.raises(ValueError, match="batch and loss are predicted at level 'mean_field'"):
        mf.predict(mf.MLP(depth=2, width=3), level="exact", batch=mf.Batch(), spread=True)


@pytest.mark.parametrize(
    ("net", "level", "inputs"),
    [
        (mf.ConvNet(depth=2, channels=3), "exact", None),
        (mf.MLP(depth=2, width=3, activation="tanh"), "exact", None),
        (mf.MLP(depth=2, width=3, inputs=2), "exact", None),
        (mf.MLP(depth=2, width=3), "exact", np.ones((1, 3))),
        (mf.MLP(depth=2, width=3, weight_variance=1.0), "exact", None),
        (mf.MLP(depth=2, width=3, weight_variance=1.0), "law", None),
        (mf.ResidualMLP(depth=2, width=3), "law", None),
    ],
)
def test_a_level_says_whose_it_is(net, level, inputs):
    whose = {"exact": "fully-connected nets with one input of their own law", "law": "plain nets without"}[level]
    with pytest.raises(ValueError, match=rf"is '{level}'; choose one of .*'mean_field'.*: '{level}' is for {whose}"):
        mf.predict(net, level=level, inputs=inputs)
