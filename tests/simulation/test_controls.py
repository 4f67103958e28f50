"""Energies with known means: that they have them, what they leave of an error, and which nets have none."""

from functools import partial

import numpy as np
import pytest

import meanfield as mf
from meanfield.simulation.measures.energies import draw_energies
from meanfield.simulation.measures.overlap_energy import CONTROLS, adjusted_terms, controls_refusal, known_means
from meanfield.theory import finite_channel_factor
from tests.draws import in_batches
from tests.statistics import consistent

DRAWS = 2000
GIVEN = np.random.default_rng(0).normal(size=(2, 3, 5)) + 0.5


def _net(**changes):
    """The fewest channels that are served."""
    chosen = {"depth": 3, "channels": 20, "grid": (5,), "kernel": (3,), "readout": "convolution", "outputs": 3}
    return mf.ConvNet(**chosen | changes)


def _off(net, inputs=None, draws=DRAWS):
    """Drawn controls less their means, and standard errors, of all layers."""
    drawn = in_batches(partial(draw_energies, net, 0, inputs=inputs, controls=True), draws)
    means = known_means(net, inputs)
    difference = [drawn[name].mean(axis=0) - means[name] for name in CONTROLS]
    stderr = [drawn[name].std(axis=0) / np.sqrt(draws) for name in CONTROLS]
    return np.concatenate(difference), np.concatenate(stderr)


@pytest.mark.parametrize(
    ("net", "inputs"),
    [
        (_net(), None),
        (_net(activation="linear", head="mup", channels=(5, 3, 4), input_channels=2, inputs=2), None),
        (_net(grid=(2, 3), kernel=(2, 2), head="fan_in"), None),
        (_net(inputs=2, input_channels=3), GIVEN),
        (mf.MLP(depth=4, width=20, outputs=2), None),
        (_net(readout="flatten", inputs=2), None),
    ],
    ids=["1d", "linear, samples", "2d", "given inputs", "one site", "flattened"],
)
@pytest.mark.usefixtures("no_overlap_energies")
def test_means_are_exact_at_any_width(net, inputs):
    difference, stderr = _off(net, inputs)
    assert consistent(difference, np.maximum(stderr, 1e-12), DRAWS)


@pytest.mark.parametrize(
    ("net", "inputs", "draws"),
    [
        (_net(padding="zero"), None, 500),
        (_net(activation="gelu"), None, 500),
        (_net(readout="pooled"), None, 500),
        (mf.MLP(depth=4, width=3, outputs=2), None, DRAWS),
        (_net(input_channels=1), None, DRAWS),
        (_net(inputs=2, input_channels=3), np.where(np.arange(5) < 4, -np.abs(GIVEN), GIVEN), 500),
    ],
    ids=["edges", "gelu", "pooled", "few units", "few input channels", "dark patches"],
)
@pytest.mark.usefixtures("no_overlap_energies")
def test_means_are_off_where_they_are_refused(net, inputs, draws):
    """Negative control: what is known elsewhere is wrong in these nets, and they are refused before any work.

    In most of them a quarter of the draws above see it, which is harder than with all of them.
    """
    assert not consistent(*_off(net, inputs, draws), draws)
    with pytest.raises(ValueError, match="controls have known means in some nets alone"):
        mf.simulate(net, measure=mf.Energies(controls=True, inputs=inputs), draws=4, seed=0)


@pytest.mark.parametrize("options", [{"loss": "cross_entropy"}, {"batch": mf.Batch(label_mean=0.5)}])
def test_other_labels_are_refused(options):
    with pytest.raises(ValueError, match="known of plain batches under squared loss"):
        mf.simulate(_net(inputs=2), measure=mf.Energies(controls=True, **options), draws=4, seed=0)


@pytest.mark.usefixtures("no_overlap_energies")
def test_adjusted_means_are_unbiased():
    """200 runs of 40 draws of a net of one site, whose exact means theory knows; two-sided, at every layer.

    A bias of a twentieth of one run's standard error would be 0.7 s.e. here; one of a third of it is seen.
    """
    net, runs, draws = mf.MLP(depth=3, width=20, outputs=2), 200, 40
    exact = mf.predict(net, level="exact")
    values = in_batches(partial(draw_energies, net, 1, controls=True), runs * draws)
    pieces = [{name: value[run * draws :][:draws] for name, value in values.items()} for run in range(runs)]
    pieces = [piece | {"overlap_energy": piece["label_term"]} for piece in pieces]
    means = [{name: term.mean(axis=0) for name, term in adjusted_terms(piece, net, None).items()} for piece in pieces]
    for name in ("label_term", "output_term"):
        drawn = np.array([mean[name] for mean in means])
        stderr = np.maximum(drawn.std(axis=0) / np.sqrt(runs), 1e-9 * exact[name].values)
        assert consistent(drawn.mean(axis=0) - exact[name].values, stderr, runs)
        assert not consistent(drawn.mean(axis=0) - 1.5 * exact[name].values, stderr, runs)


@pytest.mark.usefixtures("no_overlap_energies")
def test_adjusted_label_terms_of_sites_are_unbiased():
    """As above for two samples of a linear net on a grid, whose label terms are known exactly; 2 % would be seen."""
    net, runs, draws = _net(activation="linear", inputs=2), 200, 40
    exact = mf.predict(net, level="mean_field")["label_term"].values * finite_channel_factor(net)
    values = in_batches(partial(draw_energies, net, 1, controls=True), runs * draws)
    pieces = [{name: value[run * draws :][:draws] for name, value in values.items()} for run in range(runs)]
    pieces = [piece | {"overlap_energy": piece["label_term"]} for piece in pieces]
    means = np.array([adjusted_terms(piece, net, None)["label_term"].mean(axis=0) for piece in pieces])
    stderr = means.std(axis=0) / np.sqrt(runs)
    assert consistent(means.mean(axis=0) - exact, stderr, runs)
    assert not consistent(means.mean(axis=0) - 1.02 * exact, stderr, runs)


def test_errors_become_smaller_and_plain_means_stay():
    net = mf.ConvNet(depth=8, channels=48, grid=(8,), kernel=(3,), readout="convolution")
    plain = mf.simulate(net, draws=200, seed=0)
    controlled = mf.simulate(net, measure=mf.Energies(controls=True), draws=200, seed=0)
    for name in ("label_term", "output_term", "update_energy", "overlap_energy"):
        np.testing.assert_array_equal(plain[name], controlled[name])
        left = (controlled[f"adjusted_{name}_stderr"] / controlled[f"{name}_stderr"]).values
        assert left.max() < (0.6 if name in ("label_term", "overlap_energy") else 0.95)
        difference = (controlled[f"adjusted_{name}"] - controlled[name]).values
        assert consistent(difference, controlled[f"{name}_stderr"].values, 200)
    scale = controlled["adjusted_label_term"].mean() ** -0.5
    np.testing.assert_allclose(controlled["adjusted_label_learning_rate_scale"], scale)
    assert not any(str(name).startswith("adjusted_") for name in plain)
    assert not {"label_error_energy", "label_gradient_energy"} & set(controlled)


def test_fewer_than_ten_draws_for_each_control_adjust_nothing():
    """Label terms have three controls."""
    few, enough = (mf.simulate(_net(), measure=mf.Energies(controls=True), draws=draws, seed=0) for draws in (29, 30))
    np.testing.assert_allclose(few["adjusted_label_term"], few["label_term"], rtol=1e-12)
    assert np.abs(enough["adjusted_label_term"] / enough["label_term"] - 1).max() > 1e-3


def test_single_precision_has_the_same_controls():
    numbers = [
        mf.simulate(_net(), measure=mf.Energies(controls=True, precision=precision), draws=30, seed=0)
        for precision in ("float64", "float32")
    ]
    for name in ("adjusted_label_term", "adjusted_output_term"):
        np.testing.assert_allclose(numbers[0][name], numbers[1][name], rtol=1e-4)


def test_patches_of_enough_numbers_are_served_however_few_their_channels():
    """A patch sees channels times taps numbers: of three taps, seven channels suffice and six do not."""
    assert controls_refusal(_net(input_channels=7)) == ""
    assert "may see nothing but 0" in controls_refusal(_net(input_channels=6))
