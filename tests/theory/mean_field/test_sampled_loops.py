"""One step of other optimizers in loops: a matrix by its queries, descent in closed form, and draws at three widths."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.optimizers.first_steps import FirstStep
from meanfield.theory.mean_field import sampled_units
from meanfield.theory.mean_field.sampled_units import Queried, loop_step_terms
from tests.statistics import consistent


def test_a_matrix_answers_as_one_matrix():
    """Linear, the same again, of the energy of a Gaussian matrix; adjoint but for noise."""
    rng, count = np.random.default_rng(0), 4096
    matrix = Queried(64, 2.0 / 64, count, 4)
    first, second, left = rng.normal(size=(3, count))
    right = [matrix.raise_(column, rng.normal(size=count)) for column in (first, second)]
    down = matrix.lower(left + right[0], rng.normal(size=count))
    noise = np.sqrt(2 * count) * np.sqrt(np.mean((left + right[0]) ** 2))
    for column, answer in zip((first, second), right, strict=True):
        assert (left + right[0]) @ answer == pytest.approx(down @ column, abs=4 * noise)
    both = matrix.raise_(2 * first - second, rng.normal(size=count))
    np.testing.assert_allclose(both, 2 * right[0] - right[1], atol=1e-6)
    third = rng.normal(size=count)
    assert (left + right[0]) @ matrix.raise_(third, rng.normal(size=count)) == pytest.approx(
        down @ third, abs=4 * noise
    )
    assert np.mean(right[0] ** 2) == pytest.approx(2 * np.mean(first**2), rel=0.1)


def test_descent_in_a_short_linear_loop():
    """One step: T = e^2 N y x x^T; two of a linear loop by hand, at width to infinity."""
    loop = mf.TiedLoop(depth=1, width=64, alpha=1.0, activation="linear")
    assert loop_step_terms(loop, FirstStep("sgd")).label == pytest.approx([1.0], rel=0.02)
    # u_2 = y, u_1 = y + e g, x_1 = x + e r, at e = 1/2, variance 2: T_1 = e^2 (u_1 + u_2 x_0.x_1) and so on
    loop = loop.replace(depth=2)
    assert loop_step_terms(loop, FirstStep("sgd")).label[0] == pytest.approx(1 / 16 * (1.5 + 1 + 2), rel=0.03)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize(
    "fields",
    [
        {"depth": 6, "alpha": 1.0},
        {"depth": 4, "alpha": 0.5},
        {"depth": 4, "alpha": 0.5, "tied": False},
        {"depth": 4, "alpha": 1.0, "activation": "gelu", "weight_variance": 1.0},
    ],
)
def test_draws_tend_to_it_as_the_width_grows(optimizer, fields):
    for width, draws in ((64, 128), (128, 64), (256, 32)):
        loop = mf.TiedLoop(width=width, **fields)
        measured = mf.simulate(loop, draws=draws, seed=4, measure=mf.Energies(optimizer=optimizer))
        predicted = mf.predict(loop, level="mean_field", optimizer=optimizer)
        for name in ("label_term", "output_term", "update_energy", "output_update_energy"):
            ratio, stderr = measured[name] / predicted[name] - 1, measured[f"{name}_stderr"] / predicted[name]
            stderr = np.hypot(stderr, predicted.attrs["relative_error"])
            assert consistent(ratio, stderr, draws, 6 / width), (width, name)
            assert not consistent(ratio - 0.8, stderr, draws, 6 / width)
        ratio = measured["update_energy"] / predicted["update_energy"]


def test_what_ties_do_depends_on_the_optimizer():
    """Gradients of L uses add up under descent, and have no more than one sign."""
    tied, step = mf.TiedLoop(depth=6, width=64), FirstStep("adamw")
    own = tied.replace(tied=False)
    under_signs = loop_step_terms(tied, step).update / loop_step_terms(own, step).update
    assert np.all((under_signs > 0.9) & (under_signs < 2.0))
    assert np.all(loop_step_terms(tied, FirstStep("sgd")).update > 5 * loop_step_terms(own, FirstStep("sgd")).update)


def test_scales_hardly_depend_on_the_number_of_steps_of_size_one_over_it():
    """e sum over L steps of one matrix: births add up to order 1 at alpha = 1, whatever their number."""
    scales = [
        float(
            mf.predict(mf.TiedLoop(depth=depth, width=64), level="mean_field", optimizer="muon")["learning_rate_scale"]
        )
        for depth in (4, 8, 16)
    ]
    assert np.abs(np.diff(np.log2(scales))).max() < 0.35


@pytest.mark.parametrize(
    ("loop", "optimizer", "why"),
    [
        (mf.TiedLoop(depth=4, width=8), "sophia", "more than the signs"),
        (mf.TiedLoop(depth=65, width=128), "adamw", "up to 64 of them"),
        (mf.TiedLoop(depth=9, width=8), "muon", "no more than units"),
    ],
)
def test_refusals(loop, optimizer, why):
    with pytest.raises(ValueError, match=why):
        mf.predict(loop, level="mean_field", optimizer=optimizer)


def test_correlations_are_those_of_what_has_not_moved():
    with pytest.raises(ValueError, match="before anything moves"):
        mf.predict(mf.TiedLoop(depth=2, width=8), level="mean_field", optimizer="muon", correlations=True)


def test_energies_beyond_floats_are_an_error():
    with pytest.raises(OverflowError, match="range of floats"):
        mf.predict(mf.TiedLoop(depth=60, width=64, alpha=-20.0), level="mean_field", optimizer="muon")


def test_more_replicates_lower_the_error_that_is_stated(monkeypatch):
    loop = mf.TiedLoop(depth=3, width=64)
    few = loop_step_terms(loop, FirstStep("adamw"))
    monkeypatch.setattr(sampled_units, "REPLICATES", 32)
    many = loop_step_terms(loop, FirstStep("adamw"))
    assert many.attrs["relative_error"] < few.attrs["relative_error"]
    assert np.abs(few.update / many.update - 1).max() < 6 * few.attrs["relative_error"]
