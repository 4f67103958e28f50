"""The level "finite_channels" of `predict`: exact or as drawn nets are, and what it leaves out or refuses."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.theory import finite_channel_factor
from tests.statistics import consistent

TERMS = ("overlap_energy", "label_term", "label_learning_rate_scale")
NET = mf.ConvNet(depth=6, channels=32, grid=(4,), kernel=(3,), readout="convolution")


def _at(net, level="finite_channels", **options):
    return mf.predict(net, level=level, **options)


@pytest.mark.parametrize("activation", ["relu", "linear"])
def test_one_site_is_the_exact_level(activation):
    net = mf.MLP(depth=7, width=9, outputs=3, activation=activation)
    finite, exact = _at(net), _at(net, "exact")
    for name in TERMS:
        np.testing.assert_allclose(finite[name], exact[name], rtol=1e-12)
        np.testing.assert_allclose(finite[f"log_{name}"], exact[f"log_{name}"], rtol=1e-12, atol=1e-12)


def test_drawn_nets_agree_where_the_limit_of_many_channels_does_not():
    """At a number of channels at which that is refuted."""
    draws = 1500
    drawn = mf.simulate(NET, draws=draws, seed=3, measure=mf.Energies(controls=True))
    for level, agrees in (("finite_channels", True), ("mean_field", False)):
        off = drawn["adjusted_label_term"] - _at(NET, level)["label_term"]
        assert consistent(off, drawn["adjusted_label_term_stderr"], draws) is agrees


def test_it_goes_to_the_mean_field_with_the_channels():
    many = NET.replace(channels=10**7)
    for name in TERMS:
        np.testing.assert_allclose(_at(many)[name], _at(many, "mean_field")[name], rtol=1e-5)
        assert not np.allclose(_at(NET)[name], _at(NET, "mean_field")[name], rtol=0.05)


def test_weights_and_given_inputs_are_the_nets_own():
    inputs = np.random.default_rng(0).normal(size=(2, 5, 4))
    net = NET.replace(depth=2, channels=8, weight_variance=0.3, input_channels=5, inputs=2)
    for name in TERMS[:2]:
        factor = finite_channel_factor(net, inputs, name)
        expected = _at(net, "mean_field", inputs=inputs)[name] * factor
        np.testing.assert_allclose(_at(net, inputs=inputs)[name], expected, rtol=1e-12)


def test_pooled_readouts_have_label_terms_in_linear_nets_alone():
    pooled = NET.replace(readout="pooled")
    assert set(_at(pooled)) == {"overlap_energy", "log_overlap_energy"}
    assert "label_term: corrections in 1/channels" in _at(pooled).attrs["left_out"]
    assert set(TERMS) < set(_at(pooled.replace(activation="linear")))


def test_what_is_left_out_is_said():
    assert _at(NET).attrs["left_out"].startswith("output_term: what finitely many channels make of it")


@pytest.mark.parametrize(
    ("net", "why"),
    [
        (NET.replace(activation="gelu"), "choose one of 'mean_field', 'law': .* has 'gelu' units"),
        (NET.replace(grid=(64,), padding="zero"), "choose one of 'mean_field', 'law': .* has 64 points"),
        (mf.ResidualMLP(depth=2, width=8), "choose one of 'mean_field': .* has skip connections"),
        (mf.TiedLoop(depth=2, width=8), "choose one of 'mean_field'$"),
        (mf.Transformer(depth=2, width=8, tokens=2), "choose one of 'mean_field'$"),
    ],
)
def test_nets_without_it_are_refused_and_told_of_what_they_have(net, why):
    with pytest.raises(ValueError, match=why):
        _at(net)


def test_options_of_other_levels_are_refused():
    with pytest.raises(ValueError, match="by_site gives the label term at every site, at level 'mean_field'"):
        _at(NET, by_site=True)
    with pytest.raises(ValueError, match="batch and loss are predicted at level 'mean_field'"):
        _at(NET, batch=mf.Batch())


def test_more_layers_than_draws_have_checked_are_warned_of():
    """Not where it is exact."""
    deep = NET.replace(depth=9)
    with pytest.warns(mf.PremiseWarning, match=r"up to depth / channels = 0.25; here that is 0.28"):
        _at(deep)
    for exact in (deep.replace(activation="linear"), mf.MLP(depth=9, width=8)):
        _at(exact)
    with pytest.raises(OverflowError, match="at depth 1000 and 4 channels the mean field and what channels make"):
        _at(NET.replace(depth=1000, channels=4, grid=(1,), kernel=(1,)))
