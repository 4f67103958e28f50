"""The output term at leading order: closed forms, a twin with every sum written out, and draws at several widths."""

from dataclasses import replace

import numpy as np
import pytest

import meanfield as mf
from meanfield.theory.mean_field.label_term import label_profiles
from meanfield.theory.mean_field.output_term import _output_variances, output_profiles, output_term
from tests.draws import SINGLE
from tests.statistics import consistent
from tests.theory.outputs.naive import single_site_terms, written_out


@pytest.mark.parametrize(
    ("net", "energy"),
    [
        (mf.MLP(depth=20, width=10**6, outputs=10**6), 1.0),
        (mf.MLP(depth=30, width=10**6, outputs=10**5, head="fan_in"), 0.5),
        (mf.MLP(depth=9, width=10**6, outputs=2 * 10**6, activation="linear"), 1.0),
        (mf.MLP(depth=5, width=10**6, outputs=1, head="mup"), 0.5e-6),
    ],
)
def test_one_site_is_the_closed_form_and_the_limit_of_the_exact_level(net, energy):
    closed, _ = single_site_terms(net.depth, net.outputs / net.width, energy, net.sigma.gain)
    np.testing.assert_allclose(output_term(net), closed, rtol=1e-12)
    exact = mf.predict(net, level="exact")["output_term"]
    np.testing.assert_allclose(output_term(net), exact, rtol=2 * (net.depth + 4) ** 2 / net.width)


SMALL = {
    "1d": mf.ConvNet(depth=4, channels=7, grid=(4,), outputs=3),
    "2d, two samples": mf.ConvNet(depth=3, channels=(5, 9, 6), grid=(3, 2), kernel=(2, 2), head="mup", inputs=2),
    "1d zero": mf.ConvNet(depth=4, channels=7, grid=(4,), kernel=(2,), padding="zero", head="fan_in"),
    "2d zero": mf.ConvNet(depth=3, channels=(5, 9, 6), grid=(3, 2), kernel=(3, 2), padding="zero", weight_variance=1.5),
    "2d zero, odd taps": mf.ConvNet(depth=3, channels=7, grid=(3, 4), kernel=(3, 1), padding="zero"),
    "linear": mf.ConvNet(depth=3, channels=7, grid=(4,), padding="zero", activation="linear", inputs=2),
}
SMALL = {name: replace(net, readout="convolution") for name, net in SMALL.items()}


@pytest.mark.parametrize("net", SMALL.values(), ids=SMALL)
def test_it_is_the_recursion_written_out(net):
    np.testing.assert_allclose(output_profiles(net), written_out(net), rtol=1e-7)


def test_given_inputs_and_dead_sites():
    net = replace(SMALL["1d zero"], grid=(6,), input_channels=2, inputs=2)
    images = np.random.default_rng(0).normal(size=net.input_shape)
    np.testing.assert_allclose(output_profiles(net, images), written_out(net, images), rtol=1e-7)
    images[..., 3:] = -1.0
    np.testing.assert_allclose(output_profiles(net, images), written_out(net, images), rtol=1e-7)
    assert np.all(output_profiles(net, images)[0, 3:] == 0)


def test_copies_of_an_image_move_as_one():
    image = np.random.default_rng(0).normal(size=(1, 8, 5, 3))
    alone, three = (
        mf.ConvNet(depth=4, channels=8, grid=(5, 3), kernel=(3, 2), inputs=n, readout="convolution") for n in (1, 3)
    )
    np.testing.assert_allclose(output_term(three, np.concatenate([image] * 3)), output_term(alone, image), rtol=1e-10)


@pytest.mark.parametrize("readout", ["pooled", "convolution"])
def test_points_that_are_alike_say_what_pairs_of_points_do(readout):
    """With one tap there are no edges: the two paddings are one net, kept in two representations."""
    activation = "linear" if readout == "pooled" else "relu"
    options = {"depth": 4, "channels": 8, "grid": (5,), "kernel": (1,), "inputs": 3, "activation": activation}
    torus, edges = (mf.ConvNet(padding=padding, readout=readout, **options) for padding in ("circular", "zero"))
    np.testing.assert_allclose(output_term(torus), output_term(edges), rtol=1e-12)


@pytest.mark.parametrize("inputs", [1, 4])
def test_pooling_one_site_is_reading_it(inputs):
    pooled, read = (
        mf.ConvNet(depth=6, channels=8, grid=(1,), kernel=(1,), inputs=inputs, readout=readout)
        for readout in ("pooled", "convolution")
    )
    np.testing.assert_allclose(output_term(pooled), output_term(read), rtol=1e-12)


# Outputs a quarter of the channels, which grow fourfold twice; at the first count, draws that see how far off it is.
COUNTS, DRAWS = (32, 128, 512), (2048, 512, 384)
# What is left of second order in 1/channels after extrapolation from the two wider nets: some 300 / (128 x 512).
SECOND_ORDER = 0.01
DRAWN = {
    "1d": {"grid": (4,), "readout": "convolution"},
    "2d, two samples": {"grid": (3, 2), "kernel": (2, 2), "inputs": 2, "readout": "convolution"},
    "2d zero": {"grid": (2, 3), "kernel": (2, 3), "padding": "zero", "head": "fan_in", "readout": "convolution"},
    "1d pooled": {"grid": (4,)},
    "2d pooled, two samples": {"grid": (3, 2), "kernel": (2, 2), "inputs": 2, "head": "mup"},
    "linear zero pooled": {"grid": (4,), "kernel": (2,), "padding": "zero", "activation": "linear"},
}


def _drawn(options, count, draws):
    """A net, its output term and the standard error."""
    net = mf.ConvNet(depth=4, channels=count, outputs=count // 4, **options)
    measured = mf.simulate(net, draws=draws, seed=3, **SINGLE)
    return net, measured["output_term"].values, measured["output_term_stderr"].values


@pytest.mark.parametrize("options", DRAWN.values(), ids=DRAWN)
def test_draws_meet_it_as_one_over_channels(options):
    excess, errors = [], []
    for count, draws in zip(COUNTS, DRAWS, strict=True):
        net, value, stderr = _drawn(options, count, draws)
        excess.append(value / output_term(net) - 1)
        errors.append(stderr / output_term(net))
    assert excess[0][-1] > excess[1][-1] > excess[2][-1]
    assert not consistent(excess[0], errors[0], DRAWS[0])
    limit = (4 * excess[2] - excess[1]) / 3
    assert consistent(limit, np.hypot(4 * errors[2], errors[1]) / 3, min(DRAWS), SECOND_ORDER)
    if options.get("readout") == "convolution":
        for control in ({"along": 0}, {"own": 0}, {"late": 1}):
            wrong = written_out(net, **control).mean(axis=1)
            assert not consistent(value - wrong, stderr, DRAWS[2], 0.2 * wrong)
    elif net.inputs == 1:
        as_labels = label_profiles(net).mean(axis=1) * _output_variances(net, None, 0.0).mean()
        assert not consistent(value - as_labels, stderr, DRAWS[2], 0.2 * as_labels)
