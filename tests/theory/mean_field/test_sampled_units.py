"""Steps over sampled units: against the recursions where these serve, and against draws where nothing else does."""

import numpy as np
import pytest

import meanfield as mf
from meanfield import optimizers
from meanfield.optimizers.first_steps import FirstStep
from meanfield.theory.mean_field import sampled_units
from meanfield.theory.mean_field.plain_steps import plain_step_terms
from meanfield.theory.mean_field.residual_steps import residual_step_terms
from meanfield.theory.mean_field.sampled_units import sampled_averages, signed_features
from tests.statistics import consistent

LABEL, OUTPUT, UPDATE = range(3)


def _agrees(averages, kind, expected, share=0.0):
    replicates = int(averages.attrs["replicates"])
    ratio = averages.energies[kind] / expected - 1
    stderr = np.maximum(averages.errors[kind] / expected, 1e-4)
    return consistent(ratio, stderr, replicates, share)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "muon", "muon-adamw"])
@pytest.mark.parametrize(
    "fields",
    [
        {"depth": 6},
        {"depth": 3, "block_depth": 3, "scaling": "multiplier_linear", "stem": 2, "tail": 2, "input_width": 16},
        {"depth": 4, "scaling": 0.7, "activation": "linear", "head": "fan_in"},
    ],
)
def test_labels_of_one_sample_have_their_recursion(optimizer, fields, monkeypatch):
    monkeypatch.setattr(sampled_units, "ONE_PLACE", (2**10, 16))
    net, step = mf.ResidualMLP(width=64, **fields), FirstStep(optimizer)
    known, averages = residual_step_terms(net, step), sampled_averages(net, step)
    assert _agrees(averages, LABEL, np.append(known.label, averages.energies[LABEL][-1]), 0.03)
    np.testing.assert_allclose(averages.values, known.value, rtol=0.02)
    assert not _agrees(averages, LABEL, 1.3 * np.append(known.label, known.outputs), 0.03)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize(("samples", "outputs"), [(1, 10), (1, 64), (3, 10)])
def test_plain_nets_have_their_recursion(optimizer, samples, outputs):
    net, step = mf.MLP(depth=4, width=64, inputs=samples, outputs=outputs), FirstStep(optimizer)
    known, averages = plain_step_terms(net, step), sampled_averages(net, step)
    for kind, expected in enumerate((known.label, known.output, known.update)):
        ratio = averages.energies[kind][:-1] / expected - 1
        stderr = np.hypot(averages.errors[kind][:-1] / expected, known.attrs.get("relative_error", 0.0))
        assert consistent(ratio, np.maximum(stderr, 1e-4), int(averages.attrs["replicates"]), 0.04), kind


DRAWN = [
    ({"depth": 6, "outputs": None}, "squared"),
    ({"depth": 3, "block_depth": 2, "stem": 1, "activation": "gelu"}, "squared"),
    ({"depth": 3, "inputs": 4, "scaling": "multiplier_sqrt"}, "squared"),
    ({"depth": 3, "inputs": 3, "scaling": "multiplier_linear", "activation": "tanh", "stem": 1}, "cross_entropy"),
]


def _drawn(fields, loss, optimizer, width, draws):
    net = mf.ResidualMLP(**{**fields, "width": width, "outputs": fields.get("outputs", 10) or width})
    measured = mf.simulate(net, draws=draws, seed=5, measure=mf.Energies(optimizer=optimizer, loss=loss))
    return net, measured


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize(("fields", "loss"), DRAWN)
def test_draws_tend_to_it_as_the_width_grows(optimizer, fields, loss):
    excesses = []
    for width, draws in ((64, 160), (128, 80), (256, 40)):
        net, measured = _drawn(fields, loss, optimizer, width, draws)
        predicted = mf.predict(net, level="mean_field", optimizer=optimizer, loss=loss)
        error = predicted.attrs["relative_error"]
        for name in ("label_term", "output_term", "update_energy", "output_update_energy"):
            ratio = measured[name] / predicted[name]
            stderr = np.hypot(measured[f"{name}_stderr"] / predicted[name], error)
            assert consistent(ratio - 1, stderr, draws, (2 + net.inputs) * 2 / width), (width, name)
            assert not consistent(ratio - 1.6, stderr, draws, (2 + net.inputs) * 2 / width)
        excesses.append(float(np.abs(ratio - 1).max()))
    assert excesses[-1] < excesses[0] + 4 * float(np.max(stderr))


def test_what_the_features_do_to_errors_and_errors_to_changes_is_seen(monkeypatch):
    """Without H^T U outputs as many as units act as labels; without R nothing comes up along the errors."""
    net, measured = _drawn({"depth": 6, "outputs": None}, "squared", "muon", 128, 160)
    ratio = measured["update_energy_stderr"] / measured["update_energy"]

    def agrees():
        averages = sampled_averages(net, FirstStep("muon"))
        return consistent(averages.energies[UPDATE][:-1] / measured["update_energy"] - 1, ratio, 160, 0.05)

    assert agrees()
    whole = sampled_units.inverse
    without = {}

    def forgetful(matrix):
        without["calls"] = without.get("calls", 0) + 1
        return np.zeros_like(matrix)

    monkeypatch.setattr(sampled_units, "inverse", forgetful)
    assert not agrees()
    assert without["calls"]
    monkeypatch.setattr(sampled_units, "inverse", whole)
    assert agrees()


@pytest.mark.parametrize("samples", [1, 3])
def test_births_under_signs_are_sums_over_units(samples):
    rng = np.random.default_rng(0)
    above, below = rng.normal(size=(7, samples)), np.maximum(rng.normal(size=(11, samples)), 0.0)
    above[2] = 0.0
    naive = [sum(np.sign(u @ x) * x for x in below) / len(below) for u in above]
    np.testing.assert_allclose(signed_features(above, below), naive, atol=1e-6)


@pytest.mark.parametrize(
    ("net", "optimizer", "why"),
    [
        (mf.ResidualMLP(depth=2, width=8, inputs=9), "adamw", "no more than channels"),
        (mf.ResidualMLP(depth=2, width=64, inputs=33), "muon", "up to 32 of them"),
        (mf.ResidualConvNet(depth=2, channels=64, grid=(7, 5), kernel=(3, 3)), "muon", "smaller grid"),
        (mf.ResidualMLP(depth=11_000, width=8), "muon", "21,201 numbers"),
        (mf.ResidualMLP(depth=2, width=8), "sso", "depends on more than the signs"),
        (mf.ResidualMLP(depth=2, width=8), optimizers.Muon(), "depends on more than the signs"),
    ],
)
def test_what_is_not_predicted_is_refused(net, optimizer, why):
    with pytest.raises(ValueError, match=why):
        mf.predict(net, level="mean_field", optimizer=optimizer)


def test_it_is_always_the_same_and_says_how_it_was_taken():
    net = mf.ResidualMLP(depth=3, width=32, inputs=2, activation="erf")
    first, second = (mf.predict(net, level="mean_field", optimizer="muon") for _ in range(2))
    np.testing.assert_array_equal(first["update_energy"], second["update_energy"])
    assert 0 < first.attrs["relative_error"] < 0.05
    assert (first.attrs["sampled_units"], first.attrs["replicates"]) == sampled_units.SEVERAL


def test_energies_beyond_floats_are_an_error():
    with pytest.raises(OverflowError, match="range of floats"):
        mf.predict(mf.ResidualMLP(depth=2000, width=8, scaling="none"), level="mean_field", optimizer="muon")


def test_more_layers_than_memory_holds_are_refused_beforehand(monkeypatch):
    monkeypatch.setattr(sampled_units, "HELD", 1e12)
    with pytest.raises(MemoryError, match="following 4,096 units through 3 layers needs"):
        sampled_averages(mf.ResidualMLP(depth=3, width=32), FirstStep("adamw"))


def test_signs_do_not_know_how_small_errors_are():
    """Single precision holds none of these errors."""
    errors, features = np.random.default_rng(0).standard_normal((2, 64, 3))
    of_small = signed_features(2.0**-200 * errors, features)
    np.testing.assert_array_equal(of_small, signed_features(errors, features))
    assert np.abs(of_small).min() > 0
