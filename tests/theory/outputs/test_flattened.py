"""A readout that sees every channel of every site: identities, the recursion written out, draws at three widths."""

from dataclasses import replace

import numpy as np
import pytest

import meanfield as mf
from meanfield.nets.maps import Flatten, Linear, Weight
from meanfield.nets.net import Unit
from meanfield.theory.mean_field.output_term import output_profiles
from tests.draws import SINGLE, terms_alone
from tests.statistics import consistent
from tests.theory.outputs.naive import written_out

SMALL = {
    "1d": mf.ConvNet(depth=4, channels=7, grid=(4,), outputs=3),
    "2d, two samples": mf.ConvNet(depth=3, channels=(5, 9, 6), grid=(3, 2), kernel=(2, 2), head="mup", inputs=2),
    "1d zero": mf.ConvNet(depth=4, channels=7, grid=(4,), kernel=(2,), padding="zero", head="fan_in"),
    "2d zero": mf.ConvNet(depth=3, channels=(5, 9, 6), grid=(3, 2), kernel=(3, 2), padding="zero", inputs=2),
    "linear": mf.ConvNet(depth=3, channels=7, grid=(4,), padding="zero", activation="linear", inputs=2),
}
SMALL = {name: replace(net, readout="flatten") for name, net in SMALL.items()}


@pytest.mark.parametrize("net", SMALL.values(), ids=SMALL)
def test_the_output_term_is_the_recursion_written_out(net):
    np.testing.assert_allclose(output_profiles(net), written_out(net), rtol=1e-7)
    images = np.random.default_rng(0).normal(size=net.input_shape)
    np.testing.assert_allclose(output_profiles(net, images), written_out(net, images), rtol=1e-7)


@pytest.mark.parametrize("head", ["he", "fan_in", "mup"])
@pytest.mark.parametrize("inputs", [1, 3])
def test_on_a_torus_it_is_a_convolutional_readout_of_as_many_outputs_over_all_sites(head, inputs):
    """The label term; the overlap energy knows no readout. Heads by their gamma."""
    options = {"depth": 4, "channels": 6, "grid": (5,), "kernel": (2,), "inputs": inputs, "head": head}
    flat = mf.ConvNet(**options, readout="flatten", outputs=15)
    conv = mf.ConvNet(**options, readout="convolution", outputs=3)
    gamma = [net.head_variance * net.head_fan_in * net.sigma.gain for net in (flat, conv)]
    first, second = (mf.predict(net, level="mean_field") for net in (flat, conv))
    np.testing.assert_allclose(first.label_term / gamma[0], second.label_term / gamma[1], rtol=1e-12)
    np.testing.assert_allclose(first.overlap_energy, second.overlap_energy, rtol=1e-12)
    scale = gamma[0] / (flat.output_units * inputs)
    np.testing.assert_allclose(first.label_term, scale * first.overlap_energy, rtol=1e-12)
    assert (gamma[0] == pytest.approx(gamma[1])) == (head != "mup")


# With as many outputs as numbers that they see.
COUNTS, DRAWS = (16, 64, 256), (512, 512, 256)
DRAWN = {
    "circular": {"grid": (4,)},
    "zero, two samples": {"grid": (4,), "padding": "zero", "inputs": 2, "head": "fan_in"},
}


@pytest.mark.parametrize("options", DRAWN.values(), ids=DRAWN)
def test_draws_meet_the_mean_field_as_one_over_channels(options):
    """To 3 % at 256 channels. Controls: without what outputs drive along the features; edges at the readout, too."""
    for count, draws in zip(COUNTS, DRAWS, strict=True):
        net = mf.ConvNet(depth=4, channels=count, outputs=4 * count, readout="flatten", **options)
        with terms_alone():
            drawn = mf.simulate(net, draws=draws, seed=8, **SINGLE)
        theory = mf.predict(net, level="mean_field")
        for name in ("label_term", "output_term"):
            assert consistent(
                drawn[name] / theory[name] - 1, drawn[f"{name}_stderr"] / theory[name], draws, 8.0 / count
            )
    wrong = written_out(net, along=0.0).mean(axis=1)
    assert not consistent(drawn.output_term / wrong - 1, drawn.output_term_stderr / wrong, draws, 8.0 / count)
    if net.padding == "zero":
        edges = mf.predict(net.replace(readout="convolution", outputs=count), level="mean_field").label_term
        assert not consistent(drawn.label_term / edges - 1, drawn.label_term_stderr / edges, draws, 8.0 / count)


def test_draws_of_residual_nets_meet_their_label_term():
    """Labels stay diagonal over sites on a stream, too. Control: a readout that has edges of its own."""
    for count in (16, 32, 64):
        options = {"depth": 8, "channels": count, "grid": (2,), "padding": "zero", "scaling": "multiplier_sqrt"}
        net = mf.ResidualConvNet(**options, readout="flatten", stem=1)
        with terms_alone():
            drawn = mf.simulate(net, draws=800, seed=5, **SINGLE)
        theory = mf.predict(net, level="mean_field").label_term
        assert consistent(drawn.label_term / theory - 1, drawn.label_term_stderr / theory, 800, 4.0 / count)
    edges = mf.predict(net.replace(readout="convolution"), level="mean_field").label_term
    edges = edges * net.sites  # as many outputs in all
    assert not consistent(drawn.label_term / edges - 1, drawn.label_term_stderr / edges, 800, 4.0 / count)


def test_one_softmax_has_its_output_term():
    """Under cross-entropy the outputs of a sample are one softmax, on grids with edges, too."""
    net = mf.ConvNet(depth=3, channels=256, grid=(4,), padding="zero", readout="flatten", outputs=5)
    theory = mf.predict(net, level="mean_field", loss="cross_entropy")
    with terms_alone():
        drawn = mf.simulate(net, draws=300, seed=2, loss="cross_entropy", **SINGLE)
    for name in ("label_term", "output_term"):
        assert consistent(drawn[name] / theory[name] - 1, drawn[f"{name}_stderr"] / theory[name], 300, 8.0 / 256)


def test_rates_are_carried_between_depths():
    net = mf.ConvNet(depth=4, channels=64, grid=(4,), readout="flatten")
    deeper = mf.explain_transfer(0.1, net, net.replace(depth=16))
    conv = mf.explain_transfer(0.1, *(n.replace(readout="convolution") for n in (net, net.replace(depth=16))))
    assert float(deeper.rates["finite_depth"]) == pytest.approx(float(conv.rates["finite_depth"]))


def test_other_numbers_of_sites_are_refused():
    unit = Unit((Linear((Weight("W", (4, 3), 1.0),)),))
    readout = Unit((Flatten(5), Linear((Weight("readout", (2, 20), 1.0),))))
    with pytest.raises(ValueError, match=r"a map flattens 5 site\(s\), and the grid \(6,\) has 6"):
        mf.Chain(units=(unit,), readout_unit=readout, input_channels=3, grid=(6,))
    assert mf.Chain(units=(unit,), readout_unit=readout, input_channels=3, grid=(5,)).output_shape == (1, 2)
