"""What `predict` says of the whole update in mean field, and where it says nothing."""

import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import meanfield as mf
from meanfield.common import machine
from meanfield.theory.mean_field.label_term import label_profiles
from meanfield.theory.mean_field.output_term import output_profiles, output_term, output_term_refusal
from meanfield.theory.mean_field.whole_update import log_channel_error, mean_field_terms
from tests.statistics import consistent

NETS = {
    "mlp": mf.MLP(depth=4, width=8, weight_variance=3.0, outputs=3),
    "circular": mf.ConvNet(depth=3, channels=8, grid=(4,), weight_variance=1.3, readout="convolution"),
    "zero": mf.ConvNet(depth=3, channels=(8, 5, 9), grid=(4,), padding="zero", head="fan_in", readout="convolution"),
    "pooled": mf.ConvNet(depth=3, channels=8, grid=(2, 2), kernel=(1, 2), weight_variance=1.3, head="mup", inputs=2),
}


@pytest.mark.parametrize("net", NETS.values(), ids=NETS)
def test_the_update_is_both_terms(net):
    """The variance of weights is a factor here and goes through the recursion there."""
    predicted = mf.predict(net, level="mean_field")
    np.testing.assert_allclose(predicted.output_term, output_term(net), rtol=1e-12)
    label = label_profiles(net).mean(axis=1) if net.is_pooled else predicted.label_term
    update = predicted.output_term + label
    np.testing.assert_allclose(predicted.update_energy, update, rtol=1e-12)
    np.testing.assert_allclose(predicted.mean_update_energy, update.mean(), rtol=1e-12)
    np.testing.assert_allclose(predicted.learning_rate_scale, float(update.mean()) ** -0.5, rtol=1e-12)
    np.testing.assert_allclose(predicted.log_update_energy, np.log(update), rtol=1e-12)
    assert "left_out" not in predicted.attrs


GRIDS = {"1d": {"grid": (4,), "kernel": (2,)}, "2d": {"grid": (3, 2), "kernel": (2, 2)}}


@pytest.mark.parametrize("readout", ["convolution", "pooled"])
@pytest.mark.parametrize("padding", ["circular", "zero"])
@pytest.mark.parametrize("grid", GRIDS)
def test_where_the_whole_update_is_predicted(grid, padding, readout):
    """Any head and samples: of linear nets everywhere, of ReLU not with edges under pooling, of smooth gates never."""
    for activation, samples, head in product(("relu", "linear", "gelu"), (1, 2), ("he", "fan_in", "mup")):
        options = {"activation": activation, "inputs": samples, "head": head, "padding": padding, "readout": readout}
        predicted = mf.predict(mf.ConvNet(depth=2, channels=10**4, **GRIDS[grid], **options), level="mean_field")
        open_case = activation == "gelu" or (activation, padding, readout) == ("relu", "zero", "pooled")
        assert (
            open_case
            == ("learning_rate_scale" not in predicted)
            == ("output_term: " in predicted.attrs.get("left_out", ""))
        )
        smooth_edges = (activation, padding, readout) == ("gelu", "zero", "pooled")
        assert (
            smooth_edges == ("label_term" not in predicted) == ("label_term: " in predicted.attrs.get("left_out", ""))
        )


def test_by_site():
    net = NETS["zero"]
    predicted = mf.predict(net, level="mean_field", by_site=True)
    np.testing.assert_allclose(predicted.output_term_by_site, output_profiles(net), rtol=1e-12)
    whole = predicted.output_term_by_site + predicted.label_term_by_site
    np.testing.assert_allclose(predicted.update_energy_by_site, whole, rtol=1e-12)
    assert np.ptp(output_profiles(net), axis=1).min() > 0


def test_logarithms_stay_finite_where_the_update_overflows():
    predicted = mf.predict(replace(NETS["pooled"], depth=480, weight_variance=10.0), level="mean_field")
    assert np.isfinite(predicted.log_learning_rate_scale)
    assert np.isinf(predicted.update_energy[-1])


@pytest.mark.parametrize(
    ("net", "why"),
    [
        (mf.ResidualConvNet(depth=2, channels=4, grid=(3,)), "whose gates remember"),
        (mf.MLP(depth=2, width=4, activation="gelu"), "'relu' and 'linear'"),
        (mf.ConvNet(depth=2, channels=4, grid=(3,), padding="zero"), "averages over four sites"),
    ],
)
def test_what_does_not_close_is_refused_and_left_out(net, why):
    with pytest.raises(ValueError, match=why):
        output_term(net)
    predicted = mf.predict(net, level="mean_field")
    assert "overlap_energy" in predicted
    assert f"output_term: {output_term_refusal(net)}" in predicted.attrs["left_out"]
    assert not {"output_term", "update_energy", "learning_rate_scale"} & set(predicted.data_vars)


def test_what_no_memory_holds_is_left_out(monkeypatch):
    net = replace(NETS["zero"], depth=64, channels=4)
    pairs = 8 * net.sites**2
    monkeypatch.setattr(machine.os, "sysconf", lambda name: 40 * pairs if name == "SC_PHYS_PAGES" else 1)
    with pytest.raises(MemoryError, match="label and output term over all pairs of sites"):
        output_term(net)
    predicted = mf.predict(net, level="mean_field")
    assert "output_term" not in predicted
    assert "no memory" in predicted.attrs["left_out"]


def test_for_one_site_the_error_of_finite_channels_is_known():
    net = mf.MLP(depth=12, width=64)
    leading, exact = (mf.predict(net, level=level).log_learning_rate_scale for level in ("mean_field", "exact"))
    assert log_channel_error(net, mean_field_terms(net)) == pytest.approx(float(leading - exact), rel=1e-9)


@pytest.mark.parametrize(
    "grid", [{"grid": (4,), "readout": "convolution"}, {"grid": (2, 2), "kernel": (2, 2)}], ids=["1d", "2d pooled"]
)
def test_it_is_estimated_for_sites_within_a_third(grid):
    """Standard errors of 8 % of the scale, where the estimates are a factor of 2.1; none at all is refuted."""
    net = mf.ConvNet(depth=8, channels=32, **grid)
    measured, predicted = mf.simulate(net, draws=1024, seed=5), mf.predict(net, level="mean_field")
    scale, stderr = measured.learning_rate_scale, measured.learning_rate_scale_stderr / measured.learning_rate_scale
    drawn = float(np.log(predicted.learning_rate_scale / scale))
    estimate = log_channel_error(net, mean_field_terms(net))
    assert consistent(drawn - estimate, stderr, 1024, estimate / 3)
    assert not consistent(drawn, stderr, 1024)


@pytest.mark.parametrize("batch", [{}, {"batch": mf.Batch(), "loss": "cross_entropy"}], ids=["plain", "cross-entropy"])
def test_few_channels_are_warned_of(batch):
    net = mf.ConvNet(depth=8, channels=64, grid=(8,))
    with pytest.warns(mf.PremiseWarning, match=r"at depth 8 and 64 channels its learning-rate scale is about 1\.[1-5]"):
        mf.predict(net, level="mean_field", **batch)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mf.predict(replace(net, channels=4096), level="mean_field", **batch)
        mf.predict(replace(net, activation="gelu", readout="convolution"), level="mean_field")
        mf.predict(replace(net, activation="gelu", channels=4096), level="mean_field")
    assert not caught


def test_few_channels_are_warned_of_where_the_label_term_alone_is_known():
    """Under a pooled readout, by what gates above a layer do: exp(8 / 64)."""
    net = mf.ConvNet(depth=8, channels=64, grid=(8,), activation="gelu")
    with pytest.warns(mf.PremiseWarning, match=r"the label term is leading order .* is up to about 1\.1 times"):
        mf.predict(net, level="mean_field")


def test_one_softmax():
    """Drawn output terms of a pooled net at 32 and 128 channels, extrapolated; the squared loss's is another one."""
    ratios, errors = [], []
    for channels, draws in ((32, 1024), (128, 512)):
        net = mf.ConvNet(depth=3, channels=channels, grid=(4,), outputs=4)
        predicted = output_profiles(net, loss="cross_entropy").mean(axis=1)
        measured = mf.simulate(net, draws=draws, seed=1, loss="cross_entropy")
        ratios.append(measured.output_term.values / predicted)
        errors.append(measured.output_term_stderr.values / predicted)
    limit, error = (4 * ratios[1] - ratios[0]) / 3, np.hypot(4 * errors[1], errors[0]) / 3
    assert ratios[0][-1] > ratios[1][-1]
    assert consistent(limit - 1, error, 512)
    assert not consistent(limit - 16 * output_term(net) / predicted, error, 512)
    with pytest.raises(ValueError, match="for one softmax"):
        output_profiles(replace(net, inputs=2), loss="cross_entropy")
