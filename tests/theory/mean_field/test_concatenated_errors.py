"""Nets whose blocks concatenate, by errors down and changes up: identities, the other road, draws at three growths."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.theory.mean_field.concatenated import (
    concatenated_label_profiles,
    concatenated_output_profiles,
    concatenated_profiles,
)
from tests.draws import SINGLE, terms_alone
from tests.statistics import consistent
from tests.theory.mean_field.test_concatenated import SMALL

ONE_SITE = {"depth": 5, "growth": 6, "width": 4, "stem": 1, "outputs": 7}


@pytest.mark.parametrize("name", [name for name in SMALL if name not in ("2d, gelu", "tanh")])
def test_label_terms_are_those_of_second_moments_of_the_kernel(name):
    """Two roads that share no recursion: the gates that units keep are met by their changes, or by the kernel."""
    net = SMALL[name]
    np.testing.assert_allclose(concatenated_label_profiles(net), concatenated_profiles(net)[1], rtol=1e-12)


def test_so_are_those_of_smooth_gates_where_points_are_alike():
    net = mf.DenseNet(depth=3, growth=5, width=7, grid=(3, 3), stem=1, inputs=2, activation="gelu", readout="flatten")
    np.testing.assert_allclose(concatenated_label_profiles(net), concatenated_profiles(net)[1], rtol=1e-9)


@pytest.mark.parametrize("readout", ["pooled", "convolution", "flatten"])
@pytest.mark.parametrize("inputs", [1, 3])
def test_one_site_has_one_readout(readout, inputs):
    options = ONE_SITE | ({"activation": "linear"} if readout == "pooled" else {})
    vectors = mf.DenseNet(**options)
    site = mf.DenseNet(**options, grid=(1,), kernel=(1,), readout=readout, inputs=inputs)
    given = np.random.default_rng(0).normal(size=(1, 4))
    for profiles in (concatenated_label_profiles, concatenated_output_profiles):
        one = profiles(vectors, given)
        copies = profiles(site, np.repeat(given, inputs, axis=0)[..., None])
        share = 1.0 if profiles is concatenated_output_profiles else 1 / inputs  # labels of copies are not copies
        np.testing.assert_allclose(copies, share * one, rtol=1e-10)


@pytest.mark.parametrize("readout", ["pooled", "convolution", "flatten"])
def test_points_that_are_alike_say_what_pairs_of_points_do(readout):
    """With one tap there are no edges: the two paddings are one net, kept in two representations."""
    options = {"depth": 3, "growth": 5, "width": 7, "grid": (5,), "kernel": (1,), "inputs": 3, "readout": readout}
    options["activation"] = "linear" if readout == "pooled" else "relu"
    torus, edges = (mf.DenseNet(padding=padding, **options) for padding in ("circular", "zero"))
    for profiles in (concatenated_label_profiles, concatenated_output_profiles):
        np.testing.assert_allclose(profiles(torus), profiles(edges), rtol=1e-10)


def test_outputs_that_are_few_for_a_block_are_labels_of_their_variance():
    """The rest falls as outputs over growth."""
    shares = []
    for growth in (100, 1000, 10_000):
        net = mf.DenseNet(depth=4, growth=growth, width=growth, outputs=1, head="fan_in")
        own = net.plain.head_variance * net.plain.head_fan_in * net.plain.sigma.gain
        shares.append(concatenated_output_profiles(net) / (own * concatenated_label_profiles(net)) - 1)
    np.testing.assert_allclose(shares[0], 10 * shares[1], rtol=1e-9)
    np.testing.assert_allclose(shares[1], 10 * shares[2], rtol=1e-9)
    assert np.all(shares[0] > 0)


@pytest.mark.parametrize("activation", ["relu", "linear"])
def test_what_outputs_drive_along_the_features_grows_as_the_squared_logarithm(activation):
    """The root of the term of infinitely many outputs rises by 2 gamma ln 4 where the depth is four times as large."""
    options = {"growth": 32, "width": 32, "outputs": 10**9, "activation": activation}
    depths = (256, 1024, 4096)
    terms = [concatenated_output_profiles(mf.DenseNet(depth=depth, **options))[-1, 0] for depth in depths]
    rises = np.diff(np.sqrt(terms)) / np.log(4)
    assert np.all(np.abs(rises - 2) < 10 / np.sqrt(depths[:-1]))
    assert np.all((rises > 2) & (rises < 2.1))


# Outputs as many as the last value has numbers that they see.
GROWTHS, DRAWS, ALLOWED = (16, 64, 128), (500, 500, 500), 14.0
DRAWN = {
    "vectors": {"depth": 5},
    "linear, on a stem": {"depth": 4, "stem": 1, "activation": "linear"},
    "zero, flattened": {"depth": 3, "grid": (2,), "padding": "zero", "readout": "flatten", "inputs": 2},
    "pooled": {"depth": 3, "grid": (4,)},
    "convolutional": {"depth": 3, "grid": (4,), "readout": "convolution", "head": "fan_in"},
}


@pytest.mark.parametrize("options", DRAWN.values(), ids=DRAWN)
def test_draws_tend_to_the_mean_field(options):
    """Control: outputs as labels of their variance, which do not drive anything along the features."""
    for growth, draws in zip(GROWTHS, DRAWS, strict=True):
        net = mf.DenseNet(growth=growth, width=growth, **options)
        net = net.replace(outputs=net.value_channels[-1] * (net.sites if net.readout == "flatten" else 1))
        with terms_alone():
            drawn = mf.simulate(net, draws=draws, seed=9, **SINGLE)
        theory = mf.predict(net, level="mean_field")
        for name in ("label_term", "output_term"):
            ratio, stderr = drawn[name] / theory[name], drawn[f"{name}_stderr"] / theory[name]
            assert consistent(ratio - 1, stderr, draws, ALLOWED / growth)
    few = mf.predict(net.replace(outputs=1), level="mean_field")
    as_labels = theory.label_term * (few.output_term / few.label_term)
    assert not consistent(drawn.output_term / as_labels - 1, drawn.output_term_stderr / as_labels, draws, 0.3)
