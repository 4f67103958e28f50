"""Exact expectations of fully-connected nets: against tables, draws, limits, and at depths beyond any draw."""

from functools import partial

import numpy as np
import pytest

import meanfield as mf
from meanfield.simulation.measures.energies import draw_energies
from meanfield.theory import exact
from tests.draws import in_batches
from tests.statistics import consistent
from tests.theory.exact import printed_recursions as printed

DRAWS = 20_000
NETS = {
    "relu": mf.MLP(depth=4, width=24, outputs=3),
    "linear, fan_in head": mf.MLP(depth=4, width=24, outputs=3, activation="linear", head="fan_in"),
    "unequal widths, mup head": mf.MLP(depth=3, width=(24, 12, 16), outputs=8, input_width=7, head="mup"),
    "linear, unequal widths": mf.MLP(depth=3, width=(12, 30, 16), outputs=2, input_width=9, activation="linear"),
    "many outputs": mf.MLP(depth=2, width=12, outputs=24),
}


@pytest.mark.parametrize("activation", ["relu", "linear"])
@pytest.mark.parametrize("n", [3, 64, 1000])
def test_overlap_energy_is_the_printed_recursion(activation, n):
    net = mf.MLP(depth=40, width=n, activation=activation)
    expected = printed.overlap_energies(n, 40, activation == "relu")
    np.testing.assert_allclose(mf.predict(net, level="exact").overlap_energy, expected, rtol=1e-11)


@pytest.mark.parametrize("net", NETS.values(), ids=NETS.keys())
def test_every_term_against_draws_without_allowance(net):
    measured, predicted = mf.simulate(net, draws=DRAWS, seed=8), mf.predict(net, level="exact")
    for name in ("label_term", "output_term", "update_energy"):
        difference = measured[name].values - predicted[name].values
        assert consistent(difference, measured[f"{name}_stderr"].values, DRAWS)
    above = slice(1, None)  # F_1 does not fluctuate: |sigma(x)|^2 is normalised
    difference = (measured.overlap_energy - predicted.overlap_energy).values[above]
    assert consistent(difference, measured.overlap_energy_stderr.values[above], DRAWS)
    assert float(measured.overlap_energy[0]) == pytest.approx(float(predicted.overlap_energy[0]), rel=1e-12)


def test_one_coefficient_off_by_one_percent_is_seen():
    """Negative control: one linear layer over a given kernel, its weights drawn again and again."""
    n, s, draws = 48, 1 / 48, 8192
    rng = np.random.default_rng(0)
    root, z = rng.normal(size=(n, n)), 0.1 * rng.normal(size=n)
    theta = root @ root.T / n
    weights = rng.normal(scale=np.sqrt(s), size=(draws, n, n))
    moved = weights @ theta @ weights.swapaxes(1, 2) + (z @ z) * np.eye(n)
    energies = np.square(moved).sum(axis=(1, 2))
    recursion = mf.derive("Theta_ij Theta_ij", activation="linear")
    letters = {
        "Theta_ij Theta_ij": np.square(theta).sum(),
        "Theta_ii Theta_jj": np.trace(theta) ** 2,
        "Theta_ii z_j z_j": np.trace(theta) * (z @ z),
        "Theta_ij z_i z_j": z @ theta @ z,
        "z_i z_i z_j z_j": (z @ z) ** 2,
    }
    state = np.array([letters[str(moment)] for moment in recursion.moments])
    row = recursion.matrix(n, s)[0]
    spoiled = row * np.where(np.arange(len(row)) == 0, 1.01, 1.0)
    error = energies.std() / np.sqrt(draws)
    assert consistent(energies.mean() - row @ state, error, draws)
    assert not consistent(energies.mean() - spoiled @ state, error, draws)


def test_wide_nets_approach_the_mean_field():
    wide = mf.MLP(depth=20, width=10**7, outputs=1)
    finite, limit = mf.predict(wide, level="exact"), mf.predict(wide, level="mean_field")
    np.testing.assert_allclose(finite.overlap_energy, limit.overlap_energy, rtol=1e-4)
    np.testing.assert_allclose(finite.label_term, limit.label_term, rtol=1e-4)


def test_the_finite_width_correction_is_a_function_of_depth_over_width():
    """F_l / leading at l/n = 1/8, 1/2, 1: 1.38, 4.4, 28, whatever the width (docs/theory.md section 3)."""
    for n in (256, 1024):
        layers = np.array([n // 8, n // 2, n])
        predicted = mf.predict(mf.MLP(depth=n, width=n), level="exact").overlap_energy.values[layers - 1]
        ratio = predicted / (n * layers * (2 * layers**2 + 1) / 12)
        np.testing.assert_allclose(ratio, [1.38, 4.4, 28], rtol=0.03)


@pytest.mark.parametrize("net", [NETS["relu"], NETS["linear, unequal widths"]], ids=["relu", "linear"])
def test_relative_spread_of_one_draw(net):
    """Against the spread of many draws, with its own error from batches."""
    spread = exact.relative_spread(net)
    batches = [mf.simulate(net, draws=2000, seed=seed) for seed in range(100, 120)]
    draws_spread = np.array([(b.overlap_energy_stderr / b.overlap_energy).values * np.sqrt(2000) for b in batches])
    variance = np.square(draws_spread)
    error = variance.std(axis=0, ddof=1) / np.sqrt(len(batches))
    difference = variance.mean(axis=0) - spread**2
    assert consistent(difference[1:], error[1:], len(batches), allowance=0.02 * spread[1:] ** 2)


def test_spreads_are_predicted_on_request():
    net = mf.MLP(depth=4, width=32)
    predicted = mf.predict(net, level="exact", spread=True)
    np.testing.assert_array_equal(predicted.overlap_energy_relative_spread, exact.relative_spread(net))
    np.testing.assert_array_equal(predicted.label_term_relative_spread, exact.label_spread(net))
    with pytest.raises(ValueError, match="'exact' alone"):
        mf.predict(net, level="mean_field", spread=True)


def test_spread_at_two_printed_depths():
    """At n = 64 one draw of F spreads by 43 % at l = 3 and 183 % at l = 12 (docs/theory.md section 3)."""
    spread = exact.relative_spread(mf.MLP(depth=12, width=64))
    assert spread[0] == pytest.approx(0.0, abs=1e-6)
    assert spread[[2, 11]] == pytest.approx([0.43, 1.83], abs=0.005)


def test_a_million_layers_stay_finite_in_logs():
    """F grows by 1 + 5/n a layer, as |z|^4 does, and l^2 beside; moments of six legs outgrow it by exp(9000)."""
    predicted = mf.predict(mf.MLP(depth=10**6, width=1024), level="exact")
    assert np.all(np.isfinite(predicted.log_update_energy))
    assert np.isfinite(predicted.log_learning_rate_scale)
    rate = float(predicted.log_overlap_energy.diff("layer")[-1])
    assert rate == pytest.approx(np.log1p(5 / 1024) + 2 / 10**6, abs=1e-8)
    assert np.isinf(predicted.overlap_energy[-1])


def test_logs_are_the_logarithms():
    predicted = mf.predict(NETS["relu"], level="exact")
    for name in ("overlap_energy", "label_term", "output_term", "update_energy", "learning_rate_scale"):
        np.testing.assert_allclose(np.exp(predicted[f"log_{name}"]), predicted[name], rtol=1e-12)
    np.testing.assert_allclose(predicted.update_energy, predicted.label_term + predicted.output_term, rtol=1e-12)
    np.testing.assert_allclose(predicted.learning_rate_scale, predicted.update_energy.mean() ** -0.5, rtol=1e-12)


def test_output_term_is_no_lower_order():
    """A4: with few outputs and unit labels A/B = 1 + O(M L / n), not O(1/l); with M = n it dominates."""
    wide = mf.predict(mf.MLP(depth=40, width=10**6, outputs=1), level="exact")
    np.testing.assert_allclose(wide.output_term / wide.label_term, 1.0, atol=1e-3)
    many = mf.predict(mf.MLP(depth=40, width=2000, outputs=2000), level="exact")
    assert float((many.output_term / many.label_term)[-1]) > 10
    mup = mf.predict(mf.MLP(depth=40, width=2000, outputs=1, head="mup"), level="exact")
    assert float((mup.output_term / mup.label_term)[-1]) < 0.01


@pytest.mark.parametrize("net", [mf.MLP(depth=3, width=24, outputs=20), mf.MLP(depth=2, width=24, activation="linear")])
@pytest.mark.usefixtures("no_overlap_energies")
def test_label_spread_of_one_draw(net):
    """Its second moment over draws; that of F alone is seen to be too small (negative control)."""
    exact_square = np.exp(2 * exact.exact_terms(net).label_term)
    squares = in_batches(partial(draw_energies, net, 3), 12_000)["label_term"] ** 2 / exact_square
    mean, error = squares.mean(axis=0), squares.std(axis=0) / np.sqrt(len(squares))
    effective = int(len(squares) / (1 + (squares.std(axis=0) / mean) ** 2).max())
    assert consistent(mean - 1 - exact.label_spread(net) ** 2, error, effective)
    assert not consistent(mean - 1 - exact.relative_spread(net) ** 2, error, effective)
