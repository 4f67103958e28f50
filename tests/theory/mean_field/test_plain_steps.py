"""One step of signs and polar factors in plain nets: closed forms, descent's own theory, and draws at three widths."""

from dataclasses import replace
from functools import cache
from math import pi, sqrt

import numpy as np
import pytest

import meanfield as mf
from meanfield.nets.activations import activation_named
from meanfield.optimizers.first_steps import FirstStep
from meanfield.optimizers.matrices import Muon
from meanfield.theory.mean_field.label_term import LayerAverages
from meanfield.theory.mean_field.output_term import ConvolutionDrive
from meanfield.theory.mean_field.plain_steps import SampledChannels, plain_step_refusal, plain_step_terms
from meanfield.theory.mean_field.sampled_units import sampled_averages
from meanfield.theory.mean_field.step_terms import polar_births, sign_births
from meanfield.theory.two_points import EveryPair
from tests.statistics import consistent

pytestmark = pytest.mark.filterwarnings("ignore::meanfield.PremiseWarning")

TERMS = ("label_term", "output_term", "update_energy")
DESCENT = {
    "one sample": mf.MLP(depth=6, width=128),
    "other widths and variance": mf.MLP(depth=5, width=(64, 128, 96, 32, 80), outputs=3, weight_variance=1.7),
    "three samples": mf.MLP(depth=4, width=64, inputs=3, outputs=5, head="fan_in"),
    "linear": mf.MLP(depth=4, width=64, inputs=3, outputs=5, activation="linear"),
    "grid": mf.ConvNet(depth=4, channels=32, grid=(5,), kernel=(3,), padding="zero", readout="convolution", inputs=2),
    "flatten": mf.ConvNet(depth=3, channels=32, grid=(2, 2), kernel=(2, 2), readout="flatten", inputs=2),
    "pooled, linear": mf.ConvNet(depth=3, channels=32, grid=(4,), kernel=(2,), activation="linear"),
}


@pytest.mark.parametrize("net", DESCENT.values(), ids=DESCENT)
def test_births_of_descent_give_the_terms_of_descent(net):
    ours, theirs = plain_step_terms(net, FirstStep("sgd")), mf.predict(net, level="mean_field")
    for name, energies in zip(TERMS, (ours.label, ours.output, ours.update), strict=True):
        np.testing.assert_allclose(energies, theirs[name], rtol=1e-12, err_msg=name)


def test_births_of_descent_under_cross_entropy():
    net = mf.MLP(depth=4, width=64, outputs=7)
    ours = plain_step_terms(net, FirstStep("sgd"), loss="cross_entropy")
    theirs = mf.predict(net, level="mean_field", loss="cross_entropy")
    for name, energies in zip(TERMS, (ours.label, ours.output, ours.update), strict=True):
        np.testing.assert_allclose(energies, theirs[name], rtol=1e-12, err_msg=name)


def test_cross_entropy_of_several_samples_is_drawn_under_descent_too():
    net = mf.MLP(depth=3, width=64, inputs=3, outputs=7)
    ours = mf.predict(net, level="mean_field", scales=True, loss="cross_entropy")
    theirs = mf.predict(net, level="mean_field", loss="cross_entropy")
    np.testing.assert_allclose(ours["label_term"], theirs["label_term"], rtol=3 * ours.attrs["relative_error"])
    assert ours.attrs["relative_error"] < 0.1


def _closed(optimizer, activation, width, layers):
    """Square nets of one sample under the fan-in rule, by hand: a rest of signs in every layer's births, and in none of
    those of polar factors."""
    own = {"relu": 0.5, "linear": 1.0}[activation]
    size = {"adamw": width * own * sqrt(2 / pi / own if activation == "linear" else 2 / pi), "muon": 1.0}[optimizer]
    along = {"adamw": 2 / pi, "muon": 1.0}[optimizer]
    squares = size**2 * (along * layers**2 + 1 - along)
    return np.cumsum(squares) - (1 - own) * squares


@pytest.mark.parametrize("activation", ["relu", "linear"])
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_closed_forms(optimizer, activation):
    layers, width = np.arange(1, 21), 96
    predicted = mf.predict(
        mf.MLP(depth=20, width=width, activation=activation, head="mup"), level="mean_field", optimizer=optimizer
    )
    closed = _closed(optimizer, activation, width, layers)
    np.testing.assert_allclose(predicted["label_term"], closed, rtol=1e-12)
    if activation == "relu":
        cubic = layers * (2 * layers**2 + 1)
        written = {
            "adamw": width**2 / (2 * pi) * (2 / pi * cubic / 6 + (1 - 2 / pi) * (layers - 0.5)),
            "muon": cubic / 6,
        }[optimizer]
        np.testing.assert_allclose(predicted["label_term"], written, rtol=1e-12)


def test_labels_loss_and_head_drop_out_of_one_sample():
    for optimizer in ("lion", "muon_kimi"):
        nets = [mf.MLP(depth=4, width=32, outputs=outputs, head=head) for outputs, head in ((1, "he"), (9, "mup"))]
        first, second = (mf.predict(net, level="mean_field", optimizer=optimizer) for net in nets)
        other = mf.predict(nets[1], level="mean_field", optimizer=optimizer, loss="cross_entropy")
        np.testing.assert_allclose(first["label_term"], second["label_term"], rtol=1e-12)
        np.testing.assert_allclose(other["label_term"], second["label_term"], rtol=1e-12)


def test_prefactors_and_depth():
    """eta* falls as L^-3/2 under all, as 1/n under signs, and does not know the width under polar factors."""
    for optimizer, power in (("adamw", -1.0), ("muon", 0.0)):
        scales = [
            float(
                mf.predict(
                    mf.MLP(depth=4, width=width, head="mup", outputs=1), level="mean_field", optimizer=optimizer
                )["label_learning_rate_scale"]
            )
            for width in (64, 256)
        ]
        assert np.log(scales[1] / scales[0]) / np.log(4) == pytest.approx(power, abs=1e-12)
        deep = [
            float(
                mf.predict(
                    mf.MLP(depth=depth, width=64, head="mup", outputs=1), level="mean_field", optimizer=optimizer
                )["label_learning_rate_scale"]
            )
            for depth in (80, 160)
        ]
        assert np.log(deep[1] / deep[0]) / np.log(2) == pytest.approx(-1.5, abs=0.02)


def test_polar_births_are_those_of_the_polar_factor():
    rng = np.random.default_rng(0)
    for rank in (3, 2):
        errors, features = rng.normal(size=(7, rank)) @ rng.normal(size=(rank, 3)), rng.normal(size=(9, 3))
        left, sizes, right = np.linalg.svd(errors @ features.T, full_matrices=False)
        kept = sizes > 1e-12 * sizes[0]
        births = left[:, kept] @ right[kept] @ features
        made = polar_births(errors.T @ errors, features.T @ features)
        np.testing.assert_allclose(errors @ made, births, atol=1e-10)


def test_sign_births_are_averages_of_signs():
    rng = np.random.default_rng(0)
    errors, features = rng.normal(size=(5, 2)), rng.normal(size=(50, 2))
    by_hand = [np.mean([np.sign(u @ x) * x for x in features], axis=0) for u in errors]
    np.testing.assert_allclose(sign_births(errors, features), by_hand, rtol=1e-5, atol=1e-6)


def test_sampled_averages_are_those_that_are_closed():
    """Where the outputs' drive is of a site by itself, ReLU has closed averages; scramblings tell their error."""
    net = mf.MLP(depth=1, width=8, inputs=3)
    points, rng = EveryPair(net), np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    layer = LayerAverages.at(net, points, root @ root.T)
    along, kernel, with_z = rng.normal(size=(3, 1)), rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    closed = ConvolutionDrive(net, points)
    averages = [SampledChannels(activation_named("relu"), 3, points.pulled_back, draw) for draw in range(16)]
    matrix = np.diag(along.ravel())

    def agrees(samples, exact):
        mean, error = np.mean(samples, axis=0), np.std(samples, axis=0, ddof=1) / 4
        return consistent(mean - exact, error + 1e-12, 16)

    assert agrees([each.square(layer, matrix) for each in averages], closed.square(layer, along))
    below = [each.below(layer, matrix) for each in averages]
    assert agrees(below, np.diag(closed.below(layer, along).ravel()))
    changes = [each.change(layer, matrix, kernel, with_z) for each in averages]
    exact = closed.change(layer, along, kernel, with_z)
    for name in ("energy", "gated_energy", "gated_with_features"):
        assert agrees([getattr(change, name) for change in changes], getattr(exact, name)), name


@cache
def _measured(net, optimizer, draws, loss="squared"):
    return mf.simulate(net, draws=draws, seed=7, measure=mf.Energies(optimizer=optimizer, loss=loss))


@cache
def _predicted(net, optimizer, loss="squared"):
    return mf.predict(net, level="mean_field", optimizer=optimizer, loss=loss)


def _agrees(net, optimizer, draws, loss="squared", names=(*TERMS, "output_update_energy"), factor=1.0):
    """Draws are theory's within their errors, (l + N) / n and three times the error of theory's own draws.

    N counts samples and sites, and the outputs are layer L + 1.
    """
    measured, predicted = _measured(net, optimizer, draws, loss), _predicted(net, optimizer, loss)
    own = 3 * predicted.attrs.get("relative_error", 0.0)
    places = net.inputs * net.sites
    for name in names:
        layers = np.arange(1, net.depth + 1) if name != "output_update_energy" else net.depth + 1
        allowance = (layers + places) / min(net.channels_by_layer[1:]) + own
        expected = factor * predicted[name].values
        error = measured[f"{name}_stderr"].values
        if not consistent(measured[name].values - expected, error + 1e-9 * expected, draws, allowance * expected):
            return False
    return True


DRAWS = {32: 400, 64: 300, 128: 200}


@pytest.mark.parametrize("width", DRAWS)
@pytest.mark.parametrize("optimizer", ["adamw", "muon", "muon-adamw"])
def test_one_sample_agrees_with_draws(optimizer, width):
    assert _agrees(mf.MLP(depth=4, width=width), optimizer, DRAWS[width])


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_other_widths_and_losses_agree_with_draws(optimizer):
    assert _agrees(mf.MLP(depth=3, width=(64, 160, 96), input_width=80, outputs=4, weight_variance=1.5), optimizer, 200)
    assert _agrees(mf.MLP(depth=3, width=96, outputs=4), optimizer, 200, "cross_entropy")
    assert _agrees(mf.MLP(depth=3, width=96, inputs=3, outputs=4), optimizer, 200, "cross_entropy")


@pytest.mark.parametrize(("inputs", "width"), [(2, 64), (3, 32), (3, 64), (3, 128), (8, 128)])
@pytest.mark.parametrize("optimizer", ["lion", "shampoo"])
def test_several_samples_agree_with_draws(optimizer, inputs, width):
    assert _agrees(mf.MLP(depth=3, width=width, inputs=inputs, outputs=3), optimizer, DRAWS[width])


@pytest.mark.parametrize("readout", ["pooled", "convolution", "flatten"])
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_grids_agree_with_draws(optimizer, readout):
    net = mf.ConvNet(depth=2, channels=96, grid=(4,), kernel=(3,), padding="zero", outputs=3, readout=readout)
    assert _agrees(net, optimizer, 150)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_smooth_activations_agree_with_draws(optimizer):
    assert _agrees(mf.MLP(depth=3, width=96, activation="tanh"), optimizer, 200)
    assert _agrees(mf.MLP(depth=3, width=96, activation="gelu", inputs=2), optimizer, 200)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_gates_that_are_averaged_at_points_are_those_that_are_closed(optimizer, monkeypatch):
    """ReLU without its closed averages, as any other activation."""
    net = mf.MLP(depth=4, width=64, outputs=6)
    closed = plain_step_terms(net, FirstStep(optimizer))
    monkeypatch.setitem(net.__dict__, "sigma", replace(net.sigma, triple=None))
    sampled = plain_step_terms(net, FirstStep(optimizer))
    for name in ("label", "output", "update"):
        np.testing.assert_allclose(
            getattr(sampled, name), getattr(closed, name), rtol=4 * sampled.attrs["relative_error"]
        )


@pytest.mark.parametrize(
    "net",
    [mf.MLP(depth=4, width=128, outputs=40), mf.MLP(depth=3, width=128, activation="tanh", inputs=3, outputs=4)],
    ids=["one sample", "three samples"],
)
def test_recursion_agrees_with_sampled_units(net):
    """The other theory of section 24, which shares no average with this one, to 3 %: changes of the outputs as well."""
    for optimizer in ("adamw", "muon"):
        ours, theirs = plain_step_terms(net, FirstStep(optimizer)), sampled_averages(net, FirstStep(optimizer))
        for row, energies in zip(theirs.energies, (ours.label, ours.output, ours.update), strict=True):
            np.testing.assert_allclose(row[:-1], energies, rtol=0.03)
        assert theirs.energies[-1][-1] == pytest.approx(ours.outputs, rel=0.03)


def test_given_inputs_agree_with_draws():
    rng = np.random.default_rng(5)
    inputs = rng.normal(size=(3, 20))
    inputs[1] += inputs[0]
    net = mf.MLP(depth=3, width=96, inputs=3, outputs=4, input_width=20)
    for optimizer in ("adamw", "muon"):
        measured = mf.simulate(net, draws=200, seed=3, measure=mf.Energies(optimizer=optimizer, inputs=inputs))
        predicted = mf.predict(net, level="mean_field", optimizer=optimizer, inputs=inputs)
        for name in TERMS:
            allowance = ((np.arange(1, 4) + 3) / 96 + 3 * predicted.attrs["relative_error"]) * predicted[name].values
            error = measured[f"{name}_stderr"].values + 1e-9 * predicted[name].values
            assert consistent(measured[name].values - predicted[name].values, error, 200, allowance), name


def test_signs_are_more_than_their_part_along_the_errors():
    """Without the rest, (2/pi) l (2 l^2 + 1) / 6 alone, layers 1 and 2 are refuted."""
    net = mf.MLP(depth=2, width=128)
    measured, layers = _measured(net, "adamw", 400), np.arange(1, 3)
    alone = 128**2 / (2 * pi) * (2 / pi) * layers * (2 * layers**2 + 1) / 6
    assert _agrees(net, "adamw", 400)
    difference, error = measured["label_term"].values - alone, measured["label_term_stderr"].values
    for layer in layers - 1:
        assert not consistent(difference[layer], error[layer], 400, (layers[layer] + 1) / 128 * alone[layer])


def test_the_shape_factor_counts():
    net = mf.MLP(depth=2, width=(64, 192), input_width=64)
    assert _agrees(net, "muon", 300)
    with_factor, without = (_predicted(net, name)["label_term"].values for name in ("muon", "shampoo"))
    assert not _agrees(net, "muon", 300, names=("label_term",), factor=without[1] / with_factor[1])


def test_outputs_drive_layers():
    """Many outputs drive the net along its features; labels alone do not."""
    net = mf.MLP(depth=4, width=64, outputs=32)
    assert _agrees(net, "muon", 300, names=("update_energy",))
    predicted = _predicted(net, "muon")
    share = float(predicted["label_term"][-1] / predicted["update_energy"][-1])
    assert not _agrees(net, "muon", 300, names=("update_energy",), factor=share)


def test_variables():
    predicted = _predicted(mf.MLP(depth=3, width=32), "adamw")
    relative = predicted["relative_update_energy"].values
    np.testing.assert_allclose(relative, predicted["update_energy"], rtol=1e-12)
    assert float(predicted["relative_learning_rate_scale"]) == pytest.approx(relative.mean() ** -0.5)
    assert float(predicted["last_learning_rate_scale"]) == pytest.approx(relative[-1] ** -0.5)
    assert float(predicted["output_learning_rate_scale"]) == pytest.approx(
        float(predicted["output_update_energy"]) ** -0.5
    )
    assert predicted.attrs["optimizer"] == "adamw"
    assert "error_draws" not in predicted.attrs
    larger = _predicted(mf.MLP(depth=3, width=32, weight_variance=4.0), "adamw")
    np.testing.assert_allclose(
        larger["label_term"] / larger["relative_update_energy"], 2.0 ** np.arange(1, 4) / 2, rtol=0.5
    )


REFUSED = {
    "curvature": (mf.MLP(depth=2, width=32), "sophia", "more than the signs or the polar factor"),
    "iterations": (mf.MLP(depth=2, width=32), Muon(), "more than the signs or the polar factor"),
    "many samples": (mf.MLP(depth=2, width=64, inputs=33), "lion", "these are 33"),
    "few channels": (mf.MLP(depth=2, width=4, inputs=5), "muon", "under 4 channels"),
    "residual": (mf.ResidualMLP(depth=2, width=32), "muon", "plain nets"),
}


@pytest.mark.parametrize(("net", "optimizer", "words"), REFUSED.values(), ids=REFUSED)
def test_refusals(net, optimizer, words):
    assert words in plain_step_refusal(net, FirstStep(optimizer))
    with pytest.raises(ValueError, match="simulate"):
        plain_step_terms(net, FirstStep(optimizer))
    if not net.has_skips and net.activation != "gelu":  # which sampled units serve
        with pytest.raises(ValueError, match=words):
            mf.predict(net, level="mean_field", optimizer=optimizer)


def test_values_that_no_float_holds():
    for net in (mf.MLP(depth=3, width=32, weight_variance=1e200), mf.MLP(depth=300, width=512, weight_variance=30.0)):
        with pytest.raises(OverflowError, match="closer to the fan-in rule"):
            mf.predict(net, level="mean_field", optimizer="muon")


def test_samples_that_are_alike_or_vanish_are_served():
    net = mf.MLP(depth=2, width=32, inputs=2, input_width=3)
    one, both = (
        mf.predict(net, level="mean_field", optimizer="muon", inputs=[[1.0, 2.0, 3.0], second])
        for second in ([0.0, 0.0, 0.0], [1.0, 2.0, 3.0])
    )
    by_hand = 14 * (32 / 3) / 32  # |x|^2 f^2 / n: the change of every sample that is there is f |x| in all
    assert float(one["label_term"][0]) == pytest.approx(by_hand / 2, rel=1e-6)
    assert float(both["label_term"][0]) == pytest.approx(by_hand, rel=1e-6)


@pytest.mark.parametrize(
    ("net", "level"),
    [
        (mf.MLP(depth=2, width=32), "exact"),
        (mf.MLP(depth=2, width=32), "law"),
        (mf.MLP(depth=2, width=32), "finite_channels"),
        (mf.Transformer(depth=1, width=16, heads=2, tokens=3), "mean_field"),
        (mf.DenseNet(depth=2, width=8, growth=8), "mean_field"),
    ],
)
def test_other_levels_refuse(net, level):
    with pytest.raises(ValueError, match="leave optimizer out"):
        mf.predict(net, level=level, optimizer="adamw")
