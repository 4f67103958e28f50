"""Steps over sampled units on grids: MLPs of as many samples, the recursion of plain nets, and draws at two widths."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.optimizers.first_steps import FirstStep
from meanfield.theory.laws import residual_exponent
from meanfield.theory.learning_rate import law_over_depth
from meanfield.theory.mean_field import sampled_units
from meanfield.theory.mean_field.plain_steps import plain_step_terms
from meanfield.theory.mean_field.sampled_units import sampled_averages
from meanfield.theory.two_points import Patches
from tests.statistics import consistent

pytestmark = pytest.mark.filterwarnings("ignore::meanfield.PremiseWarning")

NAMES = ("label_term", "output_term", "update_energy", "output_update_energy")
UPDATE = 2


@pytest.mark.parametrize("readout", ["pooled", "convolution", "flatten"])
@pytest.mark.parametrize("padding", ["circular", "zero"])
def test_what_is_sent_back_is_the_transpose_of_what_is_seen(padding, readout):
    net = mf.ConvNet(depth=1, channels=8, grid=(4, 3), kernel=(2, 3), padding=padding, readout=readout, inputs=2)
    rng = np.random.default_rng(0)
    for patches in (Patches(net), Patches(net, net.readout)):
        values = rng.normal(size=(5, net.inputs * net.sites))
        seen = patches.seen(values)
        assert seen.shape == (5 * patches.rows, patches.columns)
        np.testing.assert_allclose(seen.T @ seen, patches.sum_over_rows(values.T @ values), rtol=1e-12, atol=1e-12)
        errors = rng.normal(size=seen.shape)
        assert np.sum(seen * errors) == pytest.approx(np.sum(values * patches.sent_back(errors)), rel=1e-12)
        by_row = np.stack([patches.seen(np.eye(5)[[channel]].T * values) for channel in range(5)])  # who owns a row
        own = np.stack(
            [
                patches.as_rows(np.eye(5)[[channel]].T * np.ones((5, patches.rows * patches.columns)))
                for channel in range(5)
            ]
        )
        assert np.all((by_row != 0) <= (own == 1))


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "muon", "muon-adamw"])
@pytest.mark.parametrize(("sites", "inputs"), [(1, 1), (1, 3), (3, 1), (2, 2)])
def test_places_without_a_stencil_are_samples(sites, inputs, optimizer, monkeypatch):
    """One site is the residual MLP, exactly; so are several that no tap joins, with as many samples."""
    for name in ("ONE_PLACE", "SEVERAL", "SIGNS_OF_SEVERAL"):
        monkeypatch.setattr(sampled_units, name, (2**7, 3))
    fields = {"depth": 3, "block_depth": 2, "stem": 1, "tail": 1, "outputs": 5, "scaling": "multiplier_sqrt"}
    grid = mf.ResidualConvNet(channels=32, grid=(sites,), kernel=(1,), readout="convolution", inputs=inputs, **fields)
    samples, step = mf.ResidualMLP(width=32, inputs=sites * inputs, **fields), FirstStep(optimizer)
    for loss in ("squared", "cross_entropy"):
        ours, theirs = (sampled_averages(net, step, loss=loss) for net in (grid, samples))
        rounding = 0 if sites == 1 else 1e-12
        np.testing.assert_allclose(ours.energies, theirs.energies, rtol=rounding)
        np.testing.assert_allclose(ours.values, theirs.values, rtol=rounding)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize(
    "fields",
    [
        {"grid": (4,), "kernel": (3,), "padding": "zero", "inputs": 2},
        {"grid": (5,), "kernel": (3,), "readout": "convolution"},
        {"grid": (2, 2), "kernel": (2, 2), "readout": "flatten", "activation": "tanh"},
    ],
)
def test_plain_nets_have_their_recursion(fields, optimizer):
    """It shares no average with sampled units."""
    net, step = mf.ConvNet(depth=3, channels=128, outputs=4, **fields), FirstStep(optimizer)
    known, averages = plain_step_terms(net, step), sampled_averages(net, step)
    expected = np.array([known.label, known.output, known.update])
    error = np.hypot(averages.errors[:, :-1] / expected, known.attrs["relative_error"])
    assert consistent(averages.energies[:, :-1] / expected - 1, error, 32, 0.02)
    outputs = averages.energies[UPDATE, -1] / known.outputs - 1
    assert consistent(outputs, np.hypot(averages.errors[UPDATE, -1] / known.outputs, error.max()), 32, 0.03)
    np.testing.assert_allclose(averages.values, known.value, rtol=0.02)


DRAWN = {
    "ring": {"depth": 4, "grid": (4,), "readout": "convolution"},
    "pooled": {"depth": 4, "grid": (8,), "scaling": "multiplier_sqrt", "inputs": 2, "stem": 1, "input_channels": 32},
    "flat": {
        "depth": 3,
        "grid": (3, 2),
        "kernel": (3, 3),
        "padding": "zero",
        "readout": "flatten",
        "block_depth": 2,
        "scaling": "multiplier_linear",
        "tail": 1,
    },
    "gelu": {"depth": 3, "grid": (3,), "kernel": (2,), "activation": "gelu", "scaling": 0.7, "inputs": 3},
}


def _drawn(fields, optimizer, channels, draws, **options):
    net = mf.ResidualConvNet(channels=channels, outputs=4, **fields)
    return net, mf.simulate(net, draws=draws, seed=5, measure=mf.Energies(optimizer=optimizer, **options))


def _ratios(measured, predicted, name):
    """Measured over predicted, and its error."""
    error = np.hypot(measured[f"{name}_stderr"] / predicted[name], predicted.attrs["relative_error"])
    return np.asarray(measured[name] / predicted[name]), np.asarray(error)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("case", DRAWN)
def test_draws_tend_to_it_as_the_channels_grow(case, optimizer):
    loss, excesses, errors = "cross_entropy" if case == "gelu" else "squared", [], []
    for channels, draws in ((64, 120), (256, 40)):
        net, measured = _drawn(DRAWN[case], optimizer, channels, draws, loss=loss)
        predicted = mf.predict(net, level="mean_field", optimizer=optimizer, loss=loss)
        slack = (2 + net.inputs * net.sites) / channels
        for name in NAMES:
            ratio, stderr = _ratios(measured, predicted, name)
            assert consistent(ratio - 1, stderr, draws, slack), (channels, name)
            if channels > 64 and net.multiplier != 1:  # counted once more
                twice = net.multiplier**2
                assert not consistent(ratio / twice - 1, stderr / twice, draws, slack), name
        ratio, stderr = _ratios(measured, predicted, "update_energy")
        excesses.append(float(np.abs(ratio - 1).max()))
        errors.append(float(stderr.max()))
    assert excesses[1] < excesses[0] + 3 * np.hypot(*errors)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_many_places_and_given_inputs_agree_with_draws(optimizer):
    rng, fields = np.random.default_rng(3), {"depth": 2, "grid": (32,), "stem": 1, "input_channels": 3}
    inputs = np.cumsum(rng.normal(size=(1, 3, 32)), axis=2) / 4
    net, measured = _drawn(fields, optimizer, 256, 40, inputs=inputs)
    predicted = mf.predict(net, level="mean_field", optimizer=optimizer, inputs=inputs)
    assert (predicted.attrs["sampled_units"], predicted.attrs["replicates"]) == sampled_units.MANY
    for name in NAMES:
        ratio, stderr = _ratios(measured, predicted, name)
        assert consistent(ratio - 1, stderr, 40, 34 / 256), name


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_theories_that_forget_a_part_are_refuted(optimizer, monkeypatch):
    """Errors that a stencil sends on but leaves where they are, and changes of which a matrix hands up what errors give
    alone."""
    fields = {"depth": 4, "grid": (4,), "kernel": (2,), "block_depth": 2, "scaling": "none", "readout": "convolution"}
    net, measured = _drawn(fields, optimizer, 256, 80)

    def agrees():
        averages = sampled_averages(net, FirstStep(optimizer))
        expected, own = averages.energies[UPDATE][:-1], averages.errors[UPDATE][:-1]
        error = np.hypot(measured["update_energy_stderr"], own) / expected
        return consistent(measured["update_energy"].values / expected - 1, error.values, 80, 8 / 256)

    assert agrees()
    for name, forgetful in {
        "sent_back": lambda patches, rows: rows.reshape(patches.rows, -1, patches.columns).sum(axis=0),
        "sum_over_rows": lambda patches, pairs: np.zeros_like(pairs),
    }.items():
        with monkeypatch.context() as patched:
            patched.setattr(Patches, name, forgetful)
            assert not agrees(), name


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize(("scaling", "block_depth"), [("init", 1), ("init", 2), ("multiplier_linear", 2)])
def test_scales_have_the_law_of_the_depth(scaling, block_depth, optimizer, monkeypatch):
    """A grid changes no power of the depth: the slope between 8 and 16 blocks is that of the residual MLP."""
    monkeypatch.setattr(sampled_units, "SIGNS_OF_SEVERAL", (2**9, 8))
    monkeypatch.setattr(sampled_units, "SEVERAL", (2**9, 8))
    slopes = []
    for kind, fields in (
        (mf.ResidualConvNet, {"channels": 64, "grid": (3,), "readout": "convolution"}),
        (mf.ResidualMLP, {"width": 64}),
    ):
        nets = [kind(depth=depth, scaling=scaling, block_depth=block_depth, **fields) for depth in (8, 16)]
        scales = [
            float(mf.predict(net, level="mean_field", optimizer=optimizer)["log_label_learning_rate_scale"])
            for net in nets
        ]
        slopes.append(np.diff(scales)[0] / np.log(2))
        exponent, why = law_over_depth(nets[0], (8, 16), optimizer=optimizer)
        assert exponent == residual_exponent(scaling, block_depth, optimizer=optimizer)
        assert not why
    assert slopes[0] == pytest.approx(slopes[1], abs=0.04)
    assert slopes[0] == pytest.approx(exponent, abs=0.3)
