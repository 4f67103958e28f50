"""Mean field against exact draws, in standard errors, with the allowance for finite width; and what must fail."""

from dataclasses import replace
from functools import cached_property

import numpy as np
import pytest

import meanfield as mf
from meanfield.simulation.measures.overlap_energy import controls_refusal
from meanfield.theory.finite_width import finite_width_allowance
from meanfield.verification import exponent_of, growth_exponent
from tests.draws import SINGLE, drop_an_offset
from tests.statistics import consistent, excess

DRAWS = 2048
# Enough to see what is wrong, and so harder than with as many as above.
DRAWS_OF_CONTROLS = 512
# Where energies of exact means take most of an error away, so many draws leave no more of it than all do.
SHARE_OF_DRAWS = 0.5


def _measure(net, inputs=None, seed=1, draws=DRAWS, **options):
    return mf.simulate(net, draws=draws, seed=seed, inputs=inputs, **options)


def _measure_sharply(net, draws=DRAWS, seed=1):
    """As above with control variates, and so with fewer draws; they tell little of the overlaps of single sites."""
    if net.sites == 1 or controls_refusal(net):
        return _measure(net, seed=seed, draws=draws)
    measured = mf.simulate(net, measure=mf.Energies(controls=True), draws=int(SHARE_OF_DRAWS * draws), seed=seed)
    names = [str(name) for name in measured if f"adjusted_{name}" in measured]
    return measured.assign({name: measured[f"adjusted_{name}"] for name in names})


def _agrees(measured, predicted, net, name, inputs=None):
    allowance = (finite_width_allowance(net, inputs) + 1e-9) * predicted[name].values
    difference = measured[name].values - predicted[name].values
    return consistent(difference, measured[f"{name}_stderr"].values, measured.attrs["draws"], allowance)


NETS = {
    "mlp": mf.MLP(depth=5, width=64),
    "mlp, linear, two inputs": mf.MLP(depth=5, width=64, activation="linear", inputs=2),
    "mlp, unequal widths": mf.MLP(depth=4, width=(48, 96, 64, 80), input_width=40),
    "1d circular": mf.ConvNet(depth=5, channels=48, grid=(8,), kernel=(3,), readout="convolution"),
    "1d circular, even kernel": mf.ConvNet(depth=4, channels=48, grid=(7,), kernel=(4,), readout="convolution"),
    "1d zero": mf.ConvNet(depth=4, channels=32, grid=(5,), kernel=(3,), padding="zero", readout="convolution"),
    "1d linear": mf.ConvNet(depth=5, channels=48, grid=(6,), kernel=(3,), activation="linear", readout="convolution"),
    "1d linear, many sites": mf.ConvNet(
        depth=4, channels=16, grid=(64,), kernel=(3,), activation="linear", readout="convolution"
    ),
    "1d, one tap": mf.ConvNet(depth=4, channels=32, grid=(64,), kernel=(1,), readout="convolution"),
    "2d circular": mf.ConvNet(depth=4, channels=48, grid=(4, 3), kernel=(3, 2), readout="convolution"),
    "2d zero": mf.ConvNet(depth=4, channels=48, grid=(4, 3), kernel=(3, 3), padding="zero", readout="convolution"),
    "1d, two inputs": mf.ConvNet(depth=4, channels=48, grid=(6,), kernel=(3,), readout="convolution", inputs=2),
    "mlp, gelu": mf.MLP(depth=4, width=64, activation="gelu"),
    "mlp, He's variance, gelu": mf.MLP(depth=4, width=64, activation="gelu", weight_variance=2.0),
    "mlp, erf": mf.MLP(depth=4, width=64, activation="erf", weight_variance=3.0),
    "mlp, small weights": mf.MLP(depth=4, width=64, weight_variance=1.2),
    "1d, small weights, silu": mf.ConvNet(
        depth=3, channels=32, grid=(5,), activation="silu", readout="convolution", weight_variance=1.5
    ),
    "mlp, tanh, two inputs": mf.MLP(depth=4, width=32, activation="tanh", inputs=2),
    "1d zero, gelu": mf.ConvNet(
        depth=3, channels=32, grid=(5,), padding="zero", activation="gelu", readout="convolution"
    ),
    "1d tanh": mf.ConvNet(depth=4, channels=48, grid=(6,), kernel=(3,), activation="tanh", readout="convolution"),
    "mup head": mf.ConvNet(depth=4, channels=48, grid=(6,), kernel=(3,), readout="convolution", head="mup"),
}


@pytest.mark.parametrize("net", NETS.values(), ids=NETS.keys())
def test_label_term_and_overlap_energy(net):
    measured, predicted = _measure_sharply(net), mf.predict(net, level="mean_field")
    assert _agrees(measured, predicted, net, "label_term")
    if "overlap_energy" in measured:
        assert _agrees(measured, predicted, net, "overlap_energy")


@pytest.mark.parametrize("padding", ["circular", "zero"])
def test_pooled_nets_measure_the_predicted_overlap_energy(padding):
    net = mf.ConvNet(depth=4, channels=32, grid=(5,), kernel=(3,), padding=padding)
    assert _agrees(_measure(net), mf.predict(net, level="mean_field"), net, "overlap_energy")


@pytest.mark.usefixtures("no_overlap_energies")
@pytest.mark.parametrize(("padding", "activation"), [("circular", "relu"), ("zero", "relu"), ("zero", "tanh")])
def test_given_images(padding, activation):
    """A smooth image and a dark corner, in two samples of one channel: no input fluctuation is left to allow for."""
    options = {"padding": padding, "activation": activation, "readout": "convolution"}
    net = mf.ConvNet(depth=4, channels=64, grid=(10,), input_channels=1, inputs=2, **options)
    ramp = np.linspace(-1, 1, 10)
    images = np.stack([ramp, np.cos(3 * ramp)])[:, None]
    predicted = mf.predict(net, level="mean_field", inputs=images)
    assert _agrees(_measure(net, images, **SINGLE), predicted, net, "label_term", images)


def test_the_bias_is_of_order_one_over_width_and_shrinks():
    """At two widths the relative bias halves, so 2 m(2n) - m(n) meets the prediction with a far smaller allowance."""
    nets = [mf.ConvNet(depth=4, channels=c, grid=(5,), kernel=(3,), readout="convolution") for c in (20, 40)]
    compared = [
        mf.compare(_measure_sharply(net, draws=4 * DRAWS, seed=2), mf.predict(net, level="mean_field")) for net in nets
    ]
    for name in ("label_term", "overlap_energy"):
        narrow, wide = (result[f"{name}_ratio"].values for result in compared)
        narrow_error, wide_error = (result[f"{name}_ratio_stderr"].values for result in compared)
        shrinks = excess(narrow - wide, np.hypot(narrow_error, wide_error)) * np.sign(narrow - wide)
        assert np.all(shrinks[2:] > 5), "the narrower net must stand measurably further off"
        extrapolated, error = 2 * wide - narrow, np.hypot(2 * wide_error, narrow_error)
        assert consistent(extrapolated - 1, error, 4 * DRAWS, allowance=0.06)
        assert not consistent(narrow - 1, narrow_error, 4 * DRAWS, allowance=0.06)


SMOOTH = {
    "mlp, gelu": [mf.MLP(depth=3, width=width, activation="gelu") for width in (40, 80)],
    "1d tanh": [mf.ConvNet(depth=3, channels=c, grid=(4,), activation="tanh", readout="convolution") for c in (12, 24)],
}


@pytest.mark.parametrize("nets", SMOOTH.values(), ids=SMOOTH.keys())
def test_smooth_nets_extrapolate_to_the_mean_field(nets):
    """As above with 2 % allowed, for label term and overlap energy: the limit is right, the bias of order 1/width."""
    compared = [
        mf.compare(mf.simulate(net, draws=2 * DRAWS, seed=2), mf.predict(net, level="mean_field")) for net in nets
    ]
    for name in ("label_term", "overlap_energy"):
        narrow, wide = (result[f"{name}_ratio"].values[1:] for result in compared)
        narrow_error, wide_error = (result[f"{name}_ratio_stderr"].values[1:] for result in compared)
        extrapolated, error = 2 * wide - narrow, np.hypot(2 * wide_error, narrow_error)
        assert consistent(extrapolated - 1, error, 2 * DRAWS, allowance=0.02)
        assert not consistent(narrow - 1, narrow_error, 2 * DRAWS, allowance=0.02)


# Negative controls ------------------------------------------------------------------------------------------


class _Miscalibrated(mf.ConvNet):
    """Hidden weights with a variance 5 % too large."""

    @cached_property
    def hidden_weights(self):
        return [replace(weight, variance=1.05 * weight.variance) for weight in super().hidden_weights]


@pytest.mark.usefixtures("no_overlap_energies")
def test_a_weight_variance_off_by_five_percent_is_seen():
    """Wide and shallow enough that the allowance (5 %) is far below the 1.05^(2 l - 1) that the error causes."""
    options = {"depth": 4, "channels": 256, "grid": (4,), "kernel": (3,), "readout": "convolution"}
    net, wrong = mf.ConvNet(**options), _Miscalibrated(**options)
    predicted = mf.predict(net, level="mean_field")
    right, off = (mf.simulate(n, draws=512, seed=3, **SINGLE) for n in (net, wrong))
    allowance = finite_width_allowance(net) * predicted.label_term.values

    def agrees(measured):
        difference = measured.label_term.values - predicted.label_term.values
        return consistent(difference, measured.label_term_stderr.values, 512, allowance)

    assert agrees(right)
    assert not agrees(off)


@pytest.mark.usefixtures("no_overlap_energies")
def test_another_input_law_is_seen(monkeypatch):
    """Normalised tanh inputs have variance 1.47 and not 1, which layer 1 shows."""
    net = mf.MLP(depth=2, width=64, activation="tanh")
    measured = _measure(net)
    assert _agrees(measured, mf.predict(net, level="mean_field"), net, "label_term")
    monkeypatch.setattr(mf.MLP, "input_law", "white")
    assert not _agrees(measured, mf.predict(net, level="mean_field"), net, "label_term")


@pytest.mark.usefixtures("no_overlap_energies")
def test_a_dropped_kernel_offset_is_seen(monkeypatch):
    net = mf.ConvNet(depth=4, channels=48, grid=(6,), kernel=(3,), readout="convolution")
    drop_an_offset(monkeypatch)
    measured = _measure(net, draws=DRAWS_OF_CONTROLS, **SINGLE)
    assert not _agrees(measured, mf.predict(net, level="mean_field"), net, "label_term")


@pytest.mark.usefixtures("no_overlap_energies")
def test_swapped_padding_is_seen():
    options = {"depth": 5, "channels": 32, "grid": (4,), "kernel": (3,), "readout": "convolution"}
    circular, zero = (mf.ConvNet(padding=padding, **options) for padding in ("circular", "zero"))
    for net, other in ((circular, zero), (zero, circular)):
        measured = _measure(net, draws=DRAWS_OF_CONTROLS, **SINGLE)
        assert not _agrees(measured, mf.predict(other, level="mean_field"), net, "label_term")


def test_the_sum_of_minima_is_told_from_the_exact_law():
    """ReLU: refuted as a growth law with a free prefactor; linear nets of one site: exact."""
    relu, weighted = (mf.MLP(depth=6, width=256, activation=name) for name in ("relu", "linear"))
    laws = {net.activation: mf.predict(net, level="law") for net in (relu, weighted)}
    assert not _agrees(_measure(relu), laws["relu"], relu, "overlap_energy")
    assert _agrees(_measure(weighted), laws["linear"], weighted, "overlap_energy")


@pytest.mark.usefixtures("no_overlap_energies")
def test_the_cubic_exponent():
    """Over layers 4 .. 8 the mean field's own finite-range slope is met; slope 2 (no cross overlaps) is excluded."""
    net = mf.ConvNet(depth=8, channels=96, grid=(6,), kernel=(3,), readout="convolution")
    measured = mf.simulate(net, draws=DRAWS, seed=4, **SINGLE)
    slope = growth_exponent(measured, "label_term")
    excess_growth = np.log1p(finite_width_allowance(net))
    allowance = (excess_growth[7] - excess_growth[3]) / np.log(2)
    expected = exponent_of(mf.predict(net, level="mean_field").label_term.values)
    assert consistent(slope.exponent - expected, slope.stderr, DRAWS, allowance)
    assert not consistent(slope.exponent - 2.0, slope.stderr, DRAWS, allowance)
